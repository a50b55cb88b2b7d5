"""Servers on several machines: each knows its own workers, and of others' only signs of life."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable

import pytest
from sqlalchemy import update

from core.models.events import Signal
from core.runs.events import State
from core.runs.execution import reporter as reporting
from core.runs.execution.launching.local_launcher import LocalLauncher
from core.runs.execution.reporter import Reporter
from core.runs.storage.database import RunRow
from core.runs.storage.processes import clock, process
from core.runs.storage.processes.process import runs_without_worker
from core.runs.workspace import PROJECT_ROOT
from tests.faults.ledger import paid_for
from tests.runs import toy
from tests.runs.workers import ended, queued, stepping, toy_plan, until

pytestmark = [pytest.mark.databases("postgresql"), pytest.mark.slow]
DAY = 86_400.0


@pytest.fixture
def at(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Be another machine from now on, whose clock may be set otherwise."""
    now = time.time

    def be(name: str, *, ahead: float = 0.0) -> None:
        monkeypatch.setattr(clock, "_kernel", lambda: name)
        monkeypatch.setattr(time, "time", lambda: now() + ahead)

    return be


@pytest.fixture
def held(store, table, at):
    """A run that this process works off on machine A."""
    at("A")
    run = queued(store, table, toy_plan(table))
    assert store.claim(run.id, slots=1) and store.adopt(run.id, os.getpid())
    return run


def gone_number() -> int:
    """A number that no process of this machine has any more."""
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    return child.pid


@pytest.mark.parametrize("ahead", [0.0, DAY, -DAY])
def test_a_worker_of_another_machine_is_not_taken_for_dead(store, held, at, ahead):
    """Whatever processes are here, whatever clock is here, and though both have one host's name."""
    with store.engine.begin() as connection:
        connection.execute(update(RunRow).values(pid=gone_number()))
    at("B", ahead=ahead)
    assert store.run(held.id).state is State.RUNNING and store.reconcile() == []
    at("A")
    assert store.run(held.id).state is State.LOST, "where it ran, the process tells"


@pytest.mark.parametrize("ahead", [0.0, DAY, -DAY])
def test_a_silent_worker_of_another_machine_is_lost_in_time(store, table, at, monkeypatch, ahead):
    """Though it lives there: nobody can know. Its machine's clock is of no account."""
    at("A", ahead=ahead)
    run = queued(store, table, toy_plan(table))
    assert store.claim(run.id, slots=1) and store.adopt(run.id, os.getpid())
    assert store.beat(run.id)
    at("B")
    assert store.run(run.id).state is State.RUNNING
    monkeypatch.setattr(process, "STALE_SECONDS", 1.0)
    until(lambda: store.run(run.id).state is State.LOST)
    assert store.run(run.id).resumable
    at("A", ahead=ahead)
    assert not store.beat(run.id), "it learns that the run is no longer its own"


def test_a_sign_of_life_in_the_last_moment_counts(store, held, at, monkeypatch):
    """Between the look and the mark: without comparing, a living worker would lose its run."""
    monkeypatch.setattr(process, "STALE_SECONDS", -1.0)
    at("B")
    (seen,) = runs_without_worker(store.engine)
    at("A")
    assert store.beat(held.id)
    at("B")
    assert not store._lose(seen)
    monkeypatch.undo()
    assert store.journal.events(held.id, kind="state")[-1].data["state"] == "running"


def test_two_workers_with_one_number_do_not_mistake_each_other(store, held, at, monkeypatch):
    """The run was resumed on B, whose worker has by chance the number of A's."""
    at("B")
    assert store.set_state(held.id, State.LOST) and store.set_state(held.id, State.QUEUED)
    assert store.claim(held.id, slots=1) and store.adopt(held.id, os.getpid())
    at("A")
    assert not store.beat(held.id) and not store.adopt(held.id, os.getpid())
    assert not store.set_state(held.id, State.DONE, expect=(State.RUNNING,), pid=os.getpid())
    at("B")
    assert store.beat(held.id) and store.run(held.id).state is State.RUNNING


def test_after_the_server_was_away_workers_have_time_to_speak(
    store, held, at, postgres_server, monkeypatch
):
    with store.engine.begin() as connection:
        connection.execute(update(RunRow).values(heartbeat=RunRow.heartbeat - 10 * DAY))
    postgres_server.stop()
    postgres_server.start()
    at("B")
    assert store.run(held.id).state is State.RUNNING, "nobody could give a sign of life"
    monkeypatch.setattr(process, "STALE_SECONDS", 1.0)
    until(lambda: store.run(held.id).state is State.LOST)


def test_who_cannot_say_whose_run_it_is_waits(store, held):
    """A worker that had no sign of life through for long may have lost its run to another one."""
    reporter = Reporter(store, held.id)
    assert reporter.signal() is Signal.GO_ON
    reporter.confirm(clock.elapsed() - 50.0)
    began = clock.elapsed()
    timer = threading.Timer(1.0, lambda: reporter.confirm(clock.elapsed()))
    timer.start()
    assert reporter.signal() is Signal.GO_ON and clock.elapsed() - began > 0.9
    reporter.confirm(clock.elapsed() - 50.0)
    timer = threading.Timer(0.5, reporter.supersede)
    timer.start()
    assert reporter.signal() is Signal.CANCEL
    timer.join()


def test_who_slept_asks_whose_run_it_is(store, held, monkeypatch):
    """A laptop that was closed: its run may be another machine's by now."""
    reporter = Reporter(store, held.id)
    reporter.confirm(clock.elapsed())
    monkeypatch.setattr(reporting, "GIVE_UP_SECONDS", 3600.0)
    awake = time.clock_gettime

    def after_a_night(which: int) -> float:
        return awake(which) + (8 * 3600.0 if which == time.CLOCK_BOOTTIME else 0.0)

    monkeypatch.setattr(time, "clock_gettime", after_a_night)
    assert reporter.signal() is Signal.CANCEL and reporter.superseded


def test_who_waits_for_a_database_that_is_gone_for_good_gives_up(store, held, monkeypatch):
    monkeypatch.setattr(reporting, "GIVE_UP_SECONDS", 51.0)
    reporter = Reporter(store, held.id)
    began = clock.elapsed()
    reporter.confirm(began - 50.0)
    assert reporter.signal() is Signal.CANCEL and reporter.superseded
    assert clock.elapsed() - began >= 1.0


def apart_or_skip() -> None:
    """Skip where this account may not open a space of process numbers."""
    command = ["unshare", "--pid", "--fork", "true"]
    try:
        may = subprocess.run(command, capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        may = False
    if not may:
        pytest.skip("needs leave to unshare process numbers")


class Apart(LocalLauncher):
    """Starts workers in a space of process numbers of their own, as on another machine."""

    def _start(self, run_id: str) -> None:
        command = [*self._command(self.command, run_id), "--slots", str(self.slots)]
        apart = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child"]
        with self.store.artefacts(run_id).path("worker.log").open("ab") as log:
            self.child = subprocess.Popen(
                [*apart, *command], cwd=PROJECT_ROOT, stdout=log, stderr=log
            )


@pytest.mark.parametrize("killed", [False, True])
def test_a_worker_in_another_space_of_numbers(store, table, monkeypatch, killed):
    """A real one: it has number 1 there, which is another process here."""
    apart_or_skip()
    monkeypatch.setattr(process, "STALE_SECONDS", 8.0)
    run = queued(store, table, toy_plan(table, steps=60, nap=0.05))
    launcher = Apart(store, command=toy.COMMAND)
    launcher.submit(run.id)
    until(lambda: stepping(store, run.id))
    seen = store.run(run.id)
    assert seen.state is State.RUNNING and seen.pid is not None and seen.pid < 10
    if killed:
        launcher.child.send_signal(signal.SIGKILL)
        launcher.child.wait()
        assert store.run(run.id).state is State.RUNNING, "nobody here can know yet"
        until(lambda: store.run(run.id).state is State.LOST)
        return
    done = ended(store, run.id)
    launcher.child.wait()
    log = store.artefacts(run.id).path("worker.log").read_text()
    assert (done.state, done.message) == (State.DONE, "Done."), log
    paid_for(store, done)
