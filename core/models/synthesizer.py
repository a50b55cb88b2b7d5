"""Synthesizer and Fitted: all that the rest of the house knows of a model.

Nothing here imports torch, nor do `settings.py` and `plan.py` of a model's folder, so that cards
and plans are cheap to show. Its `trainer.py` does, and is imported when a fit starts.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, TypeVar, cast

from pydantic import BaseModel

from core.models.card import Card
from core.models.events import OnEvent
from core.privacy.plan import Budget, Phase, Plan
from core.schema.schema import Domain

if TYPE_CHECKING:
    import pandas as pd

    from core.privacy.guarded import PrivateTable

__all__ = ["FitContext", "Fitted", "Settings", "Synthesizer", "Trainer"]


@dataclass(frozen=True, kw_only=True)
class FitContext:
    """What a fit is told beside the table and the plan.

    Attributes:
      on_event: hears of events and brings signals back.
      folder: where checkpoints go; with `resume`, where one lies.
      seed: seeds data-free randomness only (initial weights, latents), never noise; None draws one.
      device: "cpu" or "cuda".
      resume: whether to go on from the checkpoint in the folder.
    """

    on_event: OnEvent
    folder: Path
    seed: int | None = None
    device: str = "cpu"
    resume: bool = False


class Fitted(Protocol):
    """A trained model: sampling from it touches no private data.

    Attributes:
      domain: the declared domain it writes.
      baseline: the model it was made from, to be compared with on Review; None without one.
    """

    domain: Domain

    @property
    def baseline(self) -> Fitted | None:
        """See the class."""
        ...

    def sample(self, rows: int, seed: int | None = None) -> pd.DataFrame:
        """`rows` ≥ 1 synthetic records with the domain's columns, order and dtypes."""
        ...

    def save(self, folder: Path) -> None:
        """Write weights (safetensors) and a JSON description; no pickled code."""
        ...


class Settings(Protocol):
    """A model's public settings; none depends on data."""

    def model_dump(self) -> dict[str, Any]:
        """All of them as JSON values, with which `Synthesizer.configure` makes the same again."""
        ...


class Trainer(Protocol):
    """The module `trainer` of a model's folder."""

    def fit(self, table: PrivateTable, plan: Plan, context: FitContext) -> Fitted:
        """See `Synthesizer.fit`."""
        ...

    def load(self, folder: Path) -> Fitted:
        """See `Synthesizer.load`."""
        ...


S = TypeVar("S", bound=Settings)


class Synthesizer(Generic[S]):
    """A model: a card, its settings and phases here, its training in `trainer.py` beside it.

    Attributes:
      card: what people see of it.
      settings_class: of its settings.
      without_privacy: what serves better where there is no noise, unless it is set by hand.
    """

    card: ClassVar[Card]
    settings_class: ClassVar[type[BaseModel]]
    without_privacy: ClassVar[Mapping[str, Any]] = {}

    def configure(self, settings: Mapping[str, Any], *, private: bool) -> S:
        """All settings, for those that were set by hand.

        Raises:
          ValueError: an unknown setting, or a value out of its range.
        """
        fitting = {} if private else self.without_privacy
        return cast("S", self.settings_class(**{**fitting, **settings}))

    def phases(self, domain: Domain, n: int, settings: S, scale: float) -> tuple[Phase, ...]:
        """The private accesses of a fit. Touches no data.

        Args:
          scale: multiplies every noise multiplier, ≥ 0; 0 for no noise.
        """
        raise NotImplementedError

    def fixed_phases(self, budget: Budget, settings: S) -> tuple[Phase, ...]:
        """Further accesses of a fit whose noise follows from the budget and no scale changes."""
        return ()

    def finish(self, domain: Domain, plan: Plan, settings: S) -> S:
        """The settings once noise is known; where a setting was left to the model, its value."""
        return settings

    def fit(self, table: PrivateTable, plan: Plan, context: FitContext) -> Fitted:
        """Execute the plan on the table and return the trained model.

        Args:
          table: the door to the rows; it charges for every access.
          plan: made for as many records as the table has.
          context: who watches, where checkpoints go, and how to begin.

        Raises:
          FitCancelled, FitPaused: the observer's signal was followed.
        """
        return self.trainer().fit(table, plan, context)

    def load(self, folder: Path) -> Fitted:
        """The model that `Fitted.save` wrote."""
        return self.trainer().load(folder)

    def trainer(self) -> Trainer:
        """The module `trainer` of the model's folder; imports torch."""
        # tensors: cards and plans must not wait for them, nor pages hold them in memory
        package = type(self).__module__.rpartition(".")[0]
        return cast("Trainer", importlib.import_module(f"{package}.trainer"))
