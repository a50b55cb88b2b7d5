"""Gaps: what models see in place of a column that another one bounds."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from core.schema.column import Column, DomainColumn, Kind, RuleDomainError
from core.schema.rules.relations import Relation, outer

Floats = NDArray[np.float64]
FEW = 20  # gaps of fewer steps need no atom of their own
BEYOND = 1024.0  # a part of all distances so small stands for an atom beyond them


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
    measured from when the entry is missing. An atom of the column, the day on which all are last
    seen, stays one, whatever its distance: `atoms` has it by the number that stands for it beyond
    all distances.
    """

    column: DomainColumn
    upwards: bool
    unit: float
    end: float
    atoms: Mapping[float, float] = field(default_factory=dict)

    def decode(self, entry: Floats, gap: Floats) -> Floats:
        """Gaps → values of the column, not yet moved inside."""
        sign = 1.0 if self.upwards else -1.0
        absent = np.isnan(entry)
        start = np.where(absent, self.end, entry)
        values = start + sign * self.unit * (gap - np.where(absent, self._least, 0.0))
        for number, atom in self.atoms.items():
            values = np.where(gap == number, atom, values)
        return np.asarray(values)

    def encode(self, entry: Floats, values: Floats) -> Floats:
        """Values of the column → gaps; NaN where the value is missing."""
        sign = 1.0 if self.upwards else -1.0
        absent = np.isnan(entry)
        start = np.where(absent, self.end, entry)
        gaps = sign * (values - start) / self.unit + np.where(absent, self._least, 0.0)
        for number, atom in self.atoms.items():
            gaps = np.where(values == atom, number, gaps)
        return np.asarray(gaps)

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
    most, many = max(least, most), step == 0.0 or (most - least) / step > FEW
    beyond = step or max(1.0, most - least) / BEYOND
    frequent = [x for x in shown.spikes if many and not relation.equal and _inside(x, shown)]
    atoms = {most + (i + 1) * beyond: x for i, x in enumerate(frequent)}
    dates = low.kind is Kind.DATETIME  # time that passes has a heavy tail, whatever dates have
    column = DomainColumn(
        name=free_name(f"{relation.high} - {relation.low}", taken),
        kind=Kind.INTEGER if whole else Kind.NUMBER,
        missing=shown.missing,
        low=least,
        high=max(atoms, default=most),
        step=step,
        scale="log" if dates or "log" in (low.scale, high.scale) else "linear",
        spikes=(*([0.0] if least == 0.0 and many else []), *atoms),
        dtype="float64",
    )
    return Gap(column, upwards, u, end, atoms)


def _inside(value: float, column: Column) -> bool:
    low, high = outer(column)
    return low <= value <= high


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
