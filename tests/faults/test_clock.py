"""The machine's clock is set while runs are at work: nobody is taken for dead, or alive, by it."""

from __future__ import annotations

import itertools
import os
import subprocess
import time
from collections.abc import Callable, Iterator

import psutil
import pytest

from core.runs.accounts import people
from core.runs.errors import RunStoreError
from core.runs.events import State
from core.runs.records import RunRecord, TableRecord
from core.runs.storage.store import RunStore
from core.services import imports, runs, tables
from core.services.sample_tables import sample_table
from tests.faults.ledger import paid_for
from tests.runs.workers import queued, toy_plan, work

pytestmark = pytest.mark.slow

DAY = 86_400.0
linux = pytest.mark.skipif(not psutil.LINUX, reason="sets the clock as Linux tells it")


@pytest.fixture
def set_clock(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Set this process's clock so many seconds ahead; the time of the boot moves with it."""
    now, boot = time.time, psutil._psplatform.boot_time

    def ahead(seconds: float) -> None:
        monkeypatch.setattr(time, "time", lambda: now() + seconds)
        monkeypatch.setattr(psutil._psplatform, "boot_time", lambda: boot() + seconds)

    return ahead


@pytest.fixture
def held(store: RunStore, table: TableRecord) -> Iterator[RunRecord]:
    """A run in the hands of a process that lives."""
    run = queued(store, table, toy_plan(table))
    process = subprocess.Popen(["sleep", "60"])
    assert store.claim(run.id, slots=1) and store.adopt(run.id, process.pid)
    yield store.run(run.id)
    process.kill()
    process.wait()


@linux
@pytest.mark.parametrize("jump", [DAY, -DAY, 3.0])
def test_a_worker_at_work_is_not_taken_for_dead(store, held, set_clock, jump):
    set_clock(jump)
    assert store.run(held.id).state is State.RUNNING and store.reconcile() == []


@linux
def test_another_process_of_that_number_is_not_the_worker(store, held, set_clock):
    """The clock may make its start look the same; the seconds since the boot do not."""
    with store.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE runs SET pid_started = pid_started - 5.0")
    set_clock(-5.0)
    assert store.run(held.id).state is State.LOST


@pytest.mark.parametrize("jump", [DAY, -DAY])
def test_a_worker_that_never_started_does_not_hold_its_slot(store, table, set_clock, jump):
    run = queued(store, table, toy_plan(table))
    assert store.claim(run.id, slots=1)
    set_clock(jump)
    lost = store.run(run.id)
    assert lost.state is State.LOST and lost.resumable


@pytest.mark.usefixtures("here")
def test_a_run_under_a_clock_that_jumps_ends_and_pays_once(store, table, monkeypatch):
    now, jumps = time.time, itertools.cycle((0.0, DAY, -DAY, 3600.0))
    monkeypatch.setattr(time, "time", lambda: now() + next(jumps))
    run = work(store, queued(store, table, toy_plan(table, steps=10)).id)
    assert run.state is State.DONE
    story = store.journal.events(run.id)
    assert [event.seq for event in story] == list(range(1, len(story) + 1))
    assert story[-1].data["state"] == "done" and runs.progress(store, run.id).elapsed_seconds >= 0
    assert store.ledger.verify() and os.getpid() == run.pid
    paid_for(store, run)


@pytest.mark.parametrize("jump", [-DAY, -3.0, DAY])
def test_a_clock_set_back_lets_no_table_leave_its_account(store, compared_table, set_clock, jump):
    """By the clock its release was before it came in, and its people would have a fresh limit."""
    table = compared_table
    set_clock(jump)
    run = work(store, queued(store, table, toy_plan(table)).id)
    assert run.state is State.DONE
    tables.change_holdout(store, store.table(table.id), 0.2)  # another schema, the same table
    tables.confirm_schema(store, table.id, store.table(table.id).schema)
    store.delete_run(run.id)
    with pytest.raises(RunStoreError, match="Nothing was changed"):
        people.change_account(store, table.id, people.NEW)
    assert store.table(table.id).account_id == table.account_id


def test_earlier_releases_do_not_bind_a_later_table(store, table, set_clock):
    work(store, queued(store, table, toy_plan(table)).id)
    set_clock(-DAY)  # by the clock the release is a day after the next table
    other = imports.import_frame(
        store,
        sample_table(50).iloc[:, :5],
        name="other",
        source="test",
        account_id=table.account_id,
    )
    assert (
        people.change_account(store, other.id, people.NEW, "others").account_id != table.account_id
    )
