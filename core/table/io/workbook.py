"""Excel, OpenDocument and Parquet files to a typed frame."""

from __future__ import annotations

import datetime as dt
import io
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from python_calamine import CalamineError, CalamineWorkbook

from core.table.io.cells import (
    ReadLimits,
    TableReadError,
    distinct,
    too_big,
    too_many_rows,
    typed,
)
from core.table.io.delimited import check_header

__all__ = ["PARQUET_MAGIC", "read_parquet", "read_workbook"]

Series: TypeAlias = "pd.Series[Any]"
Cell: TypeAlias = "int | float | str | bool | dt.date | dt.datetime | dt.time | dt.timedelta"

PARQUET_MAGIC = b"PAR1"
ZIP = b"PK\x03\x04"
DAMAGE = (pa.ArrowException, OSError, ValueError, OverflowError)  # what arrow raises on bad bytes
EXACT = 2**53  # beyond it a spreadsheet's floating-point number is no exact integer


def read_workbook(data: bytes, *, limits: ReadLimits) -> tuple[pd.DataFrame, str, tuple[str, ...]]:
    """The first sheet with cells of an xlsx, xlsb, xls or ods workbook.

    Returns:
      The frame, the format ("xlsx", "xls" or "ods") and warnings.

    Raises:
      TableReadError: damaged, protected by a password, no cells, or a header that will not do.
    """
    refused = TableReadError(
        "The file is no Excel or OpenDocument workbook, is damaged, or is protected by a "
        "password. Open it in a spreadsheet and save it again without one."
    )
    try:
        book = CalamineWorkbook.from_filelike(io.BytesIO(data))
        sheets = {n: book.get_sheet_by_name(n) for n in book.sheet_names}
    except (CalamineError, OSError, ValueError):
        raise refused from None
    filled = {name: sheet for name, sheet in sheets.items() if sheet.height > 0}
    if not filled:
        raise TableReadError("The workbook is empty. Choose one with a header and rows.")
    name, sheet = next(iter(filled.items()))
    warnings = []
    if len(filled) > 1:
        warnings.append(
            f"The workbook has {len(filled)} sheets; only the first, '{name}', is read."
        )
    if sheet.height - 1 > limits.max_rows:
        raise too_many_rows(sheet.height - 1, limits)
    try:
        rows: list[list[Cell]] = sheet.to_python()
    except (CalamineError, OSError, ValueError):
        raise refused from None
    frame, doubts = _frame_of_rows(rows, limits)
    kind = "xls"
    if data.startswith(ZIP):
        kind = "ods" if b"opendocument" in data[:200] else "xlsx"
    return frame, kind, (*warnings, *doubts)


def _frame_of_rows(rows: list[list[Cell]], limits: ReadLimits) -> tuple[pd.DataFrame, list[str]]:
    """Rows of cells, the header first, as typed columns."""
    body = [row for row in rows[1:] if any(cell != "" for cell in row)]
    width = max((i + 1 for row in rows for i, cell in enumerate(row) if cell != ""), default=0)
    header = check_header([_spell(cell) for cell in rows[0][:width]], limits)
    if not body:
        raise TableReadError("The sheet has a header but no rows. Choose one with rows.")
    warnings = []
    if len(body) < len(rows) - 1:
        warnings.append(f"{len(rows) - 1 - len(body):,} empty rows are left out.")
    columns = {}
    for i, name in enumerate(header):
        columns[name], doubts = _column([row[i] for row in body], name)
        warnings += doubts
    return pd.DataFrame(columns, copy=False), warnings


def _column(cells: list[Cell], name: str) -> tuple[Series, list[str]]:
    """One spreadsheet column by the types of its cells."""
    present = [cell for cell in cells if cell != ""]
    kinds = {type(cell) for cell in present}
    if kinds and kinds <= {int, float}:
        return _numbers(cells, name), []
    if kinds == {bool}:
        flags: Any = [None if cell == "" else cell for cell in cells]
        return _plain(pd.Series(flags, dtype="boolean", name=name), "bool"), []
    if kinds and kinds <= {dt.date, dt.datetime}:
        stamps = [None if cell == "" else pd.Timestamp(cell) for cell in cells]  # type: ignore[arg-type]
        return pd.Series(stamps, dtype="datetime64[us]", name=name), []
    mixed = bool(kinds) and len(kinds - {int, float}) + bool(kinds & {int, float}) > 1
    text = pa.chunked_array([pa.array([_spell(cell) for cell in cells], pa.string())])
    series, doubts = typed(distinct(text), name, ".")
    if mixed and not pd.api.types.is_numeric_dtype(series.dtype):
        doubts.append(f"'{name}' mixes numbers, text or dates; it is kept as text.")
    return series, doubts


def _numbers(cells: list[Cell], name: str) -> Series:
    """Spreadsheet numbers: integers when all are whole, since the file keeps no difference."""
    values = np.array([np.nan if cell == "" else cell for cell in cells], dtype=np.float64)
    present = values[~np.isnan(values)]
    if np.all(present == np.rint(present)) and np.all(np.abs(present) <= EXACT):
        return _plain(pd.Series(values, name=name).astype("Int64"), "int64")
    return pd.Series(values, name=name)


def _plain(series: Series, dtype: str) -> Series:
    """A nullable column as its plain twin when nothing is absent."""
    return series if series.isna().any() else series.astype(pd.api.types.pandas_dtype(dtype))


def _spell(cell: Cell) -> str:
    """A cell as the text a person sees in it."""
    if isinstance(cell, float) and cell.is_integer() and abs(cell) <= EXACT:
        return str(int(cell))
    if isinstance(cell, dt.datetime):
        return cell.isoformat(sep=" ")
    return str(cell)


def read_parquet(data: bytes, *, limits: ReadLimits) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """A Parquet file. Its own nulls are the missing values; text markers are left as text.

    Raises:
      TableReadError: damaged, too big, nested or binary columns, or a header that will not do.
    """
    damaged = TableReadError(
        "The Parquet file is damaged or cut short. Write or download it again."
    )
    try:
        file = pq.ParquetFile(io.BytesIO(data))
        meta = file.metadata
        unpacked = sum(meta.row_group(i).total_byte_size for i in range(meta.num_row_groups))
    except DAMAGE:
        raise damaged from None
    if unpacked > limits.max_bytes:
        raise too_big(limits)
    if meta.num_rows > limits.max_rows:
        raise too_many_rows(meta.num_rows, limits)
    try:
        table = file.read()
    except DAMAGE:
        raise damaged from None
    warnings = []
    for name in table.column_names:
        if name.startswith("__index_level_") and name.endswith("__"):
            table = table.drop_columns([name])
            warnings.append("The row index stored beside the table is left out.")
    if table.num_columns == 0:
        raise TableReadError("The Parquet file has no columns. Choose one with columns and rows.")
    header = check_header(table.column_names, limits)
    columns = {}
    for name, column in zip(header, table.itercolumns(), strict=True):
        columns[name], doubts = _parquet_column(column, name)
        warnings += doubts
    return pd.DataFrame(columns, copy=False), tuple(warnings)


def _parquet_column(column: pa.ChunkedArray, name: str) -> tuple[Series, list[str]]:
    """One arrow column in the dtypes the product knows."""
    kind, warnings = column.type, []
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
        column = column.cast(kind)
    if pa.types.is_nested(kind) or pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        raise TableReadError(
            f"The column '{name}' holds lists, records or binary data ({kind}). "
            "Leave it out, or turn it into plain columns."
        )
    if pa.types.is_decimal(kind):
        column = column.cast(pa.float64())
        warnings.append(f"'{name}' holds exact decimals; they are read as floating-point numbers.")
    elif pa.types.is_time(kind):
        column = column.cast(pa.string())
    elif pa.types.is_duration(kind):
        seconds = np.asarray(column.cast(pa.duration("us")).cast(pa.int64()).cast(pa.float64()))
        warnings.append(f"'{name}' holds durations; they are read as seconds.")
        return pd.Series(seconds / 1e6, name=name), warnings
    elif pa.types.is_date(kind):
        column = column.cast(pa.timestamp("us"))
    series = _with_nulls(column).rename(name)
    if pd.api.types.is_float_dtype(series.dtype) and np.isinf(series.to_numpy()).any():
        series = series.mask(np.isinf(series))
        warnings.append(f"'{name}' has infinite values; they are treated as missing.")
    return series, warnings


def _with_nulls(column: pa.ChunkedArray) -> Series:
    """Pandas column whose nulls do not turn integers into floats or booleans into objects."""
    kind = column.type
    if column.null_count and (pa.types.is_integer(kind) or pa.types.is_boolean(kind)):
        bare = str(kind).replace("bool", "boolean").replace("int", "Int").replace("uI", "UI")
        dtype: Any = pd.api.types.pandas_dtype(bare)
        return pd.Series(dtype.__from_arrow__(column))
    if pa.types.is_null(kind):
        column = column.cast(pa.string())
    plain: Series = column.to_pandas()
    return plain
