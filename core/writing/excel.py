"""Frames to one Excel workbook: the table, and a sheet that says it is synthetic."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime, time
from pathlib import Path
from typing import Any

import pandas as pd

from core.reading.arrow_types import arrow_table
from core.schema.column import SchemaError
from core.schema.schema import Schema
from core.writing.tables import Label
from core.writing.whole_files import replacing

MOST_ROWS = 1_048_575  # of a sheet, below its header
MOST_CELLS = 1_000_000  # some ten seconds of writing


def fits_excel(rows: int, columns: int) -> bool:
    """Whether a table of so many rows may become a sheet."""
    return rows <= MOST_ROWS and rows * columns <= MOST_CELLS


def write_excel(
    parts: Iterable[pd.DataFrame], path: Path, *, schema: Schema, label: Label = None
) -> None:
    """Write a workbook whole or not at all; text stays text, whatever it begins with.

    `label` is what the second sheet says, a name and a value a row.

    Raises:
      SchemaError: the table is too large for a workbook.
    """
    # only who asks for a workbook needs it
    from openpyxl import Workbook  # type: ignore[import-untyped]
    from openpyxl.cell import WriteOnlyCell  # type: ignore[import-untyped]

    book = Workbook(write_only=True)
    sheets = {"table": _rows(parts, schema), "synthetic": iter((label or {}).items())}

    def cell(sheet: Any, value: Any) -> Any:
        if not isinstance(value, str) or not value.startswith("="):
            return value
        text = WriteOnlyCell(sheet, value)
        text.data_type = "s"  # not the formula that openpyxl takes it for
        return text

    for name, rows in sheets.items():
        sheet = book.create_sheet(name)
        try:
            for row in rows:
                sheet.append([cell(sheet, value) for value in row])
        finally:
            sheet.close()
    with replacing(path) as file:
        book.save(file)


def _rows(parts: Iterable[pd.DataFrame], schema: Schema) -> Iterator[tuple[Any, ...]]:
    """A header, then rows of plain values; midnights are dates."""
    done = 0
    for part in parts:
        if not done:
            yield tuple(map(str, part.columns))
        if not fits_excel(done := done + len(part), part.shape[1]):
            raise SchemaError(
                "Excel files here hold at most {n:,} cells. Nothing was made. Choose CSV, or "
                "fewer rows.",
                n=MOST_CELLS,
            )
        columns = [column.to_pylist() for column in arrow_table(part, schema.columns).columns]
        yield from zip(*(map(_plain, column) for column in columns), strict=True)


def _plain(value: Any) -> Any:
    if not isinstance(value, datetime):
        return value
    moment = value.replace(tzinfo=None)
    return moment.date() if moment.time() == time() else moment
