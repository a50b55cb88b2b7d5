"""Relations: rules about numbers and dates, as high = low + unit · between, and as intervals.

Every rule about numbers has this one form. "start <= end" has no column between, only a gap ≥ 0,
"booked = paid" none but 0; "total = net + tax" and "stay = end - start" have one. What two of the
columns allow the third is an interval, so a value can be moved inside before the next is drawn.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from core.schema.calendar import DAY
from core.schema.column import Column, Kind, SchemaError
from core.schema.rules.rules import AnyRule, AtMost, Difference, Equal, NumberRule, Sum

AnyItem = TypeVar("AnyItem")
Floats = NDArray[np.float64]
Interval = tuple[Floats, Floats]
_NEAR = 1e-6  # of a step; nearer to the grid than this is on it
_EQUAL = 1e-9  # relative: sums of decimals differ in their last digit


@dataclass(frozen=True)
class Relation:
    """high = low + unit · between, or high ≥ low where nothing is between, or high = low.

    Attributes:
      unit: a day in seconds where low and high are dates, else 1.
      floors: which of low and between may not be below 0, since another rule says so.
    """

    text: str
    low: str
    high: str
    between: str | None
    result: str
    unit: float
    floors: frozenset[str] = frozenset()
    equal: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """The columns it speaks of."""
        return (self.low, self.high, *(() if self.between is None else (self.between,)))

    @property
    def ordered(self) -> bool:
        """Whether low ≤ high is part of it."""
        return self.between is None or self.between in self.floors

    def allows(self, name: str, bounds: Mapping[str, Interval]) -> Interval:
        """The values of one column that the bounds of the others leave room for."""
        u = self.unit
        if name == self.between:
            low, high = bounds[self.low], bounds[self.high]
            return self._floored(name, ((high[0] - low[1]) / u, (high[1] - low[0]) / u))
        between = self._gap(bounds)
        if name == self.high:
            low = self._floored(self.low, bounds[self.low])
            return low[0] + u * between[0], low[1] + u * between[1]
        high = bounds[self.high]
        return self._floored(name, (high[0] - u * between[1], high[1] - u * between[0]))

    def compute(self, name: str, values: Mapping[str, Floats]) -> Floats:
        """One column from the two others; NaN where one of them is."""
        assert self.between is not None
        if name == self.high:
            return values[self.low] + self.unit * values[self.between]
        if name == self.low:
            return values[self.high] - self.unit * values[self.between]
        return (values[self.high] - values[self.low]) / self.unit

    def _gap(self, bounds: Mapping[str, Interval]) -> Interval:
        if self.between is None:
            return np.zeros(1), np.full(1, 0.0 if self.equal else np.inf)
        return self._floored(self.between, bounds[self.between])

    def _floored(self, name: str, interval: Interval) -> Interval:
        return (np.maximum(interval[0], 0.0), interval[1]) if name in self.floors else interval


def tied(
    items: Sequence[AnyItem], names: Callable[[AnyItem], Collection[str]]
) -> Iterator[list[AnyItem]]:
    """Items in groups, so that those of different groups share no name."""
    left = list(items)
    while left:
        own, before = set(names(left[0])), set[str]()
        while own != before:
            before = set(own)
            own.update(*(names(one) for one in left if own.intersection(names(one))))
        yield [one for one in left if own.intersection(names(one))]
        left = [one for one in left if not own.intersection(names(one))]


def outer(column: Column) -> tuple[float, float]:
    """The least and the greatest value of a column that are on its grid."""
    low, high = column.low, column.high
    assert low is not None and high is not None  # asked for before any rule is looked at
    if column.step <= 0:
        return low, high
    return low, low + math.floor((high - low) / column.step + _NEAR) * column.step


def inside(values: Floats, column: Column) -> Floats:
    """Values on the column's grid, not yet within its bounds."""
    if column.step <= 0:
        return values
    low = column.low or 0.0
    return low + np.rint((values - low) / column.step) * column.step


def inward(interval: Interval, column: Column) -> Interval:
    """The part of an interval between its first and last point on the column's grid."""
    if column.step <= 0:
        return interval
    low, step = column.low or 0.0, column.step
    first = low + np.ceil((interval[0] - low) / step - _NEAR) * step
    last = low + np.floor((interval[1] - low) / step + _NEAR) * step
    return first, last


def breaks(
    rule: AnyRule, values: Sequence[Floats], columns: Mapping[str, Column]
) -> NDArray[np.bool_]:
    """Which rows break a rule about numbers, bool [n]; values in its order, dates in seconds."""
    dated = [columns[name].kind is Kind.DATETIME for name in rule.columns]
    unit = DAY if any(dated) else 1.0
    scaled = [x if date else x * unit for x, date in zip(values, dated, strict=True)]
    slack = _EQUAL * np.maximum.reduce([np.abs(x) for x in scaled]) + 1e-12
    with np.errstate(invalid="ignore"):
        if isinstance(rule, AtMost):
            return np.asarray(scaled[0] - scaled[1] > slack)
        if isinstance(rule, Equal):
            return np.asarray(np.abs(scaled[0] - scaled[1]) > slack)
        sign = 1.0 if isinstance(rule, Sum) else -1.0
        return np.asarray(np.abs(scaled[0] - scaled[1] - sign * scaled[2]) > slack)


def relations_of(
    rules: tuple[NumberRule, ...], columns: Mapping[str, Column], *, twice: bool = False
) -> list[Relation]:
    """The relations of all rules about numbers; an order that a sum implies becomes part of it.

    Args:
      twice: whether a rule may name a column twice.
    """
    for rule in rules:
        _check_kinds(rule, columns, twice=twice)
    relations = [_relation(rule, columns) for rule in rules if isinstance(rule, Sum | Difference)]
    for rule in rules:
        if isinstance(rule, Equal):
            relations.append(_ordered(rule, columns))
        if not isinstance(rule, AtMost):
            continue
        for i, other in enumerate(relations):
            pairs = {(other.low, other.high): other.between, (other.between, other.high): other.low}
            third = pairs.get((rule.low, rule.high))
            if other.between is not None and third is not None:
                relations[i] = replace(other, floors=other.floors | {third})
                break
        else:
            relations.append(_ordered(rule, columns))
    return relations


def _ordered(rule: AtMost | Equal, columns: Mapping[str, Column]) -> Relation:
    low, high = rule.columns
    both = columns[low], columns[high]
    whole_days = all(c.kind is Kind.DATETIME and c.step % DAY == 0 < c.step for c in both)
    unit, equal = DAY if whole_days else 1.0, isinstance(rule, Equal)
    return Relation(rule.text, low, high, None, high, unit, equal=equal)


def _relation(rule: Sum | Difference, columns: Mapping[str, Column]) -> Relation:
    def dated(name: str) -> bool:
        return columns[name].kind is Kind.DATETIME

    if isinstance(rule, Sum):
        high, result = rule.total, rule.total
        low, between = (rule.right, rule.left) if dated(rule.right) else (rule.left, rule.right)
    else:
        high, result = rule.left, rule.result
        swapped = dated(rule.result)
        low, between = (rule.result, rule.right) if swapped else (rule.right, rule.result)
    return Relation(rule.text, low, high, between, result, DAY if dated(high) else 1.0)


def _check_kinds(rule: NumberRule, columns: Mapping[str, Column], *, twice: bool) -> None:
    names = rule.columns
    if len(set(names)) < len(names) and not twice:
        raise SchemaError("Rule '{rule}' names a column twice.", rule=rule.text)
    for name in names:
        if not columns[name].kind.numeric:
            raise SchemaError(
                "Rule '{rule}': '{name}' is neither a number nor a date. Change its kind, or "
                "remove the rule.",
                rule=rule.text,
                name=name,
            )
    dates = [columns[name].kind is Kind.DATETIME for name in names]
    if isinstance(rule, AtMost | Equal):
        fits = dates[0] == dates[1]
    elif isinstance(rule, Sum):
        fits = dates[0] == dates[1] or dates[0] == dates[2]
        fits = fits and not (dates[1] and dates[2])
    else:
        fits = dates[1] == (dates[0] or dates[2]) and not (dates[0] and dates[2])
    if not fits:
        raise SchemaError(
            "Rule '{rule}': dates and numbers do not go together like this. A date and a "
            "number of days give a date; two dates give a number of days.",
            rule=rule.text,
        )
