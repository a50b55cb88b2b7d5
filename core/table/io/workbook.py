"""Excel and OpenDocument workbooks to a typed frame."""

from __future__ import annotations

import datetime as dt
import io
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
import pyarrow as pa
from python_calamine import (
    CalamineError,
    CalamineSheet,
    CalamineWorkbook,
    SheetTypeEnum,
    SheetVisibleEnum,
)

from core.table.form import Form
from core.table.io.cells import (
    DeclaredWords,
    ReadLimits,
    TableReadError,
    cells_counted,
    decimal_mark,
    distinct,
    marker_doubts,
    too_big,
    too_many_rows,
    without_giants,
    words_that_stay,
)
from core.table.io.delimited import check_header
from core.table.io.sheet_size import check_sheet
from core.table.io.spelling import plain_spelling, typed_as_written

__all__ = ["read_workbook"]

Series: TypeAlias = "pd.Series[Any]"
Cell: TypeAlias = "int | float | str | bool | dt.date | dt.datetime | dt.time | dt.timedelta"

ZIP = b"PK\x03\x04"
OBJECT_BYTES = 40  # of a cell and its place in a row, at least
EXACT = 2**53  # beyond it a spreadsheet's floating-point number is no exact integer


def read_workbook(
    data: bytes, *, limits: ReadLimits, declared: DeclaredWords | None = None
) -> tuple[pd.DataFrame, dict[str, Form], tuple[str, ...]]:
    """The first sheet with cells of an xlsx, xlsb, xls or ods workbook.

    Args:
      data: the file.
      limits: what is too big.
      declared: see `DeclaredWords`.

    Returns:
      The frame, how its columns are written, and warnings.

    Raises:
      TableReadError: damaged, protected by a password, no cells, or a header that will not do.
    """
    with _refusing_damage():
        book = CalamineWorkbook.from_filelike(io.BytesIO(data))
        listed = [
            (sheet.name, sheet.visible is SheetVisibleEnum.Visible)
            for sheet in book.sheets_metadata
            if sheet.typ is SheetTypeEnum.WorkSheet
        ]
    sheet, warnings = _first_filled(book, data, listed, limits)
    if sheet.height - 1 > limits.max_rows:
        raise too_many_rows(sheet.height - 1, limits)
    if sheet.height * sheet.width * OBJECT_BYTES > limits.max_bytes:
        raise too_big(limits)
    with _refusing_damage():
        rows: list[list[Cell]] = sheet.to_python()
    frame, forms, doubts = _frame_of_rows(rows, limits, declared)
    return frame, forms, (*warnings, *doubts)


@contextmanager
def _refusing_damage() -> Iterator[None]:
    """Turn all that the reader raises on a bad file into one sentence."""
    try:
        yield
    except (CalamineError, OSError, ValueError, OverflowError):
        raise _refused() from None
    except BaseException as error:
        # A panic of native code derives from BaseException alone, and its type has no public name.
        if type(error).__name__ != "PanicException":
            raise
        raise _refused() from None


def _refused() -> TableReadError:
    return TableReadError(
        "The file is no Excel or OpenDocument workbook, is damaged, or is protected by a "
        "password. Open it in a spreadsheet and save it again without one."
    )


def _first_filled(
    book: CalamineWorkbook, data: bytes, listed: list[tuple[str, bool]], limits: ReadLimits
) -> tuple[CalamineSheet, list[str]]:
    """The first sheet with cells that a person sees, else the first hidden one, and doubts.

    Args:
      book: the opened workbook.
      data: its bytes.
      listed: names of its sheets in order, and whether each can be seen.
      limits: what is too big.
    """
    passed = []
    for name, visible in sorted(listed, key=lambda one: not one[1]):  # stable: file order
        errors = check_sheet(data, name, limits) if data.startswith(ZIP) else 0
        with _refusing_damage():
            sheet = book.get_sheet_by_name(name)
        if sheet.height == 0:
            passed.append(name)
            continue
        warnings = []
        if not visible:
            warnings.append(f"The sheet '{name}' is hidden; it is read, as no other has cells.")
        elif not listed[0][1]:
            warnings.append(f"The first sheet, '{listed[0][0]}', is hidden and is left out.")
        if errors:
            verb = "holds an error" if errors == 1 else "hold an error"
            warnings.append(
                f"{cells_counted(errors)} {verb} such as #REF! and are read as missing."
            )
        if len(listed) - len(passed) > 1:
            warnings.append(f"The workbook has {len(listed)} sheets; only '{name}' is read.")
        return sheet, warnings
    raise TableReadError("The workbook is empty. Choose one with a header and rows.")


def _frame_of_rows(
    rows: list[list[Cell]], limits: ReadLimits, declared: DeclaredWords | None
) -> tuple[pd.DataFrame, dict[str, Form], list[str]]:
    """Rows of cells, the header first, as typed columns, and how these are written.

    Args:
      rows: of the sheet.
      limits: what is too big.
      declared: see `DeclaredWords`.
    """
    body = [row for row in rows[1:] if any(cell != "" for cell in row)]
    width = max((i + 1 for row in rows for i, cell in enumerate(row) if cell != ""), default=0)
    header = check_header([_spell(cell) for cell in rows[0][:width]], limits)
    if not body:
        raise TableReadError("The sheet has a header but no rows. Choose one with rows.")
    warnings = []
    if len(body) < len(rows) - 1:
        warnings.append(f"{len(rows) - 1 - len(body):,} empty rows are left out.")
    columns, forms, markers = {}, {}, {}
    for i, name in enumerate(header):
        cells = [row[i] for row in body]
        columns[name], forms[name], doubts, markers[name] = _column(
            cells, name, words_that_stay(declared, name)
        )
        warnings += doubts
    warnings += marker_doubts(markers)
    return pd.DataFrame(columns, copy=False), forms, warnings


def _column(
    cells: list[Cell], name: str, stay: Collection[str] | None
) -> tuple[Series, Form, list[str], dict[str, int]]:
    """A spreadsheet column by the types of its cells, its form, doubts, and missing markers.

    Args:
      cells: without the header.
      name: header.
      stay: see `Distinct.stay`.
    """
    present = [cell for cell in cells if cell != ""]
    kinds = {type(cell) for cell in present}
    if kinds and kinds <= {int, float}:
        series, doubts = _numbers(cells, name)
        return series, Form(), doubts, {}
    if kinds == {bool}:
        flags: Any = [None if cell == "" else cell for cell in cells]
        return _plain(pd.Series(flags, dtype="boolean", name=name), "bool"), Form(), [], {}
    if kinds and kinds <= {dt.date, dt.datetime}:
        stamps = [None if cell == "" else pd.Timestamp(cell) for cell in cells]  # type: ignore[arg-type]
        return pd.Series(stamps, dtype="datetime64[us]", name=name), Form(), [], {}
    mixed = bool(kinds) and len(kinds - {int, float}) + bool(kinds & {int, float}) > 1
    text = pa.chunked_array([pa.array([_spell(cell) for cell in cells], pa.string())])
    values = distinct(text, stay)
    spelling = plain_spelling(values)
    decimal, marks = decimal_mark({name: spelling[0]})
    series, form, doubts = typed_as_written(values, name, decimal, spelling)
    doubts = marks + doubts
    if mixed and not pd.api.types.is_numeric_dtype(series.dtype):
        doubts.append(f"'{name}' mixes numbers, text or dates; it is kept as text.")
    return series, form, doubts, values.markers


def _numbers(cells: list[Cell], name: str) -> tuple[Series, list[str]]:
    """Spreadsheet numbers: integers when all are whole, since the file keeps no difference."""
    values = np.array([np.nan if cell == "" else cell for cell in cells], dtype=np.float64)
    present = values[~np.isnan(values)]
    if np.all(present == np.rint(present)) and np.all(np.abs(present) <= EXACT):
        return _plain(pd.Series(values, name=name).astype("Int64"), "int64"), []
    return without_giants(pd.Series(values, name=name), name)


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
