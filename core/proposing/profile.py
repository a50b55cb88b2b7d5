"""A table's picture for its steward: counts, shares and a preview, made once at import.

It is computed from the real rows and belongs to the inside view: never export it.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd
from pydantic import BaseModel, ConfigDict

from core.encoding.bins import edges_of
from core.message import Message, Text
from core.proposing.misfits import misfits
from core.proposing.rare import RareCounts, rare_counts
from core.reading.tally import Tally, quantile
from core.reading.typed_cells import typed_tally
from core.schema.column import Column, Kind

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
      missing: share of absent values, in [0, 1].
      low, median, high: of numeric kinds, dates in seconds; None when all are missing.
      edges: b + 1 bin edges on the column's scale (even steps of asinh when it is "log").
      labels: up to 12 most frequent labels (all, in order, for ordered columns of at most 24); for
        identifiers and text, how many values appear once and more often.
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
    listed: int = 0
    rare: int = 0
    single: int = 0
    misfit: int = 0
    unreadable: int = 0

    @property
    def rare_counts(self) -> RareCounts:
        """Of the category list."""
        return RareCounts(self.listed, self.rare, self.single)


class Profile(BaseModel):
    """A table's picture; `preview` has the first rows, at most 200, as JSON values."""

    model_config = ConfigDict(frozen=True)

    n: int
    columns: tuple[ColumnProfile, ...]
    preview: tuple[dict[str, Json], ...]
    reading: tuple[Text, ...] = ()

    def __getitem__(self, name: str) -> ColumnProfile:
        """The column of that name; KeyError when there is none."""
        return {column.name: column for column in self.columns}[name]


def preview(head: pd.DataFrame) -> tuple[dict[str, Json], ...]:
    """The first rows as JSON values: absent is None, dates are text, long text is cut."""
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


class Picture:
    """One column's picture, drawn as rows pass by where its tally lacks values or `ends`."""

    def __init__(
        self, tally: Tally, column: Column, ends: tuple[float, float] | None = None
    ) -> None:
        self.column, self._n = column, tally.known + tally.absent
        self._absent, self._misfit, self._unreadable = 0, 0, 0
        typed, unreadable = typed_tally(tally, column)
        self._typed = typed.numbers(column) if column.kind.numeric else typed
        if column.kind.numeric and ends is None and len(self._typed.rows):
            ends = float(self._typed.values.iloc[0]), float(self._typed.values.iloc[-1])
        self._edges = _edges(*ends, column) if ends and ends[0] <= ends[1] else np.zeros(0)
        self._ends, self._bars = ends, np.zeros(max(0, len(self._edges) - 1), dtype=np.int64)
        names = list(column.categories or ()) if column.kind.listed else []
        self._listed = pd.Series(0, index=pd.Index(names, dtype="str"), dtype="int64")
        if tally.exact:
            self._count(typed, unreadable)

    def add(self, tally: Tally) -> None:
        """Count more rows, of raw cells."""
        self._count(*typed_tally(tally, self.column))

    def _count(self, typed: Tally, unreadable: int) -> None:
        self._unreadable += unreadable
        self._misfit += misfits(typed, self.column, unreadable)
        if len(self._bars):
            typed = typed.numbers(self.column)
            # numpy adds weights as floats, which are exact far beyond any number of rows
            weights = typed.rows.astype(np.float64)
            bars, _ = np.histogram(typed.values.to_numpy(float), bins=self._edges, weights=weights)
            self._bars += np.rint(bars).astype(np.int64)
        elif len(self._listed):
            self._listed += typed.labels().reindex(self._listed.index, fill_value=0)
        self._absent += typed.absent

    def profile(self) -> ColumnProfile:
        """What all rows come to."""
        bare = ColumnProfile(
            name=self.column.name,
            kind=self.column.kind,
            missing=self._absent / self._n if self._n else 0.0,
            distinct=self._typed.distinct,
            misfit=self._misfit,
            unreadable=self._unreadable,
            **asdict(rare_counts(self._listed, self.column)),
        )
        if self.column.kind.numeric:
            if self._ends is None or not len(self._typed.rows):
                return bare
            shown = {
                "low": self._ends[0],
                "median": quantile(self._typed, 0.5),
                "high": self._ends[1],
                "edges": tuple(self._edges.tolist()),
                "counts": tuple(self._bars.tolist()),
            }
            return bare.model_copy(update=shown)
        labels = self._typed.labels()
        if not self._typed.exact:  # those of the schema's list in full, others as far as known
            exact = self._listed[self._listed > 0]
            labels = pd.concat([exact, labels[~labels.index.isin(exact.index)]])
        return _bars_of_labels(labels, self.column, bare)


def _bars_of_labels(counts: pd.Series[int], column: Column, bare: ColumnProfile) -> ColumnProfile:
    if counts.empty:
        return bare
    if column.kind.surrogate:
        once = round(float((counts == 1).mean()) * bare.distinct)
        labels, shown = (
            (Message("appear once"), Message("appear more often")),
            (once, bare.distinct - once),
        )
        return bare.model_copy(update={"labels": labels, "counts": shown})
    order = [c for c in column.categories or () if c in counts.index]
    steps = column.kind is Kind.ORDERED and len(counts) <= MAX_BINS
    if steps and len(order) == len(counts):
        counts = counts.loc[order]
    else:
        counts = counts.sort_values(ascending=False, kind="stable")
    top = counts if steps else counts[:TOP_LABELS]
    return bare.model_copy(
        update={
            "labels": tuple(str(label) for label in top.index),
            "counts": tuple(int(count) for count in top),
            "other": int(counts.sum() - top.sum()),
        }
    )


def _edges(low: float, high: float, column: Column) -> Floats:
    """At most 24 bins covering [low, high], aligned to the step on a linear scale."""
    if low == high:
        half = max(column.step, abs(low) * 1e-9, 1e-9) / 2
        return np.array([low - half, low + half])
    if column.scale == "log":  # bars cannot show atoms, which `edges_of` gives bins of zero width
        edges = np.sinh(np.linspace(np.arcsinh(low), np.arcsinh(high), MAX_BINS + 1))
        edges[0], edges[-1] = low, high  # rounding must not push the extremes out
        return edges
    return edges_of(column, low, high, MAX_BINS)[0]
