"""Parquet files to a typed frame, column by column, each measured before it is spread out."""

from __future__ import annotations

import io
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from core.table.form import Form
from core.table.io.arrow_types import TICKS, is_text, stored_type
from core.table.io.cells import (
    ReadLimits,
    TableReadError,
    cells_counted,
    refuse_nul,
    too_big,
    too_many_rows,
    without_giants,
)
from core.table.io.delimited import check_header
from core.table.magnitudes import FIRST_SECOND, LAST_SECOND

__all__ = ["DAMAGE", "PARQUET_MAGIC", "check_kind", "is_index", "read_column", "read_parquet"]

Series: TypeAlias = "pd.Series[Any]"

PARQUET_MAGIC = b"PAR1"
DAMAGE = (pa.ArrowException, OSError, ValueError, OverflowError)  # what arrow raises on bad bytes
OFFSET_BYTES = 8  # of each text in a column, beside its letters
DAY = 86_400
FIRST, LAST = int(FIRST_SECOND), int(LAST_SECOND)
MICROSECOND = 1_000  # in ns


def read_parquet(
    data: bytes, *, limits: ReadLimits
) -> tuple[pd.DataFrame, dict[str, Form], tuple[str, ...]]:
    """A Parquet file. Its own nulls are the missing values; text markers are left as text.

    A few bytes can stand for gigabytes here, by run lengths and dictionaries. So the size is
    estimated first from rows and widths, text stays in its dictionary until its length is known,
    and one column is spread out at a time.

    Raises:
      TableReadError: damaged, too big, columns of a kind that no table holds, or a header that
        will not do.
    """
    file, stored_schema = _opened(data, limits)
    names = [name for name in file.schema_arrow.names if not is_index(name)]
    warnings = []
    if len(names) < len(file.schema_arrow.names):
        warnings.append("The row index stored beside the table is left out.")
    if not names:
        raise TableReadError("The Parquet file has no columns. Choose one with columns and rows.")
    header = check_header(names, limits)
    for name, stored in zip(header, names, strict=True):
        check_kind(file.schema_arrow.field(stored).type, name)
    rows = file.metadata.num_rows
    size = sum(_width(file.schema_arrow.field(name).type) * rows for name in names)
    columns: dict[str, Series] = {}
    forms: dict[str, Form] = {}
    for name, stored in zip(header, names, strict=True):
        if size > limits.max_bytes:
            raise too_big(limits)
        try:
            table = file.read(columns=[stored])  # those of the columns inside it too, if any
            column = table.column(table.column_names.index(stored))
            letters = _letters(column)
            size += letters
            if size > limits.max_bytes:
                raise too_big(limits)
            columns[name], doubts = read_column(column, name)
            forms[name] = Form(arrow=stored_type(stored_schema.field(stored).type))
        except TableReadError:  # a ValueError, which damage raises too
            raise
        except DAMAGE:
            raise _damaged() from None
        warnings += doubts
    return pd.DataFrame(columns, copy=False), forms, tuple(warnings)


def _damaged() -> TableReadError:
    return TableReadError("The Parquet file is damaged or cut short. Write or download it again.")


def _opened(data: bytes, limits: ReadLimits) -> tuple[pq.ParquetFile, pa.Schema]:
    """The file, its metadata read, text to be read as dictionaries; and its own schema."""
    try:
        plain = pq.ParquetFile(io.BytesIO(data))
        meta = plain.metadata
        groups = range(meta.num_row_groups)
        unpacked = sum(meta.row_group(i).total_byte_size for i in groups)
        # What the groups say is what memory is taken for, whatever the total says.
        rows = max(meta.num_rows, sum(meta.row_group(i).num_rows for i in groups))
        text = [field.name for field in plain.schema_arrow if is_text(field.type)]
        file = pq.ParquetFile(io.BytesIO(data), read_dictionary=text)
    except MemoryError:
        raise
    except DAMAGE:
        raise _damaged() from None
    if unpacked > limits.max_bytes:
        raise too_big(limits)
    if rows > limits.max_rows:
        raise too_many_rows(rows, limits)
    return file, plain.schema_arrow


def is_index(name: str) -> bool:
    """Whether pandas gave a column its name: the row index, stored beside the table."""
    return name.startswith("__index_level_") and name.endswith("__")


def check_kind(kind: pa.DataType, name: str) -> None:
    """Refuse a column that holds no plain values.

    Raises:
      TableReadError: lists, records or binary data.
    """
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    checks = (
        is_text, pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean,
        pa.types.is_decimal, pa.types.is_date, pa.types.is_timestamp, pa.types.is_time,
        pa.types.is_duration, pa.types.is_null,
    )  # fmt: skip
    if not any(check(kind) for check in checks):
        raise TableReadError(
            f"The column '{name}' holds lists, records or binary data ({kind}). "
            "Leave it out, or turn it into plain columns."
        )


def _width(kind: pa.DataType) -> int:
    """Bytes of a cell in the frame, without the letters of text."""
    if is_text(kind) or pa.types.is_dictionary(kind) or pa.types.is_time(kind):
        return OFFSET_BYTES
    try:
        return max(1, int(kind.bit_width) // 8)
    except ValueError:  # null
        return OFFSET_BYTES


def _letters(column: pa.ChunkedArray) -> int:
    """Bytes of a dictionary column's text once it is spread over the rows; 0 for others."""
    if not pa.types.is_dictionary(column.type) or not is_text(column.type.value_type):
        return 0
    total = 0
    for chunk in column.chunks:
        lengths = np.asarray(pc.binary_length(chunk.dictionary).fill_null(0), dtype=np.int64)
        used = np.asarray(chunk.indices.drop_null())
        total += int(np.bincount(used, minlength=len(lengths)) @ lengths)
    return total


def read_column(
    column: pa.ChunkedArray, name: str, *, gaps: bool = False
) -> tuple[Series, list[str]]:
    """One arrow column in the dtypes the product knows, and doubts in words.

    Args:
      column: n cells, of a kind that `check_kind` lets pass.
      name: header.
      gaps: whether other parts of the column have absent cells, so that it has room for them.
    """
    kind, warnings = column.type, []
    if pa.types.is_dictionary(kind):
        kind = pa.large_string() if is_text(kind.value_type) else kind.value_type
        column = column.cast(kind)
    if is_text(kind):
        refuse_nul(column, name)
    elif pa.types.is_decimal(kind):
        column = column.cast(pa.float64())
        warnings.append(f"'{name}' holds exact decimals; they are read as floating-point numbers.")
    elif pa.types.is_time(kind):
        column = column.cast(pa.string())
    elif pa.types.is_duration(kind):
        ticks = TICKS[kind.unit]
        seconds = np.asarray(column.cast(pa.int64()).cast(pa.float64(), safe=False))
        warnings.append(f"'{name}' holds durations; they are read as seconds.")
        return pd.Series(seconds / ticks, name=name), warnings
    elif pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        column, warnings = _dates(column, name)
    series = _with_nulls(column, gaps).rename(name)
    if pd.api.types.is_float_dtype(series.dtype):
        series, doubts = without_giants(series, name)
        warnings += doubts
    return series, warnings


def _dates(column: pa.ChunkedArray, name: str) -> tuple[pa.ChunkedArray, list[str]]:
    """Dates as the product keeps them: of years 1 to 9999, to the microsecond."""
    kind, warnings = column.type, []
    if pa.types.is_date32(kind):
        raw, first, last = column.cast(pa.int32()), FIRST // DAY, LAST // DAY
    else:
        ticks = TICKS["ms" if pa.types.is_date(kind) else kind.unit]
        raw, first, last = column.cast(pa.int64()), FIRST * ticks, LAST * ticks
    if -(2**63) <= first and last < 2**63:  # nanoseconds reach no such year
        inside = pc.and_(pc.greater_equal(raw, first), pc.less_equal(raw, last))
        far = raw.length() - raw.null_count - (pc.sum(inside).as_py() or 0)
        if far:
            column = pc.if_else(inside, column, pa.scalar(None, kind))
            warnings.append(
                f"'{name}' has dates outside the years 1 to 9999; they are treated as missing "
                f"({cells_counted(far)})."
            )
    if pa.types.is_date(kind):
        return column.cast(pa.timestamp("us")), warnings
    if kind.unit == "ns":
        whole = pc.multiply(pc.divide(raw, MICROSECOND), MICROSECOND)
        finer = pc.sum(pc.not_equal(whole, raw)).as_py() or 0
        if finer:
            column = column.cast(pa.timestamp("us", kind.tz), safe=False)
            warnings.append(
                f"'{name}' has times finer than a microsecond; they are cut to whole microseconds "
                f"({cells_counted(finer)})."
            )
    return column, warnings


def _with_nulls(column: pa.ChunkedArray, gaps: bool) -> Series:
    """Pandas column whose nulls do not turn integers into floats or booleans into objects."""
    kind = column.type
    if (gaps or column.null_count) and (pa.types.is_integer(kind) or pa.types.is_boolean(kind)):
        bare = str(kind).replace("bool", "boolean").replace("int", "Int").replace("uI", "UI")
        dtype: Any = pd.api.types.pandas_dtype(bare)
        return pd.Series(dtype.__from_arrow__(column))
    if pa.types.is_null(kind):
        column = column.cast(pa.string())
    plain: Series = column.to_pandas()
    return plain
