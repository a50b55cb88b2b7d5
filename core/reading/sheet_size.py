"""How large a sheet of an xlsx workbook would become, told from its XML before it is opened.

The reader makes room for every cell from the first to the last one, filled or not: a single cell in
XFD1048576 asks for half a terabyte. So references are looked at first, as the XML is unpacked.
"""

from __future__ import annotations

import posixpath
import re
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO
from xml.etree import ElementTree

from core.reading.cells import ReadLimits, TableReadError, too_big

LAST_ROW, LAST_COLUMN = 1_048_576, 16_384  # of any sheet, by the format
CELL_BYTES = 32  # of a cell in the reader, filled or not
CHUNK = 1 << 22
ROW = re.compile(rb"<(?:\w+:)?row[\s>/]")
REFERENCE = re.compile(rb"""\sr\s*=\s*["']([A-Za-z]{0,32})(\d{0,32})""")
ERROR = re.compile(rb"""<(?:\w+:)?c\s[^>]*\bt=["']e["']""")
RELATION = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id"
SMALL_PART = 1 << 24  # bytes; lists of sheets are never larger


def check_sheet(path: Path, name: str, limits: ReadLimits) -> int:
    """Refuse a sheet of an xlsx file that would not fit, before the reader makes room for it.

    Returns how many cells hold an error such as #REF!, which the reader takes for empty. What is no
    such file, or damaged, passes: the reader will say what is wrong with it.
    """
    try:
        archive = zipfile.ZipFile(path)
        with archive, archive.open(_part(archive, name)) as stream:
            rows, columns, errors = _extent(stream, limits)  # type: ignore[arg-type]
    except TableReadError:
        raise
    except (zipfile.BadZipFile, KeyError, OSError, EOFError, ValueError, RuntimeError):
        return 0  # damaged in a way that the reader will find too
    except (ElementTree.ParseError, StopIteration, zlib.error):
        return 0
    if rows > LAST_ROW or columns > LAST_COLUMN:
        raise TableReadError(
            "The sheet has a cell beyond row {last:,} or column XFD, the last that a workbook "
            "can have. Nothing was read. Open it in a spreadsheet and save it again.",
            last=LAST_ROW,
        )
    if rows * columns * CELL_BYTES > limits.max_bytes:
        raise TableReadError(
            "The sheet extends to row {rows:,} and column {columns:,}, too far to be read. "
            "Nothing was read. Delete the cells far from the table, or save it as CSV.",
            rows=rows,
            columns=columns,
        )
    return errors


def _part(archive: zipfile.ZipFile, name: str) -> str:
    roots = (_tree(archive, part) for part in ("xl/workbook.xml", "xl/_rels/workbook.xml.rels"))
    sheets, relations = roots
    wanted = next(
        sheet.get(RELATION)
        for sheet in sheets.iter()
        if sheet.tag.endswith("}sheet") and sheet.get("name") == name
    )
    target = next(one.get("Target") for one in relations if one.get("Id") == wanted)
    return posixpath.normpath(posixpath.join("/xl", target or "")).lstrip("/")


def _tree(archive: zipfile.ZipFile, part: str) -> ElementTree.Element:
    with archive.open(part) as stream:
        text = stream.read(SMALL_PART)
    if b"<!DOCTYPE" in text or b"<!ENTITY" in text:  # no workbook has one; some bombs do
        raise ValueError(part)
    return ElementTree.fromstring(text)


def _extent(stream: BinaryIO, limits: ReadLimits) -> tuple[int, int, int]:
    """The last row and column that a sheet's XML mentions or holds, and its errors."""
    last_row = last_column = held = size = errors = 0
    for text in _pieces(stream):
        size += len(text)
        held += len(ROW.findall(text))
        errors += len(ERROR.findall(text))
        if size > limits.max_bytes:
            raise too_big(limits)
        if held > LAST_ROW:
            break
        references = set(REFERENCE.findall(text))
        last_row = max([last_row, *(int(row) for _, row in references if row)])
        last_column = max([last_column, *(_number(name) for name in {n for n, _ in references})])
    return max(last_row, held), last_column, errors


def _pieces(stream: BinaryIO) -> Iterator[bytes]:
    rest = b""
    while chunk := stream.read(CHUNK):
        chunk = rest + chunk
        cut = chunk.rfind(b"<")
        if cut > 0 and len(chunk) - cut < CHUNK:
            chunk, rest = chunk[:cut], chunk[cut:]
        else:
            rest = b""
        yield chunk
    yield rest


def _number(letters: bytes) -> int:
    """A column's number, from 1.

    >>> _number(b"XFD"), _number(b"")
    (16384, 0)
    """
    number = 0
    for letter in letters.upper():
        number = number * 26 + letter - 64
    return number
