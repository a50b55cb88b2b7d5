"""Synthesizer: all that the other rooms know of a model before it is trained.

Nothing here imports torch, nor does `plan.py` of a model's folder, so that cards
and plans are cheap to show. Its `trainer.py` does, and is imported when a fit starts.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, TypeVar, cast

from pydantic import BaseModel

from core.models.card import Card
from core.models.saved_model import Fitted, SavedModel
from core.models.step import FitContext, State, Step, run_steps
from core.privacy.plan import Budget, Phase, Plan
from core.schema.schema import Domain

if TYPE_CHECKING:
    from core.privacy.guarded import PrivateTable


class Settings(Protocol):
    """A model's public settings; none depends on data."""

    def model_dump(self) -> dict[str, Any]:
        """All of them as JSON values, with which `Synthesizer.configure` makes the same again."""


class Trainer(Protocol):
    """The module `trainer` of a model's folder."""

    def fit(self, table: PrivateTable, plan: Plan, context: FitContext) -> Fitted:
        """Execute the plan on the table; returns the base sampler of a `SavedModel`."""

    def load(self, folder: Path) -> Fitted:
        """What the base sampler's `save` wrote."""


S = TypeVar("S", bound=Settings)


class Synthesizer(Generic[S]):
    """A model: a card, its settings and phases here, its training in `trainer.py` beside it.

    Attributes:
      histories: whether it learns how events of a person follow on one another.
      without_privacy: what serves better where there is no noise, unless it is set by hand.
    """

    card: ClassVar[Card]
    settings_class: ClassVar[type[BaseModel]]
    histories: ClassVar[bool] = False
    without_privacy: ClassVar[Mapping[str, Any]] = {}

    def configure(self, settings: Mapping[str, Any], *, private: bool) -> S:
        """All settings, for those that were set by hand.

        Raises:
          ValueError: an unknown setting, or a value out of its range.
        """
        fitting = {} if private else self.without_privacy
        return cast("S", self.settings_class(**{**fitting, **settings}))

    def training_phases(
        self, domain: Domain, n: int, settings: S, scale: float
    ) -> tuple[Phase, ...]:
        """The private accesses of training, as if it had the whole budget. Touches no data.

        Args:
          scale: multiplies every noise multiplier, ≥ 0; 0 for no noise.
        """
        raise NotImplementedError

    def steps(self, domain: Domain, settings: S) -> tuple[Step, ...]:
        """What a fit does, in order; training alone unless a model says otherwise."""
        return (Training(self, settings),)

    def fixed_phases(self, budget: Budget, settings: S) -> tuple[Phase, ...]:
        """Further accesses of a fit whose noise follows from the budget and no scale changes."""
        return ()

    def finish(self, domain: Domain, plan: Plan, settings: S) -> S:
        """The settings once noise is known; where a setting was left to the model, its value."""
        return settings

    def replica_settings(self, settings: S, fitted: Fitted) -> S:
        """What a replica is fitted with, see `Card.replicas`: cheaper where that errs no less.

        Args:
          fitted: the run's own base sampler.
        """
        return settings

    def fit(self, table: PrivateTable, plan: Plan, context: FitContext) -> Fitted:
        """Execute the plan on the table and return the trained model.

        Args:
          plan: made for as many records as the table has.
        """
        settings = self.configure(plan.settings, private=plan.budget.private)
        steps = self.steps(table.domain, settings)
        return run_steps(steps, table, State(plan=plan), context).trained

    def load(self, folder: Path) -> SavedModel:
        """The model that `SavedModel.save` wrote."""
        return SavedModel.load(folder, self.trainer().load(folder))

    def trainer(self) -> Trainer:
        """The module `trainer` of the model's folder; imports torch."""
        # tensors: cards and plans must not wait for them, nor pages hold them in memory
        package = type(self).__module__.rpartition(".")[0]
        return cast("Trainer", importlib.import_module(f"{package}.trainer"))


@dataclass(frozen=True)
class Training(Generic[S]):
    """A `Step`: a model's own training.

    Attributes:
      share: of the budget, in (0, 1].
    """

    model: Synthesizer[S]
    settings: S
    share: float = 1.0

    def phases(self, domain: Domain, n: int, scale: float) -> tuple[Phase, ...]:
        """See `Step`."""
        own = scale / math.sqrt(self.share)
        phases = self.model.training_phases(domain, n, self.settings, own)
        if self.share == 1.0:
            return phases
        return tuple(p.model_copy(update={"share": p.share * self.share}) for p in phases)

    def run(self, table: PrivateTable, state: State, context: FitContext) -> State:
        """See `Step`."""
        fitted = self.model.trainer().fit(table, state.plan or table.plan, context)
        return replace(state, model=SavedModel(fitted))
