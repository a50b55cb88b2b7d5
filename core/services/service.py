"""What pages and the command line do: import, plan, start, watch, stop, go on, make more rows.

Nothing here imports torch: fits and sampling happen in worker processes.
"""

from __future__ import annotations

import json
import secrets
import subprocess
import sys
from pathlib import Path
from typing import Any, Literal

import pandas as pd

from core.models.events import Wish
from core.privacy.ledger.ledger import HiddenError, Ledger
from core.privacy.plan import Plan
from core.quality.report.types import View
from core.runs.accounts.account import Account, account, set_limit
from core.runs.accounts.people import answered, settle
from core.runs.execution.launcher import LocalLauncher
from core.runs.storage.artefacts import INSIDE, OUTSIDE
from core.runs.storage.events import State
from core.runs.storage.records import RunRecord, TableRecord
from core.runs.storage.store import NotFoundError, RunStore, RunStoreError
from core.runs.storage.workspace import PROJECT_ROOT, Workspace, private_folder
from core.services.progress import Progress, epsilon_so_far, progress
from core.services.selection import certificate
from core.table.infer import infer_schema
from core.table.profile import profile
from core.table.schema import Schema

__all__ = [
    "Account",
    "Progress",
    "account",
    "cancel",
    "certificate",
    "compare_again",
    "confirm_schema",
    "epsilon_so_far",
    "generate_rows",
    "import_frame",
    "open_store",
    "pause",
    "progress",
    "report",
    "resume",
    "set_limit",
    "start",
]

GENERATE_SECONDS = 1800  # sampling takes seconds; a process that needs longer hangs


def open_store(home: Path | None = None) -> RunStore:
    """The run store of a workspace (FACSIMILE_HOME or ~/.facsimile when not named).

    Runs whose worker died while nobody looked are marked lost.
    """
    store = RunStore(Workspace(home) if home is not None else Workspace.default())
    store.reconcile()
    return store


# -- tables -------------------------------------------------------------------------------------


def import_frame(
    store: RunStore, frame: pd.DataFrame, *, name: str, source: str, people: str | None = None
) -> TableRecord:
    """Keep a table with its proposed schema and its profile.

    Args:
      store: where.
      frame: the rows, n ≥ 1.
      name: for people.
      source: where the table came from, in words.
      people: ledger account of the people in it; by default the one whose rows these are, see
        `core.runs.accounts.people`, or a fresh one.
    """
    schema = infer_schema(frame)
    table_id = secrets.token_hex(5)
    if len(frame):  # the store refuses an empty one, before anything is kept of it
        people = settle(store, frame, title=name, table_id=table_id, people=people).people
    return store.add_table(
        frame,
        name=name,
        schema=schema,
        profile=profile(frame, schema).model_dump(mode="json"),
        source=source,
        people=people or "",
        table_id=table_id,
    )


def confirm_schema(store: RunStore, table_id: str, schema: Schema) -> TableRecord:
    """Keep the schema that the steward confirmed, and the profile that goes with it."""
    fresh = profile(store.load_frame(table_id), schema).model_dump(mode="json")
    return store.save_schema(table_id, schema, profile=fresh)


# -- plans and runs -----------------------------------------------------------------------------


def start(
    store: RunStore,
    launcher: LocalLauncher,
    *,
    table_id: str,
    plan: Plan,
    rows: int | None = None,
    seed: int | None = None,
    device: str = "auto",
    name: str = "",
    confirmation: str = "",
    shift_words: str = "",
) -> RunRecord:
    """Make a run and start it, or queue it.

    Args:
      store: where.
      launcher: by whom.
      table_id: which table, with the schema it has now.
      plan: from `make_plan`.
      rows: synthetic records, as many as the table has when None.
      seed: data-free randomness only.
      device: "auto", "cpu" or "cuda".
      name: for people.
      confirmation: what the steward wrote to allow a run without differential privacy.
      shift_words: what the steward wrote to allow a release that betrays hidden distributions.

    Raises:
      RunStoreError: the plan is not for this table, its schema was not declared public, nobody said
        whose people these are, or a run without differential privacy was not confirmed in words.
      HiddenError: with earlier releases the run would betray a hidden distribution.
    """
    if not plan.budget.private and not confirmation.strip():
        raise RunStoreError(
            "This run claims no differential privacy. Nothing was started. Confirm it in words."
        )
    if not store.attested(table_id):
        raise RunStoreError(
            "Nobody has confirmed yet that this table's bounds and category names may be public. "
            "Nothing was started. Confirm it on the Tables page."
        )
    answered(store, table_id)
    table = store.table(table_id)
    problem = Ledger(store.engine).objection(table.people, plan, table.schema.domain())
    if problem is not None and not shift_words.strip():
        raise HiddenError(problem)
    run = store.create_run(
        table_id,
        plan,
        schema=table.schema,
        rows=table.training_n if rows is None else rows,
        seed=seed,
        device=device,
        name=name,
        confirmation=confirmation,
        shift_words=shift_words,
    )
    launcher.submit(run.id)
    return store.run(run.id)


def resume(
    store: RunStore, launcher: LocalLauncher, run_id: str, *, spend_again: bool = False
) -> RunRecord:
    """Go on with a paused, lost or failed run, from its checkpoint and its ledger entry.

    Args:
      store: where.
      launcher: by whom.
      run_id: which run.
      spend_again: allow a new start, with a debit of its own, when there is no checkpoint.

    Raises:
      RunStoreError: the run cannot go on, or only by spending its budget again.
    """
    run = store.run(run_id)
    if run.state.live or run.state.final:
        raise RunStoreError(f"A run that is {run.state.value} cannot be resumed.")
    if not run.resumable and not spend_again:
        raise RunStoreError(
            "There is no checkpoint to go on from. Nothing was started. "
            f"A new start spends {_epsilon_words(run)} again: confirm it to go on."
        )
    launcher.resume(run_id)
    return store.run(run_id)


def compare_again(store: RunStore, launcher: LocalLauncher, run_id: str) -> RunRecord:
    """Make a comparison that stopped early anew; spends nothing.

    A complete one of the same content is taken from where it is kept.

    Raises:
      RunStoreError: the run has no synthetic table, or is at work.
    """
    if not store.has_result(run_id):
        raise NotFoundError("This run has no synthetic table to compare.")
    message = "Waiting for a free slot, to finish the comparison."
    if not store.set_state(run_id, State.QUEUED, message, expect=(State.DONE,)):
        raise RunStoreError("This run is at work already.")
    launcher.pump()
    return store.run(run_id)


def pause(store: RunStore, run_id: str) -> RunRecord:
    """Ask a run to stop at its next checkpoint; one that waits is taken out of the queue."""
    message = "Paused before it started. Nothing was spent."
    if not store.set_state(run_id, State.PAUSED, message, expect=(State.QUEUED,)):
        _ask(store, run_id, Wish.PAUSE)
    return store.run(run_id)


def cancel(store: RunStore, run_id: str) -> RunRecord:
    """End a run for good; what it had spent stays spent."""
    run = store.run(run_id)
    spent = "What it spent stays spent." if run.debit else "Nothing was spent."
    waiting = (State.QUEUED, State.PAUSED, State.LOST, State.FAILED)
    if store.has_result(run_id):  # only its comparison waited
        if store.set_state(run_id, State.DONE, "Done. Its comparison was stopped.", expect=waiting):
            return store.run(run_id)
    if not store.set_state(run_id, State.CANCELLED, f"Cancelled. {spent}", expect=waiting):
        _ask(store, run_id, Wish.CANCEL)
    return store.run(run_id)


def _ask(store: RunStore, run_id: str, wish: Wish) -> None:
    state = store.run(run_id).state
    if state is not State.RUNNING:
        raise RunStoreError(f"A run that is {state.value} cannot be stopped.")
    store.request(run_id, wish)


def _epsilon_words(run: RunRecord) -> str:
    budget = run.plan.budget
    return f"ε {budget.epsilon:g}" if budget.private else "its budget"


# -- watching -----------------------------------------------------------------------------------


def report(store: RunStore, run_id: str, view: View = "inside") -> dict[str, Any] | None:
    """The run's report (`core.quality.report.types.Report` as a dict), or None while there is none.

    Args:
      store: where.
      run_id: whose.
      view: "inside" shows real data without noise; "outside" shows none, or what was paid for.
    """
    return _read_json(store.artefact(run_id, INSIDE if view == "inside" else OUTSIDE))


def _read_json(path: Path) -> dict[str, Any] | None:
    try:
        found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    return found


# -- rows ---------------------------------------------------------------------------------------


def generate_rows(
    store: RunStore,
    run_id: str,
    *,
    rows: int,
    seed: int | None = None,
    format: Literal["csv", "parquet"] = "csv",
    escape_formulas: bool = False,
) -> Path:
    """A file of synthetic records from a run's saved model; made in a process of its own.

    Sampling touches no private data and spends nothing. The file lies under the run's `exports`.

    Args:
      store: where.
      run_id: a run with a saved model.
      rows: how many records, ≥ 1.
      seed: of the sampling; None draws one.
      format: of the file.
      escape_formulas: write cells that a spreadsheet would run as formulas as text (CSV only).

    Raises:
      RunStoreError: no model yet, or the sampling failed; no file is left.
    """
    if rows < 1:
        raise RunStoreError("Ask for at least one synthetic record.")
    run = store.run(run_id)
    if not store.has_artefact(run_id, "model"):
        raise NotFoundError("This run has no model yet. Wait until it is done.")
    label = "" if run.private else ".not-private"
    escaped = "-escaped" if escape_formulas and format == "csv" else ""
    tail = f"{rows}-{'any' if seed is None else seed}{escaped}{label}.{format}"
    out = private_folder(store.artefact(run_id, "exports")) / f"synthetic-{tail}"
    command = [
        sys.executable,
        "-m",
        "core.runs.execution.sampling_process",
        run_id,
        "--out",
        str(out),
    ]
    command += ["--home", str(store.workspace.home), "--rows", str(rows), "--format", format]
    command += ["--seed", str(seed)] if seed is not None else []
    command += ["--escape-formulas"] if escape_formulas else []
    ended = subprocess.run(
        command,
        cwd=PROJECT_ROOT,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=GENERATE_SECONDS,
        check=False,
    )
    if ended.returncode != 0:
        log = store.artefact(run_id, "worker.log")
        with log.open("ab") as file:
            file.write(ended.stderr)
        raise RunStoreError(
            "The records could not be made; no file is left. See worker.log in the run's folder."
        )
    return out
