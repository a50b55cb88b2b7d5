"""A table's picture for its steward: counts, shares and a preview, made once at import.

Pages only read it, so that no interaction ever walks the rows again. It is computed from the real
rows and belongs to the inside view: never export it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd
from pydantic import BaseModel, ConfigDict

from core.table.labels import to_labels, to_numbers
from core.table.misfits import misfits
from core.table.rare import RareCounts, rare_counts
from core.table.schema import Column, Kind, Schema

__all__ = ["ColumnProfile", "Profile", "profile"]

Series: TypeAlias = "pd.Series[Any]"
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


def profile(frame: pd.DataFrame, schema: Schema, reading: Sequence[str] = ()) -> Profile:
    """Picture every column of the schema.

    Args:
      frame: n rows with the schema's columns.
      schema: kinds and scales to picture by.
      reading: doubts of the file's reader.
    """
    return Profile(
        n=len(frame),
        columns=tuple(_column(frame[c.name], c) for c in schema.columns),
        preview=preview(frame, PREVIEW_ROWS),
        reading=tuple(reading),
    )


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


def _column(series: Series, column: Column) -> ColumnProfile:
    """One column's picture."""
    missing = float(series.isna().mean()) if len(series) else 0.0
    rare = asdict(rare_counts(series, column))
    bare = ColumnProfile(
        name=column.name,
        kind=column.kind,
        missing=missing,
        distinct=0,
        misfit=misfits(series, column),
        **rare,
    )
    if column.kind.numeric:
        return _numeric(to_numbers(series, column), column, bare)
    counts = to_labels(series).value_counts()
    bare = bare.model_copy(update={"distinct": len(counts)})
    if counts.empty:
        return bare
    if column.kind.surrogate:
        once = int((counts == 1).sum())
        labels, shown = ("appear once", "appear more often"), (once, len(counts) - once)
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


def _numeric(values: npt.NDArray[np.float64], column: Column, bare: ColumnProfile) -> ColumnProfile:
    """Histogram and quantiles of a numeric column."""
    missing = float(np.isnan(values).mean()) if len(values) else 0.0
    values = values[~np.isnan(values)]
    bare = bare.model_copy(update={"missing": missing})
    if len(values) == 0:
        return bare
    edges = _edges(float(values.min()), float(values.max()), column)
    counts, _ = np.histogram(values, bins=edges)
    return bare.model_copy(
        update={
            "distinct": len(pd.unique(values)),
            "low": float(values.min()),
            "median": float(np.median(values)),
            "high": float(values.max()),
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
