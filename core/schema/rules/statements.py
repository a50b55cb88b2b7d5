"""Statements about one column: of which cells they are true, and cells that stand for all."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from core.schema.column import Column, DomainColumn, Kind, Provenance, RuleDomainError
from core.schema.date_text import parse_dates
from core.schema.labels import (
    category_indices,
    code_indices,
    from_labels,
    from_numbers,
    is_absent,
    listed_labels,
    to_numbers,
    with_codes,
)
from core.schema.rules.relations import inward, outer
from core.schema.rules.rules import IfThen, Statement

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Indices = NDArray[np.intp]
_NEAR = 1e-9  # relative: a number as near to one that a rule names is that one
_APART = 1e-6  # relative: how far a continuous value stays from a bound that it must not touch
_FAR = 1e300  # a missing cell from any value
_PLAIN = Column(name="number", kind=Kind.NUMBER)
_DATE = Column(name="date", kind=Kind.DATETIME)


def _numbers(values: Sequence[str], column: Column) -> Floats:
    """Those of the values that are numbers, or dates in seconds."""
    dated = column.kind is Kind.DATETIME
    format_ = column.date_format if dated else None
    return _read(tuple(values), tuple(column.codes), dated, format_)


@lru_cache(maxsize=256)  # a column's values are asked for again with each rule that names it
def _read(values: Sequence[str], codes: Sequence[str], dated: bool, format_: str | None) -> Floats:
    cells = pd.Series(list(values), dtype="str")
    cells = cells[~cells.isin(codes)]
    if dated:
        stamps = parse_dates(cells, None)
        numbers = to_numbers(stamps.fillna(parse_dates(cells, format_)), _DATE)
    else:
        numbers = to_numbers(cells, _PLAIN)
    return numbers[~np.isnan(numbers)]


def holds(one: Statement, cells: pd.Series[Any], column: DomainColumn) -> Bools:
    """Of which cells a statement is true, bool [n].

    Raises:
      RuleDomainError: it names a value that the column does not have.
    """
    if one.relation in ("missing", "present"):
        return np.asarray(is_absent(cells, column) == (one.relation == "missing"))
    if one.relation in ("in", "not in"):
        listed = set(one.values).intersection(column.categories or ())
        found = np.zeros(len(cells), dtype=bool)
        if listed:
            found |= listed_labels(cells, column).isin(listed).to_numpy()
        if others := set(one.values) - listed:
            found |= _are(others, cells, column)
        return np.asarray(found if one.relation == "in" else ~found)
    labels = list(column.categories or ())
    if column.kind is Kind.ORDERED and one.values[0] in labels:
        ranks = category_indices(cells, column)
        x, named = np.where(ranks < 0, np.nan, ranks), np.array([labels.index(one.values[0])])
    else:
        x = to_numbers(cells, column if column.kind.numeric else _PLAIN)
        named = _numbers(one.values, column)
    if not len(named):
        raise _no_value(column, one.values[0])
    slack = _NEAR * max(1.0, abs(named[0])) * (1 if one.relation[1:] else -1)
    if one.relation.startswith("<"):
        return np.asarray(x <= named[0] + slack)
    return np.asarray(x >= named[0] - slack)


def breaking(rule: IfThen, frame: pd.DataFrame, columns: Mapping[str, DomainColumn]) -> Bools:
    """In which rows the condition is true and the consequence is not, bool [n]."""
    both = (rule.condition, rule.consequence)
    true, follows = (holds(one, frame[one.column], columns[one.column]) for one in both)
    return true & ~follows


def _are(values: Collection[str], cells: pd.Series[Any], column: DomainColumn) -> Bools:
    """Which cells hold one of some values that are not labels as they are written."""
    found, numbers, codes = np.zeros(len(cells), dtype=bool), list[float](), list[int]()
    for value in values:
        named = _numbers([value], column)
        if column.form is not None and value == column.form.absent:
            found |= cells.isna().to_numpy()
        elif value in column.codes:
            codes.append(column.codes.index(value))
        elif len(named) and named[0] in _numbers(column.categories or (value,), column):
            numbers.append(float(named[0]))
        elif column.provenance is not Provenance.LEARNED:
            raise _no_value(column, value)
        else:  # a rare label was merged with others, and codes were learned as missing cells
            found |= is_absent(cells, column) & column.kind.numeric
    if codes:
        found |= np.isin(code_indices(cells, column), codes)
    if numbers:
        x = to_numbers(cells, column if column.kind.numeric else _PLAIN)
        for number in numbers:
            found |= np.abs(x - number) <= _NEAR * max(1.0, abs(number))
    return found


def _no_value(column: Column, value: str) -> RuleDomainError:
    return RuleDomainError(
        "A rule names the value '{value}', which '{name}' does not have. Add it to the "
        "declaration, or change the rule.",
        value=value,
        name=column.name,
    )


@dataclass(frozen=True)
class States:
    """A column as far as statements tell its cells apart: a state is the sum of 2ⁱ of those true.

    Attributes:
      pool: cells among which is the nearest to any one in each state that the domain has: labels;
        bounds, and what lies at and beside numbers that are named.
      states: of the pool, int [pool].
      open: bool [pool], which of them a cell that breaks a rule may become.
    """

    column: DomainColumn
    statements: tuple[Statement, ...]
    pool: pd.Series[Any]
    states: Indices
    open: Bools

    @classmethod
    def of(
        cls, column: DomainColumn, statements: Sequence[Statement], *, given: bool, fixed: bool
    ) -> States:
        """Of a column that may change; only to a missing cell if others are computed from it."""
        pool = _pool(column, [value for one in statements for value in one.values])
        may = is_absent(pool, column) | (not given)
        states = _states(statements, pool, column)
        return cls(column, tuple(statements), pool, states, may & (not fixed))

    @property
    def cuts(self) -> tuple[float, ...]:
        """Numbers at which what statements say changes, ascending."""
        x = to_numbers(self.pool, self.column) if self.column.kind.numeric else np.zeros(0)
        order = np.argsort(x)[: np.count_nonzero(~np.isnan(x))]
        changes = np.diff(self.states[order]) != 0
        return tuple(x[order][1:][changes].tolist())

    def of_cells(self, cells: pd.Series[Any]) -> Indices:
        """Each cell's state, int [n]."""
        return _states(self.statements, cells, self.column)

    def moved(
        self, cells: pd.Series[Any], rows: Indices, wanted: Indices, donor: Indices
    ) -> pd.Series[Any]:
        """The cells with those at `rows` in states, int [rows], which their donors have.

        Where there is no donor (-1, int [n]) or none is allowed, they move to the nearest value.
        """
        take = np.arange(len(cells))
        take[rows] = donor[rows]
        alone = (donor[rows] < 0) | (not self.open.all())
        near = self._nearest(cells.iloc[rows[alone]], wanted[alone])
        take[rows[alone]] = len(cells) + near
        both = pd.concat([cells, self.pool], ignore_index=True)
        return both.iloc[take].reset_index(drop=True)

    def _nearest(self, cells: pd.Series[Any], wanted: Indices) -> Indices:
        """For each cell the place in the pool of the nearest in a state, int [n]."""
        x, own = self._line(cells), self._line(self.pool)
        nearest = np.zeros(len(cells), dtype=np.intp)
        for state in np.unique(wanted):
            rows = np.flatnonzero(wanted == state)
            there = np.flatnonzero(self.open & (self.states == state))
            apart = np.abs(x[rows, None] - own[there])
            apart = np.where(np.isnan(x[rows, None]) & np.isnan(own[there]), 0.0, apart)
            nearest[rows] = there[np.nan_to_num(apart, nan=_FAR).argmin(axis=1)]
        return nearest

    def _line(self, cells: pd.Series[Any]) -> Floats:
        """Where cells lie; those of a list without order at 0, and NaN for a missing one."""
        if self.column.kind.numeric:
            return to_numbers(cells, self.column)
        ranks = category_indices(cells, self.column)
        return np.where(ranks < 0, np.nan, ranks * (self.column.kind is Kind.ORDERED))


def _states(
    statements: Sequence[Statement], cells: pd.Series[Any], column: DomainColumn
) -> Indices:
    found = np.zeros(len(cells), dtype=np.intp)
    for i, one in enumerate(statements):
        found += holds(one, cells, column) * 2**i
    return found


def _pool(column: DomainColumn, values: Sequence[str]) -> pd.Series[Any]:
    """Labels, or bounds and what lies at and beside numbers, the least first; codes; missing."""
    if not column.kind.numeric:
        cells = from_labels(pd.Series(column.categories, dtype="str"), column)
        return cells.reindex(range(len(cells) + column.missing))
    named, ends = _numbers(values, column), outer(column)
    apart = np.where(column.step, 1e-3 * column.step, _APART * np.maximum(1.0, np.abs(named)))
    below, above = inward((named + apart, named - apart), column)  # the next, the one before
    numbers = np.concatenate([ends, inward((named, named), column)[0], below, above])
    numbers = np.unique(numbers[(numbers >= ends[0]) & (numbers <= ends[1])])
    numbers = numbers[np.argsort(np.abs(numbers), kind="stable")]
    absent = len(column.codes) + column.missing
    code = np.append(np.full(len(numbers), -1), [*range(len(column.codes)), *[-1] * column.missing])
    cells = from_numbers(np.append(numbers, [np.nan] * absent), column)
    return with_codes(cells, column, code)
