"""Step: one stage of a run, planned before data is read and executed once.

A model lists its steps (counting, training, calibration); a run adds those that go with any model
(review histograms, noisy scores, the shift of tagged columns, their certificate). What a step
releases is charged to the plan by the table that it reads.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from pydantic import BaseModel

from core.models.events import OnEvent
from core.models.saved_model import Fitted, SavedModel
from core.privacy.discovery.lists import ListCounts
from core.privacy.plan import Phase, Plan
from core.schema.schema import Domain

if TYPE_CHECKING:
    from core.privacy.guarded import PrivateTable


@dataclass(frozen=True, kw_only=True)
class FitContext:
    """What a fit is told beside the table and the plan.

    Attributes:
      folder: where checkpoints go; with `resume`, where one lies.
      seed: seeds data-free randomness only (initial weights, latents), never noise; None draws one.
      resume: whether to go on from the checkpoint in the folder.
      start: a fitted base sampler of the same model and domain that training may start from.
      list_counts: noisy counts of columns' states, by name, that were released with their lists.
    """

    on_event: OnEvent
    folder: Path
    seed: int | None = None
    device: str = "cpu"
    resume: bool = False
    start: Fitted | None = None
    list_counts: Mapping[str, ListCounts] = field(default_factory=dict)


@dataclass(frozen=True)
class State:
    """What a run has made so far, of releases and synthetic rows alone.

    Attributes:
      plan: whose noise and settings the steps go by; the table's where None. An audit hands its
        models the plan as claimed, and a table that carries out another one.
      measured: what counting steps know of the table, for the steps after them.
      releases: values to be kept beside the model, by the name of their file.
      verdicts: what was found of tagged columns, a JSON object a group.
    """

    plan: Plan | None = None
    measured: Any = None
    model: SavedModel | None = None
    releases: Mapping[str, BaseModel] = field(default_factory=dict)
    verdicts: tuple[dict[str, Any], ...] = ()

    @property
    def trained(self) -> SavedModel:
        """The model, for steps that come after training."""
        assert self.model is not None
        return self.model


class PlannedStep(Protocol):
    """One stage of a run: what it costs."""

    def phases(self, domain: Domain, n: int, scale: float) -> tuple[Phase, ...]:
        """Its private accesses; touches no data.

        Args:
          n: number of records, public.
          scale: of all noise that is calibrated to the budget, ≥ 0.
        """


class Step(PlannedStep, Protocol):
    """One stage of a run: what it costs, and what it does."""

    def run(self, table: PrivateTable, state: State, context: FitContext) -> State:
        """Make the releases that the plan holds, and go on from the state.

        Raises:
          FitCancelled, FitPaused: the observer's signal was followed.
        """


class FreeStep:
    """A `Step` that reads no real row, or only what a plan does not pay for."""

    def phases(self, domain: Domain, n: int, scale: float) -> tuple[Phase, ...]:
        """None."""
        return ()


def planned_phases(
    steps: Iterable[PlannedStep], domain: Domain, n: int, scale: float = 1.0
) -> tuple[Phase, ...]:
    """The private accesses of several steps, in order; see `Step.phases`."""
    return tuple(phase for step in steps for phase in step.phases(domain, n, scale))


def run_steps(
    steps: Iterable[Step], table: PrivateTable, state: State, context: FitContext
) -> State:
    """The state after all steps, in order; see `Step.run`."""
    for step in steps:
        state = step.run(table, state, context)
    return state
