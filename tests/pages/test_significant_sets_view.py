"""Significant sets of a scan, and histories, where people see them: Training, Review, the file."""

from __future__ import annotations

import pytest

from core.export.page_html import page
from core.models.events import Interaction, SignificantSets
from core.quality.report.types import Report
from core.runs.events import RunEvent
from core.services import reviews
from tests.pages.screen import finish, in_tab, small_report, whole, words

pytestmark = pytest.mark.slow

TOLD = SignificantSets(
    sets=(
        Interaction(columns=("age", "ward", "days"), score=80.0, target=True),
        Interaction(columns=("age", "cost"), score=30.0),
    )
)
SENTENCE = "The clearest is that of age × ward × days, 80 standard deviations"


def tell(store, run):
    for sets in ((), TOLD.sets):  # the newest word counts
        event = SignificantSets(sets=sets)
        store.journal.append(run.id, RunEvent(kind=event.kind, data=event.data))


def test_training_draws_it_once_opened(store, start, show):
    run = start(model="scan_focus")
    assert "significant_sets" not in show("training", run=run.id).session_state
    tell(store, run)
    at = whole(show("training", run=run.id))
    assert SENTENCE not in words(at) and not at.get("plotly_chart")
    at.session_state["significant_sets"] = True
    at = whole(at.run())
    assert SENTENCE in words(at) and len(at.get("plotly_chart")) == 1


def test_review_shows_it_in_both_views_and_the_file_too(store, start, show):
    run = start(model="scan_focus")
    outside = small_report(filled=True) | {"view": "outside"}
    finish(store, run, report=small_report(filled=True), outside=outside)
    before = reviews.report(store, run.id)
    assert not before["significant_sets"] and "Significant relationships" not in page(before, "t")
    tell(store, run)
    for view in ("inside", "outside"):
        at = in_tab(show("review", run=run.id, view=view), "Pairs")
        assert SENTENCE in words(at)
        assert "together tell something" in words(in_tab(at, "Findings and scores"))
        assert len(Report.model_validate(reviews.report(store, run.id, view)).significant_sets) == 2
        file = page(reviews.report(store, run.id, view), "t")
        assert SENTENCE in file and "together tell something" in file


def test_histories_have_a_tab_and_a_choice_of_column(store, show, start):
    report = small_report(filled=True)
    ends = {"key": "history_gaps", "title": "Histories: time between events", "dealt": 0.4}
    report["scores"].append(report["scores"][0] | ends)
    report["histories"] = [one | {"file": name} for name in "ab" for one in report["histories"]]
    run = start()
    finish(store, run, report=report, outside=report | {"view": "outside", "histories": []})
    at = in_tab(show("review", run=run.id, view="inside"), "Histories")
    (chosen,) = [box for box in at.selectbox if box.label == "Events of"]
    assert chosen.options == ["a · ward", "a · dose", "b · ward", "b · dose"]
    assert "what comes after each event of ward" in words(at).lower()
    at = whole(chosen.select((1, 1)).run())
    assert "what comes after each event of dose" in words(at).lower()
    (ends,) = [one.value for one in at.dataframe if "Events dealt" in one.value.to_string()][:1]
    assert 0.4 in ends.to_numpy()
    outside = whole(show("review", run=run.id, view="outside"))
    assert not [tab for tab in outside.tabs if "Histories" in tab.label]
