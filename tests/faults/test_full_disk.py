"""The disk fills up at every write of a run, for an instant or for good: it ends, and pays once."""

from __future__ import annotations

import sys
from collections.abc import Iterable

import pytest

from core.runs.accounts.account import set_limit
from core.runs.events import State
from core.runs.records import RunRecord, TableRecord
from core.runs.storage.store import RunStore
from tests.faults.disk import Disk
from tests.faults.ledger import paid_for
from tests.faults.test_attempts import TwoPart, go_on
from tests.runs.workers import lose, queued, toy_plan, work

pytestmark = [pytest.mark.usefixtures("here"), pytest.mark.slow]
FOR_GOOD = sys.maxsize


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    return Disk(monkeypatch)


def fill(store: RunStore, table: TableRecord, disk: Disk, first: int, last: int) -> RunRecord:
    """A run whose disk is full from one write to another, as it is found afterwards."""
    run = queued(store, table, toy_plan(table))
    disk.fill(first, last)
    try:
        work(store, run.id, find=lambda _id: TwoPart())
    except Exception:
        pass  # the process ends; what it leaves is looked at below
    disk.make_room()
    found = store.run(run.id)
    if found.state is State.RUNNING:  # in the name of this process, which goes on living
        lose(store, run.id)
    return store.run(run.id)


def check(store: RunStore, table: TableRecord, disk: Disk, firsts: Iterable[int]) -> None:
    for first in firsts:
        for last in (first, FOR_GOOD):
            run = fill(store, table, disk, first, last)
            where = f"write {first} to {last}: {run.state} {run.error} {run.message}"
            if run.state is State.FAILED:
                assert run.error is not None and "is full. Free some space" in run.error, where
            elif run.state is not State.DONE:
                assert run.state in (State.QUEUED, State.LOST), where
            if run.state is State.QUEUED:
                run = work(store, run.id, find=lambda _id: TwoPart())
            done = go_on(store, run)
            assert done.state is State.DONE, where
            paid_for(store, done, starts=done.attempt)
            left = [path for path in store.workspace.home.rglob(".*") if path.is_file()]
            assert not left, "half a file stays"


def writes(store: RunStore, table: TableRecord, disk: Disk) -> int:
    set_limit(store, table.id, epsilon=100.0)
    fill(store, table, disk, FOR_GOOD, FOR_GOOD)
    return disk.writes


def test_a_disk_that_fills_up_at_some_writes(disk, store, table):
    count = writes(store, table, disk)
    assert count > 30
    check(store, table, disk, range(2, count, 9))


@pytest.mark.long
def test_a_disk_that_fills_up_at_every_write(disk, store, table):
    check(store, table, disk, range(1, writes(store, table, disk) + 1))
