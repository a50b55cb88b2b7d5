"""Runs: start, watch, pause, resume and cancel them, and make more rows of what they learned.

Nothing here imports torch: fits and sampling happen in worker processes.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from core.message import Message, joined
from core.models.events import Signal
from core.privacy.accounting.accountant import epsilon
from core.privacy.discovery.open_domain import planned_schema
from core.privacy.plan import Plan, certificate_phase
from core.runs.accounts.account import charges, require_words
from core.runs.accounts.learned_earlier import learned_earlier
from core.runs.accounts.people import require_account
from core.runs.accounts.spending import epsilon_text, kept_spent
from core.runs.errors import NotFoundError, RunStoreError
from core.runs.events import State
from core.runs.execution.launching.launcher import Launcher, SampleRequest, not_resumable
from core.runs.execution.noisy_scores import ScoreCounts
from core.runs.execution.paid_release import MeasureQuestion, ReviewHistograms
from core.runs.records import RunRecord, TableRecord
from core.runs.request import RunRequest
from core.runs.storage.artefacts import ATTEMPT, CHECKPOINT, MODEL, REFITS_WANTED
from core.runs.storage.storages import forget_logs
from core.runs.storage.store import RunStore
from core.runs.workspace import Workspace
from core.schema.schema import Schema
from core.services.planning import as_learnable

__all__ = [
    "Progress",
    "RunStore",
    "cancel",
    "compare_again",
    "epsilon_so_far",
    "expected_seconds",
    "generate_rows",
    "open_store",
    "pause",
    "progress",
    "resume",
    "start",
]

REPORT, REPLICAS = "report", "replicas"  # what comes after the synthetic table
TRAINING = "training"  # a phase of free steps, as many as the `steps` setting says
CERTIFICATE = "certificate"  # what a fit calls the phases of all groups' certificates together


def open_store(home: Path | None = None) -> RunStore:
    """The run store of a workspace (FACSIMILE_HOME or ~/.facsimile when not named).

    Runs whose worker died while nobody looked are marked lost, where the database can be written.
    Logs of runs that were deleted on another machine are removed from this one, and what killed
    processes left of tables they were bringing in.
    """
    store = RunStore(Workspace(home) if home is not None else Workspace.default())
    runs = store.runs()
    forget_logs(store.workspace, [run.id for run in runs])
    store.unfinished.forget()
    return store


def start(
    store: RunStore,
    launcher: Launcher,
    table_id: str,
    plan: Plan,
    request: RunRequest,
    *,
    schema: Schema | None = None,
) -> RunRecord:
    """Make a run and start it, or queue it.

    Args:
      table_id: which table, with the schema it has now.
      schema: that the plan was made for; not looked at when None.

    Raises:
      RunStoreError: the plan is not for this table or its schema, that was not declared public,
        nobody said whose people these are, or a run without differential privacy was not confirmed
        in words.
      HiddenError, MixedUnitsError: see `require_words`.
    """
    if not plan.budget.private and not request.without_privacy.strip():
        raise RunStoreError(
            "This run claims no differential privacy. Nothing was started. Confirm it in words."
        )
    table = store.table(table_id)  # before: what is declared from here on was not confirmed
    _require_declared(store, table, schema)
    require_account(store, table_id)
    learned_earlier(store, table.account_id, table.schema)
    require_words(
        store.ledger,
        table.account_id,
        plan,
        domain=planned_schema(table.schema, private=plan.budget.private).domain(),
        shift_words=request.shift_words,
        unit_words=request.unit_words,
    )
    learned = as_learnable(table.schema, plan.model)
    run = store.create_run(table_id, plan, request, schema=learned)
    launcher.submit(run.id)
    return store.run(run.id)


def _require_declared(store: RunStore, table: TableRecord, schema: Schema | None) -> None:
    """Refuse a table whose schema nobody declared public, or not the one that was planned for."""
    if schema is not None and schema != table.schema:
        raise RunStoreError(
            "What is declared of this table was changed since this plan was made. Nothing was "
            "started. Look at the plan anew."
        )
    if not store.attested(table.id):
        raise RunStoreError(
            "Nobody has confirmed yet what is known of this table's columns. Nothing was "
            "started. Confirm it on the Tables page."
        )


def resume(
    store: RunStore, launcher: Launcher, run_id: str, *, spend_again: bool = False
) -> RunRecord:
    """Go on with a paused, lost or failed run, from its checkpoint and its ledger entry.

    Args:
      spend_again: allow a new start, with a debit of its own, when there is no checkpoint.

    Raises:
      RunStoreError: the run cannot go on, or only by spending its budget again.
    """
    run = store.run(run_id)
    if run.state.live or run.state.final:
        raise RunStoreError(not_resumable(run.state))
    if not run.resumable and not spend_again:
        raise RunStoreError(
            "There is no checkpoint to go on from. Nothing was started. A new start "
            "spends {run} again: confirm it to go on.",
            run=_epsilon_words(run),
        )
    launcher.resume(run_id)
    return store.run(run_id)


def compare_again(store: RunStore, launcher: Launcher, run_id: str) -> RunRecord:
    """Make a comparison that stopped early anew; spends nothing.

    A complete one of the same content is taken from where it is kept.

    Raises:
      RunStoreError: the run has no synthetic table, or is at work.
    """
    if not store.has_result(run_id):
        raise NotFoundError("This run has no synthetic table to compare.")
    store.artefacts(run_id).delete(REFITS_WANTED)
    message = Message("Waiting for a free slot, to finish the comparison.")
    if not store.set_state(run_id, State.QUEUED, message, expect=(State.DONE,)):
        raise RunStoreError("This run is at work already.")
    launcher.submit(run_id)
    return store.run(run_id)


def pause(store: RunStore, run_id: str, launcher: Launcher | None = None) -> RunRecord:
    """Ask a run to stop at its next checkpoint; one that waits is taken out of the queue.

    Args:
      launcher: where it may wait; without one its place there is given up when its turn comes.
    """
    run = store.run(run_id)
    message = (
        Message("Paused before it went on.")
        if charges(store, run)
        else Message("Paused before it started.")
    )
    message = joined([message, kept_spent(store, run)])
    paused = store.set_state(run_id, State.PAUSED, message, expect=(State.QUEUED,))
    return _stopped(store, run_id, launcher, at_once=paused, signal=Signal.PAUSE)


def cancel(store: RunStore, run_id: str, launcher: Launcher | None = None) -> RunRecord:
    """End a run for good; what it had spent stays spent.

    Args:
      launcher: where it may wait; without one its place there is given up when its turn comes.
    """
    run = store.run(run_id)
    waiting = (State.QUEUED, State.PAUSED, State.LOST, State.FAILED)
    if store.artefacts(run_id).exists(REFITS_WANTED):
        ended, message = State.DONE, Message("Done. Fitting the model again was stopped.")
    elif store.has_result(run_id):  # only its comparison waited
        ended, message = State.DONE, Message("Done. Its comparison was stopped.")
    else:
        spent = kept_spent(store, run)
        ended, message = State.CANCELLED, joined([Message("Cancelled."), spent])
    cancelled = store.set_state(run_id, ended, message, expect=waiting)
    return _stopped(store, run_id, launcher, at_once=cancelled, signal=Signal.CANCEL)


def _stopped(
    store: RunStore, run_id: str, launcher: Launcher | None, *, at_once: bool, signal: Signal
) -> RunRecord:
    """The run, which left the queue at once or is asked to stop."""
    state = store.run(run_id).state
    if at_once and launcher is not None:
        launcher.withdraw(run_id)
    elif not at_once and state is State.RUNNING:
        store.request(run_id, signal)
    elif not at_once:
        raise RunStoreError("A run that is {value} cannot be stopped.", value=state.value)
    return store.run(run_id)


def _epsilon_words(run: RunRecord) -> str:
    return (
        f"ε {epsilon_text(run.plan.guarantee)}"
        if run.plan.budget.private
        else Message("its budget")
    )


def generate_rows(store: RunStore, launcher: Launcher, run_id: str, request: SampleRequest) -> Path:
    """A file of synthetic records from a run's saved model, under the run's `exports`.

    Sampling touches no private data and spends nothing.

    Raises:
      RunStoreError: no model yet, or the sampling failed; no file is left.
    """
    if request.rows < 1:
        raise RunStoreError("Ask for at least one synthetic record.")
    run = store.run(run_id)
    if not store.artefacts(run_id).exists(MODEL):
        raise NotFoundError("This run has no model yet. Wait until it is done.")
    label = "" if run.private else ".not-private"
    escaped = "-escaped" if request.escape_formulas and request.format == "csv" else ""
    seed = "any" if request.seed is None else request.seed
    shaped = "" if request.shape.plain else f"-{request.shape.digest}"
    name = f"synthetic-{request.rows}-{seed}{shaped}{escaped}{label}.{request.format}"
    launcher.sample(run_id, name, request)
    return store.artefacts(run_id).within("exports").local(name)


# -- how far a run is, and how long one may take ------------------------------------------------


@dataclass(frozen=True)
class Progress:
    """How far a run is.

    Attributes:
      phase, title: of the present phase; empty before the first.
      step, steps: of the present phase's loop; 0 of 0 when it has none.
      fraction: step / steps, in [0, 1].
      steps_per_second: in the present phase, or None before it is known.
      eta_seconds: until the present phase ends at that speed, or None.
      elapsed_seconds: since the run's start.
    """

    phase: str
    title: str
    step: int
    steps: int
    fraction: float
    steps_per_second: float | None
    eta_seconds: float | None
    elapsed_seconds: float


def progress(store: RunStore, run_id: str) -> Progress:
    """How far a run is, from its newest events."""
    run = store.run(run_id)
    phase = store.journal.latest(run_id, "phase")
    newest = store.journal.latest(run_id, "progress")
    end = run.ended.timestamp() if run.ended is not None else time.time()
    elapsed = 0.0 if run.started is None else max(0.0, end - run.started.timestamp())
    name = "" if phase is None else str(phase.data.get("name", ""))
    title = "" if phase is None else str(phase.data.get("title", name))
    if phase is None or newest is None or newest.seq < phase.seq:
        return Progress(name, title, 0, 0, 0.0, None, None, elapsed)
    step, steps = int(newest.data.get("step", 0)), int(newest.data.get("steps", 0))
    # a resumed phase begins at the step of its checkpoint: count from its first progress
    first = store.journal.events(run_id, after=phase.seq, kind="progress", limit=1)[0]
    done, seconds = step - int(first.data.get("step", 0)), newest.time - first.time
    speed = done / seconds if done > 0 and seconds > 0 else None
    eta = max(0.0, (steps - step) / speed) if speed else None
    fraction = min(1.0, step / steps) if steps else 0.0
    return Progress(name, title, step, steps, fraction, speed, eta, elapsed)


def epsilon_so_far(store: RunStore, run_id: str) -> float | None:
    """ε of what a running fit has released so far; None where no privacy is claimed.

    Counted from its events: phases before the present one ran in full, the present one as far as
    its newest progress says, and all of them in each earlier attempt. Rounded up to a twentieth of
    a phase, so that few values are computed. A picture to watch by: what is claimed at the end
    comes from the meter.
    """
    run = store.run(run_id)
    if not run.private:
        return None
    told = [str(e.data.get("name")) for e in store.journal.events(run_id, kind="phase")]
    folders = store.artefacts(run_id).names(CHECKPOINT) if run.plan.attempts > 1 else []
    earlier = sum(name.startswith(ATTEMPT) for name in folders)
    begun = _since_last(told, run.plan.phases[0].name) if earlier else told
    executed = []
    for phase in run.plan.phases:
        paid = (ReviewHistograms.name, ScoreCounts.name, MeasureQuestion.name)
        once = phase.name.partition(": ")[0] in paid
        event = CERTIFICATE if phase.name.startswith(certificate_phase("")) else phase.name
        count = 0 if once else earlier * phase.count
        if [event] == told[-1:] and phase.count > 1:
            count += _rounded(progress(store, run_id).fraction, phase.count)
        elif event in (told if once else begun):
            count += phase.count
        if count:
            executed.append(phase.model_copy(update={"count": count}))
    rows = run.plan.rows_of_one
    return epsilon(executed, run.plan.budget.delta, rows=rows)[0] if executed else 0.0


def _since_last(told: Sequence[str], first: str) -> Sequence[str]:
    """The names from the last `first` on: what the present attempt has begun.

    >>> _since_last(["sum", "fit", "sum"], "sum"), _since_last(["read"], "sum")
    (['sum'], ['read'])
    """
    last = max((at for at, name in enumerate(told) if name == first), default=0)
    return told[last:]


def _rounded(fraction: float, count: int) -> int:
    """Runs of a phase that a fraction stands for, rounded up to a twentieth; at least one.

    >>> [_rounded(f, 4000) for f in (0.0, 0.001, 0.05, 0.51, 1.0)]
    [1, 200, 200, 2200, 4000]
    """
    return max(1, min(count, math.ceil(fraction * 20 - 1e-9) * math.ceil(count / 20)))


def expected_seconds(store: RunStore, table_id: str, plan: Plan) -> float | None:
    """Seconds until the synthetic table, scaled from the newest like run; None without one.

    Private phases scale with how often they run and on how many records, free training with its
    steps; everything else is taken as it was.

    Args:
      table_id: runs of this table are asked; others have other widths.
    """
    for run in store.runs(table_id):
        if run.state is State.DONE and run.model == plan.model and _alike(run.plan, plan):
            return sum(
                seconds * _ratio(name, run.plan, plan)
                for name, seconds in run.seconds.items()
                if name not in (REPORT, REPLICAS)
            )
    return None


def _alike(earlier: Plan, plan: Plan) -> bool:
    """Whether one can be scaled from the other."""
    sized = "steps" in earlier.settings and "steps" in plan.settings
    return sized and {p.name for p in earlier.phases} == {p.name for p in plan.phases}


def _ratio(name: str, earlier: Plan, plan: Plan) -> float:
    """How much longer a phase takes than it did."""
    if name == TRAINING:
        return float(plan.settings["steps"]) / max(1.0, float(earlier.settings["steps"]))
    if name not in {phase.name for phase in plan.phases}:
        return 1.0
    now, then = plan.phase(name), earlier.phase(name)
    return (now.count * (now.sampling_rate or 1.0)) / (then.count * (then.sampling_rate or 1.0))
