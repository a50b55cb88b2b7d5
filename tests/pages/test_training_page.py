"""Training: a run in every state, what it says and what may be pressed."""

from __future__ import annotations

import math

import pytest
from streamlit.testing.v1 import AppTest

from core.cluster.ray_config import ABSENT, HANDING_OVER, IN_QUEUE, UNREACHABLE
from core.models.events import Metrics, PhaseStarted, Preview, Progress, Signal
from core.privacy.accounting.accountant import epsilon
from core.runs.errors import RunStoreError
from core.runs.events import RunEvent, State
from core.schema.rounding_up import round_up
from core.services import runs, tables
from pages.shared import widgets as shared
from pages.training import page
from tests.pages.conftest import IdleLauncher
from tests.pages.screen import buttons, finish, press, running, small_report, whole, words

pytestmark = pytest.mark.slow


@pytest.fixture
def live(store, start):
    run = start()
    running(store, run)
    return run


def spent(store, run, *, checkpoint: bool) -> None:
    """Leave what a worker leaves after its first private access."""
    store.record(run.id, debit="entry")
    store.artefacts(run.id).path("meter.json").write_text("{}")
    if checkpoint:
        folder = store.artefacts(run.id).path("checkpoint")
        folder.mkdir()
        (folder / "step.json").write_text("{}")


def test_a_running_run_shows_where_it_is(store, live, show):
    tell = [
        PhaseStarted(name="training", title="Training"),
        Progress(step=0, steps=200, phase="training"),
        Progress(step=50, steps=200, phase="training"),
        Metrics(step=25, values={"mismatch": 2.0, "noise": float("nan")}),
        Metrics(step=50, values={"mismatch": 1.0, "noise": 0.5}),
        Preview(rows=[{"age": 30}, {"age": 40}]),
        RunEvent(kind="device", data={"device": "cpu", "cpu_percent": 99.6, "memory_mb": 1234.0}),
    ]
    for event in tell:
        store.journal.append(live.id, event)
    at = whole(show("training", run=live.id))
    assert buttons(at) == ["Pause", "Cancel …"]
    shown = {metric.label: metric.value for metric in at.metric}
    assert shown["Processor"] == "100%" and shown["Memory"] == "1,234 MB"
    assert shown["Speed"].endswith("steps/s")
    (bar,) = at.get("progress")
    assert 0 < bar.proto.value < 25  # of the whole run, not of its present stage
    assert bar.proto.text.startswith(f"Training · {bar.proto.value}%")
    assert "left" in bar.proto.text
    assert len(at.get("vega_lite_chart")) == 1
    assert at.dataframe[0].value["age"].tolist() == [30, 40]


def test_a_run_that_just_began_shows_no_numbers_it_does_not_have(live, show):
    at = whole(show("training", run=live.id))
    (bar,) = at.get("progress")
    assert bar.proto.text == "Starting · 0%"
    assert {m.label: m.value for m in at.metric}["Speed"] == "—"


def test_a_graphics_card_is_named(store, live, show):
    data = {"device": "cuda", "gpu_percent": 55.0, "gpu_name": "H200", "memory_mb": 1.0}
    store.journal.append(live.id, RunEvent(kind="device", data=data))
    at = whole(show("training", run=live.id))
    assert {m.label: m.value for m in at.metric}["GPU"] == "55%"


def test_pause_reaches_the_worker(store, live, show):
    at = whole(press(show("training", run=live.id), "Pause"))
    assert store.signal(live.id) is Signal.PAUSE and not at.error
    assert len(at.toast) == 1


def test_cancel_asks_first_and_says_what_is_lost(store, live, show):
    spent(store, live, checkpoint=False)
    at = whole(press(show("training", run=live.id), "Cancel …"))
    assert store.signal(live.id) is Signal.GO_ON  # one press ends nothing
    epsilon = f"ε = {live.plan.guarantee.epsilon:.3g}"
    assert epsilon in words(at) and "stays spent" in words(at)
    whole(press(at, "Keep it"))
    assert store.signal(live.id) is Signal.GO_ON and "for good" not in words(at)
    whole(press(at, "Cancel …"))
    whole(press(at, "End permanently"))
    assert store.signal(live.id) is Signal.CANCEL


def test_pause_is_offered_instead_of_the_end(store, live, show):
    at = whole(press(show("training", run=live.id), "Cancel …"))
    assert "the ledger is being charged for it now" in words(at)
    assert "Nothing was spent" not in words(at) and "Nothing is lost" not in words(at)
    whole(press(at, "Pause instead"))
    assert store.signal(live.id) is Signal.PAUSE and "End permanently" not in buttons(at)


def test_ending_a_comparison_loses_no_table(store, start, show):
    run = start()
    finish(store, run, report=small_report(complete=False), state=State.RUNNING)
    at = whole(press(show("training", run=run.id), "Cancel …"))
    assert "The synthetic table is finished and stays" in words(at)
    assert "stays spent" not in words(at) and "Pause instead" not in buttons(at)


def test_the_question_is_about_one_run(store, live, start, show):
    other = start()
    at = whole(press(show("training", run=live.id), "Cancel …"))
    at = whole(at.selectbox[0].select(other.id).run())
    assert "End permanently" not in buttons(at)


def test_a_paused_tab_follows_what_others_do(store, start):
    """A stale picture of the run is drawn anew; a true one is left alone."""

    def script(run_id, message):
        import streamlit as st

        from core.runs.events import State
        from pages.training import page as training

        st.session_state["drawn"] = st.session_state.get("drawn", 0) + 1
        if st.session_state["drawn"] == 1:
            training._follow(run_id, (State.PAUSED, 1, message))

    run = start()
    store.set_state(run.id, State.PAUSED, "Paused.")
    for message, drawn in (("Paused.", 1), ("Paused long ago.", 2)):
        at = AppTest.from_function(script, args=(run.id, message)).run()
        assert at.session_state["drawn"] == drawn


def test_a_queued_run_says_for_whom_it_waits(store, live, start, show):
    waiting = start()
    at = whole(show("training", run=waiting.id))
    assert f"It is waiting for “{shared.run_title(live)}”" in words(at)
    assert buttons(at) == ["Cancel …"]
    whole(press(at, "Cancel …"))
    whole(press(at, "End permanently"))
    ended = store.run(waiting.id)
    assert ended.state is State.CANCELLED
    assert "Nothing was spent" in words(whole(show("training", run=waiting.id)))


@pytest.mark.parametrize("state", [State.PAUSED, State.FAILED, State.LOST])
def test_with_a_checkpoint_a_run_goes_on_for_nothing(store, start, show, state, monkeypatch):
    run = start()
    spent(store, run, checkpoint=True)
    store.set_state(run.id, state, "It stopped.", error="It broke." if state == "failed" else None)
    at = whole(show("training", run=run.id))
    assert buttons(at) == ["Resume", "Give up …"]
    assert "spends nothing more" in words(at)
    assert ("It broke." if state is State.FAILED else "It stopped.") in words(at)
    asked = []
    monkeypatch.setattr(page.runs, "resume", lambda *a, **k: asked.append((a[2], k)))
    whole(press(at, "Resume"))
    assert asked == [(run.id, {"spend_again": False})]


@pytest.mark.parametrize("state", [State.FAILED, State.LOST])
def test_without_a_checkpoint_going_on_names_its_price(store, start, show, state, monkeypatch):
    run = start()
    spent(store, run, checkpoint=False)
    store.set_state(run.id, state, "It stopped.")
    at = whole(show("training", run=run.id))
    label = "Start again (spends ε = 1 again)"
    assert buttons(at) == [label, "Give up …"]
    assert "There is no checkpoint to resume from." in at.error[0].value
    assert "spends nothing" not in words(at)
    asked = []
    monkeypatch.setattr(page.runs, "resume", lambda *a, **k: asked.append(k))
    whole(press(at, label))
    assert asked == [{"spend_again": True}]


def test_a_run_that_failed_before_it_spent_says_so(store, start, show):
    run = start()
    store.set_state(run.id, State.FAILED, error="No memory.")
    at = whole(show("training", run=run.id))
    assert buttons(at) == ["Resume", "Give up …"]
    assert "Nothing was spent on this run yet" in words(at) and "checkpoint" not in words(
        at
    ).replace(page.KEPT[State.FAILED], "")


def test_a_run_without_privacy_has_no_price_to_name(store, start, show):
    run = start(math.inf)
    spent(store, run, checkpoint=False)
    store.set_state(run.id, State.FAILED, error="It broke.")
    assert buttons(show("training", run=run.id))[0] == "Start again (not private)"


def test_giving_up_says_what_stays_spent(store, start, show):
    run = start()
    spent(store, run, checkpoint=True)
    store.set_state(run.id, State.FAILED, error="It broke.")
    at = whole(press(show("training", run=run.id), "Give up …"))
    assert store.run(run.id).state is State.FAILED and "stays spent" in words(at)
    at = whole(press(at, "End permanently"))
    assert store.run(run.id).state is State.CANCELLED
    assert "What it spent stays spent." in words(at)
    assert "Resume" not in buttons(at)


def test_a_refusal_to_resume_is_a_plain_error(store, start, show, monkeypatch):
    run = start()
    store.set_state(run.id, State.PAUSED)
    at = show("training", run=run.id)

    def refuse(*_, **__):
        raise RunStoreError("A run that is running cannot be resumed.")

    monkeypatch.setattr(page.runs, "resume", refuse)
    assert "cannot be resumed" in whole(press(at, "Resume")).error[0].value


def test_a_done_run_leads_on(store, start, show, gone):
    run = start()
    finish(store, run, report=small_report())
    at = whole(show("training", run=run.id))
    assert "It took 1 min 2 s." in at.success[0].value
    for label in ("Review", "Download"):
        whole(press(at, label))
    assert gone == [("review", {"run": run.id}), ("download", {"run": run.id})]


def test_a_run_of_another_address_can_be_opened(store, start, show):
    first, second = start(), start()
    at = whole(show("training", run=second.id))
    at = whole(at.selectbox[0].select(first.id).run())
    assert at.query_params["run"] == first.id
    at = whole(at.selectbox[0].select(second.id).run())
    assert at.query_params["run"] == second.id and at.selectbox[0].value == second.id


@pytest.mark.parametrize("name", ["training", "review", "download"])
def test_an_old_address_shows_no_other_run(store, start, show, gone, downloads, name):
    run = start()
    finish(store, run, report=small_report())
    at = whole(show(name, run="0123456789"))
    assert "deleted" in at.warning[0].value and buttons(at) == ["Show what is available"]
    assert at.query_params["run"] == "0123456789"
    assert run.title not in words(at) and not downloads and not at.selectbox
    whole(press(at, "Show what is available"))
    assert gone == [("training", {})]


def test_a_dead_worker_is_seen_as_lost(store, start, show):
    run = start()
    assert store.claim(run.id, slots=1)
    assert store.adopt(run.id, 1)
    with store.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE runs SET pid_started = 1.0")
    at = whole(show("training", run=run.id))
    assert store.run(run.id).state is State.LOST
    assert buttons(at) == ["Resume", "Give up …"] and "unexpectedly" in at.error[0].value


def test_a_private_stage_says_where_it_is_and_what_it_has_spent(store, start, show):
    run = start(model="p3gm")
    plan = run.plan
    running(store, run)
    steps = plan.phase("decoder").count
    for phase in plan.phases:
        data = {"name": phase.name, "title": phase.title, "private": True}
        store.journal.append(run.id, PhaseStarted(**data))
    half = {"step": steps // 2, "steps": steps, "phase": "decoder", "unit": "steps"}
    store.journal.append(run.id, Progress(**half))
    told = {"signal-to-noise ratio": 1.0, "records clipped, %": 90.0}
    store.journal.append(run.id, Metrics(step=10, values=told))
    at = whole(show("training", run=run.id))
    (bar,) = at.get("progress")
    assert 0 < bar.proto.value < 50
    assert len(at.get("vega_lite_chart")) == 2  # one a chart of the card
    spent = runs.epsilon_so_far(store, run.id)
    assert 0.4 < spent < 0.95 and f"**{round_up(spent, '.2f'):.2f}** of 1.00" in words(at)


def test_training_shows_its_own_steps_not_the_preliminary_ones(store, start, show, monkeypatch):
    run = start(model="scan_focus")
    running(store, run)
    distances = [(10, 5.0), (200, 2.0), (5, 3.0), (10, 1.5), (15, 1.2)]
    distances += [(11, 1.4), (16, 1.1)]  # went on from a checkpoint
    for step, distance in distances:
        store.journal.append(run.id, Metrics(step=step, values={"single columns": distance}))
    drawn = []
    monkeypatch.setattr("pages.shared.lines.draw", lambda frame, **_: drawn.append(frame))
    whole(show("training", run=run.id))
    assert drawn[-1].index.tolist() == [5, 10, 11, 16]
    assert drawn[-1].iloc[:, 0].tolist() == [3.0, 1.5, 1.4, 1.1]


def test_spending_grows_with_stages_and_ends_at_the_plan(store, start):
    run = start(model="p3gm")
    plan = run.plan
    assert runs.epsilon_so_far(store, run.id) == 0.0
    seen = []
    for phase in plan.phases:
        name, count = phase.name, phase.count
        data = {"name": name, "title": name, "private": True}
        store.journal.append(run.id, PhaseStarted(**data))
        for step in (count // 2, count):
            told = {"step": step, "steps": count, "phase": name}
            store.journal.append(run.id, Progress(**told))
            seen.append(runs.epsilon_so_far(store, run.id))
    assert seen == sorted(seen) and seen[0] > 0.1
    assert seen[-1] == pytest.approx(plan.guarantee.epsilon)


def test_certificates_and_earlier_attempts_are_spent_too(store, table, start):
    tables.change_groups(store, table, {"age": "ages"})
    store.attest(table.id)
    run = start(epsilon=2.0, certificate=0.2, attempts=2, review=0.1)
    plan = run.plan

    def begin(*names):
        for name in names:
            store.journal.append(run.id, PhaseStarted(name=name, title=name, private=True))
        return runs.epsilon_so_far(store, run.id)

    own = [phase.name for phase in plan.phases[: len(plan.phases) - plan.added]]
    without = begin("debit", "read", *own, "review")
    assert begin("certificate") > without + 0.1
    first = begin("sample")
    assert first == pytest.approx(epsilon(plan.phases, plan.budget.delta)[0])
    store.artefacts(run.id).within("checkpoint").within("attempt-2")
    second = begin(own[0])
    assert second > first + 0.01
    whole = begin(*own[1:], "certificate", "sample")
    assert second < whole < plan.guarantee.epsilon  # the pictures were bought once
    assert whole > 0.9 * plan.guarantee.epsilon


def test_nothing_is_counted_where_nothing_is_claimed(store, start):
    assert runs.epsilon_so_far(store, start(math.inf).id) is None


@pytest.mark.parametrize("message", [HANDING_OVER, IN_QUEUE, ABSENT, UNREACHABLE])
def test_a_run_that_waits_for_a_cluster_says_what_for(store, start, show, message):
    run, other = start(), start()
    store.set_state(other.id, State.RUNNING)
    store.set_state(run.id, State.QUEUED, message)
    at = whole(show("training", run=run.id))
    assert at.info[0].value == message and "It is waiting for" not in words(at)


@pytest.mark.parametrize("times", [2, 0])
def test_a_lost_run_goes_on_by_itself_on_a_cluster(store, start, show, monkeypatch, times):
    monkeypatch.setattr(IdleLauncher, "restarts", times)
    run = start()
    spent(store, run, checkpoint=True)
    store.set_state(run.id, State.LOST, "What happened.")
    at = whole(show("training", run=run.id))
    assert ("on another machine within minutes, up to 2 times" in words(at)) is (times == 2)
    assert ("Resume continues from what was saved" in words(at)) is (times == 0)
