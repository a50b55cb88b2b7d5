"""Looking at several runs, choosing by eye or by noisy scores, and what Download then says."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from core.quality.metrics.noisy import NoisyCells, SyntheticCells
from core.runs.execution import noisy_scores
from core.runs.storage.reviews import notes
from core.runs.storage.reviews.inside_views import record_view, recorded_views, viewed_runs
from pages.server import guard
from tests.pages.screen import (
    button,
    buttons,
    each_tab,
    finish,
    in_tab,
    press,
    small_report,
    whole,
    words,
)
from tests.pages.test_review_flow import outside_report

pytestmark = pytest.mark.slow

UNPAID = "Chosen among 2 runs after looking at real data; the choice is not covered by ε."
PAID = "Chosen among 2 runs by noisy scores that ε covers"


@pytest.fixture
def pair(store, start):
    """Two finished runs."""
    runs = [start(), start()]
    for run in runs:
        finish(store, run, report=small_report(filled=True), outside=outside_report())
    return runs


@pytest.fixture
def scored(store, pair):
    """The same, after the first bought noisy counts; the second is nearer."""
    domain = pair[0].schema.domain()
    key = noisy_scores.cells_key(domain, pair[0].plan.n)
    sizes, n = (10, 10), pair[0].plan.n
    real = np.full(20, n / 10)
    cells = NoisyCells(key=key, n=n, noise_std=0.5, sizes=sizes, counts=tuple(real + 0.3))
    released = store.artefacts(pair[0].id).path(noisy_scores.ScoreCounts.artefact)
    released.write_text(cells.model_dump_json())
    for run, off in zip(pair, (20.0, 1.0), strict=True):
        counts = real + off * np.tile([1, -1], 10)
        made = SyntheticCells(key=key, rows=n, counts=tuple(counts))
        store.artefacts(run.id).path(noisy_scores.SYNTHETIC_CELLS).write_text(
            made.model_dump_json()
        )
    return pair


def papers(show, downloads, run):
    """The certificate that Download sends, and the page."""
    downloads.clear()
    at = whole(show("download", run=run.id))
    (name,) = (name for name in downloads if name.endswith("certificate.json"))
    return json.loads(downloads[name]()), at


# -- choosing by eye ----------------------------------------------------------------------------


def test_review_of_two_runs_makes_the_certificate_say_so(store, show, pair, downloads):
    one, other = pair
    whole(show("review", run=one.id))
    found, at = papers(show, downloads, one)
    assert found == {"relation": "zero-out"} and "Chosen among" not in words(at)
    whole(show("review", run=other.id))
    for run in pair:
        found, at = papers(show, downloads, run)
        assert found["conditions"] == [UNPAID] and found["selection"] == UNPAID
        assert UNPAID in words(at)  # in sight, and once more among the conditions
    assert {seen.run_id for seen in recorded_views(store, one.account_id)} == {one.id, other.id}


def test_a_page_left_open_still_sends_the_later_truth(store, show, pair, downloads):
    found, _ = papers(show, downloads, pair[0])
    assert found == {"relation": "zero-out"}
    send = next(data for name, data in downloads.items() if name.endswith("certificate.json"))
    for run in pair:
        record_view(store, table_id=run.table_id, run_id=run.id, author="Ada")  # in another tab
    assert json.loads(send())["conditions"] == [UNPAID]


def test_the_steward_reads_who_looked(store, show, pair, monkeypatch):
    record_view(store, table_id=pair[0].table_id, run_id=pair[0].id, author="Rita")
    record_view(store, table_id=pair[1].table_id, run_id=pair[1].id, author="Otto")
    said = words(in_tab(show("review", run=pair[0].id, view="outside"), "Discussion"))
    assert "first seen by: Rita" in said and "Otto" not in said
    monkeypatch.setattr(guard, "steward", lambda: False)
    for at in each_tab(show("review", run=pair[0].id, view="outside")):
        assert "Rita" not in words(at)


def test_the_comparison_opens_every_run_it_shows(store, show, pair, downloads):
    third = pair[0]
    whole(show("review", run=pair[0].id, runs=",".join(run.id for run in pair)))
    assert viewed_runs(store, third.account_id) == {run.id for run in pair}
    assert papers(show, downloads, third)[0]["selection"] == UNPAID


def test_the_outside_view_is_no_look(store, show, pair, downloads):
    for run in pair:
        at = whole(show("review", run=run.id, view="outside"))
        assert "Outside view" in words(at)
    runs = ",".join(run.id for run in pair)
    at = whole(show("review", run=pair[0].id, runs=runs, views="outside"))
    assert "Outside view" in words(at)
    assert recorded_views(store, pair[0].account_id) == ()
    assert papers(show, downloads, pair[0])[0] == {"relation": "zero-out"}


def test_a_report_that_is_not_there_yet_was_not_seen(store, start, show):
    run = start()
    finish(store, run)
    whole(show("review", run=run.id))
    assert recorded_views(store, run.account_id) == ()


def test_who_looked_is_kept_by_name(store, show, pair, monkeypatch):
    monkeypatch.setattr(guard, "person", lambda: "Rita")
    whole(show("review", run=pair[0].id))
    assert [seen.author for seen in recorded_views(store, pair[0].account_id)] == ["Rita"]


def test_every_shown_paper_says_it_review_and_both_files(store, show, pair, downloads):
    for run in pair:
        whole(show("review", run=run.id))
    for view in ("inside", "outside"):
        downloads.clear()
        at = whole(show("review", run=pair[0].id, view=view))
        assert UNPAID in words(at)
        (name,) = (name for name in downloads if name.endswith(f"review-{view}.html"))
        assert UNPAID in downloads[name]().decode()


def test_without_privacy_there_is_no_claim_to_condition(store, start, show, pair, downloads):
    run = start(math.inf)
    finish(store, run, report=small_report())
    for one in (run, pair[0]):
        whole(show("review", run=one.id))
    assert papers(show, downloads, run)[0] == {"relation": "zero-out"}
    assert papers(show, downloads, pair[0])[0]["selection"] == UNPAID


# -- choosing by noisy scores -------------------------------------------------------------------


def test_the_best_is_picked_by_its_noisy_score_without_a_look(store, show, scored, downloads):
    far, near = scored
    at = whole(show("review", run=far.id, runs=f"{far.id},{near.id}"))
    said = words(at)
    assert "Outside view" in said and "larger than the noise" in said
    (table,) = [frame.value for frame in at.dataframe if "↓ Noisy score" in frame.value]
    assert len(table) == 2 and table["± (noise)"].gt(0).all()
    at.text_input(key="name_score").set_value("Cy")
    whole(press(at, "Pick the run with the best noisy score"))
    assert notes.picked(store, far.table_id) == (near.id, "Cy")
    assert recorded_views(store, far.account_id) == ()
    found, at = papers(show, downloads, near)
    (condition,) = found["conditions"]
    assert condition.startswith(PAID) and condition in words(at)
    assert papers(show, downloads, far)[0] == {"relation": "zero-out"}
    assert "picked another run of this table" in words(show("download", run=far.id))


def test_an_inside_view_of_the_other_run_takes_the_cover_away(store, show, scored, downloads):
    far, near = scored
    address = f"{far.id},{near.id}"
    at = whole(show("review", run=far.id, runs=address, views="inside"))
    said = words(at)
    assert "the certificate still says" in said and "Inside view" in said
    at.text_input(key="name_score").set_value("Cy")
    whole(press(at, "Pick the run with the best noisy score"))
    assert papers(show, downloads, near)[0]["conditions"] == [UNPAID]


def test_runs_with_scores_are_shown_from_outside_first(store, show, scored):
    at = whole(show("review", run=scored[1].id))
    assert "Outside view" in words(at) and recorded_views(store, scored[1].account_id) == ()
    at = whole(show("review", run=scored[1].id, view="inside"))
    assert "400 real and" in words(at)
    assert viewed_runs(store, scored[1].account_id) == {scored[1].id}


def test_without_scores_no_such_pick_is_offered(show, pair, scored, monkeypatch):
    runs = ",".join(run.id for run in pair)
    monkeypatch.setattr(guard, "steward", lambda: False)
    at = whole(show("review", run=pair[0].id, runs=runs))
    assert "Pick the run with the best noisy score" not in buttons(at)


# -- the plan -----------------------------------------------------------------------------------


def test_the_switch_adds_a_phase_once_for_a_table(store, table, show):
    at = whole(show("plan", table=table.id))
    toggle = next(t for t in at.toggle if t.key == "score")
    assert toggle.value is False and "Comparing runs without looking" not in words(at)
    at = whole(toggle.set_value(True).run())
    assert "Comparing runs without looking" in words(at)
    whole(button(at, "Train: spends ε = 1 of this table's budget").click().run())
    (run,) = store.runs(table.id)
    assert run.plan.phase(noisy_scores.ScoreCounts.name).share == noisy_scores.DEFAULT_SHARE
    key = noisy_scores.cells_key(run.schema.as_proposed().domain(), run.plan.n)
    cells = NoisyCells(key=key, n=400, noise_std=1.0, sizes=(1,), counts=(1.0,))
    released = store.artefacts(run.id).path(noisy_scores.ScoreCounts.artefact)
    released.parent.mkdir(parents=True, exist_ok=True)
    released.write_text(cells.model_dump_json())
    at = whole(show("plan", table=table.id))
    assert all(t.key != "score" for t in at.toggle)
    assert "An earlier run has already paid for noisy counts" in words(at)
    assert "Comparing runs without looking" not in words(at)
