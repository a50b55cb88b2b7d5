"""Excel and OpenDocument workbooks: the first sheet with cells, as the text a person sees."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
from python_calamine import (
    CalamineError,
    CalamineSheet,
    CalamineWorkbook,
    SheetTypeEnum,
    SheetVisibleEnum,
)

from core.message import Message, plural
from core.reading.cells import ReadLimits, TableReadError, too_big, unique_names
from core.reading.raw_cells import as_written, batch_rows
from core.reading.sheet_size import check_sheet
from core.schema.form import FileForm

Cell: TypeAlias = "int | float | str | bool | dt.date | dt.datetime | dt.time | dt.timedelta"

CELL_BYTES = 40  # of a cell in the reader and of its text, at least
EXACT = 2**53  # beyond it a spreadsheet's floating-point number is no exact integer
MIDNIGHT = " 00:00:00"  # of a date, which a spreadsheet keeps as a time too


@dataclass
class Workbook:
    """A `Source`: the first sheet with cells of an xlsx, xlsb, xls or ods workbook."""

    path: Path
    limits: ReadLimits

    def __post_init__(self) -> None:
        self.form = FileForm()
        self.doubts: tuple[str, ...] = ()
        with _refusing_damage(), self.path.open("rb") as stream:  # told by content, not by name
            book = CalamineWorkbook.from_filelike(stream)
            listed = [
                (sheet.name, sheet.visible is SheetVisibleEnum.Visible)
                for sheet in book.sheets_metadata
                if sheet.typ is SheetTypeEnum.WorkSheet
            ]
        sheet = self._first_filled(book, listed)
        if sheet.height - 1 > self.limits.max_rows:
            raise TableReadError(
                "The table has {rows:,} rows; {most:,} is the most. Take a sample of it and try "
                "again.",
                rows=sheet.height - 1,
                most=self.limits.max_rows,
            )
        if sheet.height * sheet.width * CELL_BYTES > self.limits.max_bytes:
            raise too_big(self.limits)
        with _refusing_damage():
            rows = islice(sheet.iter_rows(), (sheet.start or (0, 0))[0], None)
            header = [_spelled(cell) for cell in next(rows)]
            cells = _text(rows, len(header))
        if not cells.num_rows:
            raise TableReadError("The sheet has a header but no rows. Choose one with rows.")
        filled = [bool(pc.any(pc.not_equal(column, "")).as_py()) for column in cells.columns]
        width = max(i + 1 for i, name in enumerate(header) if name or filled[i])
        names, doubts = unique_names(header[:width], self.limits)
        self.doubts += tuple(doubts)
        if cells.num_rows < sheet.height - 1:
            empty = sheet.height - 1 - cells.num_rows
            words = plural(empty, "1 empty row was left out.", "{n:,} empty rows were left out.")
            self.doubts += (words,)
        self._cells = as_written(cells.select(range(width)).rename_columns(names))

    def batches(self) -> Iterator[pa.Table]:
        """See `Source.batches`."""
        size = batch_rows(self._cells.num_columns)
        for first in range(0, self._cells.num_rows, size):
            yield self._cells.slice(first, size)

    def _first_filled(
        self, book: CalamineWorkbook, listed: list[tuple[str, bool]]
    ) -> CalamineSheet:
        passed = 0
        for name, visible in sorted(listed, key=lambda one: not one[1]):  # stable: file order
            errors = check_sheet(self.path, name, self.limits)
            with _refusing_damage():
                sheet = book.get_sheet_by_name(name)
            if sheet.height == 0:
                passed += 1
                continue
            self.doubts += tuple(_doubts(name, visible, listed, len(listed) - passed, errors))
            return sheet
        raise TableReadError("The workbook is empty. Choose one with a header and rows.")


def _doubts(
    name: str, visible: bool, listed: list[tuple[str, bool]], left: int, errors: int
) -> Iterator[str]:
    if not visible:
        yield Message(
            "The sheet '{name}' is hidden; no other has cells, so it was read.", name=name
        )
    elif not listed[0][1]:
        yield Message("The first sheet, '{name}', is hidden and was left out.", name=listed[0][0])
    if errors:
        yield plural(
            errors,
            "1 cell holds an error such as #REF! and was read as missing.",
            "{n:,} cells hold an error such as #REF! and were read as missing.",
        )
    if left > 1:
        yield Message(
            "The workbook has {n} sheets; only '{name}' was read.", n=len(listed), name=name
        )


@contextmanager
def _refusing_damage() -> Iterator[None]:
    try:
        yield
    except BaseException as error:
        # A panic of native code derives from BaseException alone, and its type has no public name.
        damage = isinstance(error, CalamineError | OSError | ValueError | OverflowError)
        if not damage and type(error).__name__ != "PanicException":
            raise
        raise TableReadError(
            "The file is not an Excel or OpenDocument workbook, is damaged, or is protected by a "
            "password. Open it in a spreadsheet and save it again without one."
        ) from None


def _text(rows: Iterator[list[Cell]], width: int) -> pa.Table:
    schema = pa.schema([(str(index), pa.string()) for index in range(width)])
    tables = [schema.empty_table()]
    while some := list(islice(rows, batch_rows(width))):
        filled = [list(map(_spelled, row)) for row in some if any(cell != "" for cell in row)]
        columns = [pa.array(column, pa.string()) for column in zip(*filled, strict=True)]
        tables += [pa.Table.from_arrays(columns, schema=schema)] if filled else []
    return pa.concat_tables(tables)


def _spelled(cell: Cell) -> str:
    """A cell as the text a person sees in it, told from the cell alone."""
    if isinstance(cell, float) and cell.is_integer() and abs(cell) <= EXACT:
        return str(int(cell))
    if isinstance(cell, dt.datetime):
        return cell.isoformat(sep=" ").removesuffix(MIDNIGHT)
    return str(cell)
