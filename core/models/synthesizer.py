"""Synthesizer, Fitted, Card and the registry: all a page needs to know about a model.

This module and each model's own file import no torch, so that cards and plans are cheap to show;
networks are imported when a fit starts.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from core.privacy.plan import Budget, Plan
from core.table.schema import Domain

if TYPE_CHECKING:
    import pandas as pd

    from core.privacy.guarded import PrivateTable

__all__ = [
    "Card",
    "Chart",
    "FitCancelled",
    "FitEvent",
    "FitPaused",
    "Fitted",
    "Observe",
    "Setting",
    "Stage",
    "Synthesizer",
    "Wish",
    "cards",
    "load_fitted",
    "register",
    "setting_of",
    "synthesizer",
]


class Wish(StrEnum):
    """What a person asks of a running fit."""

    GO_ON = "go_on"
    PAUSE = "pause"
    CANCEL = "cancel"


class FitEvent(BaseModel):
    """One thing a fit tells its observer.

    Kinds and their `data`:
      phase: {"name", "title", "private": bool}: a phase begins.
      progress: {"step", "steps", "phase"}: steps done of steps in all.
      metrics: {"step", name: float, ...}: values for live charts; `Card.charts` says which.
      preview: {"rows": list of records}: a few synthetic rows (post-processing, so free).
      note: {"text"}: a plain sentence.
    No event may carry anything computed from real rows except through a released statistic.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Literal["phase", "progress", "metrics", "preview", "note"]
    data: dict[str, Any]


Observe = Callable[[FitEvent], Wish]


class FitCancelled(Exception):
    """The observer asked to cancel; what was released is kept in the checkpoint."""


class FitPaused(Exception):
    """The observer asked to pause; the checkpoint holds everything needed to go on."""


class Setting(BaseModel):
    """One advanced setting of a model, for the folded part of the Plan page.

    Attributes:
      choices: (value, words) pairs where only named values are allowed.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    label: str
    help: str
    default: float | int | bool | str
    low: float | None = None
    high: float | None = None
    choices: tuple[tuple[str, str], ...] = ()


def setting_of(
    settings: type[BaseModel], name: str, label: str, text: str, low: float, high: float
) -> Setting:
    """The setting for a field of a model's settings class, with that field's default."""
    default = settings.model_fields[name].default
    return Setting(name=name, label=label, help=text, default=default, low=low, high=high)


class Stage(BaseModel):
    """One step of a fit, for the picture of how a model works.

    Attributes:
      name: of the phase, as fit events and (where private) the plan call it; a private stage whose
        name the plan does not hold is left out of that plan's run.
      title: a few words for people.
      makes: what comes out of it, a few words.
      private: whether it reads real rows, through noise.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    title: str
    makes: str
    private: bool


class Chart(BaseModel):
    """One live chart of the Training page: some of the metrics that a fit reports.

    Attributes:
      title: a few words for people.
      caption: how to read it, one or two sentences.
      unit: label of the vertical axis.
      series: names of the metrics it draws, as events carry them.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    title: str
    caption: str
    unit: str
    series: tuple[str, ...]


class Card(BaseModel):
    """What a model says about itself before anything runs.

    `published` is a list of (what, figure) pairs as printed in the paper; `source` names it.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str
    name: str
    summary: str
    good_at: str
    weak_at: str
    source: str
    published: tuple[tuple[str, str], ...] = ()
    stages: tuple[Stage, ...] = ()
    charts: tuple[Chart, ...] = ()
    protects: bool = Field(
        default=False, description="whether training itself bends tagged columns (α-LMDP)"
    )
    soundness: str = Field(
        default="", description="how the claim differs from the paper's, and why"
    )
    settings: tuple[Setting, ...] = ()
    boosts: tuple[str, ...] = Field(
        default=(), description="ids of the models that it wraps, by its setting `base`"
    )


class Fitted(Protocol):
    """A trained model: sampling from it touches no private data."""

    domain: Domain

    def sample(self, rows: int, seed: int | None = None) -> pd.DataFrame:
        """`rows` ≥ 1 synthetic records with the domain's columns, order and dtypes."""
        ...

    def save(self, folder: Path) -> None:
        """Write weights (safetensors) and a JSON description; no pickled code."""
        ...


class Synthesizer(Protocol):
    """A model family: plans without data, fits through a `PrivateTable` only."""

    card: ClassVar[Card]

    def plan(
        self, domain: Domain, n: int, budget: Budget, settings: dict[str, Any] | None = None
    ) -> Plan:
        """The private accesses of a fit, noise calibrated to the budget. Touches no data.

        Raises:
          ValueError: δ ≥ 1/n, an unknown setting, or a budget that no noise can meet.
        """
        ...

    def fit(
        self,
        table: PrivateTable,
        plan: Plan,
        *,
        observe: Observe,
        folder: Path,
        seed: int | None = None,
        device: str = "cpu",
        resume: bool = False,
    ) -> Fitted:
        """Execute the plan on the table and return the trained model.

        Args:
          folder: where checkpoints go; with `resume`, where one lies.
          seed: seeds data-free randomness only (initial weights, latents), never noise.
          device: "cpu" or "cuda".

        Raises:
          FitCancelled, FitPaused: the observer's wish was followed.
        """
        ...

    def load(self, folder: Path) -> Fitted:
        """The model that `Fitted.save` wrote."""
        ...


_registry: dict[str, type[Synthesizer]] = {}
S = TypeVar("S", bound="type[Synthesizer]")


def register(model: S) -> S:
    """Class decorator: make a synthesizer known under its card's id (ValueError when taken)."""
    if model.card.id in _registry:
        raise ValueError(f"two models call themselves '{model.card.id}'")
    _registry[model.card.id] = model
    return model


def _discover() -> None:
    import core.models as package

    for found in pkgutil.iter_modules(package.__path__):
        if found.ispkg and found.name != "shared":
            importlib.import_module(f"core.models.{found.name}.plan")


def cards() -> tuple[Card, ...]:
    """The cards of all registered models, sorted by id."""
    _discover()
    return tuple(_registry[key].card for key in sorted(_registry))


def synthesizer(model_id: str) -> Synthesizer:
    """A fresh synthesizer of that id; KeyError names the ids there are."""
    _discover()
    if model_id not in _registry:
        raise KeyError(
            f"no model is called '{model_id}'; there are: {', '.join(sorted(_registry))}"
        )
    return _registry[model_id]()


def load_fitted(model_id: str, folder: Path) -> Fitted:
    """The saved model in `folder`, with the marginal shift that was saved beside it, if any."""
    from core.lmdp.shift import with_tilts

    return with_tilts(synthesizer(model_id).load(folder), folder)
