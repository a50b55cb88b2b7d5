"""Types of Parquet columns: what a file had, and what a synthetic file is given.

A date becomes a date and a list of labels a dictionary, also where the original was text; a column
of a Parquet file gets its own type back.
"""

from __future__ import annotations

import re
from datetime import time
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
import pyarrow as pa

from core.schema.calendar import DAY
from core.schema.column import Column, Kind
from core.schema.date_text import is_clock, parse_dates
from core.schema.labels import to_labels, to_numbers

Series: TypeAlias = "pd.Series[Any]"

DICTIONARY = "dictionary"
TICKS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}  # a second's
WIDEST = 38  # digits of a 128-bit decimal
_DECIMAL = re.compile(r"decimal(?:32|64|128|256)\((\d+), (-?\d+)\)")
_ZONED = re.compile(r"timestamp\[(s|ms|us|ns), tz=(.+)\]")


def stored_type(kind: pa.DataType) -> str:
    """What `Form.arrow` keeps of a column's type; "" where its pandas dtype tells.

    >>> stored_type(pa.date32()), stored_type(pa.int16()), stored_type(pa.decimal128(9, 2))
    ('date32[day]', '', 'decimal128(9, 2)')
    """
    if pa.types.is_dictionary(kind):
        return DICTIONARY
    if is_text(kind):
        return "string"
    kept = (
        pa.types.is_date, pa.types.is_timestamp, pa.types.is_decimal, pa.types.is_time,
        pa.types.is_duration,
    )  # fmt: skip
    return str(kind) if any(check(kind) for check in kept) else ""


def is_text(kind: pa.DataType) -> bool:
    """Whether a column is of text, in any of Arrow's types for it."""
    checks = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
    return any(check(kind) for check in checks)


def arrow_table(frame: pd.DataFrame, columns: tuple[Column, ...]) -> pa.Table:
    """The rows with real types."""
    by_name = {column.name: column for column in columns}
    arrays = {}
    for name in frame.columns:
        column, series = by_name.get(str(name)), frame[name]
        plain = pa.array(series, from_pandas=True)
        try:
            arrays[str(name)] = plain if column is None else _typed(series, plain, column)
        except (pa.ArrowException, ValueError):  # such as a made-up text for a time
            arrays[str(name)] = plain
    return pa.table(arrays)


def _typed(series: Series, plain: pa.Array, column: Column) -> pa.Array:
    stored = "" if column.form is None else column.form.arrow
    if column.kind.surrogate:
        return plain.cast(pa.string()) if stored in ("string", DICTIONARY) else plain
    if column.kind.numeric and column.dtype == "str" and column.kind is not Kind.DATETIME:
        if stored:
            return plain.cast(pa.string())
        numbers = pd.Series(to_numbers(series, column))
        return pa.array(numbers.astype("Int64") if column.kind is Kind.INTEGER else numbers)
    if column.kind is Kind.DATETIME and not stored:
        return _moments(series, plain, column)
    if stored == DICTIONARY or (not stored and column.dtype == "str"):
        return plain.dictionary_encode()
    return _cast(plain, stored)


def _moments(series: Series, plain: pa.Array, column: Column) -> pa.Array:
    """Dates of a text file or a workbook as dates, times, or moments: in UTC if with an offset."""
    if pd.api.types.is_datetime64_any_dtype(series.dtype):
        stamps = plain
    else:
        stamps = pa.array(parse_dates(to_labels(series), column.date_format), from_pandas=True)
    if is_clock(column.date_format):
        return stamps.cast(pa.time64("us"))
    if column.step and column.step % DAY == 0:
        return stamps.cast(pa.date32())
    if column.date_format and ("%z" in column.date_format or column.date_format.endswith("Z")):
        return stamps.cast(pa.timestamp("us", "UTC"))
    return stamps


def _cast(plain: pa.Array, stored: str) -> pa.Array:
    if not stored:
        return plain
    if decimal := _DECIMAL.fullmatch(stored):
        digits, decimals = int(decimal[1]), int(decimal[2])
        try:
            return plain.cast(pa.decimal128(min(digits, WIDEST), decimals))
        except pa.ArrowInvalid:  # bounds are rounded outward, maybe by a digit
            return plain.cast(pa.decimal128(WIDEST, decimals))
    if stored.startswith("duration["):
        kind = pa.type_for_alias(stored)
        seconds = np.asarray(plain.cast(pa.float64()).fill_null(np.nan))
        ticks = pd.Series(np.rint(seconds * TICKS[kind.unit])).astype("Int64")
        return pa.array(ticks).cast(kind)
    if stored.startswith(("time32", "time64")):
        clock = [None if x is None else time.fromisoformat(x) for x in plain.to_pylist()]
        return pa.array(clock, pa.type_for_alias(stored))
    if zoned := _ZONED.fullmatch(stored):
        return plain.cast(pa.timestamp(zoned[1], zoned[2]))
    return plain.cast(pa.type_for_alias(stored))
