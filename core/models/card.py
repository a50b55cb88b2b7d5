"""Card: what a model says about itself before anything runs."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, cast

from pydantic import BaseModel, ConfigDict, Field


class Frozen(BaseModel):
    """Fields that stay as they were given, and no others."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Setting(Frozen):
    """One advanced setting of a model, for the folded part of the Plan page.

    Attributes:
      choices: (value, words) pairs where only named values are allowed.
    """

    name: str
    label: str
    help: str
    default: float | int | bool | str
    low: float | None = None
    high: float | None = None
    choices: tuple[tuple[str, str], ...] = ()


def tunable(
    default: float | int,
    label: str,
    meaning: str,
    *,
    form: tuple[float, float],
    ge: float | None = None,
    gt: float | None = None,
    le: float | None = None,
    lt: float | None = None,
) -> Any:
    """A field of a model's settings that people may change on the Plan page.

    Args:
      form: the smallest and largest value that the page offers.
      ge, gt, le, lt: what the command line may ask for, as `pydantic.Field` takes them.
    """
    low, high = form
    return Field(
        default=default,
        title=label,
        description=meaning,
        json_schema_extra={"form": [low, high]},
        ge=ge,
        gt=gt,
        le=le,
        lt=lt,
    )


def settings_of(model: type[BaseModel], names: Collection[str] = ()) -> tuple[Setting, ...]:
    """The settings that people may change, in the order of the class.

    Args:
      names: of those to take; all when empty.
    """
    settings = []
    for name, field in model.model_fields.items():
        extra = field.json_schema_extra
        if not isinstance(extra, dict) or "form" not in extra or (names and name not in names):
            continue
        low, high = cast("list[float]", extra["form"])
        setting = Setting(
            name=name,
            label=field.title or name,
            help=field.description or "",
            default=field.default,
            low=low,
            high=high,
        )
        settings.append(setting)
    return tuple(settings)


class Stage(Frozen):
    """One step of a fit, for the picture of how a model works.

    Attributes:
      name: of the phase, as fit events and (where private) the plan call it; a private stage whose
        name the plan does not hold is left out of that plan's run.
    """

    name: str
    title: str
    makes: str
    private: bool


class Chart(Frozen):
    """One live chart of the Training page: some of the metrics that a fit reports.

    Attributes:
      series: names of the metrics it draws, as events carry them.
    """

    title: str
    caption: str
    unit: str
    series: tuple[str, ...]


class Card(Frozen):
    """What a model says about itself before anything runs.

    `published` is a list of (what, figure) pairs as printed in the paper; `source` names it.
    """

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
    replicas: bool = Field(
        default=False, description="whether it is fast enough for replicas, which error bars need"
    )
    boosts: tuple[str, ...] = Field(
        default=(), description="ids of the models that it wraps, by its setting `base`"
    )
