"""fit_attempts: fit, shift and certify; begin anew where the plan declared more attempts.

The plan pays for all attempts beforehand, so stopping at the first that passes reveals nothing
more. Each attempt has a meter and a checkpoint of its own; a crash goes on with the one it hit.
Where the crash came between a charge and the checkpoint that holds its release, that release is
lost: it stays paid for and is not made again, so the attempt cannot end, and the next one begins.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from core.encoding.codec import Codes
from core.encoding.layout.layout import Layout
from core.encoding.person_rows import PersonRows
from core.encoding.stored_codes import StoredCodes
from core.message import Message, from_json, joined, to_json, to_say
from core.models.events import Emitter, Note, OnEvent
from core.models.layout_rows import ApplyLayout, previewed
from core.models.registry import load_fitted
from core.models.saved_model import SavedModel
from core.models.step import FitContext, State, Step, planned_phases
from core.models.synthesizer import Synthesizer
from core.privacy.discovery.lists import ListCounts
from core.privacy.guarded import PrivateTable
from core.privacy.meter import Meter, UnplannedReleaseError
from core.privacy.plan import Phase, Plan, Protection
from core.privacy.summation import InThreads
from core.runs.accounts.settled_shift import SettledShift
from core.runs.errors import RunStoreError
from core.runs.execution.job import Job, LmdpOutcome, LmdpResult
from core.runs.execution.launching.launchers import configured_summation
from core.runs.execution.noisy_scores import ScoreCounts
from core.runs.execution.paid_release import Certify, MeasureQuestion, ReviewHistograms
from core.runs.execution.training_rows import TrainingRows, training_records
from core.runs.storage.artefacts import ATTEMPT, CHECKPOINT, METER, MODEL, save_json
from core.runs.workspace import private_folder
from core.schema.schema import Domain
from core.writing.whole_files import replacing


@dataclass(frozen=True)
class Attempts:
    """What came of all attempts.

    Attributes:
      fitted: the model of the last one that could end.
      executed: what ran in all of them.
      private: whether all noise came from a secure generator.
    """

    fitted: SavedModel
    executed: tuple[Phase, ...]
    private: bool
    lmdp: LmdpOutcome


def fit_attempts(
    job: Job,
    rows: TrainingRows,
    model: Synthesizer[Any],
    shift: SettledShift,
    on_event: OnEvent,
    meter: Meter,
    list_counts: Mapping[str, ListCounts],
) -> Attempts:
    """Read and encode, then fit until the tagged columns pass or no attempt is left.

    Args:
      job: whose schema leaves nothing open any more.
      meter, list_counts: see `first_meter` and `FitContext`.

    Raises:
      RunStoreError: no attempt can end any more; nothing is left to go on from.
    """
    layout, person = Layout(job.schema.domain()), job.schema.person
    Emitter(on_event).phase("read", Message("Reading and encoding the table"))
    codes, people = training_records(
        rows, layout, job.plan, person, folder=job.folder, on_event=on_event
    )
    executed: list[Phase] = []
    on_event = previewed(on_event, layout)
    private, ended = True, None
    for number in range(1, job.plan.attempts + 1):
        attempt = _Attempt(job, model, layout, number, shift, meter, list_counts)
        try:
            ended = attempt.run(codes, people, on_event)
            passed = all(result["granted"] for result in ended)
            outcome = Message(
                "Attempt {number} did not pass the check of the tagged columns.", number=number
            )
        except UnplannedReleaseError:
            if not job.resume:
                raise  # no crash came before: the model asks for what its plan does not hold
            passed, outcome = False, Message(_LOST, number=number)
        executed += attempt.meter.executed
        private = private and attempt.meter.private
        if passed:
            break
        last = number == job.plan.attempts
        next_step = Message("It was the last.") if last else Message("Beginning anew.")
        on_event(Note(text=joined([outcome, next_step])))
    if ended is None:
        job.artefacts.delete(CHECKPOINT)
        raise RunStoreError(
            "What was paid for was lost when the worker process ended, and no attempt is left. "
            "It stays spent, and nothing was released. A new start spends its budget again."
        )
    # from disk: an attempt that a crash lost came too early to replace the model of the one before
    fitted = attempt.fitted or load_fitted(job.plan.model, job.artefacts.local(MODEL))
    from core.runs.execution.lmdp_certificate import attack  # torch comes last

    lmdp = LmdpOutcome(tuple(ended), tuple(attack(fitted, job.plan)), number)
    return Attempts(fitted, _joined(executed), private, lmdp)


_LOST = to_say(
    "Attempt {number} lost a release that was paid for when the worker process ended. It stays "
    "paid for and is not made again."
)


_NO_ROOM = (
    "The graphics card has too little free memory for this run. It goes on with the processor, "
    "from its checkpoint. Nothing is spent twice."
)


class _Attempt:
    """One attempt, kept in a folder of its own.

    Attributes:
      fitted: its model; None where its result came from disk, or it could not end.
    """

    def __init__(
        self,
        job: Job,
        model: Synthesizer[Any],
        layout: Layout,
        number: int,
        shift: SettledShift,
        first: Meter,
        list_counts: Mapping[str, ListCounts],
    ) -> None:
        self._list_counts = list_counts
        self._job, self._model, self._number = job, model, number
        self._layout, self._domain = layout, layout.domain
        self._shift = shift
        base = private_folder(job.folder / CHECKPOINT)
        self._folder = base if number == 1 else private_folder(base / f"{ATTEMPT}{number}")
        self._results = self._folder / "verdict.json"
        self.meter = first if number == 1 else _meter(self._folder / METER, job)
        self.fitted: SavedModel | None = None

    def run(
        self, codes: Codes | StoredCodes, people: PersonRows | None, on_event: OnEvent
    ) -> list[LmdpResult]:
        """Fit, save the model, and say what was found of its tagged columns.

        The result of an attempt that ended before is read from disk. Its model is not: a later
        attempt may have replaced it since, or died while it did.

        Raises:
          UnplannedReleaseError: a release was charged before a crash and lost by it.
        """
        job, seed = self._job, self._job.request.seed
        if job.resume and self._results.exists():
            kept: list[LmdpResult] = from_json(json.loads(self._results.read_bytes()))
            return kept
        table = PrivateTable(
            codes,
            self._domain,
            job.plan,
            people=people,
            meter=self.meter,
            summation=configured_summation() or (InThreads() if job.device == "cpu" else None),
        )
        context = FitContext(
            on_event=on_event,
            folder=self._folder,
            seed=None if seed is None else seed + self._number - 1,
            device=job.device,
            resume=job.resume,
            list_counts=self._list_counts,
        )
        state = State()
        for step in self._steps():
            before = state.releases
            state = step.run(table, state, context)
            for name in state.releases.keys() - before.keys():
                save_json(job.artefacts, name, state.releases[name])
        self.fitted = state.trained
        with job.artefacts.filling(MODEL) as folder:
            self.fitted.save(private_folder(folder))
        if job.plan.protection is None:
            return []
        state = self._check(job.plan.protection, codes).run(table, state, context)
        with replacing(self._results) as file:
            file.write(json.dumps(to_json(state.verdicts)).encode())
        job.artefacts.publish()
        return list(state.verdicts)

    def _steps(self) -> tuple[Step, ...]:
        """All steps up to the model that is kept."""
        from core.runs.execution.lmdp_certificate import ShiftRows  # torch comes last

        plan = self._job.plan
        paid: tuple[Step, ...] = ()
        if self._number == 1:  # later attempts are shifted by the same function
            counts = (*ReviewHistograms.bought(plan), *ScoreCounts.bought(plan))
            paid = (*counts, *MeasureQuestion.bought(plan))
        fit = _Fit(self._model, plan, self.meter)
        return (fit, ShiftRows(self._shift), *paid, ApplyLayout(self._layout))

    def _check(self, protection: Protection, codes: Codes | StoredCodes) -> Step:
        """The step that tests what was kept."""
        # torch comes after `limit_threads`
        from core.runs.execution.lmdp_certificate import CheckInside

        budget = self._job.plan.budget
        return Certify(protection, budget) if budget.private else CheckInside(codes)


@dataclass(frozen=True)
class _Fit:
    """A `Step`: the model's own; on the processor where a graphics card runs out of memory.

    It then goes on from the checkpoint, as after a crash: what was charged stays charged and is not
    charged again.
    """

    model: Synthesizer[Any]
    plan: Plan
    meter: Meter

    def phases(self, domain: Domain, n: int, scale: float) -> tuple[Phase, ...]:
        """See `Step`: those of the model's own steps."""
        settings = self.model.configure(self.plan.settings, private=self.plan.budget.private)
        return planned_phases(self.model.steps(domain, settings), domain, n, scale)

    def run(self, table: PrivateTable, state: State, context: FitContext) -> State:
        """See `Step`."""
        try:
            fitted = self.model.fit(table, self.plan, context)
        except RuntimeError as error:
            # by its name: models without torch must not load it
            if type(error).__name__ != "OutOfMemoryError" or context.device == "cpu":
                raise
            self.meter.settle()
            context.on_event(Note(text=_NO_ROOM))
            again = replace(context, device="cpu", resume=True)
            fitted = self.model.fit(table, self.plan, again)
        return replace(state, model=SavedModel.of(fitted))


def first_meter(job: Job) -> Meter:
    """The meter of a run's first attempt, which counts what was learned before it too."""
    return _meter(job.folder / METER, job)


def _meter(path: Path, job: Job) -> Meter:
    """The meter of one attempt: its counts outlive the machine before each read, and come back.

    It is also written after each checkpoint, which then outlives the machine with it.
    """

    def keep(meter: Meter) -> None:
        with replacing(path) as file:
            file.write(meter.to_json().encode())
        job.artefacts.publish()

    if job.resume and path.exists():
        return Meter.from_json(path.read_text(encoding="utf-8"), job.plan, on_charge=keep)
    return Meter(job.plan, on_charge=keep)


def _joined(executed: list[Phase]) -> tuple[Phase, ...]:
    """Phases of one name as one, with their runs added up, in order of first appearance."""
    counts: Counter[str] = Counter()
    for phase in executed:
        counts[phase.name] += phase.count
    return tuple(
        phase.model_copy(update={"count": counts[phase.name]})
        for phase in {phase.name: phase for phase in executed}.values()
    )
