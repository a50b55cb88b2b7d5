"""Metric and Family: what every number of the report is, and what measures it.

A family measures one or more metrics of a comparison and is registered by the decorator `family`,
so that a new metric is one function in a file of this folder.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

from core.quality.comparison import Comparison
from core.quality.report.types import Goal, Score


@dataclass(frozen=True, kw_only=True)
class Metric:
    """A declared metric."""

    key: str
    title: str
    goal: Goal
    meaning: str
    source: str
    unit: str = ""
    low: float = 0.0
    high: float = 1.0

    def score(self, value: float | None, **more: Any) -> Score:
        """A measurement with this declaration attached; `more` are further fields of `Score`."""
        return Score(**asdict(self), value=value, **more)


@dataclass(frozen=True)
class Measured:
    """What a family measured."""

    scores: list[Score] = field(default_factory=list)
    parts: dict[str, Any] = field(default_factory=dict)


Step = Callable[[str, float], None]  # what is being done, and the fraction of the family done
Measure = Callable[[Comparison, Step], Measured]


@dataclass(frozen=True)
class Family:
    """A registered family; see `family`, whose arguments these are."""

    metrics: tuple[Metric, ...]
    text: str
    order: int
    cost: float
    measure: Measure
    applies: Callable[[Comparison], bool]
    otherwise: str


_registry: dict[str, Family] = {}


def family(
    *metrics: Metric,
    text: str,
    order: int,
    cost: float,
    applies: Callable[[Comparison], bool] = lambda _: True,
    otherwise: str = "",
) -> Callable[[Measure], Measure]:
    """Function decorator: make a family known to reports.

    Args:
      order: reports measure families and show their scores by rising order.
      cost: relative to other families', ≥ 0: seconds for 20,000 rows a side of ten columns.
    """

    def register(measure: Measure) -> Measure:
        orders = {other.order for other in _registry.values()}
        keys = {metric.key for other in _registry.values() for metric in other.metrics}
        taken = keys & {metric.key for metric in metrics}
        if taken or order in orders:
            raise ValueError(f"taken already: order {order}, or metrics {sorted(taken)}")
        name = f"{measure.__module__}.{measure.__qualname__}"
        _registry[name] = Family(metrics, text, order, cost, measure, applies, otherwise)
        return measure

    return register


def families() -> tuple[Family, ...]:
    """All registered families, by rising order."""
    folder = importlib.import_module("core.quality.metrics")
    for module in pkgutil.walk_packages(folder.__path__, "core.quality.metrics."):
        importlib.import_module(module.name)
    return tuple(sorted(_registry.values(), key=lambda one: one.order))
