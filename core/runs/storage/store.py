"""RunStore: runs, their state and signals, over the tables, with a journal and artefacts.

Pages and the command line read it, the worker appends to it; each call is one short transaction, so
any number of processes may share it. A change of state is a compare-and-set: of two processes that
want the same run, one gets it.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
import time
from collections.abc import Collection
from typing import Any

import psutil
from sqlalchemy import CursorResult, Update, case, delete, select, update
from sqlalchemy.exc import IntegrityError, OperationalError
from sqlalchemy.orm import Session

from core.message import Message, joined
from core.models.events import Signal
from core.privacy.ledger.transaction import repeatable
from core.privacy.plan import Guarantee, Plan
from core.runs import operations_log
from core.runs.errors import FailureKind, NotFoundError, RunStoreError
from core.runs.events import WAITS_FOR_SLOT, RunEvent, State
from core.runs.records import RESUMABLE, RunRecord
from core.runs.request import RunRequest
from core.runs.storage.artefacts import (
    CHECKPOINT,
    METER,
    PRIVACY_CERTIFICATE,
    SYNTHETIC_TABLE,
    ArtefactStore,
)
from core.runs.storage.database import RunRow, TableRow, run_record
from core.runs.storage.engine import can_write
from core.runs.storage.journal import Journal
from core.runs.storage.processes.process import (
    LostRun,
    held_by,
    runs_without_worker,
    started_since_boot,
    to_adopt,
    to_beat,
    to_claim,
)
from core.runs.storage.table_store import TableStore
from core.runs.workspace import Workspace, private_folder
from core.schema.schema import Schema

_ID = re.compile(r"[0-9a-f]{6,32}")


class RunStore(TableStore):
    """Tables and runs of one workspace.

    Looking at a run whose worker process is gone marks it lost, so that no reader, in whatever
    process, sees a dead run as running; where nothing can be written, the mark has to wait.
    """

    def __init__(self, workspace: Workspace, *, patience: float = 0.0) -> None:
        super().__init__(workspace, patience=patience)
        self.journal = Journal(self.engine)

    def artefacts(self, run_id: str) -> ArtefactStore:
        """What a run keeps; NotFoundError when the id is no plain one."""
        if not _ID.fullmatch(run_id):
            raise NotFoundError("There is no such artefact in this workspace.")
        return self.storage.run(run_id)

    def create_run(
        self, table_id: str, plan: Plan, request: RunRequest, *, schema: Schema
    ) -> RunRecord:
        """A run in state queued; it starts when a launcher finds a free slot.

        Raises:
          RunStoreError: the plan is for another number or kind of records, or rows < 1.
        """
        self._check_records(table_id, plan, schema)
        if request.rows is not None and request.rows < 1:
            raise RunStoreError("Ask for at least one synthetic record.")
        now = time.time()
        row = RunRow(
            id=secrets.token_hex(5),
            table_id=table_id,
            request=request.model_dump_json(),
            plan=plan.model_dump_json(),
            schema=schema.model_dump_json(),
            state=State.QUEUED,
            attempt=1,
            signal=Signal.GO_ON,
            message="",
            created=now,
            queued=now,
            seconds={},
        )
        run_id = row.id
        private_folder(self.workspace.runs_dir / run_id)
        with Session(self.engine) as session, session.begin():
            session.add(row)
        self._append_state(run_id, State.QUEUED, WAITS_FOR_SLOT)
        return self._one(run_id)

    def run(self, run_id: str) -> RunRecord:
        """One run; NotFoundError when there is none."""
        return self._one(run_id, self._look())

    def runs(self, table_id: str | None = None) -> list[RunRecord]:
        """All runs, or those of one table, newest first."""
        condition = RunRow.table_id == table_id if table_id is not None else None
        return self._run_records(condition, self._look())

    def delete_run(self, run_id: str) -> None:
        """Remove a run, its events and artefacts; RunStoreError while its worker lives."""
        _refuse_running(self.run(run_id))
        with self.engine.begin() as connection:
            gone = connection.execute(
                delete(RunRow).where(RunRow.id == run_id, RunRow.state != State.RUNNING)
            )
            if gone.rowcount:  # in one transaction: artefacts that cannot be removed keep the run
                self.artefacts(run_id).clear()
                shutil.rmtree(self.workspace.runs_dir / run_id, ignore_errors=True)  # its log

    def delete_table(self, table_id: str) -> None:
        """Remove a table's rows, its runs and their artefacts; the ledger stays.

        Raises:
          RunStoreError: one of its runs is running; nothing was removed.
        """
        runs = self.runs(table_id)
        for run in runs:
            _refuse_running(run)
        for run in runs:
            self.delete_run(run.id)
        self._drop_table(table_id)

    def _one(self, run_id: str, unmarked: Collection[str] = ()) -> RunRecord:
        records = self._run_records(RunRow.id == run_id, unmarked)
        if not records:
            raise NotFoundError("There is no such run in this workspace.")
        return records[0]

    def _run_records(
        self, condition: Any = None, unmarked: Collection[str] = ()
    ) -> list[RunRecord]:
        """Runs, newest first; those in `unmarked` are lost, whatever the database says."""
        query = select(RunRow, TableRow).join(TableRow, TableRow.id == RunRow.table_id)
        if condition is not None:
            query = query.where(condition)
        with Session(self.engine) as session:
            rows = session.execute(query.order_by(RunRow.created.desc())).all()
            for row, _ in rows:
                if row.id in unmarked:  # the session ends without writing
                    row.state, row.message = State.LOST, self._lost_words(row.id)
            return [
                run_record(row, table, resumes_free=row.debit is None or self._resumes_free(row))
                for row, table in rows
            ]

    def _resumes_free(self, row: RunRow) -> bool:
        return row.state in RESUMABLE and self.resumes_free(row.id)

    # -- what is there to go on from ---------------------------------------------------------------

    def has_checkpoint(self, run_id: str) -> bool:
        """Whether a resumed run has something to go on from."""
        return bool(self.artefacts(run_id).names(CHECKPOINT))

    def has_result(self, run_id: str) -> bool:
        """Whether the synthetic table and its certificate are there."""
        artefacts = self.artefacts(run_id)
        return artefacts.exists(SYNTHETIC_TABLE) and artefacts.exists(PRIVACY_CERTIFICATE)

    def resumes_free(self, run_id: str) -> bool:
        """Whether what was debited still pays for going on.

        It does from a checkpoint or a finished table, and when the meter never counted a private
        access: then nothing was released for what was paid.
        """
        return (
            self.has_checkpoint(run_id)
            or self.has_result(run_id)
            or not self.artefacts(run_id).exists(METER)
        )

    # -- what a person asks, what a worker says -------------------------------------------------

    def request(self, run_id: str, signal: Signal) -> None:
        """Leave a signal for the worker; it follows within about a second."""
        self._update(update(RunRow).where(RunRow.id == run_id).values(signal=signal))

    def signal(self, run_id: str) -> Signal:
        """The signal that stands; a deleted run gets `CANCEL`."""
        with self.engine.connect() as connection:
            value = connection.execute(
                select(RunRow.signal).where(RunRow.id == run_id)
            ).scalar_one_or_none()
        return Signal.CANCEL if value is None else Signal(value)

    def set_state(
        self,
        run_id: str,
        state: State,
        message: str = "",
        *,
        error: str | None = None,
        failure: FailureKind | None = None,
        expect: Collection[State] | None = None,
        pid: int | None = None,
        lost: LostRun | None = None,
    ) -> bool:
        """Change a run's state and record it; whether it was, as of several processes one succeeds.

        Args:
          error: one plain line when the state is failed.
          expect: change only when the state is one of these.
          pid: change only when this process of this machine holds the run.
          lost: change only when there was no sign of life since it was seen so.
        """
        now = time.time()
        values: dict[str, Any] = {
            "state": state,
            "message": message,
            "error": error,
            "failure": failure,
        }
        if state is State.QUEUED:
            since = case((RunRow.state == State.QUEUED, RunRow.queued), else_=now)
            values |= {"queued": since, "ended": None, "signal": Signal.GO_ON, "pid": None}
        if state is not State.RUNNING:
            values |= {"slot": None}
        if state not in (State.QUEUED, State.RUNNING):
            values |= {"ended": now}
        statement = update(RunRow).where(RunRow.id == run_id)
        if expect is not None:
            statement = statement.where(RunRow.state.in_(list(expect)))
        if pid is not None:
            statement = statement.where(held_by(self.engine, pid))
        if lost is not None:
            statement = statement.where(RunRow.heartbeat.is_not_distinct_from(lost.heartbeat))
        changed = self._update(statement.values(**values))
        if changed:
            self._append_state(run_id, state, message)
        return changed

    def queue(self) -> list[str]:
        """Ids of the runs that wait, the one that waits longest first."""
        query = select(RunRow.id).where(RunRow.state == State.QUEUED).order_by(RunRow.queued)
        with self.engine.connect() as connection:
            return list(connection.execute(query).scalars())

    def claim(
        self, run_id: str, *, slots: int | None, states: Collection[State] = (State.QUEUED,)
    ) -> bool:
        """Take a run to start its worker: False when all slots are taken or it is gone.

        Of two processes that take the last slot one fails, on any database: its number is unique.

        Args:
          slots: how many there are; None takes none, where others keep the queue.
        """
        taken_query = select(RunRow.slot).where(RunRow.slot.is_not(None))
        for slot in (None,) if slots is None else range(slots):
            with self.engine.connect() as connection:
                taken = set(connection.execute(taken_query).scalars())
            if slot in taken:
                continue
            try:
                claimed = self._update(to_claim(self.engine, run_id, slot, states))
            except IntegrityError:  # another process took this slot between the two statements
                continue
            if claimed:
                self._append_state(run_id, State.RUNNING, "Starting.")
            return claimed
        return False

    def adopt(self, run_id: str, pid: int) -> bool:
        """Say which process on this machine holds a running run; False when another one does."""
        try:
            started = started_since_boot(psutil.Process(pid))
        except psutil.NoSuchProcess:
            return False
        return self._update(to_adopt(self.engine, run_id, pid=pid, started=started))

    def beat(self, run_id: str) -> bool:
        """A sign of life of this process; False when the run is no longer its own."""
        return self._update(to_beat(self.engine, run_id, os.getpid()))

    def begin_again(self, run_id: str) -> RunRecord:
        """Count a start from the beginning: what was paid before pays for nothing more."""
        statement = update(RunRow).where(RunRow.id == run_id)
        self._update(statement.values(attempt=RunRow.attempt + 1, debit=None, learned_schema=None))
        return self._one(run_id)

    def record(
        self,
        run_id: str,
        *,
        debit: str | None = None,
        guarantee: Guarantee | None = None,
        seconds: dict[str, float] | None = None,
        peak_memory_mb: float | None = None,
        learned: Schema | None = None,
    ) -> None:
        """Keep what the worker knows: the ledger's entry, what was executed, times and memory.

        Args:
          debit, guarantee, seconds, peak_memory_mb: as `RunRecord` keeps them; None keeps the old.
          learned: the run's schema with what it learned.
        """
        values = {
            "debit": debit,
            "guarantee": None if guarantee is None else guarantee.model_dump_json(),
            "seconds": seconds,
            "peak_memory_mb": peak_memory_mb,
            "learned_schema": None if learned is None else learned.model_dump_json(),
        }
        known = {name: value for name, value in values.items() if value is not None}
        self._update(update(RunRow).where(RunRow.id == run_id).values(**known))

    def reconcile(self) -> list[RunRecord]:
        """Mark runs whose worker is gone as lost and return them; cheap enough for every look."""
        lost = [seen.run_id for seen in runs_without_worker(self.engine) if self._lose(seen)]
        return [self._one(run_id) for run_id in lost]

    def _look(self) -> tuple[str, ...]:
        """`reconcile` for readers: the lost runs that could not be marked, since nothing can be.

        A full disk or a busy database must not keep anybody from looking, nor let him wait.
        """
        gone = runs_without_worker(self.engine)
        try:
            if gone and can_write(self.engine):
                for seen in gone:
                    self._lose(seen)
                return ()
        except OperationalError:
            pass  # a look changes nothing that matters; the next one tries again
        return tuple(seen.run_id for seen in gone)

    def _lose(self, seen: LostRun) -> bool:
        message = self._lost_words(seen.run_id)
        return self.set_state(seen.run_id, State.LOST, message, expect=(State.RUNNING,), lost=seen)

    def _lost_words(self, run_id: str) -> str:
        """What to say of a run whose worker is gone, and what going on costs."""
        if self.has_result(run_id):
            left = Message("The synthetic table was saved. Resume the run to finish its report.")
        elif self.has_checkpoint(run_id):
            left = Message(
                "A checkpoint was saved. Resuming continues from there and spends nothing more."
            )
        elif self.resumes_free(run_id):
            left = Message("Nothing was released yet. Resuming spends nothing more.")
        else:
            left = Message("There is no checkpoint: a new start spends its budget again.")
        ended = Message(
            "The worker process ended unexpectedly, for example because the machine restarted."
        )
        return joined([ended, left])

    def _append_state(self, run_id: str, state: State, message: str) -> None:
        event = RunEvent(kind="state", data={"state": state.value, "message": message})
        self.journal.append(run_id, event)
        operations_log.record("run_state", run=run_id, state=state.value)

    @repeatable
    def _update(self, statement: Update) -> bool:
        with self.engine.begin() as connection:
            result: CursorResult[Any] = connection.execute(statement)
            return result.rowcount > 0


def _refuse_running(run: RunRecord) -> None:
    if run.state is State.RUNNING:
        raise RunStoreError("The run '{run}' is running. Cancel it first.", run=run.title)
