"""A frame's cells under a declaration, where a column of objects may hold several types."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from decimal import Decimal
from numbers import Integral, Real
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
import pyarrow as pa

from core.reading.raw_cells import raw_frame
from core.reading.typed_cells import typed_column, typed_rows
from core.schema.column import Column
from core.schema.labels import code_indices, from_labels, to_labels, to_numbers

Series: TypeAlias = "pd.Series[Any]"
UNREAD = "facsimile.unread"  # in `attrs`: by column, how many cells do not read as declared


def frame_as_declared(frame: pd.DataFrame, columns: Iterable[Column]) -> pd.DataFrame:
    """A frame's rows as their columns are declared, each cell read by the type that it has.

    Raw cells have one type for a column, so that numbers beside a word become text there: 0.5 is
    then no number of a column with decimal commas, nor a date one of 31.12.2020.
    """
    there = [column for column in columns if column.name in frame.columns]
    frame = frame.reset_index(drop=True)
    typed = {column.name: _typed(frame[column.name], column) for column in there}
    rows = pd.DataFrame(typed, index=frame.index, copy=False)
    rows.attrs[UNREAD] = {c.name: _unread(frame[c.name], rows[c.name], c) for c in there}
    return rows


def _unread(cells: Series, typed: Series, column: Column) -> int:
    if not column.kind.numeric:
        return 0
    silent = np.isnan(to_numbers(typed, column)) & (code_indices(typed, column) < 0)
    return int((silent & cells.notna().to_numpy()).sum())


def _typed(series: Series, column: Column) -> Series:
    own = series.cat.categories if isinstance(series.dtype, pd.CategoricalDtype) else series
    if not pd.api.types.is_object_dtype(own.dtype):
        return typed_rows(raw_frame(series.to_frame()), [column])[column.name]
    there = series.astype(object).dropna()
    labels = pd.Series(None, index=series.index, dtype="str")
    for kind, cells in there.groupby(there.map(_arrow_type), sort=False):
        labels[cells.index] = to_labels(_of_one_type(cells, kind, column)).to_numpy()
    restored = from_labels(labels, column)
    return restored if to_labels(restored).equals(labels) else labels.rename(column.name)


def _of_one_type(cells: Series, kind: str, column: Column) -> Series:
    if kind == "text":
        raw = pa.array(to_labels(cells), pa.large_string())
    elif kind.startswith("timestamp"):
        raw = pa.array(pd.Series([pd.Timestamp(cell).as_unit("us") for cell in cells]))
    else:
        plain = cells.map(_float) if kind == "float64" else cells
        raw = pa.array(list(plain), pa.type_for_alias(kind))
    return typed_column(raw, column, written=False)


def _float(cell: Any) -> float:
    """A number, or the seconds of a duration."""
    return float(cell.total_seconds() if isinstance(cell, dt.timedelta) else cell)


def _arrow_type(cell: Any) -> str:
    """The type of one cell alone; with the time zone's name behind that of a moment."""
    if isinstance(cell, bool | np.bool_):
        return "bool"
    if isinstance(cell, Integral):
        return "int64" if -(2**63) <= int(cell) < 2**63 else "text"
    if isinstance(cell, Real | Decimal | dt.timedelta):
        return "float64"
    if isinstance(cell, dt.datetime):
        return "timestamp" if cell.tzinfo is None else f"timestamp {cell.tzinfo}"
    return "date32" if isinstance(cell, dt.date) else "text"
