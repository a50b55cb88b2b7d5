"""A table counted some rows at a time: its schema and its picture, never holding all rows.

Two walks over the rows: the first counts each column's different values (`core.table.tally`) and
takes nothing else; the second, over those columns alone that have more values than are kept,
counts again what has to be exact. A table that is not large comes to the same as at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from core.table.column import Column, Kind, SchemaColumn
from core.table.form import FileForm
from core.table.infer import infer_tally
from core.table.labels import to_numbers
from core.table.profile import PREVIEW_ROWS, ColumnProfile, Profile, Recount, picture, preview
from core.table.resolution import date_step, finest, number_step
from core.table.rounding import round_bounds, whole_years
from core.table.schema import Schema
from core.table.tally import VALUES, Tally, TallyBuilder

__all__ = [
    "Reread",
    "TableCounts",
    "bounded",
    "count_columns",
    "pictures",
    "profile_counted",
    "propose",
]

Reread: TypeAlias = "Callable[[Sequence[str]], Iterable[pd.DataFrame]]"  # rows of some columns


class TableCounts:
    """Counts every column of batches that pass by.

    Args:
      most: different values of a column that are kept; None keeps all.

    Attributes:
      n: rows so far.
      head: the first of them, for the preview.
    """

    def __init__(self, most: int | None = VALUES) -> None:
        self.n, self.head = 0, pd.DataFrame()
        self._most = most
        self._columns: dict[str, TallyBuilder] = {}

    def add(self, batch: pd.DataFrame) -> None:
        """Count more rows; the columns are those of the first batch."""
        if self.n == 0:
            self._columns = {str(name): TallyBuilder(self._most) for name in batch.columns}
        if self.n < PREVIEW_ROWS:
            self.head = pd.concat([self.head, batch.iloc[: PREVIEW_ROWS - self.n]])
        for name, column in self._columns.items():
            column.add(batch[name])
        self.n += len(batch)

    def tallies(self) -> dict[str, Tally]:
        """Each column's different values."""
        return {name: column.tally() for name, column in self._columns.items()}


def count_columns(
    batches: Iterable[pd.DataFrame], *, most: int | None = VALUES
) -> dict[str, Tally]:
    """Each column's different values.

    Args:
      batches: rows, at least one.
      most: values that are kept of a column; None keeps all.
    """
    counts = TableCounts(most)
    for batch in batches:
        counts.add(batch)
    return counts.tallies()


def propose(tallies: Mapping[str, Tally], reread: Reread, form: FileForm | None = None) -> Schema:
    """A proposed schema, see `core.table.infer.infer_schema`.

    Args:
      tallies: of every column, in order.
      reread: reads rows again, where bounds of dates and numbers written as text need it.
      form: how the file is written, if that is known.
    """
    form = form or FileForm()
    columns = {
        name: infer_tally(tally, name, form.columns.get(name)) for name, tally in tallies.items()
    }
    unsure = [
        column
        for name, column in columns.items()
        if column.kind.numeric and column.dtype == "str" and not tallies[name].exact
    ]
    if unsure:
        columns |= {column.name: column for column in bounded(unsure, reread)}
    return Schema(columns=tuple(columns.values()), delimiter=form.delimiter)


def bounded(columns: Sequence[SchemaColumn], reread: Reread) -> list[SchemaColumn]:
    """Text columns that were proposed as numbers or dates, with the bounds of all their rows.

    Args:
      columns: proposed from some of their values.
      reread: reads rows of these columns.
    """
    extents = _extents(columns, reread)
    return [_within(column, *extents[column.name]) for column in columns]


def _extents(columns: Sequence[Column], reread: Reread) -> dict[str, tuple[float, float, float]]:
    """The least and greatest number of each column, and the step of all; inf, -inf, 0 for none."""
    nothing: tuple[float, float, float | None] = (np.inf, -np.inf, None)
    extents = dict.fromkeys([column.name for column in columns], nothing)
    for batch in reread(list(extents)):
        for column in columns:
            numbers = np.unique(to_numbers(batch[column.name], column))
            numbers = numbers[~np.isnan(numbers)]
            if not len(numbers):
                continue
            least, greatest, step = extents[column.name]
            of = date_step if column.kind is Kind.DATETIME else number_step
            extents[column.name] = (
                min(least, float(numbers[0])),
                max(greatest, float(numbers[-1])),
                finest(step, of(numbers)),
            )
    return {name: (low, high, step or 0.0) for name, (low, high, step) in extents.items()}


def _within(column: SchemaColumn, least: float, greatest: float, step: float) -> SchemaColumn:
    if column.kind is Kind.DATETIME:
        low, high = whole_years(least, greatest, step=step, dtype=column.dtype)
        kind = Kind.DATETIME
    else:
        low, high = round_bounds(least, greatest, step=step, dtype=column.dtype)
        kind = Kind.INTEGER if step == 1.0 else Kind.NUMBER
    change: dict[str, Any] = {"kind": kind, "low": low, "high": high, "step": step}
    return column.model_copy(update=change).as_proposed()


def pictures(
    tallies: Mapping[str, Tally], columns: Sequence[Column], reread: Reread
) -> tuple[ColumnProfile, ...]:
    """Each column's picture, see `core.table.profile.profile`.

    Args:
      tallies: of these columns, by name.
      columns: their declarations.
      reread: reads rows again, where not every value is kept.
    """
    inexact = [column for column in columns if not tallies[column.name].exact]
    spelled = [c for c in inexact if c.kind.numeric and tallies[c.name].values.dtype == "str"]
    ends = _extents(spelled, reread) if spelled else {}  # of text no end of the range is kept
    again = {c.name: Recount.of(tallies[c.name], c, ends.get(c.name)) for c in inexact}
    if again:
        for batch in reread(list(again)):
            for name, recount in again.items():
                recount.add(batch[name])
    return tuple(picture(tallies[c.name], c, again.get(c.name)) for c in columns)


def profile_counted(
    counts: TableCounts, schema: Schema, reread: Reread, reading: Sequence[str] = ()
) -> Profile:
    """A table's picture, see `core.table.profile.profile`.

    Args:
      counts: of all its rows.
      schema: kinds and scales to picture by.
      reread: reads rows again, where not every value is kept.
      reading: doubts of the file's reader.
    """
    return Profile(
        n=counts.n,
        columns=pictures(counts.tallies(), schema.columns, reread),
        preview=preview(counts.head, PREVIEW_ROWS),
        reading=tuple(reading),
    )
