"""Exposure: what attacks reached, on Review and in the way of a download."""

from __future__ import annotations

import pytest

from core.runs.storage.reviews import notes
from core.runs.storage.reviews.inside_views import viewed_runs
from core.runs.storage.reviews.notes import Decision
from core.services import reviews
from core.services.evidence.documents import best_attack_words, of_run
from tests.pages.screen import buttons, each_tab, finish, in_tab, press, small_report, whole, words
from tests.pages.test_review_flow import outside_report

pytestmark = pytest.mark.slow

GRAVE, WORKS, EDGE, NONE = (0.3, 0.001), (0.05, 0.01), (0.05, 0.02), (0.0, 0.6)  # lead and p


def attacked(store, run, lead, **more):
    """Finish a run whose one attack leads so much, so clearly; more is for `finish`."""
    attack = {
        "key": "closest", "title": "Nearer to the table", "meaning": "m", "unit": "share",
        "value": 0.5 + lead[0], "baseline": 0.5, "lead_needed": 0.04, "p": lead[1],
        "exposed": lead[1] <= 0.01, "records": 100, "strangers": 50,
    }  # fmt: skip
    finish(store, run, report=small_report() | {"attacks": [attack]}, **more)
    return run


@pytest.mark.parametrize(
    ("lead", "said"),
    [
        (GRAVE, "People may be exposed"),
        (WORKS, "earer to the table” (55.0%; 50.0% is expected without a leak)"),
        (EDGE, "At the edge of chance: “Nearer"),
        (NONE, "The attack that was tried works no better"),
        (NONE, "Tried on 100 rows of the table and 50 rows of strangers. A difference below 4.0%"),
    ],
)
def test_review_says_how_sure_it_is_and_what_to_do(store, start, show, gone, lead, said):
    run = attacked(store, start(), lead)
    at = in_tab(show("review", run=run.id), "Exposure")
    assert said in words(at)
    assert ("What to do" in words(at)) == (lead != NONE)
    assert ("People may be exposed" in words(at)) == (lead == GRAVE)
    if lead != NONE:
        for label in ("Plan another run", "Keep out more rows"):
            whole(press(at, label))
        assert gone == [("plan", {"table": run.table_id}), ("tables", {"table": run.table_id})]


@pytest.mark.parametrize("lead", [GRAVE, WORKS])
def test_an_alarm_holds_the_download_until_somebody_approves(store, start, show, lead):
    run = attacked(store, start(), lead)
    at = whole(show("download", run=run.id))
    assert not at.get("download_button") and "1 more person has to approve" in words(at)
    assert "What to do" in words(at) and "Go to the review" in buttons(at)
    where = {"table_id": run.table_id, "run_id": run.id, "decision": Decision.APPROVE}
    notes.decide(store, **where, author="Bea", view="outside")  # which shows no alarm
    assert not whole(show("download", run=run.id)).get("download_button")
    notes.decide(store, **where, author="Ada")
    at = whole(show("download", run=run.id))
    assert at.get("download_button") and "What to do" in words(at)  # the alarm still stands


@pytest.mark.parametrize("lead", [EDGE, NONE])
def test_without_an_alarm_nobody_need_approve(store, start, show, lead):
    run = attacked(store, start(), lead)
    assert whole(show("download", run=run.id)).get("download_button")


def test_whoever_sees_what_attacks_reached_has_looked_inside(store, start, show):
    run, untried = attacked(store, start(), NONE), start()
    finish(store, untried, report=small_report())
    for one in (run, untried):
        whole(show("download", run=one.id))
    assert viewed_runs(store, run.account_id) == {run.id}


def test_a_run_with_noisy_scores_opens_inside_only_on_request(store, start, show, monkeypatch):
    run = attacked(store, start(), WORKS)
    monkeypatch.setattr(reviews, "comparable", lambda *_: True)
    at = whole(show("download", run=run.id))
    assert not at.get("download_button") and not viewed_runs(store, run.account_id)
    assert "expos" not in words(at) and "approve" not in words(at)
    at = whole(press(at, "Show the attack results"))
    assert "Works better on people in the table" in words(at) and viewed_runs(
        store, run.account_id
    ) == {run.id}


def test_from_outside_nobody_learns_that_an_alarm_stands(store, start, show):
    run = attacked(store, start(), WORKS, outside=outside_report())
    for at in each_tab(show("review", run=run.id, view="outside")):
        assert "exposed" not in words(at) and "Download blocked" not in words(at)
    assert "Download blocked" in words(in_tab(show("review", run=run.id), "Discussion"))


@pytest.mark.parametrize("view", ["inside", "outside"])
def test_the_best_attack_is_shown_whoever_looks(store, start, show, view):
    run = attacked(store, start(), NONE, outside=outside_report())
    at = in_tab(show("review", run=run.id, view=view), "Exposure")
    bound = best_attack_words(of_run(run))
    told = {one.label: one.value for one in at.metric}
    found = f"{bound['found_at_1_percent']:.1%}"
    assert told["Found when 1% of all others are wrongly accused"] == found
    assert told["Right guesses, from 50:50"] == f"{bound['right']:.1%}"
    assert 0.5 < bound["right"] < 0.731  # what ε = 1 allows to the worst mechanism
