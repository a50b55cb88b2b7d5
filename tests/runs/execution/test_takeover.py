"""Who may take a run over from a machine that seems lost."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time

import psutil
import pytest
from sqlalchemy import update

from core.cluster import takeover
from core.privacy.plan import Plan
from core.runs.events import State
from core.runs.records import TableRecord
from core.runs.storage.artefacts import METER
from core.runs.storage.database import RunRow
from core.runs.storage.store import RunStore
from core.runs.workspace import PROJECT_ROOT
from tests.runs import toy
from tests.runs.workers import PATIENCE, queued, releases, toy_plan, until

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(takeover, "LOOK_SECONDS", 0.05)
    monkeypatch.setattr(takeover, "PATIENCE", 1.0)
    monkeypatch.setattr("core.runs.storage.processes.process.STALE_SECONDS", 0.4)


@pytest.fixture
def run_id(store: RunStore, table: TableRecord, plan: Plan) -> str:
    return queued(store, table, plan).id


def held(store: RunStore, run_id: str, host: str, heartbeat: float, **more: object) -> None:
    """As if a worker with this process's number held the run on that machine."""
    assert store.claim(run_id, slots=None)
    values = {"host": host, "heartbeat": heartbeat, "pid": os.getpid(), "pid_started": 1.0}
    with store.engine.begin() as connection:
        connection.execute(update(RunRow).where(RunRow.id == run_id).values(**values, **more))


def test_a_run_that_waits_takes_no_slot(store: RunStore, run_id: str) -> None:
    assert takeover.take(store, run_id) and store.run(run_id).state is State.RUNNING
    with store.engine.connect() as connection:
        assert connection.exec_driver_sql("SELECT slot FROM runs").scalar() is None


@pytest.mark.parametrize("state", [State.PAUSED, State.CANCELLED, State.DONE, State.FAILED])
def test_a_run_that_does_not_wait_is_left_alone(store: RunStore, run_id: str, state: State) -> None:
    store.set_state(run_id, state)
    assert not takeover.take(store, run_id) and store.run(run_id).state is state
    assert not takeover.take(store, "0123456789")


def test_a_run_is_taken_only_from_a_silent_machine(
    store: RunStore, run_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patience:
        patience.setattr("core.runs.storage.processes.process.STALE_SECONDS", 60.0)
        held(store, run_id, "elsewhere", time.time())  # alive for as long as somebody waits
        assert not takeover.take(store, run_id) and store.run(run_id).host == "elsewhere"
    began = time.time()
    with store.engine.begin() as connection:
        connection.execute(update(RunRow).values(heartbeat=began))
    assert takeover.take(store, run_id)
    assert time.time() - began >= 0.4, "its heartbeats were missing for too short a time"
    assert store.run(run_id).host == socket.gethostname()


def test_a_lost_run_that_would_pay_again_waits_for_people(store: RunStore, run_id: str) -> None:
    held(store, run_id, "elsewhere", 0.0, debit="entry")
    with store.artefacts(run_id).replacing(METER) as file:
        file.write(b"{}")  # a private access was counted, and there is no checkpoint
    assert store.run(run_id).state is State.LOST and not store.run(run_id).resumable
    assert not takeover.take(store, run_id)
    assert store.run(run_id).state is State.LOST
    store.artefacts(run_id).within("checkpoint").path("step.json").write_text("{}")
    assert takeover.take(store, run_id), "with a checkpoint it spends nothing"


CHILD = """
import sys, time
from core.cluster import takeover
takeover.end_with(int(sys.argv[1]))
print("stands", flush=True)
time.sleep(60)
"""
PARENT = """
import os, subprocess, sys
child = subprocess.Popen([sys.executable, "-c", sys.argv[1], str(os.getpid())])
print(child.pid, flush=True)
child.wait()
"""


def test_a_worker_ends_with_what_the_cluster_started() -> None:
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, CHILD], cwd=PROJECT_ROOT, stdout=subprocess.PIPE, text=True
    )
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    assert parent.stdout.readline() == "stands\n"
    parent.kill()
    parent.wait()
    parent.stdout.close()

    def gone() -> bool:
        try:
            return psutil.Process(child).status() == psutil.STATUS_ZOMBIE
        except psutil.NoSuchProcess:
            return True

    until(gone)


def workers_of(store: RunStore, run_id: str, count: int) -> list[subprocess.Popen[bytes]]:
    """Workers as a cluster starts them where it believes that none is there."""
    command = [sys.executable, *toy.COMMAND, run_id, "--home", str(store.workspace.home)]
    own = [*command, "--supervisor", str(os.getpid())]
    return [subprocess.Popen(own, cwd=PROJECT_ROOT) for _ in range(count)]


def test_of_workers_that_take_a_run_at_once_one_works(store: RunStore, table: TableRecord) -> None:
    """Each time the one that won is killed in its steps; the run ends once, and was paid once."""
    run = queued(store, table, toy_plan(table, steps=200, nap=0.05))
    told = 0
    for _ in range(3):
        racing = workers_of(store, run.id, 3)

        def moved(before: int = told) -> bool:
            return len(store.journal.events(run.id, kind="progress")) > before

        until(moved)
        holder = store.run(run.id).pid
        (winner,) = [one for one in racing if one.pid == holder]
        winner.kill()
        winner.wait()
        told = len(store.journal.events(run.id, kind="progress"))
        others = [one for one in racing if one is not winner]
        until(lambda others=others: store.run(run.id).pid in {one.pid for one in others})
        for one in others:  # the run was theirs at once: they waited for it
            one.kill()
            one.wait()
    (last,) = workers_of(store, run.id, 1)
    assert last.wait(PATIENCE) == 0
    done = store.run(run.id)
    assert (done.state, done.message) == (State.DONE, "Done.") and releases(store, table) == 1
    steps = [e.data["step"] for e in store.journal.events(run.id, kind="progress")]
    assert steps[-1] == 200 and steps == sorted(steps), "nobody worked beside another"
