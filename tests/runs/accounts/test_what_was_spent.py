"""What is said of a run's money is what the ledger says, whatever the run itself has noted."""

from __future__ import annotations

import pytest

from core.runs.accounts.account import charges, pay, unpaid_again
from core.runs.events import State
from core.runs.execution.pipeline import DeviceError
from core.runs.records import RunRecord, TableRecord
from core.runs.storage.store import RunStore
from core.services import runs
from tests.runs.workers import queued, toy_plan, work

pytestmark = pytest.mark.slow

SPENT = "What it spent stays spent."


def debit(store: RunStore, table: TableRecord, run: RunRecord) -> str:
    return pay(
        store.ledger, run.account_id, run.plan, run.debit_key,
        domain=table.schema.as_proposed().domain(), allow_non_private=False,
    ).id  # fmt: skip


@pytest.fixture
def run(store: RunStore, table: TableRecord) -> RunRecord:
    return queued(store, table, toy_plan(table))


def test_a_run_that_never_paid_says_so(store: RunStore, run: RunRecord) -> None:
    assert (
        runs.pause(store, run.id).message
        == "Paused before it started. Nothing was spent on this run."
    )
    assert runs.cancel(store, run.id).message == "Cancelled. Nothing was spent on this run."


def test_a_run_that_waits_to_go_on_has_spent(
    store: RunStore, table: TableRecord, run: RunRecord
) -> None:
    store.record(run.id, debit=debit(store, table, run))
    assert runs.pause(store, run.id).message == f"Paused before it went on. {SPENT}"


def test_a_debit_counts_if_the_worker_dies_before_noting_it(
    store: RunStore, table: TableRecord, run: RunRecord
) -> None:
    debit(store, table, run)
    assert store.run(run.id).debit is None
    assert runs.cancel(store, run.id).message == f"Cancelled. {SPENT}"


def test_a_worker_that_cannot_note_a_debit_says_it_is_spent(
    store: RunStore, run: RunRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = RunStore.record

    def failing(self: RunStore, run_id: str, **values: object) -> None:
        if "debit" in values:
            raise OSError("no room")
        record(self, run_id, **values)  # type: ignore[arg-type]

    monkeypatch.setattr(RunStore, "record", failing)
    with pytest.raises(OSError, match="no room"):
        work(store, run.id)
    monkeypatch.undo()
    stopped = store.run(run.id)
    assert stopped.message == f"Stopped. {SPENT} Resuming spends nothing more."
    assert not unpaid_again(store, stopped)
    assert store.set_state(run.id, State.QUEUED)
    assert work(store, run.id).state is State.DONE
    assert charges(store, store.run(run.id)) == 1


def test_a_restart_that_cannot_pay_says_what_was_spent(
    store: RunStore, table: TableRecord, run: RunRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.record(run.id, debit=debit(store, table, run))
    monkeypatch.setattr(RunStore, "resumes_free", lambda *_: False)  # its release was lost

    def absent(asked: str) -> str:
        raise DeviceError(f"{asked} is not there")

    monkeypatch.setattr("core.runs.execution.worker.choose_device", absent)
    stopped = work(store, run.id)
    again = "There is no checkpoint: a new start spends its budget again."
    assert stopped.message == f"Stopped. {SPENT} {again}"
    assert unpaid_again(store, stopped) and charges(store, stopped) == 1
    assert runs.cancel(store, run.id).message == f"Cancelled. {SPENT}"
