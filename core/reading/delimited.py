"""Delimited text (CSV, TSV and kin) as batches of raw cells, with every doubt named by its line.

How the file is split is declared, or proposed from its beginning; what stands in one record says
nothing of how others are read. Arrow splits the text; what it would take in silence, a quote that
swallows the lines after it, is found by checking every quote's neighbours.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.csv as arrow_csv

from core.message import Message, joined, plural
from core.reading.cells import ReadLimits, TableReadError, header_doubts, unique_names
from core.reading.raw_cells import BATCH_BYTES, as_written, batch_rows
from core.reading.text_encoding import Utf8, encoding_of, refuse_binary
from core.schema.form import DELIMITERS, Delimiter, FileForm

NAMES = {
    ",": Message("comma"),
    ";": Message("semicolon"),
    "\t": Message("tab"),
    "|": Message("vertical bar"),
}
MARKUP = ("<!doctype", "<html", "<?xml", "{", "[{")
TITLE_LINES = 9  # at most, that a title and its blank lines take above a header
PREFIX_BYTES = 1 << 20  # from which a form is proposed
SAMPLE_ROWS = 200  # records looked at to propose the delimiter
BLOCK_BYTES = 1 << 21  # of text; arrow reads some thirty ahead, and refuses a longer record
csv.field_size_limit(BLOCK_BYTES)  # else Python's reader refuses values that arrow takes
SPACED_CELLS = 1 << 19  # of text that Python holds at once
UNSPLIT = Message(
    "The file could not be split into rows: one is longer than {n} MB. Leave out the column with "
    "the longest values, or save the file as Parquet.",
    n=BLOCK_BYTES // 2**20,
)


@dataclass
class DelimitedFile:
    """A `Source`: a file of delimited text, of any length.

    What is not set in `declared` is proposed; `tabbed`, when the name promises tabs, decides
    doubts.
    """

    path: Path
    declared: FileForm | None = None
    tabbed: bool = False
    limits: ReadLimits = ReadLimits()

    def __post_init__(self) -> None:
        with self.path.open("rb") as stream:
            prefix = stream.read(PREFIX_BYTES)
            whole = len(prefix) < PREFIX_BYTES
            if not whole and b"\n" not in prefix and b"\r" not in prefix:
                _refuse_endless(stream)
        declared = self.declared or FileForm()
        proposes = "encoding" not in declared.model_fields_set
        encoding = encoding_of(prefix, None if proposes else declared.encoding)
        # A byte that is lost in an encoding of several would move all after it.
        width = 2 if encoding.startswith("utf-16") else 4 if encoding.startswith("utf-32") else 1
        if self.path.stat().st_size % width:
            raise TableReadError(
                "The text could not be read as {encoding}. Save the file again as CSV in UTF-8.",
                encoding=encoding,
            )
        text = Utf8(encoding)(prefix).decode()
        if text.isspace() or not text:
            raise TableReadError("The file is empty. Choose a file with a header and rows.")
        if text[:64].lstrip().lower().startswith(MARKUP):
            raise TableReadError(
                "This is a web page, XML or JSON document, not a table. Choose a CSV, TSV, "
                "Parquet or Excel file."
            )
        if not whole:
            text = text[: max(text.rfind("\n"), text.rfind("\r")) + 1] or text
        self.form = _form_of(text, encoding, declared, self.tabbed)
        self._names, self._lines, self._doubts = self._header()
        if proposes and not encoding.startswith("utf"):
            self._doubts.append(
                Message(
                    "The file is not in UTF-8. Check that accented letters look right, or save it "
                    "again in UTF-8."
                )
            )
        self.doubts = tuple(self._doubts)

    def _opened(self, utf8: Callable[[pa.Buffer], bytes]) -> pa.NativeFile:
        return pa.TransformInputStream(pa.OSFile(str(self.path)), utf8)

    @contextmanager
    def _lines_of_text(self, utf8: Utf8) -> Iterator[Iterator[str]]:
        with self._opened(utf8) as file, io.TextIOWrapper(file, "utf-8", newline="") as text:
            yield text

    def _split(self, lines: Iterable[str]) -> csv._reader:  # type: ignore[name-defined]
        spaced, mark = self.form.spaced, self.form.delimiter
        return csv.reader(lines, delimiter=mark, skipinitialspace=spaced, strict=True)

    def _header(self) -> tuple[list[str], int, list[str]]:
        """The column names, how many lines stand before the first record, and doubts."""
        with self._lines_of_text(Utf8(self.form.encoding)) as lines:
            first = next(lines)
            above = int(_sep_line(first)[0] is not None)
            lines = lines if above else chain([first], lines)
            reader = self._split(lines)
            try:
                header: list[str] = next((row for row in reader if row), [])
            except csv.Error as error:
                raise _quote_error(above + 1, error) from None
            before = above + reader.line_num
            rows = any(line.strip("\r\n") for line in lines)
        names, doubts = unique_names(header, self.limits)
        if not rows:
            raise TableReadError("The file has a header but no rows. Choose a file with rows.")
        return names, before, doubts + header_doubts(names)

    def batches(self) -> Iterator[pa.Table]:
        """See `Source.batches`."""
        utf8 = Utf8(self.form.encoding)
        blocks = self._spaced_blocks(utf8) if self.form.spaced else self._blocks(utf8)
        for batch in _filled(blocks, batch_rows(len(self._names))):
            yield as_written(batch)
        if utf8.replaced:
            self.doubts = (
                *self._doubts,
                Message(
                    "Unreadable characters, shown as \N{REPLACEMENT CHARACTER}: {n:,} (encoding "
                    "{encoding}). If letters are missing, import the file again with another "
                    "encoding.",
                    n=utf8.replaced,
                    encoding=self.form.encoding,
                ),
            )

    def _blocks(self, utf8: Utf8) -> Iterator[pa.Table]:
        quotes = QuoteCheck(self.form.delimiter)

        def seen(block: pa.Buffer) -> bytes:
            text = utf8(block)
            quotes.add(text)
            return text

        read = arrow_csv.ReadOptions(
            column_names=self._names, skip_rows=self._lines, block_size=BLOCK_BYTES
        )
        parse = arrow_csv.ParseOptions(delimiter=self.form.delimiter, newlines_in_values=True)
        convert = arrow_csv.ConvertOptions(
            column_types=dict.fromkeys(self._names, pa.string()), strings_can_be_null=False
        )
        unsplit = False
        try:
            with arrow_csv.open_csv(self._opened(seen), read, parse, convert) as reader:
                for block in reader:
                    yield pa.Table.from_batches([block])
        except pa.ArrowInvalid:
            unsplit = True  # raising here would show its message, which quotes the row
        if unsplit or not quotes.sound():
            for _ in self._records(Utf8(self.form.encoding)):
                pass
        if unsplit:
            raise TableReadError(UNSPLIT)

    def _spaced_blocks(self, utf8: Utf8) -> Iterator[pa.Table]:
        """The cells where a space may stand before a quote, which arrow does not know."""
        records, width = self._records(utf8), len(self._names)
        while rows := list(islice(records, max(1, SPACED_CELLS // width))):
            columns = [pa.array(cells, pa.string()) for cells in zip(*rows, strict=True)]
            yield pa.Table.from_arrays(columns, self._names)

    def _records(self, utf8: Utf8) -> Iterator[list[str]]:
        width = len(self._names)
        with self._lines_of_text(utf8) as lines:
            for _ in islice(lines, self._lines):
                pass
            reader, start = self._split(lines), self._lines + 1
            try:
                for row in reader:
                    if len(row) == width:
                        yield row
                    elif row:
                        raise _ragged(start, len(row), width, self.form.delimiter)
                    start = self._lines + reader.line_num + 1
            except csv.Error as error:
                raise _quote_error(start, error) from None


class QuoteCheck:
    """Whether quotes open and close as the standard of CSV has it (RFC 4180).

    If every second quote begins a cell, and every other one ends it or stands before another quote,
    then quotes that open and close cells are exactly those; else only a slower reader can tell.
    Arrow would take a value with text after its closing quote, or one that is never closed.
    """

    def __init__(self, delimiter: str) -> None:
        self._ends = np.zeros(256, dtype=bool)
        self._ends[list(f'{delimiter}"\r\n'.encode())] = True
        self._open, self._sound = False, True
        self._kept = b"\n"  # the last byte that was looked at, and the next

    def add(self, block: bytes) -> None:
        """The next block of text."""
        text = self._kept + block
        self._kept = text[-2:]
        if not self._sound or b'"' not in text[1:]:
            return
        letters = np.frombuffer(text, dtype=np.uint8)
        at = np.flatnonzero(letters[1:-1] == ord('"')) + 1
        closes = (np.arange(len(at)) + self._open) % 2 == 1
        self._sound = bool(self._ends[letters[np.where(closes, at + 1, at - 1)]].all())
        self._open = self._open != bool(len(at) % 2)

    def sound(self) -> bool:
        """Whether it is so in all blocks, of which there are no more."""
        self.add(b"\n")
        return self._sound and not self._open


def _filled(blocks: Iterable[pa.Table], rows: int) -> Iterator[pa.Table]:
    held: list[pa.Table] = []
    for block in blocks:
        table = pa.concat_tables([*held, block])
        while len(table) >= rows or table.nbytes >= BATCH_BYTES:
            yield table.slice(0, rows)
            table = table.slice(rows)
        held = [table] if len(table) else []
    yield from held


def _refuse_endless(stream: BinaryIO) -> None:
    rest = stream.read(BLOCK_BYTES - PREFIX_BYTES)
    if len(rest) == BLOCK_BYTES - PREFIX_BYTES and b"\n" not in rest and b"\r" not in rest:
        raise TableReadError(
            "The file's first {n} MB are one line, so it is not a table with a row on each "
            "line. Choose a CSV file with line breaks, or a Parquet file.",
            n=BLOCK_BYTES // 2**20,
        )


def _form_of(text: str, encoding: str, declared: FileForm, tabbed: bool) -> FileForm:
    """How a file that begins so is written, as far as its declaration does not say that."""
    own, text = _sep_line(text)
    if "delimiter" in declared.model_fields_set:
        mark = own or _declared_delimiter(text, declared.delimiter)
    else:
        refuse_binary(text)
        mark = own or _proposed_delimiter(text, tabbed)
    # Quotes open after a space somewhere; doubled ones stand for a letter of a value.
    spaced = re.search(rf'[{mark}] +"(?:[^"]|"(?:[{mark}\r\n]|$))', text) is not None
    if "spaced" in declared.model_fields_set:
        spaced = declared.spaced
    changes = {"delimiter": mark, "encoding": encoding, "spaced": spaced}
    return declared.model_copy(update=changes)


def _sep_line(text: str) -> tuple[Delimiter | None, str]:
    """What the `sep=;` line says that spreadsheets write, and the text after it."""
    mark = next((mark for mark in DELIMITERS if text[4:5] == mark), None)
    if text[:4].lower() == "sep=" and mark and text[5:6] in ("\r", "\n"):
        return mark, text[5:].lstrip("\r\n")
    return None, text


def _declared_delimiter(text: str, declared: Delimiter) -> Delimiter:
    """The declared delimiter, or the one of the header where only that gives several names."""
    widths = {mark: next(_widths(text, mark), 0) for mark in DELIMITERS}
    own = max(DELIMITERS, key=lambda mark: widths[mark])
    return own if widths[declared] < 2 <= widths[own] else declared


def _proposed_delimiter(text: str, tabbed: bool) -> Delimiter:
    """The delimiter whose field count is the most constant, then the one with most fields."""
    scores = []
    for mark in DELIMITERS:
        widths = list(_widths(text, mark))
        if not widths or widths[0] < 2:
            continue
        # The text may end inside a quoted value, and a ragged row is an error to report later: the
        # share of rows as wide as the header is what tells delimiters apart.
        share = sum(width == widths[0] for width in widths) / len(widths)
        promised = mark == ("\t" if tabbed else ",")
        scores.append((round(share, 1), promised and tabbed, widths[0], promised, mark))
    return max(scores)[-1] if scores else ("\t" if tabbed else ",")


def _widths(text: str, delimiter: str) -> Iterator[int]:
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, skipinitialspace=True)
    with suppress(csv.Error):
        for row in reader:
            if row:
                yield len(row)
            if reader.line_num > SAMPLE_ROWS:
                return


def _ragged(line: int, width: int, header_width: int, delimiter: str) -> TableReadError:
    fault = plural(
        width,
        "Line {line} has {n} value where the header has {header} (delimiter: {delimiter}).",
        "Line {line} has {n} values where the header has {header} (delimiter: {delimiter}).",
        line=line,
        header=header_width,
        delimiter=NAMES[delimiter],
    )
    advice = Message("Correct that line, and put quotes around values that contain the delimiter.")
    if line <= TITLE_LINES and width > header_width:
        title = Message("If there is a title above the header, delete the lines above the header.")
        return TableReadError(joined([fault, title, Message("Otherwise correct that line.")]))
    return TableReadError(joined([fault, advice]))


def _quote_error(line: int, error: csv.Error) -> TableReadError:
    if "limit" in str(error):
        return TableReadError(
            "Line {line} begins a value longer than {most:,} characters, most likely because a "
            "quote is never closed. Close it and try again.",
            line=line,
            most=csv.field_size_limit(),
        )
    if "unexpected end" in str(error):
        return TableReadError(
            'Line {line} opens a quote (") that is never closed. Close it and try again.', line=line
        )
    return TableReadError(
        'Line {line} has text after a closing quote ("). Double the quotes inside a quoted '
        "value, or close the one left open on an earlier line.",
        line=line,
    )
