"""Servers: two on one workspace, and one that is killed while it starts a run."""

from __future__ import annotations

import json
import signal
import sqlite3
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from core.privacy.ledger.admission import LedgerError
from core.runs.accounts import people
from core.runs.accounts.account import pay, set_limit
from core.runs.errors import RunStoreError
from core.runs.events import State
from core.runs.execution.launching.local_launcher import LocalLauncher
from core.runs.records import TableRecord
from core.runs.storage import engine
from core.runs.storage.processes import process
from core.runs.storage.store import RunStore
from core.runs.workspace import PROJECT_ROOT
from core.services import runs
from tests.faults.ledger import paid_for
from tests.postgres_server import BOTH
from tests.runs import toy
from tests.runs.workers import HereLauncher, ended, queued, releases, toy_plan, until

pytestmark = pytest.mark.slow

SERVER = """
import json, os, signal, sys
from pathlib import Path
from core.runs.execution.launching.local_launcher import LocalLauncher
from core.runs.storage.store import RunStore
from core.services import runs
from tests.runs import toy
home, run_id, step = sys.argv[1:]

def dying(name, real):
    def call(self, *arguments, **more):
        if name == step: os.kill(os.getpid(), signal.SIGKILL)
        answer = real(self, *arguments, **more)
        if f"after {name}" == step: os.kill(os.getpid(), signal.SIGKILL)
        return answer
    return call

for kind, name in ((RunStore, "claim"), (LocalLauncher, "_start")):
    setattr(kind, name, dying(name, getattr(kind, name)))
LocalLauncher(runs.open_store(Path(home)), command=toy.COMMAND).submit(run_id)
"""


@pytest.mark.parametrize(
    "step",
    [
        pytest.param("claim", marks=pytest.mark.long),
        "after claim",
        pytest.param("after _start", marks=pytest.mark.long),
    ],
)
def test_a_server_killed_while_it_starts_a_run(
    store: RunStore,
    launcher: LocalLauncher,
    table: TableRecord,
    monkeypatch: pytest.MonkeyPatch,
    step: str,
) -> None:
    """Before it took the run, before its worker was there, and when it was."""
    monkeypatch.setattr(process, "START_SECONDS", 4.0)
    run = queued(store, table, toy_plan(table))
    command = [
        sys.executable,
        "-m",
        "tests.script",
        SERVER,
        str(store.workspace.home),
        run.id,
        step,
    ]
    assert subprocess.run(command, cwd=PROJECT_ROOT).returncode == -signal.SIGKILL
    if step == "claim":
        assert store.run(run.id).state is State.QUEUED
        assert launcher.pump() == [run.id]
    if step == "after claim":
        until(lambda: store.run(run.id).state is State.LOST)
        assert store.run(run.id).resumable
        runs.resume(store, launcher, run.id)
    done = ended(store, run.id)
    assert done.state is State.DONE, json.dumps([done.state, done.message, done.error])
    assert releases(store, table) == 1
    paid_for(store, done)


def together(*calls) -> list[object]:
    """What the calls answered or raised, all at the same moment."""
    barrier = threading.Barrier(len(calls))

    def call(one):
        barrier.wait()
        try:
            return one()
        except (RunStoreError, LedgerError, RuntimeError) as error:
            return error

    with ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(call, calls))


class Waiting(LocalLauncher):
    """A launcher of a server whose workers need a while."""

    def _start(self, run_id: str) -> None: ...


def test_two_servers_that_resume_a_run_at_once_start_it_once(store, table) -> None:
    run = queued(store, table, toy_plan(table))
    assert store.set_state(run.id, State.LOST, "gone")
    servers = [RunStore(store.workspace) for _ in range(4)]
    answers = together(
        *(lambda server=server: runs.resume(server, Waiting(server), run.id) for server in servers)
    )
    for server in servers:
        server.close()
    # a server that finds another one writing leaves the start to the next look
    Waiting(store).pump()
    won = [answer for answer in answers if not isinstance(answer, Exception)]
    assert len(won) == 1
    assert all("cannot be resumed" in str(a) for a in answers if isinstance(a, Exception))
    states = [e.data["state"] for e in store.journal.events(run.id, kind="state")]
    assert states == ["queued", "lost", "queued", "running"]


@pytest.mark.usefixtures("here")
def test_two_servers_delete_and_start_at_once(store, table) -> None:
    """A run that is deleted is gone, or it is running: never a worker without its run."""
    other = RunStore(store.workspace)
    for _ in range(4):
        run = queued(store, table, toy_plan(table))
        together(lambda r=run: Waiting(store).submit(r.id), lambda r=run: other.delete_run(r.id))
        left = {one.id: one for one in store.runs()}
        if run.id in left:
            assert left[run.id].state is State.RUNNING and store.artefacts(run.id).folder.exists()
            assert store.set_state(run.id, State.CANCELLED)
        else:
            assert not store.artefacts(run.id).exists("checkpoint")
    other.close()


def test_two_servers_never_overspend_one_account(store, table) -> None:
    """Four releases at once want a limit that one of them fits into."""
    set_limit(store, table.id, epsilon=1.0, delta=1e-3)
    plan, domain = toy_plan(table), table.schema.as_proposed().domain()
    servers = [RunStore(store.workspace) for _ in range(4)]
    calls = [
        lambda i=i, server=server: pay(
            server.ledger, table.account_id, plan, f"k{i}", domain=domain,
            allow_non_private=False,
        )
        for i, server in enumerate(servers)
    ]  # fmt: skip
    together(*calls)
    for server in servers:
        server.close()
    ledger = store.ledger
    assert ledger.left(table.account_id).releases == 1 and ledger.verify()


@BOTH
def test_no_run_begins_while_its_table_changes_its_account(store, compared_table, monkeypatch):
    """Else it would pay from an account that its people no longer have."""
    table = compared_table
    look, looks, waited = people._movable, [], []
    late = threading.Thread(target=lambda: queued(store, table, toy_plan(table)))

    def look_and_wait(*given: object) -> None:
        look(*given)
        looks.append(given)
        if len(looks) == 2:  # the second one decides
            late.start()
            late.join(0.7)
            waited.append(late.is_alive())

    monkeypatch.setattr(people, "_movable", look_and_wait)
    people.change_account(store, table.id, "others")
    late.join()
    assert waited == [True]
    assert [run.account_id for run in store.runs()] == ["others"]


@pytest.mark.usefixtures("here")
def test_a_worker_outlives_a_locked_database(store, table, monkeypatch):
    """Points of its curves wait, the run does not."""
    monkeypatch.setattr(engine, "BUSY_MS", 100)

    class Locked(toy.Toy):
        def fit(self, table, plan, context):
            other = sqlite3.connect(store.workspace.home / "facsimile.db", isolation_level=None)
            other.execute("BEGIN IMMEDIATE")
            try:
                return super().fit(table, plan, context)
            finally:
                other.close()

    monkeypatch.setattr(toy, "find", lambda _id: Locked())
    run = queued(store, table, toy_plan(table))
    HereLauncher(store).submit(run.id)
    done = store.run(run.id)
    assert done.state is State.DONE, done.error
    story = store.journal.events(run.id)
    steps = [event.data["step"] for event in story if event.kind == "metrics"]
    assert steps == [1, 2, 3]
    kinds = [event.kind for event in story if event.kind in ("metrics", "phase")]
    assert kinds.index("metrics") == 3, "before the phase that came after them"
    paid_for(store, done)
