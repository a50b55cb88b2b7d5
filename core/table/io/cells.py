"""Columns of text cells to typed columns: numbers, booleans or tidy text, never a lossy guess.

A column becomes numeric only when writing it out again would give the same values, so `007`, `+47`
and twenty-digit codes stay text. Dates stay text here; inference recognises them and keeps their
format.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

__all__ = [
    "MISSING_MARKERS",
    "Distinct",
    "ReadLimits",
    "TableReadError",
    "decimal_mark",
    "distinct",
    "too_big",
    "too_many_rows",
    "typed",
]

Series: TypeAlias = "pd.Series[Any]"

MISSING_MARKERS = ("", "na", "n/a", "nan", "null", "none", "?")  # compared stripped, in lower case

INTEGER = r"^-?(0|[1-9]\d*)$"
FLOAT = r"^[+-]?(\d+\.\d*|\.\d+|\d+)([eE][+-]?\d+)?$"
CODE = r"^([+-]?0\d+|\+\d+|[+-]?\d{17,})(\.0*)?$"  # digits that a float would not give back
INFINITE = r"^[+-]?inf(inity)?$"
COMMA_DECIMAL = r"^[+-]?(\d+|\d{1,3}(\.\d{3})+)(,\d+)?([eE][+-]?\d+)?$"
THOUSANDS = r"^[+-]?[1-9]\d{0,2}(,\d{3})+$"  # 1,234: thousands or a decimal, nobody can tell
GROUPED = r"^[+-]?[1-9]\d{0,2}(,\d{3})+(\.\d+)?$"


class TableReadError(ValueError):
    """A file that cannot be read as one table; one plain line saying what happened, what to do."""


@dataclass(frozen=True)
class ReadLimits:
    """What is too big to read.

    Attributes:
      max_bytes: of the file, and of what it expands to when compressed.
      max_rows: data rows.
      max_columns: columns.
    """

    max_bytes: int = 2 * 1024**3
    max_rows: int = 50_000_000
    max_columns: int = 2_000


def too_big(limits: ReadLimits) -> TableReadError:
    """The error for a file with too many bytes."""
    size = limits.max_bytes
    shown = f"{size / 1024**2:,.0f} MB" if size >= 1024**2 else f"{size:,} bytes"
    return TableReadError(
        f"The file is larger than {shown}, unpacked or as it is. "
        "Keep the columns and rows you need, or save it as Parquet."
    )


def too_many_rows(rows: int, limits: ReadLimits) -> TableReadError:
    """The error for a table that is too long."""
    return TableReadError(
        f"The table has {rows:,} rows; {limits.max_rows:,} is the most. "
        "Take a sample of it and try again."
    )


@dataclass(frozen=True)
class Distinct:
    """A text column as its distinct trimmed values.

    Attributes:
      values: str [k], trimmed; absent where the value is a missing marker.
      codes: int [n], positions in `values`.
    """

    values: pa.StringArray
    codes: np.ndarray[Any, np.dtype[np.int32]]

    @property
    def present(self) -> pa.StringArray:
        """The distinct values that are not missing."""
        return self.values.drop_null()

    def matches(self, pattern: str) -> bool:
        """Whether every present value matches."""
        return bool(pc.all(pc.match_substring_regex(self.present, pattern)).as_py())

    def any(self, pattern: str) -> bool:
        """Whether some present value matches."""
        return bool(pc.any(pc.match_substring_regex(self.present, pattern)).as_py())


def distinct(column: pa.ChunkedArray) -> Distinct:
    """Distinct trimmed values of a dictionary or string column, missing markers made absent."""
    whole = column.unify_dictionaries().combine_chunks()
    if isinstance(whole, pa.ChunkedArray):
        whole = whole.chunk(0) if whole.num_chunks else pa.array([], type=column.type)
    if not isinstance(whole, pa.DictionaryArray):
        whole = whole.dictionary_encode()
    text = pc.utf8_trim_whitespace(whole.dictionary.cast(pa.string()))
    marker = pc.is_in(pc.utf8_lower(text), value_set=pa.array(MISSING_MARKERS))
    values = pc.if_else(marker, pa.scalar(None, pa.string()), text)
    codes = whole.indices
    if codes.null_count:  # cells that are absent, not merely empty
        values = pa.concat_arrays([values, pa.nulls(1, pa.string())])
        codes = codes.fill_null(len(values) - 1)
    return Distinct(values=values, codes=codes.to_numpy(zero_copy_only=False).astype(np.int32))


def decimal_mark(columns: dict[str, Distinct]) -> tuple[str, list[str]]:
    """The decimal mark of the whole file, "." or ",", with warnings.

    A comma counts as decimal mark when some column is made of such numbers and at least one of them
    cannot be thousands (`0,5` or `12,75`, not `1,234`).
    """
    clear: list[str] = []
    unclear: list[str] = []
    grouped: list[str] = []
    for name, column in columns.items():
        if not column.any(","):
            continue
        if column.matches(COMMA_DECIMAL):
            certain = pc.and_(
                pc.match_substring(column.present, ","),
                pc.invert(pc.match_substring_regex(column.present, THOUSANDS)),
            )
            (clear if pc.any(certain).as_py() else unclear).append(name)
        elif column.matches(GROUPED + "|" + FLOAT):
            grouped.append(name)
    warnings = [
        f"'{name}' has commas that group thousands; it is kept as text. Remove them in the file "
        "to make it a number."
        for name in grouped
    ]
    if clear:
        named = ", ".join(f"'{n}'" for n in clear + unclear)
        return ",", [*warnings, f"A comma is read as the decimal mark in {named}."]
    warnings += [
        f"'{name}' could have decimal commas or thousands; it is kept as text. Write it with a "
        "decimal point to make it a number."
        for name in unclear
    ]
    return ".", warnings


def typed(column: Distinct, name: str, decimal: str) -> tuple[Series, list[str]]:
    """The column as `int64`, `Int64` (when values are absent), `float64`, `bool` or `str`.

    Args:
      column: n cells.
      name: header, used in warnings.
      decimal: "." or ",".

    Returns:
      n values named after the column, and warnings in plain words.
    """
    values = column.values
    if len(column.present) == 0:
        return _text(column, name), []
    if decimal == "," and column.matches(COMMA_DECIMAL) and column.any(","):
        plain = pc.replace_substring(pc.replace_substring(values, ".", ""), ",", ".")
        return _take(plain.cast(pa.float64()), column.codes, name), []
    if column.matches(INTEGER + "|" + INFINITE):
        values, warnings = _finite(column, name)
        integers = _cast(values, pa.int64())
        if integers is not None:
            return _take(integers, column.codes, name), warnings
    if column.matches(f"{FLOAT}|(?i){INFINITE}") and not column.any(CODE):
        values, warnings = _finite(column, name)
        numbers = _cast(pc.utf8_ltrim(values, "+"), pa.float64())
        if numbers is not None and numbers.null_count < len(numbers):
            return _take(numbers, column.codes, name), warnings
    if column.matches("^(True|False)$"):
        return _take(pc.equal(values, "True"), column.codes, name), []
    return _text(column, name), []


def _finite(column: Distinct, name: str) -> tuple[pa.StringArray, list[str]]:
    """The distinct values with infinities made absent."""
    infinite = pc.match_substring_regex(column.values, "(?i)" + INFINITE)
    if not pc.any(infinite).as_py():
        return column.values, []
    values = pc.if_else(pc.fill_null(infinite, False), pa.scalar(None, pa.string()), column.values)
    return values, [f"'{name}' has infinite values; they are treated as missing."]


def _cast(values: pa.StringArray, kind: pa.DataType) -> pa.Array | None:
    """Text as numbers, or None when a value does not fit."""
    try:
        return values.cast(kind)
    except pa.ArrowInvalid:
        return None


def _take(values: pa.Array, codes: np.ndarray[Any, np.dtype[np.int32]], name: str) -> Series:
    """Typed distinct values spread over the rows."""
    absent = np.asarray(pc.is_null(values))
    missing = bool(absent.any() and absent[codes].any())
    if pa.types.is_floating(values.type):
        return pd.Series(values.to_numpy(zero_copy_only=False)[codes], name=name)
    plain = pc.fill_null(values, False if pa.types.is_boolean(values.type) else 0)
    spread = plain.to_numpy(zero_copy_only=False)[codes]
    if not missing:
        return pd.Series(spread, name=name)
    if pa.types.is_boolean(values.type):
        return pd.Series(pd.arrays.BooleanArray(spread, absent[codes]), name=name)
    return pd.Series(pd.arrays.IntegerArray(spread, absent[codes]), name=name)


def _text(column: Distinct, name: str) -> Series:
    cells = column.values.cast(pa.large_string()).take(pa.array(column.codes))
    return pd.Series(pd.array(cells, dtype="str"), name=name)
