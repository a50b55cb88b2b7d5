"""The reporter: how often events pass, and when a signal is followed."""

from core.models.events import PhaseStarted, Progress, Signal
from core.runs.execution.reporter import Pace, Reporter
from core.runs.records import TableRecord
from core.runs.storage.store import RunStore
from tests.runs.workers import queued, toy_plan


def test_the_pace_of_events_falls_with_age() -> None:
    now = 0.0
    pace = Pace(0.25, clock=lambda: now)
    passed = []
    while now < 36_000.0:
        if pace.due():
            passed.append(now)
        now += 0.05 if now < 10 else 0.5
    assert sum(t < 10 for t in passed) <= 41
    # 2,000 at full pace until t₀ = 500 s, then one each t/2000 s: 2000 · ln(36000/500) ≈ 8,550
    assert 5_000 < len(passed) < 11_000


def test_thinned_events_keep_the_last_of_a_phase(store: RunStore, table: TableRecord) -> None:
    run = queued(store, table, toy_plan(table))
    reporter = Reporter(store, run.id)
    for step in range(1, 101):
        reporter(Progress(step=step, steps=100, phase="fit"))
    reporter(PhaseStarted(name="next", title="Next"))
    steps = [event.data["step"] for event in store.journal.events(run.id, kind="progress")]
    assert len(steps) <= 5 and steps[0] == 1 and steps[-1] == 100


def test_a_pause_waits_until_what_was_paid_for_is_kept(store: RunStore, table: TableRecord) -> None:
    run = queued(store, table, toy_plan(table))
    reporter = Reporter(store, run.id)
    store.request(run.id, Signal.PAUSE)
    assert reporter(PhaseStarted(name="sum", title="Sum", private=True)) is Signal.GO_ON
    checkpoint = store.artefacts(run.id).path("checkpoint")
    checkpoint.mkdir()
    (checkpoint / "toy.half").write_text("")
    assert reporter.signal() is Signal.GO_ON, "a file still being written is no checkpoint"
    (checkpoint / "toy.pt").write_text("")
    assert reporter.signal() is Signal.PAUSE
    (checkpoint / "toy.pt").unlink()
    assert reporter(PhaseStarted(name="fit", title="Fit")) is Signal.PAUSE
