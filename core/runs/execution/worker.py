"""The worker process: one run from debit to report.

    python -m core.runs.execution.worker RUN_ID --home HOME [--slots N | --supervisor PID]

It holds its run through a process number and a heartbeat, outlives whoever started it, and starts
the next queued run when it ends. With a supervisor, which a cluster started where it had room, it
takes its run itself, ends with the supervisor, and starts no other. What goes wrong becomes one
plain line in the run; the traceback goes to worker.log in the run's folder and nowhere else.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path

from core.lmdp.level import ShiftError
from core.message import Message, joined
from core.models.events import Emitter, FitCancelled, FitPaused, Progress, Signal
from core.models.registry import synthesizer
from core.privacy.ledger.admission import LedgerError
from core.privacy.ledger.entries import Entry
from core.runs import operations_log
from core.runs.accounts.account import unpaid_again
from core.runs.accounts.spending import kept_spent
from core.runs.errors import FailureKind, RunStoreError, StorageError, failure_kind, storage_trouble
from core.runs.events import State
from core.runs.execution.job import Job
from core.runs.execution.launching.launcher import SETTING
from core.runs.execution.launching.local_launcher import LocalLauncher
from core.runs.execution.pipeline import DeviceError, Find, choose_device, execute
from core.runs.execution.replica_making import attack_again, make_replicas
from core.runs.execution.reporter import Heartbeat, Reporter, ignore_hangup, peak_memory_mb
from core.runs.execution.reports import Compare, make_reports
from core.runs.execution.threads import limit_threads
from core.runs.execution.training_rows import StoredRows
from core.runs.extensions import cluster_module
from core.runs.records import RunRecord
from core.runs.storage import artefacts as stored
from core.runs.storage.artefacts import WorkingFolder
from core.runs.storage.store import RunStore
from core.runs.workspace import Workspace
from core.schema.column import SchemaError

NOT_MINE = 3  # exit status when another process holds the run
PATIENCE = 120.0  # seconds that a database server or an object store may keep silent


def main(
    arguments: Sequence[str] | None = None,
    *,
    find: Find = synthesizer,
    compare: Compare | None = None,
    command: Sequence[str] = ("-m", "core.runs.execution.worker"),
) -> int:
    """Work one run off; the process's exit status.

    Args:
      compare: makes the report; `core.quality.report.build_report.build_report` when None.
      command: how the next queued run's worker is started.
    """
    parser = argparse.ArgumentParser(prog="core.runs.execution.worker")
    parser.add_argument("run_id")
    parser.add_argument("--home", type=Path, required=True)
    parser.add_argument("--slots", type=int, default=1)
    parser.add_argument("--supervisor", type=int)
    options = parser.parse_args(arguments)
    ignore_hangup()
    os.umask(0o077)
    limit_threads(options.slots)
    operations_log.configure(run=options.run_id)
    supervised = options.supervisor is not None
    if supervised:
        takeover = cluster_module("takeover", setting=SETTING)
        takeover.end_with(options.supervisor)
    with RunStore(Workspace(options.home), patience=PATIENCE) as store:
        taken = not supervised or takeover.take(store, options.run_id)
        if not taken or not store.adopt(options.run_id, os.getpid()):
            print(Message("another process holds this run"), file=sys.stderr)
            return NOT_MINE
        try:
            return _Work(store, store.run(options.run_id), find, compare).run()
        finally:
            if not supervised:
                LocalLauncher(store, options.slots, command=command).pump()


def _with_cause(failed: Message, error: Exception) -> Message:
    """What failed and why, of a run whose table is ready; the log gets the rest."""
    traceback.print_exc()
    cause = storage_trouble(error) or Message("{name}.", name=type(error).__name__)
    return joined([failed, cause, Message("See worker.log in the run's folder.")])


class _Work:
    """One run in the hands of this process."""

    def __init__(
        self, store: RunStore, run: RunRecord, find: Find, compare: Compare | None
    ) -> None:
        self.compare = compare
        self.store = store
        self.record = run
        self.find = find
        self.working_folder: WorkingFolder | None = None  # once the fit has begun
        self.reporter = Reporter(store, run.id)
        self.heart = Heartbeat(store, self.reporter, run.id)

    def run(self) -> int:
        """Fit, sample and report; 0 when the synthetic table is there, 1 when it is not."""
        with self.heart:
            try:
                if not self.store.has_result(self.record.id):
                    self._fit()
                if self.store.artefacts(self.record.id).exists(stored.REFITS_WANTED):
                    self._replicate()
                else:
                    self._report()
            except FitPaused:
                self._end(State.PAUSED, joined(["Paused.", self._resuming()]))
            except FitCancelled:
                self._end(State.CANCELLED, joined(["Cancelled.", self._spent()]))
            except StorageError as error:
                traceback.print_exc()  # the log has the driver's own words
                self._fail(self._kept(away=True), str(error), "storage")
                return 1
            except (SchemaError, DeviceError, RunStoreError, LedgerError, ShiftError) as error:
                kind: FailureKind = "device" if isinstance(error, DeviceError) else "refused"
                self._fail(self._kept(), str(error), kind)
                return 1
            except Exception as error:
                # the process's edge: people get one line that quotes no value, the log the rest
                name = type(error).__name__
                line = Message("The run stopped on an unexpected problem ({name}).", name=name)
                where = Message(
                    "Details are in worker.log in the run's folder on the steward's machine."
                )
                said = joined([storage_trouble(error) or line, where])
                self._fail(self._kept(), said, failure_kind(error))
                raise
        return 0

    def _fit(self) -> None:
        """From debit to synthetic table."""
        run, store = self.record, self.store
        resume = run.debit is not None and store.has_checkpoint(run.id)
        if run.debit is not None and not store.resumes_free(run.id):
            self.record = run = store.begin_again(run.id)
        if not resume:
            # an older checkpoint belongs to an older debit
            for name in (stored.CHECKPOINT, stored.METER, stored.LEARNED_DOMAIN):
                store.artefacts(run.id).delete(name)
        self.heart.device = choose_device(run.request.device)
        self._say(Message("Going on from the checkpoint.") if resume else "Fitting.")
        with store.artefacts(run.id).working() as self.working_folder:
            self._execute(self.working_folder, resume=resume)
        self._say(Message("The synthetic table is ready; making the report."))

    def _execute(self, working_folder: WorkingFolder, *, resume: bool) -> None:
        run, store = self.record, self.store
        job = Job(
            table=run.table_name,
            table_id=run.table_id,
            plan=run.plan,
            schema=run.schema,
            request=run.request,
            device=self.heart.device,
            artefacts=working_folder,
            account_id=run.account_id,
            debit_key=run.debit_key,
            resume=resume,
        )
        outcome = execute(
            job,
            StoredRows(store, run.table_id, run.schema),
            store=store,
            on_event=self.reporter,
            find=self.find,
            debited=lambda entry: self._debited(entry, resume=resume),
            learned=lambda schema: store.record(run.id, learned=schema),
        )
        store.record(run.id, guarantee=outcome.guarantee)
        self.record = store.run(run.id)

    def _debited(self, entry: Entry, *, resume: bool) -> None:
        """Keep what paid, and which rows were paid for: a run goes on with the same ones.

        Raises:
          RunStoreError: the file was changed since; it is not read as rows any more.
        """
        run, store = self.record, self.store
        store.record(run.id, debit=entry.id)
        with store.table_artefacts(run.table_id).open(stored.ROWS) as file:
            digest = hashlib.file_digest(file, "sha256").digest()  # type: ignore[arg-type]
        kept = store.artefacts(run.id)
        if not (resume and kept.exists(stored.ROWS_DIGEST)):
            with kept.replacing(stored.ROWS_DIGEST) as out:
                out.write(digest)
            return
        with kept.open(stored.ROWS_DIGEST) as file:
            if file.read() != digest:
                raise RunStoreError(
                    "The table's rows are no longer those that this run began with. Nothing "
                    "more was read or spent; what was paid for stays paid for. Bring the "
                    "rows in as a table of their own and start a new run."
                )

    def _report(self) -> None:
        """Compare with the real table; what goes wrong here never costs the synthetic table."""
        emitter = Emitter(self.reporter, obeys=(Signal.CANCEL,))

        def on_progress(stage: str, fraction: float) -> None:
            percent = round(100 * fraction)
            emitter.send(Progress(step=percent, steps=100, phase=stage, unit="%"))

        try:
            emitter.phase("report", Message("Comparing with the real table"))
            make_reports(self.store, self.record, on_progress=on_progress, compare=self.compare)
        except FitCancelled:
            self._end(State.DONE, Message("Done. The report was stopped before it was complete."))
        except Exception as error:
            # the process's edge, as in `run`: the table is ready, only its report is not
            ready = Message(
                "Done. The synthetic table was saved, but its report could not be completed:"
            )
            self._end(State.DONE, _with_cause(ready, error))
        else:
            self._end(State.DONE, "Done.")

    def _replicate(self) -> None:
        """Attack a finished run, or make its replicas; what is complete by its end is kept."""
        artefacts = self.store.artefacts(self.record.id)
        said: str = "Done."
        with artefacts.open(stored.REFITS_WANTED) as file:
            minutes = float(file.read() or 0.0)
        try:
            if minutes:
                attack_again(self.store, self.record, minutes=minutes, on_event=self.reporter)
            else:
                make_replicas(artefacts, self.record, on_event=self.reporter)
        except FitCancelled:
            said = Message("Done. Fitting the model again was stopped.")
        except FitPaused:
            raise
        except Exception as error:
            # the process's edge, as in `_report`
            said = _with_cause(Message("Done. The model could not be fitted again:"), error)
        artefacts.delete(stored.REFITS_WANTED)
        self._end(State.DONE, said)

    def _say(self, message: str) -> None:
        mine = os.getpid()
        running = (State.RUNNING,)
        self.store.set_state(self.record.id, State.RUNNING, message, expect=running, pid=mine)

    def _fail(self, message: str, error: str, failure: FailureKind) -> None:
        self._end(State.FAILED, message, error=error, failure=failure)

    def _end(
        self,
        state: State,
        message: str,
        *,
        error: str | None = None,
        failure: FailureKind | None = None,
    ) -> None:
        """The run's last word from this process, unless another one holds it by now."""
        if self.reporter.superseded:
            return
        run_id, watch = self.record.id, self.reporter.watch
        self.reporter.flush()
        watch.enter(None)
        peak = peak_memory_mb(self.heart.readings.peak_memory_mb)
        peak = max(peak, self.record.peak_memory_mb or 0.0)
        self.store.record(run_id, seconds=watch.seconds, peak_memory_mb=round(peak, 1))
        mine, running = os.getpid(), (State.RUNNING,)
        self.store.set_state(
            run_id, state, message, error=error, failure=failure, expect=running, pid=mine
        )

    def _spent(self) -> str:
        return kept_spent(self.store, self.store.run(self.record.id))

    def _kept(self, *, away: bool = False) -> str:
        return joined(["Stopped.", self._spent(), self._resuming(away=away)])

    def _resuming(self, *, away: bool = False) -> str:
        """What going on costs.

        Args:
          away: whether the storage does not answer; then what this process knows has to do.
        """
        run = self.store.run(self.record.id)
        unpaid = run.debit is None
        if unpaid_again(self.store, run):
            return Message("There is no checkpoint: a new start spends its budget again.")
        published = self.working_folder is not None and bool(
            self.working_folder.names(stored.CHECKPOINT)
        )
        if unpaid or published:
            return Message("Resuming spends nothing more.")
        if away:
            return Message("What going on costs is shown once the storage answers.")
        if self.store.resumes_free(self.record.id):
            return Message("Resuming spends nothing more.")
        return Message("There is no checkpoint: a new start spends its budget again.")


if __name__ == "__main__":
    sys.exit(main())
