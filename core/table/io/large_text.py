"""Delimited text that is larger than memory, typed as if it had been read at once.

What a column of text is depends on all its cells, so the rows are split into cells first, which lie
on disk as text; then one column after the other is typed whole, by the code that types small files,
and laid aside; then rows are put together again, some at a time. Memory holds one column and one
batch.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import BinaryIO

import pandas as pd
import pyarrow as pa
import pyarrow.csv as arrow_csv
import pyarrow.parquet as pq

from core.table.form import FileForm, Form
from core.table.io.cells import (
    COMMA_DECIMAL,
    GROUPED_OR_PLAIN,
    DeclaredWords,
    Distinct,
    ReadLimits,
    TableReadError,
    decimal_mark,
    distinct,
    marker_doubts,
    words_that_stay,
)
from core.table.io.delimited_old import (
    UNSPLIT,
    arrow_options,
    header_doubts,
    read_header,
    scan,
    sep_line,
    spaced_options,
    tell_delimiter,
)
from core.table.io.parquet import PARQUET_MAGIC
from core.table.io.read import MARKUP, OLE, OPENERS, REFUSED, ZIP, no_values
from core.table.io.spelling import plain_spelling, typed_as_written
from core.table.io.text_encoding_old import SAMPLE_BYTES, holds_nul
from core.table.raw_cells import batch_rows

__all__ = ["LARGE_BYTES", "LargeText", "is_large_text"]

LARGE_BYTES = 256 * 2**20  # smaller files are read at once
BLOCK_BYTES = 1 << 22  # of text; arrow reads some thirty ahead, and refuses a longer record
MARK = b"\xef\xbb\xbf"  # that a file of UTF-8 may begin with
OTHERS = (PARQUET_MAGIC, ZIP, OLE, *OPENERS, *REFUSED)  # how what is no text begins


def is_large_text(path: Path) -> bool:
    """Whether a file is too large to be read at once and begins as lines of text in UTF-8."""
    if path.stat().st_size < LARGE_BYTES:
        return False
    with path.open("rb") as stream:
        head = stream.read(SAMPLE_BYTES)
    lines, end, _ = head.rpartition(b"\n")
    if not end or head.startswith(OTHERS) or head.lstrip().lower().startswith(MARKUP):
        return False
    with suppress(UnicodeDecodeError):
        return "\0" not in lines.decode("utf-8")
    return False


@dataclass
class LargeText:
    """A `Source`: a file of delimited text in UTF-8, of any length.

    Attributes:
      path: of the file.
      words: where it lies, for people.
      declared: see `DeclaredWords`.
    """

    path: Path
    words: str
    declared: DeclaredWords | None = None

    def __post_init__(self) -> None:
        self._doubts: list[str] = []
        self._forms: dict[str, Form] = {}
        self._delimiter = ","
        self._columns: list[Path] = []

    @property
    def form(self) -> FileForm:
        """See `Source.form`."""
        return FileForm.of(self._forms, self._delimiter)

    @property
    def doubts(self) -> tuple[str, ...]:
        """See `Source.doubts`."""
        return tuple(self._doubts)

    def prepare(self, folder: Path) -> None:
        """See `Source.prepare`: all of it lies in the folder afterwards, typed."""
        with self.path.open("rb") as stream:
            head, declared = sep_line(stream.read(SAMPLE_BYTES).removeprefix(MARK))
            begins = min(stream.tell(), SAMPLE_BYTES) - len(head)
        tabbed = self.path.name.lower().endswith((".tsv", ".tab"))
        whole_lines = head[: head.rfind(b"\n") + 1] or head
        self._delimiter = declared or tell_delimiter(whole_lines, tabbed)
        spaced, tangled = self._check(begins)
        with self._opened(begins) as stream:
            header, lines = read_header(stream, self._delimiter, spaced=spaced, limits=ReadLimits())
        self._doubts = header_doubts(header)
        cells = folder / "cells.parquet"
        if spaced or tangled:
            self._scan(header, begins, spaced=spaced)
        self._split(cells, header, begins, lines, spaced=spaced)
        self._type(cells, header, folder)
        cells.unlink()

    def batches(self) -> Iterator[pd.DataFrame]:
        """See `Source.batches`."""
        assert self._columns, "prepare() comes first"
        groups = pq.ParquetFile(self._columns[0]).num_row_groups
        for group in range(groups):
            parts = [pq.ParquetFile(file).read_row_group(group) for file in self._columns]
            yield pd.concat([part.to_pandas() for part in parts], axis=1)

    def _opened(self, begins: int) -> BinaryIO:
        stream = self.path.open("rb")
        stream.seek(begins)
        return stream

    def _check(self, begins: int) -> tuple[bool, bool]:
        """Whether quotes follow a space somewhere, and whether some value holds a line's end.

        Args:
          begins: bytes before the header.

        Raises:
          TableReadError: some line holds NUL.
        """
        mark, spaced, tangled = f'{self._delimiter} "'.encode(), False, False
        with self._opened(begins) as stream:
            for number, line in enumerate(stream, 1):
                if b"\0" in line:
                    raise holds_nul(number)
                if b'"' in line:
                    spaced = spaced or mark in line
                    tangled = tangled or bool(line.count(b'"') % 2)
        return spaced, tangled

    def _split(
        self, cells: Path, header: list[str], begins: int, lines: int, *, spaced: bool
    ) -> None:
        """Write all cells as text.

        Args:
          cells: file that is written.
          header: column names.
          begins: bytes before the header.
          lines: that the header takes.
          spaced: whether quotes follow a space.

        Raises:
          TableReadError: they cannot be split.
        """
        try:
            with self._opened(begins) as stream, ExitStack() as last:
                blocks = self._blocks(stream, len(header), lines, spaced=spaced)
                first = next(blocks)
                writer = last.enter_context(
                    pq.ParquetWriter(cells, first.schema, compression="zstd")
                )
                for block in chain([first], blocks):
                    writer.write_table(block)
            return
        except (pa.ArrowInvalid, UnicodeDecodeError):
            pass  # its message quotes the row; the strict scan finds the line without quoting it
        self._scan(header, begins, spaced=spaced)
        raise TableReadError(UNSPLIT)

    def _blocks(
        self, stream: BinaryIO, width: int, lines: int, *, spaced: bool
    ) -> Iterator[pa.Table]:
        """The cells as text, some rows at a time.

        Args:
          stream: at the header.
          width: number of columns.
          lines: that the header takes.
          spaced: whether quotes follow a space, which arrow does not know.
        """
        if spaced:
            options = spaced_options(width, self._delimiter)
            for frame in pd.read_csv(stream, chunksize=batch_rows(width), **options):
                yield pa.Table.from_pandas(frame, preserve_index=False)
            return
        options = arrow_options(width, self._delimiter, lines, pa.string())
        options["read_options"].block_size = BLOCK_BYTES
        with arrow_csv.open_csv(stream, **options) as reader:
            for batch in reader:
                yield pa.Table.from_batches([batch])

    def _scan(self, header: list[str], begins: int, *, spaced: bool) -> None:
        """See `scan`.

        Args:
          header: column names.
          begins: bytes before the header.
          spaced: whether quotes follow a space.
        """
        try:
            with self._opened(begins) as stream:
                scan(stream, header, self._delimiter, spaced=spaced)
        except UnicodeDecodeError:
            raise TableReadError("The file is not in UTF-8. Save it again in UTF-8.") from None

    def _type(self, cells: Path, header: list[str], folder: Path) -> None:
        """Type one column after the other, and write each to a file of its own.

        Args:
          cells: all cells as text.
          header: column names.
          folder: where files are written.
        """
        commas, markers = {}, {}
        for place, name in enumerate(header):
            column = self._column(cells, place, name)
            markers[name] = column.markers
            plain, _ = plain_spelling(column)
            if plain.any(",") and (plain.matches(COMMA_DECIMAL) or plain.matches(GROUPED_OR_PLAIN)):
                commas[name] = replace(plain, codes=plain.codes[:0])  # its values alone decide
        decimal, doubts = decimal_mark(commas)
        self._doubts += doubts + marker_doubts(markers)
        del commas
        empty = []
        size = batch_rows(len(header))
        for place, name in enumerate(header):
            series, self._forms[name], doubts = typed_as_written(
                self._column(cells, place, name), name, decimal
            )
            self._doubts += doubts
            if series.isna().all():
                empty.append(name)
            self._columns.append(folder / f"column-{place:05d}.parquet")
            frame = pa.Table.from_pandas(series.to_frame(), preserve_index=False)
            pq.write_table(frame, self._columns[-1], row_group_size=size, compression="zstd")
        self._doubts += no_values(empty)

    def _column(self, cells: Path, place: int, name: str) -> Distinct:
        """All cells of one column.

        Args:
          cells: file with all of them.
          place: of the column.
          name: of the column.
        """
        stay = words_that_stay(self.declared, name)
        with pq.ParquetFile(cells, read_dictionary=[str(place)]) as file:
            return distinct(file.read(columns=[str(place)]).column(0), stay)
