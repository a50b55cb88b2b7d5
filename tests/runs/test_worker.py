"""Real worker processes, with a toy model that needs no torch."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pandas as pd
import psutil
import pytest

from core.models.events import FitPaused, Progress, Wish
from core.models.planning import plan_fit
from core.privacy.ledger.ledger import Ledger, LedgerError
from core.privacy.plan import Budget, Plan
from core.runs.accounts.account import default_limit
from core.runs.execution import worker
from core.runs.execution.launcher import LocalLauncher
from core.runs.execution.reporter import Pace, Reporter
from core.runs.storage.events import State
from core.runs.storage.records import RunRecord, TableRecord
from core.runs.storage.store import RunStore, RunStoreError
from core.runs.storage.workspace import PROJECT_ROOT
from core.services import service
from tests.runs import toy

PATIENCE = 40.0  # seconds; a worker starts in about 2 on a free core


def toy_plan(table: TableRecord, *, epsilon: float = 1.0, **settings: float) -> Plan:
    budget = Budget(epsilon=epsilon, delta=1e-6)
    return plan_fit(toy.Toy(), table.schema.domain(), table.n, budget, dict(settings))


@pytest.fixture
def launcher(store: RunStore) -> Iterator[LocalLauncher]:
    yield LocalLauncher(store, command=toy.COMMAND)
    for run in store.runs():
        if run.state is State.RUNNING and run.pid is not None:
            os.kill(run.pid, signal.SIGKILL)
            until(lambda run_id=run.id: store.run(run_id).state is State.LOST)


def until(check: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not check():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.05)


def ended(store: RunStore, run_id: str) -> RunRecord:
    until(lambda: not store.run(run_id).state.live)
    return store.run(run_id)


def releases(store: RunStore, table: TableRecord) -> int:
    entries = Ledger(store.engine).entries(table.people)
    return sum(entry.kind == "release" for entry in entries)


def stepping(store: RunStore, run_id: str) -> bool:
    return store.latest(run_id, "progress") is not None


def start(store: RunStore, launcher: LocalLauncher, plan: Plan, **more: Any) -> RunRecord:
    (table,) = store.tables()
    return service.start(store, launcher, table_id=table.id, plan=plan, **more)


def test_a_run_from_start_to_table(
    store: RunStore, launcher: LocalLauncher, table: TableRecord
) -> None:
    run = ended(store, start(store, launcher, toy_plan(table), rows=25, seed=1).id)
    log = store.artefact(run.id, "worker.log").read_text()
    assert (run.state, run.message, run.error) == (State.DONE, "Done.", None), log
    synthetic = pd.read_parquet(store.artefact(run.id, "synthetic.parquet"))
    assert len(synthetic) == 25 and tuple(synthetic.columns) == table.columns
    assert service.report(store, run.id) == {"rows": 25}
    assert run.guarantee is not None and 0 < run.guarantee.epsilon < 2
    assert run.guarantee.epsilon < run.guarantee.epsilon_replace
    assert run.guarantee.epsilon != run.plan.guarantee.epsilon, "the claim is from what ran"
    assert {"debit", "read", "fit", "sample", "report"} <= run.seconds.keys()
    assert run.peak_memory_mb is not None and 50 < run.peak_memory_mb < 4000
    assert Ledger(store.engine).verify()
    states = [event.data["state"] for event in store.events(run.id, kind="state")]
    assert states[0] == "queued" and states[-1] == "done"
    for path in store.artefact(run.id, "worker.log").parent.rglob("*"):
        assert path.stat().st_mode & 0o077 == 0, path.name

    paper = service.certificate(store, run.id)
    assert paper is not None
    assert paper["epsilon_zero_out"] == run.guarantee.epsilon
    assert paper["epsilon_replace_one"] == run.guarantee.epsilon_replace
    assert paper["plan_digest"] == run.plan.digest and paper["lmdp"] is None
    (phase,) = paper["phases"]
    assert (phase["name"], phase["noise_multiplier"], phase["count"]) == ("sum", 8.0, 1)
    assert any("age: integer from 0 to 99" in line for line in paper["conditions"])

    account = service.account(store, table.id)
    assert (account.limit, account.delta) == default_limit(table.n)
    assert account.left is not None and account.left.releases == 1
    assert [entry.kind for entry in account.entries] == ["account", "release"]
    assert account.entries[-1].hash == paper["ledger_hash"]
    with pytest.raises(LedgerError, match="cannot be changed"):  # a first release settled it
        service.set_limit(store, table.id, epsilon=3.0)


def test_a_killed_worker_is_lost_at_once_and_resumes_with_the_same_debit(
    store: RunStore, launcher: LocalLauncher, table: TableRecord
) -> None:
    run = start(store, launcher, toy_plan(table, steps=60, nap=0.05))
    until(lambda: stepping(store, run.id))
    held = store.run(run.id)
    assert held.pid is not None
    os.kill(held.pid, signal.SIGKILL)
    killed = time.monotonic()
    until(lambda: store.run(run.id).state is State.LOST)
    assert time.monotonic() - killed < 5.0
    lost = store.run(run.id)
    assert lost.resumable and lost.debit is not None
    entries = releases(store, table)

    service.resume(store, launcher, run.id)
    done = ended(store, run.id)
    assert done.state is State.DONE and done.debit == lost.debit
    assert releases(store, table) == entries == 1
    paper = service.certificate(store, run.id)
    assert paper is not None
    assert [(p["name"], p["count"]) for p in paper["phases"]] == [("sum", 1)]
    steps = [e.data["step"] for e in store.events(run.id, kind="progress")]
    assert steps[-1] in (60, 100) and steps.count(1) <= 1, "it went on, not from the start"


def test_without_a_checkpoint_a_new_start_is_a_new_debit(
    store: RunStore, launcher: LocalLauncher, table: TableRecord
) -> None:
    run = start(store, launcher, toy_plan(table, fail_at=0))
    assert ended(store, run.id).state is State.FAILED
    for path in store.artefact(run.id, "checkpoint").iterdir():
        path.unlink()
    with pytest.raises(RunStoreError, match="spends ε 1 again"):
        service.resume(store, launcher, run.id)
    assert store.run(run.id).state is State.FAILED
    service.resume(store, launcher, run.id, spend_again=True)
    ended(store, run.id)
    assert releases(store, table) == 2


def test_a_failure_is_one_plain_line_without_values(
    store: RunStore, launcher: LocalLauncher, table: TableRecord
) -> None:
    run = ended(store, start(store, launcher, toy_plan(table, fail_at=1)).id)
    assert run.state is State.FAILED and run.error is not None
    assert "RuntimeError" in run.error and "\n" not in run.error
    told = json.dumps([e.data for e in store.events(run.id)]) + run.error + run.message
    assert toy.SECRET not in told
    assert toy.SECRET in store.artefact(run.id, "worker.log").read_text()
    assert run.resumable and run.message.endswith("Resuming spends nothing more.")


def test_pause_resume_and_cancel(
    store: RunStore, launcher: LocalLauncher, table: TableRecord
) -> None:
    run = start(store, launcher, toy_plan(table, steps=400, nap=0.05))
    until(lambda: stepping(store, run.id))
    service.pause(store, run.id)
    paused = ended(store, run.id)
    assert paused.state is State.PAUSED and paused.resumable
    reached = json.loads(store.artefact(run.id, "checkpoint").joinpath("step.json").read_text())
    service.resume(store, launcher, run.id)
    until(lambda: service.progress(store, run.id).step > reached["step"])
    service.cancel(store, run.id)
    cancelled = ended(store, run.id)
    assert cancelled.state is State.CANCELLED and "stays spent" in cancelled.message
    assert not store.has_artefact(run.id, "synthetic.parquet")
    assert cancelled.debit == paused.debit
    with pytest.raises(RunStoreError, match="cancelled"):
        service.resume(store, launcher, run.id)


def test_a_waiting_run_is_paused_and_cancelled_in_the_queue(
    store: RunStore, launcher: LocalLauncher, table: TableRecord
) -> None:
    first = start(store, launcher, toy_plan(table, steps=400, nap=0.05))
    second = start(store, launcher, toy_plan(table))
    assert (first.state, second.state) == (State.RUNNING, State.QUEUED)
    assert service.pause(store, second.id).state is State.PAUSED
    service.resume(store, launcher, second.id)
    assert store.run(second.id).state is State.QUEUED
    assert service.cancel(store, second.id).message == "Cancelled. Nothing was spent."
    with pytest.raises(RunStoreError, match="cannot be stopped"):
        service.cancel(store, second.id)


def test_the_queue_goes_on_without_a_server(
    store: RunStore, launcher: LocalLauncher, table: TableRecord
) -> None:
    runs = [start(store, launcher, toy_plan(table)) for _ in range(2)]
    assert [run.state for run in runs] == [State.RUNNING, State.QUEUED]
    # nobody pumps from here on: the first worker starts the second
    assert [ended(store, run.id).state for run in runs] == [State.DONE, State.DONE]


def test_two_pumps_at_once_start_a_run_once(
    store: RunStore, launcher: LocalLauncher, table: TableRecord, plan: Plan
) -> None:
    run = store.create_run(
        table.id, toy_plan(table), schema=table.schema, rows=5, seed=0, device="cpu"
    )
    stores = [RunStore(store.workspace) for _ in range(4)]
    pumps = [LocalLauncher(other, slots=3, command=toy.COMMAND) for other in stores]
    with ThreadPoolExecutor(4) as pool:
        started = list(pool.map(lambda pump: pump.pump(), pumps))
    for other in stores:
        other.close()
    assert sorted(started) == [[], [], [], [run.id]]
    assert ended(store, run.id).state is State.DONE


SERVER = """
import sys
from pathlib import Path
from core.services import service
from core.runs.execution import worker
from core.runs.execution.launcher import LocalLauncher
from tests.runs import toy
store = service.open_store(Path(sys.argv[1]))
launcher = LocalLauncher(store, command=toy.COMMAND)
launcher.submit(sys.argv[2])
print("submitted", flush=True)
input()
"""


def test_the_worker_outlives_the_server_that_started_it(
    store: RunStore, launcher: LocalLauncher, table: TableRecord
) -> None:
    run = store.create_run(
        table.id,
        toy_plan(table, steps=40, nap=0.05),
        schema=table.schema,
        rows=5,
        seed=0,
        device="cpu",
    )
    server = subprocess.Popen(
        [sys.executable, "-c", SERVER, str(store.workspace.home), run.id],
        cwd=PROJECT_ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    assert server.stdout is not None and server.stdin is not None
    assert server.stdout.readline() == b"submitted\n"
    until(lambda: stepping(store, run.id))
    os.killpg(server.pid, signal.SIGHUP)  # what a closing terminal sends
    os.killpg(server.pid, signal.SIGKILL)
    server.wait()
    server.stdout.close()
    server.stdin.close()
    held = store.run(run.id)
    assert held.state is State.RUNNING and held.pid is not None
    os.kill(held.pid, signal.SIGHUP)
    assert psutil.pid_exists(held.pid)
    assert ended(store, run.id).state is State.DONE


def test_without_privacy_a_run_needs_words_and_says_so_everywhere(
    store: RunStore, launcher: LocalLauncher, table: TableRecord
) -> None:
    plan = toy_plan(table, epsilon=float("inf"))
    with pytest.raises(RunStoreError, match="Confirm it in words"):
        start(store, launcher, plan)
    assert store.runs() == []
    run = ended(store, start(store, launcher, plan, confirmation="public data").id)
    assert run.state is State.DONE and not run.private
    paper = service.certificate(store, run.id)
    assert paper is not None
    assert paper["claim"] == paper["relation"] == "no differential privacy"
    assert paper["epsilon_zero_out"] is None


def test_a_cpu_less_device_is_refused_before_anything_is_spent(
    store: RunStore, launcher: LocalLauncher, table: TableRecord
) -> None:
    run = ended(store, start(store, launcher, toy_plan(table), device="tpu").id)
    assert run.state is State.FAILED and run.debit is None and run.resumable
    assert run.error == "There is no device 'tpu'. Choose auto, cpu or cuda."


def test_a_run_beyond_the_limit_spends_nothing(
    store: RunStore, launcher: LocalLauncher, table: TableRecord
) -> None:
    assert service.account(store, table.id).limit is None
    account = service.set_limit(store, table.id, epsilon=0.1)
    assert (account.limit, account.delta) == (0.1, default_limit(table.n)[1])
    run = ended(store, start(store, launcher, toy_plan(table)).id)
    assert run.state is State.FAILED and run.debit is None
    assert run.error is not None and "Nothing was spent" in run.error
    assert run.message.startswith("Stopped. Nothing was spent.")
    assert releases(store, table) == 0


# -- in this process: what a worker does around the fit ------------------------------------------


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Keep what a worker does to its process from this one."""
    before = os.umask(0o077)
    monkeypatch.setattr("core.runs.execution.worker.ignore_hangup", lambda: None)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    yield
    os.umask(before)


def work(store: RunStore, table: TableRecord, plan: Plan, compare: Any) -> RunRecord:
    run = store.create_run(table.id, plan, schema=table.schema, rows=5, seed=0, device="cpu")
    assert store.claim(run.id, slots=1)
    home = str(store.workspace.home)
    worker.main([run.id, "--home", home], find=toy.find, compare=compare)
    return store.run(run.id)


def no_report(*_: object, **__: object) -> Any:
    raise ZeroDivisionError(toy.SECRET)


@pytest.mark.usefixtures("here")
def test_a_failing_report_never_costs_the_synthetic_table(
    store: RunStore, table: TableRecord, capfd: pytest.CaptureFixture[str]
) -> None:
    run = work(store, table, toy_plan(table), no_report)
    assert run.state is State.DONE and run.error is None
    assert "ZeroDivisionError" in run.message and toy.SECRET not in run.message
    assert toy.SECRET in capfd.readouterr().err
    assert store.has_result(run.id) and not store.has_artefact(run.id, "report.json")


@pytest.mark.usefixtures("here")
def test_a_cancelled_report_leaves_a_finished_run(store: RunStore, table: TableRecord) -> None:
    def compare(*_: object, observe: Callable[[str, float], None], **__: object) -> Any:
        service.cancel(store, store.runs()[0].id)
        end = time.monotonic() + 5
        while time.monotonic() < end:
            observe("columns", 0.5)
            time.sleep(0.05)
        raise AssertionError("the wish was not followed")

    run = work(store, table, toy_plan(table), compare)
    assert run.state is State.DONE and "report was stopped" in run.message
    assert store.has_result(run.id)


@pytest.mark.usefixtures("here")
def test_a_run_lost_in_its_report_is_finished_without_a_new_fit(
    store: RunStore, table: TableRecord
) -> None:
    run = work(store, table, toy_plan(table), no_report)
    assert store.set_state(run.id, State.LOST) and store.run(run.id).resumable
    before = store.artefact(run.id, "synthetic.parquet").read_bytes()
    LocalLauncher(store, command=toy.COMMAND).resume(run.id)
    assert ended(store, run.id).state is State.DONE
    assert store.artefact(run.id, "synthetic.parquet").read_bytes() == before
    assert service.report(store, run.id) == {"rows": 5} and releases(store, table) == 1


@pytest.mark.usefixtures("here")
def test_a_worker_that_lost_its_run_writes_nothing_more(
    store: RunStore, table: TableRecord
) -> None:
    def compare(*_: object, observe: Callable[[str, float], None], **__: object) -> Any:
        run = store.runs()[0]
        assert store.set_state(run.id, State.LOST, "taken away")
        end = time.monotonic() + 10
        while time.monotonic() < end:  # until the heartbeat notices
            observe("columns", 0.5)
            time.sleep(0.05)
        raise AssertionError("the worker did not notice")

    run = work(store, table, toy_plan(table), compare)
    assert (run.state, run.message) == (State.LOST, "taken away")


@pytest.mark.usefixtures("here")
def test_a_run_that_another_process_holds_is_left_alone(
    store: RunStore, table: TableRecord
) -> None:
    run = store.create_run(
        table.id, toy_plan(table), schema=table.schema, rows=5, seed=0, device="cpu"
    )
    home = str(store.workspace.home)
    assert worker.main([run.id, "--home", home], find=toy.find) == worker.NOT_MINE
    assert store.run(run.id).state is State.QUEUED  # never claimed, so not this process's either


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
    run = store.create_run(
        table.id, toy_plan(table), schema=table.schema, rows=5, seed=0, device="cpu"
    )
    reporter = Reporter(store, run.id)
    for step in range(1, 101):
        reporter(Progress(step=step, steps=100, phase="fit"))
    reporter.phase("next", "Next")
    steps = [event.data["step"] for event in store.events(run.id, kind="progress")]
    assert len(steps) <= 5 and steps[0] == 1 and steps[-1] == 100


def test_a_pause_waits_until_what_was_paid_for_is_kept(store: RunStore, table: TableRecord) -> None:
    run = store.create_run(
        table.id, toy_plan(table), schema=table.schema, rows=5, seed=0, device="cpu"
    )
    reporter = Reporter(store, run.id)
    store.request(run.id, Wish.PAUSE)
    assert reporter.phase("sum", "Sum", private=True) is Wish.GO_ON
    checkpoint = store.artefact(run.id, "checkpoint")
    checkpoint.mkdir()
    (checkpoint / "toy.half").write_text("")
    assert reporter.wish() is Wish.GO_ON, "a file still being written is no checkpoint"
    (checkpoint / "toy.pt").write_text("")
    assert reporter.wish() is Wish.PAUSE
    (checkpoint / "toy.pt").unlink()
    assert reporter.phase("fit", "Fit") is Wish.PAUSE


@pytest.mark.usefixtures("here")
def test_a_run_stopped_before_its_first_release_pays_once(
    store: RunStore, table: TableRecord
) -> None:
    """It was debited, the meter counted nothing: the same entry pays for going on."""

    class Impatient(toy.Toy):
        def fit(self, *_: Any, **__: Any) -> toy.ToyFitted:
            raise FitPaused

    run = store.create_run(
        table.id, toy_plan(table), schema=table.schema, rows=5, seed=0, device="cpu"
    )
    home = str(store.workspace.home)
    assert store.claim(run.id, slots=1)
    worker.main([run.id, "--home", home], find=lambda _id: Impatient())
    paused = store.run(run.id)
    assert paused.state is State.PAUSED and paused.debit is not None and paused.resumable
    LocalLauncher(store, command=toy.COMMAND).resume(run.id)
    done = ended(store, run.id)
    assert done.state is State.DONE and done.debit == paused.debit
    assert releases(store, table) == 1
