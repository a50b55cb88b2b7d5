"""Columns of text cells to typed columns: numbers, booleans or tidy text, never a lossy guess.

A column becomes numeric only when writing it out again would give the same values, so `007`, `+47`
and twenty-digit codes stay text. Dates stay text here; inference recognises them and keeps their
format.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from core.table.magnitudes import LARGEST

__all__ = [
    "MISSING_MARKERS",
    "DeclaredWords",
    "Distinct",
    "ReadLimits",
    "TableReadError",
    "cells_counted",
    "decimal_mark",
    "distinct",
    "marker_doubts",
    "refuse_nul",
    "too_big",
    "too_many_rows",
    "typed",
    "without_giants",
    "words_that_stay",
]

Series: TypeAlias = "pd.Series[Any]"
# By column, which words for "missing" a schema that exists already has as values or codes. Without
# it that is told from all cells, by which one record would move others.
DeclaredWords: TypeAlias = Mapping[str, Collection[str]]

MISSING_MARKERS = ("", "na", "n/a", "nan", "null", "none", "?")  # compared stripped, in lower case

INTEGER = r"^-?(0|[1-9]\d*)$"
FLOAT = r"^[+-]?(\d+\.\d*|\.\d+|\d+)([eE][+-]?\d+)?$"
CODE = r"^([+-]?0\d+|\+\d+|[+-]?\d{17,})(\.0*)?$"  # digits that a float would not give back
INFINITE = r"^[+-]?inf(inity)?$"
COMMA_DECIMAL = r"^[+-]?(\d+|\d{1,3}(\.\d{3})+)(,\d+)?([eE][+-]?\d+)?$"
THOUSANDS = r"^[+-]?[1-9]\d{0,2}(,\d{3})+$"  # 1,234: thousands or a decimal, nobody can tell
DOT_THOUSANDS = r"^[+-]?[1-9]\d{0,2}(\.\d{3})+$"  # 1.234 where a comma is the decimal mark
LONG = r"^[+-]?[0.]*[1-9](\.?\d){17,}([eE][+-]?\d+)?$"  # more digits than a float gives back
NAME_MARKERS = ("Na", "Nan", "Null")  # people's names in this spelling; no program writes it so
GROUPED = r"^[+-]?[1-9]\d{0,2}(,\d{3})+(\.\d+)?$"
GROUPED_OR_PLAIN = f"{GROUPED}|{FLOAT}"


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


def cells_counted(cells: int) -> str:
    """A number of cells in words.

    >>> cells_counted(1), cells_counted(1200)
    ('1 cell', '1,200 cells')
    """
    return f"{cells:,} cell" if cells == 1 else f"{cells:,} cells"


def refuse_nul(text: pa.Array | pa.ChunkedArray, name: str) -> None:
    """Refuse text with NUL characters: half of all programs would cut it there.

    Raises:
      TableReadError: some value holds one.
    """
    if pc.any(pc.match_substring(text, "\0")).as_py():
        raise TableReadError(
            f"The column '{name}' holds NUL characters, which no text should. Remove them where "
            "the file was made, or leave the column out."
        )


@dataclass(frozen=True)
class Distinct:
    """A text column as its distinct trimmed values.

    Attributes:
      values: str [k], trimmed; absent where the value is a missing marker.
      codes: int [n], positions in `values`.
      words: how the marker at a position is written, for the positions of words.
      spelled: number of absent cells by how they are written, "" for blank ones.
      stay: words that a schema declares, which stay in the rows; None where the cells decide.
    """

    values: pa.StringArray
    codes: np.ndarray[Any, np.dtype[np.int32]]
    words: dict[int, str] = field(default_factory=dict)
    spelled: dict[str, int] = field(default_factory=dict)
    stay: frozenset[str] | None = None

    @property
    def markers(self) -> dict[str, int]:
        """Number of cells by the word that made them absent, in lower case; blank ones are not."""
        counts: dict[str, int] = {}
        for word, cells in self.spelled.items():
            if word and word not in (self.stay or ()):
                counts[word.lower()] = counts.get(word.lower(), 0) + cells
        return counts

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

    def cells(self, chosen: pa.BooleanArray) -> int:
        """How many cells hold one of the chosen values; bool [k], absent counts as not chosen."""
        mask = np.asarray(pc.fill_null(chosen, False))
        return int(mask[self.codes].sum())


def words_that_stay(declared: DeclaredWords | None, name: str) -> Collection[str] | None:
    """Those of one column; None where no schema exists yet."""
    return None if declared is None else declared.get(name, ())


def distinct(column: pa.ChunkedArray, stay: Collection[str] | None = None) -> Distinct:
    """Distinct trimmed values of a dictionary or string column, missing markers made absent.

    Args:
      column: n cells.
      stay: see `Distinct.stay`.
    """
    declared = None if stay is None else frozenset(stay)
    whole = column.unify_dictionaries().combine_chunks()
    if isinstance(whole, pa.ChunkedArray):
        whole = whole.chunk(0) if whole.num_chunks else pa.array([], type=column.type)
    if not isinstance(whole, pa.DictionaryArray):
        whole = whole.dictionary_encode()
    text = pc.utf8_trim_whitespace(whole.dictionary.cast(pa.string()))
    marker = pc.is_in(pc.utf8_lower(text), value_set=pa.array(MISSING_MARKERS))
    if declared is None:
        marker = pc.and_(marker, pc.invert(_values_after_all(text, marker)))
    values = pc.if_else(marker, pa.scalar(None, pa.string()), text)
    codes = whole.indices
    if codes.null_count:  # cells that are absent, not merely empty
        values = pa.concat_arrays([values, pa.nulls(1, pa.string())])
        codes = codes.fill_null(len(values) - 1)
        text = pa.concat_arrays([text, pa.array([""])])
    places = codes.to_numpy(zero_copy_only=False).astype(np.int32)
    absent = np.asarray(pc.is_null(values))
    if not absent.any():
        return Distinct(values, places, stay=declared)
    held = np.bincount(places, minlength=len(values))
    gaps = np.flatnonzero(absent & (held > 0))
    said = dict(zip(gaps.tolist(), text.take(pa.array(gaps)).to_pylist(), strict=True))
    spelled: dict[str, int] = {}
    for place, word in said.items():
        spelled[word] = spelled.get(word, 0) + int(held[place])
    words = {at: word for at, word in said.items() if word}
    return Distinct(values, places, words, spelled, declared)


def _values_after_all(text: pa.StringArray, marker: pa.BooleanArray) -> pa.BooleanArray:
    """Which markers are values: Namibia among two-letter codes, Ms Null among names; bool [k]."""
    others = pc.filter(text, pc.invert(marker))
    kept = pa.array(np.zeros(len(text), dtype=bool))
    if len(others) == 0:
        return kept
    if pc.all(pc.match_substring_regex(others, "^[A-Z]{2}$")).as_py():
        kept = pc.or_(kept, pc.equal(text, "NA"))
    if not pc.any(pc.match_substring_regex(others, r"\d")).as_py():
        kept = pc.or_(kept, pc.is_in(text, value_set=pa.array(NAME_MARKERS)))
    return kept


def marker_doubts(columns: Mapping[str, dict[str, int]]) -> list[str]:
    """One sentence on the words that were read as missing, none where there are none.

    Args:
      columns: of each column `Distinct.markers`.
    """
    named = {name: counts for name, counts in columns.items() if counts}
    if not named:
        return []
    words = sorted({word for counts in named.values() for word in counts})
    cells = sum(sum(counts.values()) for counts in named.values())
    verb = "is" if cells == 1 else "are"
    quoted = ", ".join(f"'{name}'" for name in named)
    return [
        f"{cells_counted(cells)} saying {' or '.join(words)} {verb} read as missing, in {quoted}. "
        "Where that is a value, spell it differently in the file."
    ]


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
        elif column.matches(GROUPED_OR_PLAIN):
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
        return _numbers(column, replace(column, values=plain), name)
    if decimal == "," and column.any(r"\.") and column.matches(f"{INTEGER}|{DOT_THOUSANDS}"):
        return _text(column, name), [
            f"'{name}' could have decimal points or thousands; it is kept as text. Write it like "
            "the other columns, with a decimal comma, to make it a number."
        ]
    if column.matches(INTEGER + "|" + INFINITE):
        values, warnings = _finite(column, name)
        integers = _cast(values, pa.int64())
        if integers is not None:
            return _take(integers, column.codes, name), warnings
    if column.matches(f"{FLOAT}|(?i){INFINITE}"):
        return _numbers(column, column, name)
    if column.matches("^(True|False)$"):
        return _take(pc.equal(values, "True"), column.codes, name), []
    return _text(column, name), []


def _numbers(column: Distinct, plain: Distinct, name: str) -> tuple[Series, list[str]]:
    """Numbers with a fraction, or text where they are codes, and what was lost in words.

    Args:
      column: as the file has it.
      plain: the same with a decimal point, and no mark of thousands.
      name: header.
    """
    if plain.any(CODE):
        return _text(column, name), []
    values, warnings = _finite(plain, name)
    numbers = _cast(pc.utf8_ltrim(values, "+"), pa.float64())
    if numbers is None or numbers.null_count == len(numbers):
        return _text(column, name), []
    spelt = pc.filter(numbers, pc.fill_null(pc.match_substring(values, "."), False))
    if len(spelt) > pc.count_distinct(spelt).as_py():  # versions: 1.1 is not 1.10
        return _text(column, name), [
            f"'{name}' writes one number in several ways, as 1.1 and 1.10 would be; it is kept as "
            "text. If these are numbers, write each with as many decimals."
        ]
    nothing = pc.and_(pc.equal(numbers, 0.0), pc.match_substring_regex(values, r"^[^eE]*[1-9]"))
    rounded = pc.or_(pc.match_substring_regex(values, LONG), nothing)
    if plain.cells(rounded):
        warnings.append(
            f"'{name}' has numbers with more digits than can be held; they are rounded "
            f"({cells_counted(plain.cells(rounded))})."
        )
    series, doubts = without_giants(_take(numbers, column.codes, name), name)
    return series, warnings + doubts


def without_giants(series: Series, name: str) -> tuple[Series, list[str]]:
    """A float column with what is too large to compute with made absent, and a word on it."""
    giant = np.abs(series.to_numpy(dtype=np.float64)) > LARGEST  # half precision has no such number
    if not giant.any():
        return series, []
    words = (
        "infinite values" if np.isinf(series.to_numpy()[giant]).all() else "numbers beyond 1e150"
    )
    counted = cells_counted(int(giant.sum()))
    return series.mask(giant), [f"'{name}' has {words}; they are treated as missing ({counted})."]


def _finite(column: Distinct, name: str) -> tuple[pa.StringArray, list[str]]:
    """The distinct values with infinities made absent."""
    infinite = pc.match_substring_regex(column.values, "(?i)" + INFINITE)
    cells = column.cells(infinite)
    if not cells:
        return column.values, []
    values = pc.if_else(pc.fill_null(infinite, False), pa.scalar(None, pa.string()), column.values)
    return values, [
        f"'{name}' has infinite values; they are treated as missing ({cells_counted(cells)})."
    ]


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
    refuse_nul(column.present, name)
    cells = column.values.cast(pa.large_string()).take(pa.array(column.codes))
    return pd.Series(pd.array(cells, dtype="str"), name=name)
