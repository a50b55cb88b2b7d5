"""Real worker processes, with a toy model that needs no torch."""

import json
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import pandas as pd
import psutil
import pytest

from core.privacy.ledger.admission import LedgerError
from core.runs.accounts.account import default_limit, set_limit, table_account
from core.runs.errors import RunStoreError
from core.runs.events import State
from core.runs.execution.launching.local_launcher import LocalLauncher
from core.runs.records import TableRecord
from core.runs.storage.processes.process import STALE_SECONDS
from core.runs.storage.store import RunStore
from core.runs.workspace import PROJECT_ROOT
from core.services import reviews, runs
from tests.requests_for import request_for
from tests.runs import toy
from tests.runs.workers import (
    HereLauncher,
    ended,
    releases,
    start,
    stepping,
    toy_plan,
    until,
)

pytestmark = pytest.mark.slow


@pytest.mark.usefixtures("fresh")
def test_two_pumps_start_a_run_once_and_it_ends_with_a_table(
    store: RunStore, launcher: LocalLauncher, table: TableRecord
) -> None:
    plan = toy_plan(table)
    planned = plan.guarantee.model_copy(update={"epsilon": 1.5})  # not what will run
    plan = plan.model_copy(update={"guarantee": planned})
    run = store.create_run(
        table.id, plan, request_for(plan, rows=25, seed=1, device="cpu"), schema=table.schema
    )
    stores = [RunStore(store.workspace) for _ in range(4)]
    pumps = [LocalLauncher(other, slots=3, command=toy.COMMAND) for other in stores]
    with ThreadPoolExecutor(4) as pool:
        started = list(pool.map(lambda pump: pump.pump(), pumps))
    for other in stores:
        other.close()
    assert sorted(started) == [[], [], [], [run.id]]
    run = ended(store, run.id)
    log = store.artefacts(run.id).path("worker.log").read_text()
    assert (run.state, run.message, run.error) == (State.DONE, "Done.", None), log
    synthetic = pd.read_parquet(store.artefacts(run.id).path("synthetic.parquet"))
    assert len(synthetic) == 25 and tuple(synthetic.columns) == table.columns
    assert reviews.report(store, run.id) == {"rows": 25}
    assert run.guarantee is not None and 0 < run.guarantee.epsilon < 2
    assert run.guarantee.epsilon < run.guarantee.epsilon_replace
    assert run.guarantee.epsilon != run.plan.guarantee.epsilon, "the claim is from what ran"
    assert {"debit", "read", "fit", "sample", "report"} <= run.seconds.keys()
    assert run.peak_memory_mb is not None and 50 < run.peak_memory_mb < 4000
    assert store.ledger.verify()
    states = [event.data["state"] for event in store.journal.events(run.id, kind="state")]
    assert states[0] == "queued" and states[-1] == "done"
    for path in store.artefacts(run.id).path("worker.log").parent.rglob("*"):
        assert path.stat().st_mode & 0o077 == 0, path.name

    paper = reviews.privacy_certificate(store, run.id)
    assert paper is not None
    assert paper["epsilon_zero_out"] == run.guarantee.epsilon
    assert paper["epsilon_replace_one"] == run.guarantee.epsilon_replace
    assert paper["plan_digest"] == run.plan.digest and paper["lmdp"] is None
    (phase,) = paper["phases"]
    noise = run.plan.phase("sum").noise_multiplier
    assert (phase["name"], phase["noise_multiplier"], phase["count"]) == ("sum", noise, 1)
    assert any("age: integer from 0 to 99" in line for line in paper["conditions"])

    account = table_account(store, table.id)
    assert (account.limit, account.delta) == default_limit(table.n)
    assert account.left is not None and account.left.releases == 1
    assert [entry.kind for entry in account.entries] == ["account", "release"]
    assert account.entries[-1].hash == paper["ledger_hash"]
    with pytest.raises(LedgerError, match="cannot be changed"):  # a first release settled it
        set_limit(store, table.id, epsilon=3.0)


@pytest.mark.usefixtures("here")
def test_a_killed_worker_is_lost_and_resumes_with_one_debit(
    store: RunStore, launcher: LocalLauncher, table: TableRecord
) -> None:
    run = start(store, launcher, toy_plan(table, steps=60, nap=0.05))
    until(lambda: stepping(store, run.id))
    held = store.run(run.id)
    assert held.pid is not None
    os.kill(held.pid, signal.SIGKILL)
    killed = time.monotonic()
    until(lambda: store.run(run.id).state is State.LOST)
    assert time.monotonic() - killed < STALE_SECONDS, "not for want of heartbeats"
    lost = store.run(run.id)
    assert lost.resumable and lost.debit is not None
    entries = releases(store, table)

    runs.resume(store, HereLauncher(store), run.id)
    done = store.run(run.id)
    assert done.state is State.DONE and done.debit == lost.debit
    assert releases(store, table) == entries == 1
    paper = reviews.privacy_certificate(store, run.id)
    assert paper is not None
    assert [(p["name"], p["count"]) for p in paper["phases"]] == [("sum", 1)]
    steps = [e.data["step"] for e in store.journal.events(run.id, kind="progress")]
    assert steps[-1] in (60, 100) and steps.count(1) <= 1, "it went on, not from the start"


def test_pause_resume_and_cancel(
    store: RunStore, launcher: LocalLauncher, table: TableRecord
) -> None:
    run = start(store, launcher, toy_plan(table, steps=400, nap=0.05))
    until(lambda: stepping(store, run.id))
    runs.pause(store, run.id)
    paused = ended(store, run.id)
    assert paused.state is State.PAUSED and paused.resumable
    reached = json.loads(
        store.artefacts(run.id).path("checkpoint").joinpath("step.json").read_text()
    )
    runs.resume(store, launcher, run.id)
    until(lambda: runs.progress(store, run.id).step > reached["step"])
    runs.cancel(store, run.id)
    cancelled = ended(store, run.id)
    assert cancelled.state is State.CANCELLED and "stays spent" in cancelled.message
    assert not store.artefacts(run.id).exists("synthetic.parquet")
    assert cancelled.debit == paused.debit
    with pytest.raises(RunStoreError, match="cancelled"):
        runs.resume(store, launcher, run.id)


def test_a_waiting_run_is_paused_and_cancelled_in_the_queue(
    store: RunStore, launcher: LocalLauncher, table: TableRecord
) -> None:
    first = start(store, launcher, toy_plan(table, steps=400, nap=0.05))
    second = start(store, launcher, toy_plan(table))
    assert (first.state, second.state) == (State.RUNNING, State.QUEUED)
    assert runs.pause(store, second.id).state is State.PAUSED
    runs.resume(store, launcher, second.id)
    assert store.run(second.id).state is State.QUEUED
    assert runs.cancel(store, second.id).message == "Cancelled. Nothing was spent on this run."
    with pytest.raises(RunStoreError, match="cannot be stopped"):
        runs.cancel(store, second.id)


def test_the_queue_goes_on_without_a_server(
    store: RunStore, launcher: LocalLauncher, table: TableRecord
) -> None:
    runs = [start(store, launcher, toy_plan(table)) for _ in range(2)]
    assert [run.state for run in runs] == [State.RUNNING, State.QUEUED]
    # nobody pumps from here on: the first worker starts the second
    assert [ended(store, run.id).state for run in runs] == [State.DONE, State.DONE]


SERVER = """
import sys
from pathlib import Path
from core.services import runs
from core.runs.execution import worker
from core.runs.execution.launching.local_launcher import LocalLauncher
from tests.runs import toy
store = runs.open_store(Path(sys.argv[1]))
launcher = LocalLauncher(store, command=toy.COMMAND)
launcher.submit(sys.argv[2])
print("submitted", flush=True)
input()
"""


def test_the_worker_outlives_the_server_that_started_it(
    store: RunStore, launcher: LocalLauncher, table: TableRecord
) -> None:
    plan = toy_plan(table, steps=40, nap=0.05)
    run = store.create_run(
        table.id,
        plan,
        request_for(plan, rows=5, seed=0, device="cpu"),
        schema=table.schema,
    )
    server = subprocess.Popen(
        [sys.executable, "-m", "tests.script", SERVER, str(store.workspace.home), run.id],
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


def test_a_failure_is_one_plain_line_without_values(
    store: RunStore, launcher: LocalLauncher, table: TableRecord
) -> None:
    run = ended(store, start(store, launcher, toy_plan(table, fail_at=1)).id)
    assert run.state is State.FAILED and run.error is not None
    assert "RuntimeError" in run.error and "\n" not in run.error
    told = json.dumps([e.data for e in store.journal.events(run.id)]) + run.error + run.message
    assert toy.SECRET not in told
    log = store.artefacts(run.id).path("worker.log")
    until(lambda: toy.SECRET in log.read_text())  # it is written when the process ends
    assert run.resumable and run.message.endswith("Resuming spends nothing more.")
