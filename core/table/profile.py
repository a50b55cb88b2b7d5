"""A table's picture for its steward: counts, shares and a preview, made once at import.

Pages only read it, so that no interaction ever walks the rows again. It is computed from the real
rows and belongs to the inside view: never export it.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd
from pydantic import BaseModel, ConfigDict

from core.table.labels import to_numbers
from core.table.misfits import misfits
from core.table.rare import RareCounts, rare_counts
from core.table.schema import Column, Kind
from core.table.tally import Tally, median
from core.table.typed_cells import typed_tally

__all__ = ["PREVIEW_ROWS", "ColumnProfile", "Profile", "Recount", "picture", "preview", "recount"]

Series: TypeAlias = "pd.Series[Any]"
Floats: TypeAlias = npt.NDArray[np.float64]
Json: TypeAlias = str | int | float | bool | None

MAX_BINS = 24
TOP_LABELS = 12
PREVIEW_ROWS = 200
PREVIEW_TEXT = 200  # characters of a cell shown in the preview


class ColumnProfile(BaseModel):
    """One column's picture: a histogram when `edges` is set, else bars.

    Attributes:
      name, kind: as in the schema when the profile was made.
      missing: share of absent values, in [0, 1].
      distinct: number of different present values.
      low, median, high: numeric kinds; dates in seconds since 1970-01-01. None when all missing.
      edges: b + 1 bin edges on the column's scale (even steps of asinh when it is "log").
      labels: up to 12 most frequent labels (all, in order, for ordered columns of at most 24);
        for identifiers and text, how many values appear once and more often.
      counts: rows per bin or label.
      other: rows with a label not listed.
      listed, rare, single: of the schema's category list, see `core.table.rare.RareCounts`; None
        in profiles made before these were counted.
      misfit: cells that the declared domain cannot hold, see `core.table.misfits`; None likewise.
      unreadable: how many of all cells say something and do not read as the kind that is declared.
    """

    model_config = ConfigDict(frozen=True)

    name: str
    kind: Kind
    missing: float
    distinct: int
    low: float | None = None
    median: float | None = None
    high: float | None = None
    edges: tuple[float, ...] | None = None
    labels: tuple[str, ...] | None = None
    counts: tuple[int, ...] = ()
    other: int = 0
    listed: int | None = None
    rare: int | None = None
    single: int | None = None
    misfit: int | None = None
    unreadable: int = 0

    @property
    def rare_counts(self) -> RareCounts:
        """Of the category list; zeros when they were not counted."""
        return RareCounts(self.listed or 0, self.rare or 0, self.single or 0)


class Profile(BaseModel):
    """A table's picture.

    Attributes:
      n: rows.
      columns: one per schema column, in order.
      preview: the first rows, at most 200, as JSON values; dates as text, long text cut.
      reading: what was decided in doubt when the file was read, a sentence each.
    """

    model_config = ConfigDict(frozen=True)

    n: int
    columns: tuple[ColumnProfile, ...]
    preview: tuple[dict[str, Json], ...]
    reading: tuple[str, ...] = ()

    def __getitem__(self, name: str) -> ColumnProfile:
        """The column of that name; KeyError when there is none."""
        return {column.name: column for column in self.columns}[name]


def preview(frame: pd.DataFrame, rows: int) -> tuple[dict[str, Json], ...]:
    """The first rows as JSON values: absent is None, dates are text, long text is cut."""
    head = frame.iloc[:rows]
    columns = {str(name): [_json(value) for value in head[name]] for name in head.columns}
    return tuple(
        dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)
    )


def _json(value: Any) -> Json:
    if value is None or value is pd.NA or value is pd.NaT or value != value:
        return None
    if isinstance(value, np.bool_ | np.number):
        value = value.item()
    if isinstance(value, bool | int | float):
        return None if value in (np.inf, -np.inf) else value
    text = str(value)
    return text if len(text) <= PREVIEW_TEXT else text[: PREVIEW_TEXT - 1] + "…"


@dataclass
class Recount:
    """What is counted of every row once more, where a tally has not every value.

    Attributes:
      column: its declaration.
      range: least and greatest number; None where there is none.
      absent: cells without a value.
      misfit, unreadable: see `ColumnProfile`.
      bars: rows by bin, int64 [b].
      listed: rows by listed label.
    """

    column: Column
    range: tuple[float, float] | None
    absent: int = 0
    misfit: int = 0
    unreadable: int = 0
    bars: npt.NDArray[np.int64] = field(init=False)
    listed: pd.Series[int] = field(init=False)

    def __post_init__(self) -> None:
        self.bars = np.zeros(max(0, len(self.edges) - 1), dtype=np.int64)
        names = list(self.column.categories or ()) if self.column.kind.listed else []
        self.listed = pd.Series(0, index=pd.Index(names, dtype="str"), dtype="int64")

    @property
    def edges(self) -> Floats:
        """Of the histogram."""
        return np.zeros(0) if self.range is None else _edges(*self.range, self.column)

    def add(self, tally: Tally) -> None:
        """Count more rows, of raw cells."""
        typed, unreadable = typed_tally(tally, self.column)
        self.unreadable += unreadable
        self.misfit += misfits(typed, self.column, unreadable)
        if self.column.kind.numeric:
            typed = _numbers(typed, self.column)
            if self.range is not None:
                self.bars += _bars(typed, self.edges)
        elif len(self.listed):
            self.listed += typed.labels().reindex(self.listed.index, fill_value=0)
        self.absent += typed.absent


def recount(tally: Tally, column: Column, ends: tuple[float, float] | None = None) -> Recount:
    """Nothing counted yet.

    Args:
      tally: of raw cells.
      column: its declaration.
      ends: the least and the greatest number, where the tally has not got them.
    """
    if ends is not None and ends[0] > ends[1]:
        ends = None  # no number in any row
    elif ends is None and column.kind.numeric:
        numbers = _numbers(typed_tally(tally, column)[0], column)
        ends = _range(numbers) if len(numbers.rows) else None
    return Recount(column, ends)


def picture(tally: Tally, column: Column, recount: Recount | None = None) -> ColumnProfile:
    """One column's picture from its different cells.

    Args:
      tally: of n raw cells.
      column: its declaration.
      recount: of all rows, where the tally has not every value.
    """
    typed, unreadable = typed_tally(tally, column)
    misfit = misfits(typed, column, unreadable)
    absent, numbers, labels = typed.absent, None, None
    if column.kind.numeric:
        numbers = _numbers(typed, column)
        absent = numbers.absent
    else:
        labels = typed.labels()
    listed = labels
    if recount is not None:
        misfit, unreadable, absent = recount.misfit, recount.unreadable, recount.absent
        listed = None if labels is None else recount.listed
    rare = RareCounts(0, 0, 0) if listed is None else rare_counts(listed, column)
    bare = ColumnProfile(
        name=column.name,
        kind=column.kind,
        missing=absent / tally.n if tally.n else 0.0,
        distinct=0,
        misfit=misfit,
        unreadable=unreadable,
        **asdict(rare),
    )
    if numbers is not None:
        return _numeric(numbers, column, bare, recount)
    assert labels is not None
    if recount is not None:  # labels of the schema's list in full, others as far as they are here
        exact = recount.listed[recount.listed > 0]
        labels = pd.concat([exact, labels[~labels.index.isin(exact.index)]])
    distinct = len(labels) if typed.exact else typed.distinct
    return _bars_of_labels(labels, column, bare.model_copy(update={"distinct": distinct}))


def _bars_of_labels(counts: pd.Series[int], column: Column, bare: ColumnProfile) -> ColumnProfile:
    """Bars of a listed kind, or how many values of a surrogate's occur once."""
    if counts.empty:
        return bare
    if column.kind.surrogate:
        once = round(float((counts == 1).mean()) * bare.distinct)
        labels, shown = ("appear once", "appear more often"), (once, bare.distinct - once)
        return bare.model_copy(update={"labels": labels, "counts": shown})
    order = [c for c in column.categories or () if c in counts.index]
    if column.kind is Kind.ORDERED and len(counts) <= MAX_BINS and len(order) == len(counts):
        counts = counts.loc[order]
    else:
        counts = counts.sort_values(ascending=False, kind="stable")
    top = counts if column.kind is Kind.ORDERED and len(counts) <= MAX_BINS else counts[:TOP_LABELS]
    return bare.model_copy(
        update={
            "labels": tuple(str(label) for label in top.index),
            "counts": tuple(int(count) for count in top),
            "other": int(counts.sum() - top.sum()),
        }
    )


def _numbers(tally: Tally, column: Column) -> Tally:
    return tally.numbers(lambda values: to_numbers(values, column))


def _range(numbers: Tally) -> tuple[float, float]:
    return float(numbers.values.iloc[0]), float(numbers.values.iloc[-1])


def _bars(numbers: Tally, edges: Floats) -> npt.NDArray[np.int64]:
    """Rows by bin; numpy adds weights as floats, which are exact far beyond any number of rows."""
    values = numbers.values.to_numpy(np.float64)
    counts, _ = np.histogram(values, bins=edges, weights=numbers.rows.astype(np.float64))
    return np.asarray(np.rint(counts), dtype=np.int64)


def _numeric(
    numbers: Tally, column: Column, bare: ColumnProfile, recount: Recount | None
) -> ColumnProfile:
    """Histogram and quantiles of a numeric column.

    Args:
      numbers: ascending.
      column: its declaration.
      bare: its picture so far.
      recount: of all rows, where these are not all.
    """
    if not len(numbers.rows):
        return bare
    low, high = _range(numbers) if recount is None or recount.range is None else recount.range
    edges = _edges(low, high, column) if recount is None else recount.edges
    counts = _bars(numbers, edges) if recount is None else recount.bars
    return bare.model_copy(
        update={
            "distinct": numbers.distinct,
            "low": low,
            "median": median(numbers),
            "high": high,
            "edges": tuple(float(edge) for edge in edges),
            "counts": tuple(int(count) for count in counts),
        }
    )


def _edges(low: float, high: float, column: Column) -> npt.NDArray[np.float64]:
    """At most 24 bins covering [low, high], aligned to the step on a linear scale."""
    step = column.step
    if low == high:
        half = max(step, abs(low) * 1e-9, 1e-9) / 2
        return np.array([low - half, low + half])
    if column.scale == "log":
        edges = np.sinh(np.linspace(np.arcsinh(low), np.arcsinh(high), MAX_BINS + 1))
        edges[0], edges[-1] = low, high  # rounding must not push the extremes out
    elif step > 0:
        # A whole number of steps per bin, so that no bin catches one integer more than its peers.
        steps = round((high - low) / step) + 1
        per_bin = -(-steps // MAX_BINS)
        edges = low - step / 2 + per_bin * step * np.arange(-(-steps // per_bin) + 1)
    else:
        edges = np.linspace(low, high, MAX_BINS + 1)
    return np.asarray(edges, dtype=np.float64)
