"""Gaps: what models see in place of a column that another one bounds."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.schema.column import Column, DomainColumn, Kind, RuleDomainError
from core.schema.rules.relations import Relation, outer

Floats = NDArray[np.float64]
FEW = 20  # gaps of fewer steps need no atom of their own


def free_name(name: str, taken: Collection[str]) -> str:
    """The name, with a number behind it where it is taken.

    >>> free_name("rows", ["rows", "rows 2"])
    'rows 3'
    """
    number, free = 2, name
    while free in taken:
        number, free = number + 1, f"{name} {number}"
    return free


@dataclass(frozen=True)
class Gap:
    """The distance of a column from the one it is entered by, ≥ 0 by the rule or bounded by it.

    `upwards` when the column is the higher one; `end`, its own bound, is where the distance is
    measured from when the entry is missing.
    """

    column: DomainColumn
    upwards: bool
    unit: float
    end: float

    def decode(self, entry: Floats, gap: Floats) -> Floats:
        """Gaps → values of the column, not yet moved inside."""
        sign = 1.0 if self.upwards else -1.0
        absent = np.isnan(entry)
        start = np.where(absent, self.end, entry)
        return start + sign * self.unit * (gap - np.where(absent, self._least, 0.0))

    def encode(self, entry: Floats, values: Floats) -> Floats:
        """Values of the column → gaps; NaN where the value is missing."""
        sign = 1.0 if self.upwards else -1.0
        absent = np.isnan(entry)
        start = np.where(absent, self.end, entry)
        return sign * (values - start) / self.unit + np.where(absent, self._least, 0.0)

    @property
    def _least(self) -> float:
        return self.column.low or 0.0


def gap_of(
    relation: Relation, entry: str, columns: Mapping[str, DomainColumn], *, taken: Collection[str]
) -> Gap:
    """The gap of a relation entered by its low or its high column; that between where it can be."""
    low, high, u = columns[relation.low], columns[relation.high], relation.unit
    upwards = entry == relation.low
    shown = high if upwards else low
    end = outer(shown)[0] if upwards else outer(shown)[1]
    between = None if relation.between is None else columns[relation.between]
    if between is not None and not columns[entry].missing:
        own = between.model_copy(update={"missing": shown.missing})
        return Gap(own, upwards, u, end)
    least = (outer(high)[0] - outer(low)[1]) / u
    most = (outer(high)[1] - outer(low)[0]) / u
    if relation.ordered:
        least = max(0.0, least)
    if between is not None:
        least, most = max(least, outer(between)[0]), min(most, outer(between)[1])
    if relation.equal:
        most = least
    if columns[entry].missing:
        most = max(most, least + (outer(shown)[1] - outer(shown)[0]) / u)
    step = _step(relation, low, high) / u
    whole = step >= 1.0 and float(step).is_integer() and float(least).is_integer()
    atom = least == 0.0 and (step == 0.0 or (most - least) / step > FEW)
    dates = low.kind is Kind.DATETIME  # time that passes has a heavy tail, whatever dates have
    column = DomainColumn(
        name=free_name(f"{relation.high} - {relation.low}", taken),
        kind=Kind.INTEGER if whole else Kind.NUMBER,
        missing=shown.missing,
        low=least,
        high=max(least, most),
        step=step,
        scale="log" if dates or "log" in (low.scale, high.scale) else "linear",
        spikes=(0.0,) if atom else (),
        dtype="float64",
    )
    return Gap(column, upwards, u, end)


def _step(relation: Relation, low: Column, high: Column) -> float:
    """The common step of two columns, 0 where one of them has none."""
    fine, coarse = sorted((low.step, high.step))
    if fine == 0.0:
        return 0.0
    times, apart = coarse / fine, (outer(high)[0] - outer(low)[0]) / fine
    if max(abs(times - round(times)), abs(apart - round(apart))) > 1e-6:
        raise RuleDomainError(
            "Rule '{rule}': '{low}' has steps of {low_step:g} and '{high}' has steps of "
            "{high_step:g}, which do not fit together. Declare one step, and bounds that are "
            "multiples of it, or remove the rule.",
            rule=relation.text,
            low=low.name,
            low_step=low.step,
            high=high.name,
            high_step=high.step,
        )
    return fine
