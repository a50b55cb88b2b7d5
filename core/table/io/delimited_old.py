"""Delimited text (CSV, TSV and kin) to a typed frame, with every doubt named by its line."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, BinaryIO

import pandas as pd
import pyarrow as pa
import pyarrow.csv as arrow_csv

from core.table.form import DELIMITERS, Form
from core.table.io.cells import (
    DeclaredWords,
    Distinct,
    ReadLimits,
    TableReadError,
    decimal_mark,
    distinct,
    marker_doubts,
    too_many_rows,
    words_that_stay,
)
from core.table.io.spelling import plain_spelling, typed_as_written
from core.table.io.text_encoding_old import SAMPLE_BYTES, to_utf8

__all__ = [
    "Delimited",
    "arrow_options",
    "check_header",
    "frame_of_cells",
    "header_doubts",
    "read_header",
    "scan",
    "sep_line",
    "spaced_options",
    "split_text",
    "tangled_quotes",
    "tell_delimiter",
]

NAMES = {",": "comma", ";": "semicolon", "\t": "tab", "|": "vertical bar"}
TITLE_LINES = 9  # at most, that a title and its blank lines take above a header
SAMPLE_ROWS = 200  # records looked at to tell the delimiter
BLOCK_BYTES = 1 << 24  # arrow refuses a record longer than one block
UNSPLIT = "The file could not be split into rows and columns. Save it again as CSV in UTF-8."


@dataclass(frozen=True)
class Delimited:
    """Text split into cells, with how it was split.

    Attributes:
      table: n rows of text, one column per header name, named by position.
      header: checked column names.
    """

    table: pa.Table
    header: list[str]
    delimiter: str
    encoding: str
    warnings: list[str]


def split_text(data: bytes, *, limits: ReadLimits, tabbed: bool = False) -> Delimited:
    """Split delimited text into cells, still untyped so that the bytes can be freed first.

    Args:
      data: the whole file, in any common encoding.
      limits: rows and columns allowed.
      tabbed: whether the file's name promises tabs; decides only where the text leaves a doubt.

    Raises:
      TableReadError: what is wrong, where, and what to do.
    """
    data, encoding, warnings = to_utf8(data)
    data, declared = sep_line(data)
    if not data or data.isspace():  # stripping would copy it
        raise TableReadError("The file is empty. Choose a file with a header and rows.")
    delimiter = declared or tell_delimiter(data, tabbed)
    spaced = f'{delimiter} "'.encode() in data  # quotes after a space: skip the space
    header, header_lines = read_header(io.BytesIO(data), delimiter, spaced=spaced, limits=limits)
    warnings += header_doubts(header)
    if spaced or (b'"' in data and tangled_quotes(io.BytesIO(data))):
        scan(io.BytesIO(data), header, delimiter, spaced=spaced)
    if spaced:
        table = _read_spaced(data, len(header), delimiter)
    else:
        table = _read_arrow(data, header, delimiter, header_lines)
    if table.num_rows > limits.max_rows:
        raise too_many_rows(table.num_rows, limits)
    return Delimited(table, header, delimiter, encoding, warnings)


def read_header(
    stream: BinaryIO, delimiter: str, *, spaced: bool = False, limits: ReadLimits
) -> tuple[list[str], int]:
    """The checked column names, and how many lines they take.

    Args:
      stream: UTF-8, at its first line.
      delimiter: of cells.
      spaced: whether quotes follow a space.
      limits: columns allowed.

    Raises:
      TableReadError: what is wrong with them, or there are no rows.
    """
    header: list[str] = []
    lines = 0
    with _records(stream, delimiter, spaced) as reader:
        try:
            header = next((row for row in reader if row), [])
            lines = reader.line_num
            first = next((row for row in reader if row), None)
        except csv.Error as error:
            raise _scan_error(lines + 1, error) from None
    header = check_header(header, limits)
    if first is None:
        raise TableReadError("The file has a header but no rows. Choose a file with rows.")
    return header, lines


def sep_line(data: bytes) -> tuple[bytes, str | None]:
    """Drop the `sep=;` line that spreadsheets write, keeping what it says."""
    head = data[:8].lower()
    if head.startswith(b"sep=") and data[4:5].decode("latin-1") in DELIMITERS:
        return data[5:].lstrip(b"\r\n"), data[4:5].decode()
    return data, None


@contextmanager
def _records(stream: BinaryIO, delimiter: str, spaced: bool) -> Iterator[csv._reader]:  # type: ignore[name-defined]
    text = io.TextIOWrapper(stream, encoding="utf-8", newline="")
    try:
        yield csv.reader(text, delimiter=delimiter, skipinitialspace=spaced, strict=True)
    finally:
        text.detach()  # else it would close what its caller opened


def tell_delimiter(data: bytes, tabbed: bool) -> str:
    """The delimiter whose field count is the most constant, then the one with most fields.

    Args:
      data: the file, or its beginning.
      tabbed: whether its name promises tabs.
    """
    sample = data[:SAMPLE_BYTES]
    if len(data) > SAMPLE_BYTES:
        sample = sample[: sample.rfind(b"\n") + 1] or sample
    scores = []
    for candidate in DELIMITERS:
        widths = list(_widths(sample, candidate))
        if not widths or widths[0] < 2:
            continue
        # A sample may end inside a quoted value, and a ragged row is an error to report later: the
        # share of rows as wide as the header is what tells delimiters apart.
        share = sum(w == widths[0] for w in widths) / len(widths)
        promised = candidate == ("\t" if tabbed else ",")
        scores.append((round(share, 1), promised and tabbed, widths[0], promised, candidate))
    return max(scores)[-1] if scores else ("\t" if tabbed else ",")


def _widths(sample: bytes, delimiter: str) -> Iterator[int]:
    stream = io.StringIO(sample.decode("utf-8", "replace"), newline="")
    reader = csv.reader(stream, delimiter=delimiter, skipinitialspace=True)
    try:
        for row in reader:
            if row:
                yield len(row)
            if reader.line_num > SAMPLE_ROWS:
                return
    except csv.Error:
        return


def check_header(header: list[str], limits: ReadLimits) -> list[str]:
    """Trimmed column names, checked.

    Raises:
      TableReadError: too many columns, a blank name or the same name twice.
    """
    names = [name.strip() for name in header]
    if len(names) > limits.max_columns:
        raise TableReadError(
            f"The file has {len(names):,} columns; {limits.max_columns:,} is the most. "
            "Keep the columns you need and try again."
        )
    blank = [i + 1 for i, name in enumerate(names) if not name]
    if len(names) > len(blank) > len(names) / 2:
        raise TableReadError(
            f"The first row names {len(names) - len(blank)} of {len(names):,} columns, as where a "
            "title stands above the header. Delete the rows above the header and try again."
        )
    if blank:
        raise TableReadError(
            f"Column {blank[0]} has no name in the header. Give every column a name, or remove it."
        )
    if any("\0" in name for name in names):
        raise TableReadError("The header holds NUL characters. Give every column a plain name.")
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise TableReadError(
            f"The header names '{twice[0]}' more than once. Give every column its own name."
        )
    return names


def header_doubts(header: list[str]) -> list[str]:
    """A sentence where the names look like values; none otherwise."""
    numeric = sum(_is_numeric(name) for name in header)
    if numeric * 2 > len(header):
        return [
            "The first line is taken as the header, but it looks like values. "
            "If the file has no header, add one."
        ]
    return []


def _is_numeric(name: str) -> bool:
    try:
        float(name.replace(",", "."))
    except ValueError:
        return False
    return True


def tangled_quotes(lines: BinaryIO) -> bool:
    """Whether quotes might have swallowed line ends, which only a slower strict scan can tell."""
    # some line with an odd number of quotes: a value goes on in the next
    return any(line.count(b'"') % 2 for line in lines)


def scan(stream: BinaryIO, header: list[str], delimiter: str, *, spaced: bool = False) -> None:
    """Walk every record strictly and raise on the first that is ragged or badly quoted.

    Args:
      stream: UTF-8, at its first line.
      header: column names.
      delimiter: of cells.
      spaced: whether quotes follow a space.

    Raises:
      TableReadError: which line, and what is wrong with it.
    """
    start = 1
    with _records(stream, delimiter, spaced) as reader:
        try:
            for row in reader:
                if row and len(row) != len(header):
                    raise _ragged(start, len(row), len(header), delimiter)
                start = reader.line_num + 1
        except csv.Error as error:
            raise _scan_error(start, error) from None


def _ragged(line: int, width: int, header_width: int, delimiter: str) -> TableReadError:
    values = "value" if width == 1 else "values"
    if line <= TITLE_LINES and width > header_width:
        return TableReadError(
            f"Line {line} has {width} {values} where the first has {header_width} (delimiter: "
            f"{NAMES[delimiter]}). If a title stands above the header, delete the lines above the "
            "header; else fix that line, and put quotes around values that hold the delimiter."
        )
    return TableReadError(
        f"Line {line} has {width} {values} where the header has {header_width} (delimiter: "
        f"{NAMES[delimiter]}). Fix that line; put quotes around values that hold the delimiter."
    )


def _scan_error(line: int, error: csv.Error) -> TableReadError:
    if "limit" in str(error):
        return TableReadError(
            f"Line {line} begins a value longer than {csv.field_size_limit():,} characters, most "
            "likely a quote that is never closed. Close it and try again."
        )
    if "unexpected end" in str(error):
        return TableReadError(
            f'Line {line} opens a quote (") that is never closed. Close it and try again.'
        )
    return TableReadError(
        f'Line {line} has text after a closing quote ("). Double the quotes inside a quoted value, '
        "or close the one left open on an earlier line."
    )


def _read_arrow(data: bytes, header: list[str], delimiter: str, header_lines: int) -> pa.Table:
    """All cells as text, each column with its own dictionary."""
    text = pa.dictionary(pa.int32(), pa.string())
    try:
        options = arrow_options(len(header), delimiter, header_lines, text)
        return arrow_csv.read_csv(pa.BufferReader(data), **options)
    except pa.ArrowInvalid:
        pass  # its message quotes the row; the strict scan below finds the line without quoting it
    scan(io.BytesIO(data), header, delimiter)
    raise TableReadError(UNSPLIT)


def arrow_options(
    width: int, delimiter: str, header_lines: int, text: pa.DataType
) -> dict[str, Any]:
    """How arrow is to split text into cells: columns named by position, all of one type.

    Args:
      width: number of columns.
      delimiter: of cells.
      header_lines: lines that are skipped; lines, not records, because it may hold line breaks.
      text: type of the columns.
    """
    names = [str(i) for i in range(width)]
    return {
        "read_options": arrow_csv.ReadOptions(
            column_names=names, skip_rows=header_lines, block_size=BLOCK_BYTES
        ),
        "parse_options": arrow_csv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
        "convert_options": arrow_csv.ConvertOptions(
            column_types=dict.fromkeys(names, text), strings_can_be_null=False
        ),
    }


def _read_spaced(data: bytes, width: int, delimiter: str) -> pa.Table:
    """The same for files that put a space before a quoted value, which arrow does not know."""
    frame = pd.read_csv(io.BytesIO(data), **spaced_options(width, delimiter))
    return pa.Table.from_pandas(frame, preserve_index=False)


def spaced_options(width: int, delimiter: str) -> dict[str, Any]:
    """How pandas is to split such a file into cells of text.

    Args:
      width: number of columns, which are named by position.
      delimiter: of cells.
    """
    return {
        "sep": delimiter,
        "header": 0,
        "names": [str(i) for i in range(width)],
        "index_col": False,
        "dtype": "str",
        "na_filter": False,
        "skipinitialspace": True,
        "on_bad_lines": "error",
    }


def frame_of_cells(
    table: pa.Table, header: list[str], declared: DeclaredWords | None
) -> tuple[pd.DataFrame, dict[str, Form], list[str]]:
    """Typed frame of a table of text, how columns are written, and warnings.

    Args:
      table: of cells.
      header: column names.
      declared: see `DeclaredWords`.
    """
    cells: dict[str, Distinct] = {}
    for name in header:
        cells[name] = distinct(table.column(0), words_that_stay(declared, name))
        table = table.remove_column(0)  # frees each column once it is taken apart
    plain = {name: plain_spelling(column) for name, column in cells.items()}
    decimal, warnings = decimal_mark({name: column for name, (column, _) in plain.items()})
    warnings += marker_doubts({name: column.markers for name, column in cells.items()})
    columns, forms = {}, {}
    for name in header:
        columns[name], forms[name], doubts = typed_as_written(
            cells.pop(name), name, decimal, plain.pop(name)
        )
        warnings += doubts
    return pd.DataFrame(columns, copy=False), forms, warnings
