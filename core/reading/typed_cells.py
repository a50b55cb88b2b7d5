"""What raw cells mean under a declaration: a pure function of one cell and its column.

Which dtype a batch comes back in may depend on the batch, as one label that is no number makes all
of them text there; labels and numbers of a cell, and so its codes, never do.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterable
from decimal import Decimal
from itertools import product
from numbers import Integral, Real
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from core.reading.arrow_types import is_text
from core.reading.cells import MISSING_MARKERS, is_float
from core.reading.native_cells import native_values, plain_cells, text_series
from core.reading.raw_cells import is_written, raw_frame
from core.reading.tally import Tally
from core.schema.column import Column, Kind, is_whole
from core.schema.date_text import date_text, parse_dates, stamps_as
from core.schema.form import Form
from core.schema.labels import code_indices, from_labels, to_labels, to_numbers
from core.schema.number_text import (
    FLAGS,
    exact_as,
    number_values,
    numbers_as,
    of_flags,
    plain_numbers,
    values_as,
)

Series: TypeAlias = "pd.Series[Any]"
Mask: TypeAlias = NDArray[np.bool_]
Cells: TypeAlias = pa.Array | pa.ChunkedArray

_SPELLINGS = frozenset(
    "".join(letters)
    for marker in MISSING_MARKERS
    for letters in product(*({letter, letter.upper()} for letter in marker))
)
_TEXT = pa.large_string()
_WHOLE = re.compile(r"^(-?[0-9]+)(\.0+)?$")
_NUMBERS = (Kind.NUMBER, Kind.INTEGER)
_PROBE = 2_048  # cells looked at to tell whether most differ, so that each may as well be read


def typed_rows(rows: pa.Table, columns: Iterable[Column]) -> pd.DataFrame:
    """Raw rows as their columns are declared."""
    written, there = is_written(rows.schema), set(rows.column_names)
    typed = {
        column.name: typed_column(rows[column.name], column, written=written)
        for column in columns
        if column.name in there
    }
    return pd.DataFrame(typed, index=pd.RangeIndex(rows.num_rows), copy=False)


def typed_column(cells: Cells, column: Column, *, written: bool) -> Series:
    """One column's raw cells as it is declared, n values of its dtype or its nullable twin.

    In a column of numbers, cells that are none are absent, and so are cells that are no dates where
    the dtype is one of dates. Other cells that are nothing of the dtype stay text, as do codes for
    "missing" that are no number, and then so does the batch.

    Args:
      written: whether they are text as somebody wrote it, in which words such as NA are no values.
    """
    raw = plain_cells(cells)
    if not is_text(raw.type):
        return _from_values(native_values(raw), column).rename(column.name)
    typed = _from_digits(raw, column, written=written)
    if typed is None:
        text, indices = _distinct(raw)
        typed = _from_text(text, column, written=written)
        typed = typed if indices is None else typed.take(indices).reset_index(drop=True)
    return typed.rename(column.name)


def typed_tally(tally: Tally, column: Column) -> tuple[Tally, int]:
    """A tally of raw values as one of typed values, and how many cells do not read as declared."""
    cells = pa.array(tally.values)
    typed = typed_column(cells, column, written=tally.written)
    unread = np.zeros(len(typed), dtype=np.bool_)
    if column.kind.numeric:
        unread = np.isnan(to_numbers(typed, column)) & (code_indices(typed, column) < 0)
        unread &= ~says_nothing(cells, column, written=tally.written)
    return tally.mapped(typed), round(float(tally.weights[unread].sum()))


def says_nothing(cells: Cells, column: Column, *, written: bool) -> Mask:
    """Which raw cells are absent, bool [n]: empty ones, and words that say so."""
    raw = plain_cells(cells)
    if not is_text(raw.type):
        return np.asarray(pc.is_null(raw, nan_is_null=True))
    return np.asarray(pc.is_null(_present(raw, column, written=written)))


def _present(text: pa.Array, column: Column, *, written: bool) -> pa.Array:
    if written or column.kind.numeric:
        text = pc.utf8_trim_whitespace(text)
    if not written:
        return text
    absent = "" if column.form is None else column.form.absent
    words = _SPELLINGS.union((absent,)).difference(_own(column))
    gap = pc.is_in(text, value_set=pa.array(sorted(words), _TEXT))
    return pc.if_else(gap, pa.scalar(None, _TEXT), text)


def _own(column: Column) -> tuple[str, ...]:
    """Texts that stand for themselves: the column's codes and the labels of its list."""
    labels = () if column.kind.numeric else (column.categories or ())
    return (*labels, *(column.form.codes if column.form is not None else ()))


def _distinct(raw: pa.Array) -> tuple[pa.Array, NDArray[np.int32] | None]:
    """Different cells and each cell's index among them; all cells and None where most differ."""
    head = raw.slice(0, _PROBE)
    if 2 * pc.count_distinct(head).as_py() > len(head):
        return raw, None
    encoded = raw.dictionary_encode()
    text, indices = encoded.dictionary, encoded.indices
    if indices.null_count:
        text, indices = pa.concat_arrays([text, pa.nulls(1, _TEXT)]), indices.fill_null(len(text))
    return text, np.asarray(indices)


def _from_digits(raw: pa.Array, column: Column, *, written: bool) -> Series | None:
    """Numbers where a batch has nothing but plain ones, as `_from_text` reads them; else None."""
    form, dtype = column.form or Form(), column.dtype
    marked = form.prefix or form.suffix or form.thousands or form.decimal != "."
    whole = is_whole(dtype)
    if column.kind not in _NUMBERS or marked or not (whole or dtype.lower().startswith("float")):
        return None
    words = pa.array([*column.codes, form.absent], _TEXT)
    values = numbers_as(plain_numbers(words, Form()), dtype)
    for word, same in zip(words.to_pylist(), _same_numbers(values, words), strict=True):
        if is_float(word) and (word == form.absent or not same):
            return None
    kind = pa.int64() if whole else pa.float64()
    try:
        numbers = raw.cast(kind)
    except pa.ArrowInvalid:
        try:
            numbers = _present(raw, column, written=written).cast(kind)
        except pa.ArrowInvalid:
            return None
    if whole and pc.any(pc.match_substring_regex(raw, "[xX]")).as_py():  # hexadecimal
        return None
    return values_as(native_values(numbers), dtype)


def _from_text(text: pa.Array, column: Column, *, written: bool) -> Series:
    text, form, dtype = _present(text, column, written=written), column.form or Form(), column.dtype
    if column.kind.listed:
        text = _as_listed(text, column)
    own = np.array(pc.is_in(text, value_set=pa.array(_own(column), _TEXT)))
    if column.kind in _NUMBERS:
        plain = plain_numbers(text, form, flags=of_flags(dtype))
        if not _holds_numbers(dtype):
            small = pa.array(~np.isnan(number_values(plain)))
            values = text_series(pc.if_else(small, plain, pa.scalar(None, _TEXT)))
            return _with_text(values, text, own)
        values, codes = numbers_as(plain, dtype), np.flatnonzero(own)
        own[codes] = ~_same_numbers(values.iloc[codes], text.take(pa.array(codes)))
        return _with_text(values, text, own)
    if pc.any(pc.match_substring(text, "\0")).as_py():
        text = pc.replace_substring(text, "\0", "\ufffd")
    if column.kind is Kind.DATETIME and column.date_format is not None and not written:
        text = _in_format(text, own, column)
    if dtype.startswith("datetime64"):
        values = stamps_as(parse_dates(text_series(text), None), dtype)
        if column.kind is Kind.DATETIME:
            return _with_text(values, text, own)
    elif _holds_numbers(dtype):
        values = exact_as(plain_numbers(text, form, flags=True), dtype)
    else:
        return text_series(text)
    stays = values.isna().to_numpy() & np.asarray(pc.is_valid(text))
    listed = np.flatnonzero(own & ~stays)  # labels are kept as they are declared
    labels = to_labels(values.iloc[listed]).to_numpy(dtype=object)
    stays[listed] = labels != text.take(pa.array(listed)).to_numpy(zero_copy_only=False)
    return _with_text(values, text, stays)


def _from_values(values: Series, column: Column) -> Series:
    dtype, numbers = column.dtype, _holds_numbers(column.dtype)
    if column.kind in _NUMBERS:
        if numbers and pd.api.types.is_numeric_dtype(values.dtype):
            return values_as(values, dtype)
    elif pd.api.types.is_datetime64_any_dtype(values.dtype):
        if dtype.startswith("datetime64"):
            return stamps_as(values, dtype)
    elif str(values.dtype).lower() == dtype.lower():
        other = re.compile(r"-?[0-9]+\.0+" if is_whole(dtype) else "-?[0-9]+")  # spelled otherwise
        if not any(map(other.fullmatch, _own(column))):
            return values
    labels = to_labels(values)
    if pd.api.types.is_float_dtype(values.dtype):
        labels = labels.str.removesuffix(".0")  # gaps make a frame's whole numbers fractions
    return typed_column(pa.array(labels, _TEXT, from_pandas=True), column, written=False)


def _as_listed(text: pa.Array, column: Column) -> pa.Array:
    """Whole numbers as the labels that they are declared as: 1 as 1.0, and 1.0 as 1."""
    labels = [label for label in _own(column) if _WHOLE.fullmatch(label)]
    if not labels:
        return text
    plain = pa.array([_WHOLE.sub(r"\1", label) for label in labels], _TEXT)
    cells = pc.replace_substring_regex(text, _WHOLE.pattern, r"\1")
    same = pc.index_in(pc.if_else(pc.is_in(text, pa.array(_own(column), _TEXT)), "", cells), plain)
    return pc.coalesce(pa.array(labels, _TEXT).take(same), text)


def _in_format(text: pa.Array, own: Mask, column: Column) -> pa.Array:
    """Dates of a source with types as the text that the column's date format makes of them."""
    labels, written = text_series(text), column.date_format or ""
    dates = parse_dates(labels, None)
    native = dates.notna() & parse_dates(labels, written).isna() & ~own
    native &= labels.fillna("").str.match("[0-9]{4}-[0-9]{2}-[0-9]{2}")
    if not native.any():
        return text
    form = (column.form or Form()).model_copy(update={"offset": ""})
    labels = labels.mask(native, date_text(dates, written, form))
    return pa.array(labels, _TEXT, from_pandas=True)


def _with_text(values: Series, text: pa.Array, stays: Mask) -> Series:
    """Values, or their labels where some cells stay text: bool [k]."""
    if not stays.any():
        return values
    labels = pa.array(to_labels(values), _TEXT, from_pandas=True)
    return text_series(pc.if_else(pa.array(stays), text, labels))


def _same_numbers(values: Series, text: pa.Array) -> Mask:
    """Whether each value is the number that its text is, bool [k]."""
    numbers = number_values(plain_numbers(text, Form()))
    return np.asarray(values.to_numpy(dtype=np.float64, na_value=np.nan) == numbers)


def _holds_numbers(dtype: str) -> bool:
    return is_whole(dtype) or dtype.lower().startswith(("float", *FLAGS))


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
