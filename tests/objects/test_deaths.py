"""A machine that dies at any request to the store: what was read is always paid for."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from core.cluster.objects.artefacts import _ObjectWorkingFolder
from core.cluster.objects.bucket import Bucket
from core.models.step import FitContext
from core.privacy.guarded import PrivateTable
from core.privacy.plan import Plan
from core.runs.accounts.account import set_limit
from core.runs.events import State
from core.runs.storage.store import RunStore
from core.runs.workspace import Workspace
from tests.runs import toy
from tests.runs.conftest import ROWS
from tests.runs.workers import queued, releases, toy_plan, work

pytestmark = [pytest.mark.usefixtures("here"), pytest.mark.slow]
REQUESTS = ("read", "open", "write", "create", "upload", "download", "keys", "remove")
STEPS = 1


class MachineGoneError(BaseException):
    """Nobody can catch it, as nobody can catch a power cut."""


class Reading(toy.Toy):
    """The toy model; counts how often rows were read."""

    reads = 0

    def fit(self, table: PrivateTable, plan: Plan, context: FitContext) -> toy.ToyFitted:
        charge = table.meter.charge

        def charged(name: str, times: int = 1) -> Any:
            phase = charge(name, times)
            self.reads += 1  # rows are read as soon as they are charged
            return phase

        table.meter.charge = charged  # type: ignore[method-assign]
        return super().fit(table, plan, context)


class Machine:
    """Dies at one of its requests to the store, before or after that was answered."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.left, self.after, self.asked = -1, False, 0
        for name in REQUESTS:
            monkeypatch.setattr(Bucket, name, self._counted(getattr(Bucket, name)))

    def _counted(self, ask: Callable[..., Any]) -> Callable[..., Any]:
        def request(*arguments: Any) -> Any:
            self.asked += 1
            self.left -= 1
            dies = self.left == 0
            if dies and not self.after:
                raise MachineGoneError
            try:
                return ask(*arguments)
            finally:
                if dies:
                    raise MachineGoneError

        return request


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    monkeypatch.setenv("FACSIMILE_STORAGE", f"memory://{uuid.uuid4().hex}")
    return Machine(monkeypatch)


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, machine: Machine) -> RunStore:
    monkeypatch.setenv("FACSIMILE_DATABASE", f"sqlite:///{tmp_path / 'facsimile.db'}")
    return RunStore(Workspace(tmp_path / "machine-a"))


def reads_and_debits(
    machine: Machine, store: RunStore, table: Any, *, at: int, after: bool
) -> tuple[int, int]:
    """How often rows were read for a finished run, and how often it was paid for.

    Args:
      machine: that dies.
      store: of it.
      table: whose rows.
      at: number of the request at which it dies; 0 for none.
      after: whether the request was answered.
    """
    model, before = Reading(), releases(store, table)
    run = queued(store, table, toy_plan(table, steps=STEPS))
    machine.left, machine.after, machine.asked = at, after, 0
    try:
        work(store, run.id, find=lambda _: model)
        assert at == 0 or machine.left > 0
    except MachineGoneError:
        machine.left = -1
        store.set_state(run.id, State.LOST, "The machine is gone.")
        with RunStore(Workspace(store.workspace.home.parent / "machine-b")) as elsewhere:
            elsewhere.set_state(run.id, State.QUEUED)  # `resume` asks first where that costs
            assert work(elsewhere, run.id, find=lambda _: model).state is State.DONE
    machine.left = -1
    done = store.run(run.id)
    assert done.state is State.DONE and store.has_result(run.id)
    return model.reads, releases(store, table) - before


def every_death(machine: Machine, store: RunStore, table: Any) -> Iterator[tuple[int, int]]:
    """Reads and debits for a death before and after each request of a run."""
    set_limit(store, table.id, epsilon=100.0, delta=1e-3)
    assert reads_and_debits(machine, store, table, at=0, after=False) == (1, 1)
    requests = machine.asked
    assert requests > 20
    for at in range(1, requests + 1):
        for after in (False, True):
            yield reads_and_debits(machine, store, table, at=at, after=after)


def test_what_was_read_is_paid_for_wherever_the_machine_dies(machine, store, table):
    assert len(store.load_frame(table.id)) == ROWS
    counted = list(every_death(machine, store, table))
    assert all(reads <= debits for reads, debits in counted)
    assert counted.count((1, 1)) > len(counted) / 2, "most deaths cost nothing"


def test_a_meter_that_is_not_in_the_store_is_caught(machine, store, table, monkeypatch):
    """The broken twin: only checkpoints are published, charges are not."""
    publish = _ObjectWorkingFolder.publish

    def late(self: _ObjectWorkingFolder) -> None:
        if (self.folder / "checkpoint" / "step.json").exists():
            publish(self)

    monkeypatch.setattr(_ObjectWorkingFolder, "publish", late)
    assert any(reads > debits for reads, debits in every_death(machine, store, table))
