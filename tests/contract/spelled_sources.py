"""Rows of any spelling as files, queries and frames, and the batches of raw cells they give."""

from __future__ import annotations

import datetime as dt
import gzip
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

import openpyxl
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from openpyxl.cell.cell import ILLEGAL_CHARACTERS_RE

from core.reading import opening, raw_cells, typed_cells
from core.reading.address import Address, Allowed
from core.reading.cells import ReadLimits
from core.reading.raw_cells import Source
from core.reading.typed_cells import frame_as_declared
from core.schema.form import DELIMITERS, FileForm
from core.schema.schema import Schema
from tests.contract.spelled_columns import COLUMNS, SpelledColumn
from tests.contract.spellings import STRAY_BYTES, STRAY_PAIRS, spelling, value

__all__ = ["SOURCES", "Record", "Spelled", "Text"]

Record = dict[str, object]  # cells by column: text or bytes as written, or values of any type
NAMES = [column.name for column in COLUMNS]
LONE_QUOTES = ('5" pipe', "12'3\"", 'a"b"c', 'x""')  # that begin no cell, so they close none
TYPES = (bool, (int, float), str, dt.datetime)
LONGEST_CELL = 32_767  # of a workbook


@dataclass(frozen=True)
class Spelled:
    """Where rows lie; each kind of source says how its cells are written.

    Attributes:
      name: for people.
    """

    name: str

    def ordinary(self, random: Random) -> Record:
        """A row as most are."""
        return {column.name: column.cell(random) for column in COLUMNS}

    def odd(self, random: Random, column: SpelledColumn) -> object:
        """One odd cell of a column."""
        return value(random, [column.cell(random) for _ in range(3)])

    def source(self, rows: Sequence[Record], folder: Path, declared: FileForm | None) -> Source:
        """The rows, written and opened.

        Args:
          rows: in order.
          folder: for files.
          declared: how they are written; None where nobody said.
        """
        raise NotImplementedError

    def batches(
        self, rows: Sequence[Record], folder: Path, schema: Schema | None
    ) -> list[pa.Table]:
        """The rows' raw cells.

        Args:
          rows: in order.
          folder: for files.
          schema: declared beforehand, or None.
        """
        source = self.source(rows, folder, None if schema is None else schema.form)
        return list(source.batches())

    def typed(
        self, rows: Sequence[Record], folder: Path, schema: Schema, *, in_batches: bool
    ) -> list[pd.DataFrame]:
        """The rows as declared, read at once or some at a time.

        Args:
          rows: in order.
          folder: for files.
          schema: declared beforehand.
          in_batches: whether each batch is typed on its own, as runs do.
        """
        batches = self.batches(rows, folder, schema)
        batches = batches if in_batches else [pa.concat_tables(batches)]
        return [typed_cells.typed_rows(batch, schema.columns) for batch in batches]


@dataclass(frozen=True)
class Text(Spelled):
    """Delimited text.

    Attributes:
      delimiter: of cells.
      encoding: of the file.
      before: lines above the header.
      end: of a line.
      packed: whether by gzip.
    """

    delimiter: str = ","
    encoding: str = "utf-8"
    before: str = ""
    end: str = "\n"
    packed: bool = False

    def ordinary(self, random: Random) -> Record:
        """See `Spelled.ordinary`."""
        return {column.name: column.text(column.cell(random)) for column in COLUMNS}

    def odd(self, random: Random, column: SpelledColumn) -> object:
        """Text, now and then with bytes that are none in this encoding, or a quote by itself."""
        cells = [column.text(column.cell(random)) for _ in range(3)]
        text, shape = spelling(random, cells), random.random()
        if shape < 0.02:
            return self._encoded(random.choice(LONE_QUOTES))
        if shape < 0.9:
            return self._quoted(text, random)
        text = self._quoted(text.replace('"', ""), random)  # which a stray byte would part
        wide = self.encoding.startswith("utf-16")
        stray = random.choice(STRAY_PAIRS if wide else STRAY_BYTES)
        encoded = self._encoded(text)
        width = 2 if wide else 1
        first = width if text.startswith('"') else 0
        at = random.randrange(first, max(first + 1, len(encoded) - first + 1), width)
        return encoded[:at] + stray + encoded[at:]

    def _quoted(self, text: str, random: Random | None = None) -> str:
        special = any(mark in text for mark in (self.delimiter, '"', "\n", "\r"))
        if special or (random is not None and random.random() < 0.1):
            return '"' + text.replace('"', '""') + '"'
        return text

    def _encoded(self, text: str) -> bytes:
        encoding = {"utf-16": "utf-16-le", "utf-8-sig": "utf-8"}.get(self.encoding, self.encoding)
        return text.encode(encoding, errors="replace")

    def content(self, rows: Sequence[Record]) -> bytes:
        """The file."""
        mark = {"utf-16": b"\xff\xfe", "utf-8-sig": b"\xef\xbb\xbf"}.get(self.encoding, b"")
        between, end = self._encoded(self.delimiter), self._encoded(self.end)
        lines = [self._encoded(self.before + self.delimiter.join(NAMES))]
        for row in rows:
            cells = (row[name] for name in NAMES)
            lines.append(between.join(self._bytes(cell) for cell in cells))
        content = mark + end.join(lines) + end
        return gzip.compress(content, 1) if self.packed else content

    def _bytes(self, cell: object) -> bytes:
        if isinstance(cell, bytes):
            return cell
        text = str(cell)
        return self._encoded(text if text.startswith('"') else self._quoted(text))

    def source(self, rows: Sequence[Record], folder: Path, declared: FileForm | None) -> Source:
        """See `Spelled.source`."""
        file = folder / f"rows.csv{'.gz' if self.packed else ''}"
        file.write_bytes(self.content(rows))
        return opening.open_path(file, folder, limits=ReadLimits(), declared=declared)


@dataclass(frozen=True)
class Workbook(Spelled):
    """A workbook; its cells have types of their own."""

    def source(self, rows: Sequence[Record], folder: Path, declared: FileForm | None) -> Source:
        """See `Spelled.source`."""
        book = openpyxl.Workbook(write_only=True)
        sheet = book.create_sheet("rows")
        sheet.append(NAMES)
        for row in rows:
            sheet.append([self._cell(sheet, row[name]) for name in NAMES])
        file = folder / "rows.xlsx"
        book.save(file)
        return opening.open_path(file, folder, limits=ReadLimits(), declared=declared)

    @staticmethod
    def _cell(sheet: object, cell: object) -> object:
        """What a spreadsheet can hold: neither zones nor control characters nor infinity."""
        if isinstance(cell, float) and not abs(cell) <= 1e300:
            return None
        if isinstance(cell, dt.datetime):
            cell = cell.replace(tzinfo=None)
        if isinstance(cell, dt.date) and cell.year < 1900:
            cell = str(cell)
        if isinstance(cell, str):
            text = ILLEGAL_CHARACTERS_RE.sub("", cell)[:LONGEST_CELL]
            plain = openpyxl.cell.WriteOnlyCell(sheet, value=text)
            plain.data_type = "s"  # also where it begins as a formula does
            return plain
        return cell


@dataclass(frozen=True)
class Typed(Spelled):
    """A source whose columns have one type each, which others' cells cannot be of."""

    def odd(self, random: Random, column: SpelledColumn) -> object:
        """See `Spelled.odd`; whole numbers and fractions are of one type."""
        kind = next(kind for kind in TYPES if isinstance(column.cell(random), kind))
        while True:
            cell = super().odd(random, column)
            if cell is None or (isinstance(cell, kind) and getattr(cell, "tzinfo", None) is None):
                return int(cell) if isinstance(cell, bool) and kind is not bool else cell


@dataclass(frozen=True)
class Parquet(Typed):
    """A Parquet file."""

    def source(self, rows: Sequence[Record], folder: Path, declared: FileForm | None) -> Source:
        """See `Spelled.source`."""
        file = folder / "rows.parquet"
        columns = {name: self._column([row[name] for row in rows]) for name in NAMES}
        pq.write_table(pa.table(columns), file, row_group_size=13)
        return opening.open_path(file, folder, limits=ReadLimits(), declared=declared)

    @staticmethod
    def _column(cells: Sequence[object]) -> pa.Array:
        try:
            return pa.array(cells, from_pandas=True)
        except (pa.ArrowException, OverflowError):  # whole numbers beyond 2⁵³ beside fractions
            return pa.array([None if cell is None else float(cell) for cell in cells])


@dataclass(frozen=True)
class Queries(Typed):
    """A query of an SQLite database; where a column holds numbers and text it is refused."""

    def source(self, rows: Sequence[Record], folder: Path, declared: FileForm | None) -> Source:
        """See `Spelled.source`."""
        file = folder / "rows.sqlite"
        file.unlink(missing_ok=True)
        cells = [[self._cell(row[name]) for name in NAMES] for row in rows]
        with sqlite3.connect(file) as base:
            base.execute(f"CREATE TABLE t ({', '.join(NAMES)})")
            base.executemany(f"INSERT INTO t VALUES ({', '.join('?' * len(NAMES))})", cells)
        base.close()
        address = Address.of(f"sqlite:///{file}", query="SELECT * FROM t", password="")
        return opening.open_address(address, Allowed(None, folder / "own"), folder, declared)

    @staticmethod
    def _cell(cell: object) -> object:
        if isinstance(cell, int) and not abs(cell) < 2**63:
            return float(cell)
        return str(cell) if isinstance(cell, dt.date) else cell


@dataclass(frozen=True)
class Frames(Spelled):
    """A frame, whose columns have the types that pandas gives their cells."""

    def batches(
        self, rows: Sequence[Record], folder: Path, schema: Schema | None
    ) -> list[pa.Table]:
        """See `Spelled.batches`."""
        return [raw_cells.raw_frame(self._frame(rows))]

    def typed(
        self, rows: Sequence[Record], folder: Path, schema: Schema, *, in_batches: bool
    ) -> list[pd.DataFrame]:
        """See `Spelled.typed`."""
        size = raw_cells.BATCH_ROWS if in_batches else len(rows)
        parts = [rows[first : first + size] for first in range(0, len(rows), size)]
        return [frame_as_declared(self._frame(part), schema.columns) for part in parts]

    @staticmethod
    def _frame(rows: Sequence[Record]) -> pd.DataFrame:
        return pd.DataFrame({name: pd.Series([row[name] for row in rows]) for name in NAMES})


SOURCES: tuple[Spelled, ...] = (
    *(Text(f"text with {mark!r}", delimiter=mark) for mark in DELIMITERS),
    Text("text in cp1252", encoding="cp1252", delimiter=";"),
    Text("text with a byte order mark", encoding="utf-8-sig", end="\r\n"),
    Text("text in UTF-16", encoding="utf-16", delimiter="\t", end="\r\n"),
    Text("text in gzip", packed=True),
    Text("text below blank lines", before="\n\n", delimiter=";"),
    Text("text that says its delimiter", before="sep=;\r\n", delimiter=";", end="\r\n"),
    Parquet("Parquet"),
    Workbook("a workbook"),
    Queries("a query"),
    Frames("a frame"),
)
