"""The worker process: one run from debit to report.

    python -m core.runs.execution.worker RUN_ID --home HOME [--slots N]

It holds its run through a process number and a heartbeat, outlives whoever started it, and starts
the next queued run when it ends. What goes wrong becomes one plain line in the run; the traceback
goes to worker.log in the run's folder and nowhere else.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from core.lmdp.errors import ShiftError
from core.models.events import Emitter, FitCancelled, FitPaused, Progress, Wish
from core.models.registry import synthesizer
from core.privacy.ledger.ledger import Entry, Ledger, LedgerError
from core.runs.accounts.account import pay
from core.runs.accounts.people import answered
from core.runs.execution.launcher import LocalLauncher
from core.runs.execution.pipeline import (
    DeviceError,
    Find,
    Job,
    choose_device,
    execute,
    limit_threads,
)
from core.runs.execution.reporter import Heartbeat, Reporter, ignore_hangup, peak_memory_mb
from core.runs.execution.reports import Compare, make_reports
from core.runs.storage.events import State
from core.runs.storage.records import RunRecord
from core.runs.storage.secrets import shift_key
from core.runs.storage.store import RunStore, RunStoreError
from core.runs.storage.workspace import Workspace
from core.table.schema import SchemaError

__all__ = ["main"]

NOT_MINE = 3  # exit status when another process holds the run


def main(
    arguments: Sequence[str] | None = None,
    *,
    find: Find = synthesizer,
    compare: Compare | None = None,
    command: Sequence[str] = ("-m", "core.runs.execution.worker"),
) -> int:
    """Work one run off; the process's exit status.

    Args:
      arguments: of the command line.
      find: the synthesizer of a model id.
      compare: makes the report; `core.quality.report.build_report.build_report` when None.
      command: how the next queued run's worker is started.
    """
    parser = argparse.ArgumentParser(prog="core.runs.execution.worker")
    parser.add_argument("run_id")
    parser.add_argument("--home", type=Path, required=True)
    parser.add_argument("--slots", type=int, default=1)
    options = parser.parse_args(arguments)
    ignore_hangup()
    os.umask(0o077)
    limit_threads(options.slots)
    with RunStore(Workspace(options.home)) as store:
        if not store.adopt(options.run_id, os.getpid()):
            print("another process holds this run", file=sys.stderr)
            return NOT_MINE
        try:
            return _Work(store, store.run(options.run_id), find, compare).run()
        finally:
            LocalLauncher(store, options.slots, command=command).pump()


class _Work:
    """One run in the hands of this process."""

    def __init__(
        self, store: RunStore, run: RunRecord, find: Find, compare: Compare | None
    ) -> None:
        self.compare = compare
        self.store = store
        self.record = run
        self.find = find
        self.reporter = Reporter(store, run.id)
        self.heart = Heartbeat(store, self.reporter, run.id)

    def run(self) -> int:
        """Fit, sample and report; 0 when the synthetic table is there, 1 when it is not."""
        with self.heart:
            try:
                if not self.store.has_result(self.record.id):
                    self._fit()
                self._report()
            except FitPaused:
                self._end(State.PAUSED, f"Paused. {self._resuming()}")
            except FitCancelled:
                self._end(State.CANCELLED, f"Cancelled. {self._spent()}")
            except (SchemaError, DeviceError, RunStoreError, LedgerError, ShiftError) as error:
                self._end(State.FAILED, self._kept(), error=str(error))
                return 1
            except Exception as error:
                # the process's edge: people get one line that quotes no value, the log the rest
                line = f"The run stopped on an unexpected problem ({type(error).__name__})."
                where = "Details are in worker.log in the run's folder on the steward's machine."
                self._end(State.FAILED, self._kept(), error=f"{line} {where}")
                raise
        return 0

    def _fit(self) -> None:
        """From debit to synthetic table."""
        run, store = self.record, self.store
        resume = run.debit is not None and store.has_checkpoint(run.id)
        if run.debit is not None and not store.goes_on_free(run.id):
            self.record = run = store.begin_again(run.id)
        if not resume:
            _clear(store, run.id)
        self.heart.device = choose_device(run.device)
        job = Job(
            table=run.table_name,
            plan=run.plan,
            schema=run.schema,
            rows=run.rows,
            seed=run.seed,
            device=self.heart.device,
            folder=store.workspace.runs_dir / run.id,
            resume=resume,
            shift_key=shift_key(store.workspace, run.people),
        )
        self._say("Going on from the checkpoint." if resume else "Fitting.")
        outcome = execute(
            job,
            lambda names: self._rows(names)[0],
            debit=self._debit,
            observe=self.reporter,
            find=self.find,
        )
        store.record(run.id, guarantee=outcome.guarantee)
        self._say("The synthetic table is ready; making the report.")

    def _rows(self, names: Sequence[str]) -> tuple[pd.DataFrame, pd.DataFrame]:
        """The rows that are trained on and the holdout, as the run's schema splits them."""
        run = self.record
        return self.store.load_split(run.table_id, run.schema.holdout, columns=names)

    def _debit(self) -> Entry:
        """Pay for the plan; a key that paid already, before a pause or a crash, pays no more."""
        run = self.record
        answered(self.store, run.table_id)
        entry = pay(
            Ledger(self.store.engine),
            run.people,
            run.plan,
            run.debit_key,
            domain=run.schema.domain(),
            allow_non_private=bool(run.confirmation.strip()),
            shift_words=run.shift_words,
        )
        self.store.record(run.id, debit=entry.id)
        return entry

    def _report(self) -> None:
        """Compare with the real table; what goes wrong here never costs the synthetic table."""
        run, store = self.record, self.store

        def hear(stage: str, fraction: float) -> None:
            percent = round(100 * fraction)
            Emitter(self.reporter, obeys=(Wish.CANCEL,)).send(
                Progress(step=percent, steps=100, phase=stage, unit="%")
            )

        try:
            if self.reporter.phase("report", "Comparing with the real table") is Wish.CANCEL:
                raise FitCancelled
            make_reports(store, run, observe=hear, compare=self.compare)
        except FitCancelled:
            self._end(State.DONE, "Done. The report was stopped before it was complete.")
        except Exception as error:
            # the process's edge, as in `run`: the table is ready, only its report is not
            traceback.print_exc()
            self._end(
                State.DONE,
                "Done. The synthetic table is kept, but its report could not be completed "
                f"({type(error).__name__}; see worker.log in the run's folder).",
            )
        else:
            self._end(State.DONE, "Done.")

    def _say(self, message: str) -> None:
        mine = os.getpid()
        running = (State.RUNNING,)
        self.store.set_state(self.record.id, State.RUNNING, message, expect=running, pid=mine)

    def _end(self, state: State, message: str, *, error: str | None = None) -> None:
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
        self.store.set_state(run_id, state, message, error=error, expect=running, pid=mine)

    def _spent(self) -> str:
        spent = self.store.run(self.record.id).debit is not None
        return "What it spent stays spent." if spent else "Nothing was spent."

    def _kept(self) -> str:
        return f"Stopped. {self._spent()} {self._resuming()}"

    def _resuming(self) -> str:
        if self.store.goes_on_free(self.record.id):
            return "Resuming spends nothing more."
        return "There is no checkpoint: a new start spends its budget again."


def _clear(store: RunStore, run_id: str) -> None:
    """Make room for a start from the beginning: an older checkpoint belongs to an older debit."""
    shutil.rmtree(store.artefact(run_id, "checkpoint"), ignore_errors=True)
    store.artefact(run_id, "meter.json").unlink(missing_ok=True)


if __name__ == "__main__":
    sys.exit(main())
