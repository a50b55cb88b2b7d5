"""Any table file to a frame: CSV, TSV, Parquet, Excel, plain or compressed.

The format is told from the content, not the name, so a renamed file is either read rightly or
refused with a reason. Dtypes are those of `core.table.io.cells.typed`: integers stay integers
(`Int64` when some are absent), text is `str`, absent values are never invented.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import zipfile
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import BinaryIO

import pandas as pd

from core.table.form import FileForm
from core.table.io.cells import DeclaredWords, ReadLimits, TableReadError, too_big
from core.table.io.delimited import Delimited, frame_of_cells, split_text
from core.table.io.parquet import PARQUET_MAGIC, read_parquet
from core.table.io.workbook import read_workbook

__all__ = ["ReadLimits", "ReadResult", "TableReadError", "no_values", "read_table"]

ZIP, EMPTY_ZIP = b"PK\x03\x04", b"PK\x05\x06"
OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
OPENERS: dict[bytes, tuple[str, Callable[[BinaryIO], BinaryIO]]] = {
    b"\x1f\x8b": ("gzip", lambda stream: gzip.GzipFile(fileobj=stream)),  # type: ignore[dict-item,return-value]
    b"BZh": ("bzip2", lambda stream: bz2.BZ2File(stream)),  # type: ignore[dict-item,return-value]
    b"\xfd7zXZ\x00": ("xz", lambda stream: lzma.LZMAFile(stream)),  # type: ignore[dict-item,return-value]
}
REFUSED = {
    b"%PDF": "a PDF document",
    b"\x89PNG": "a picture",
    b"\xff\xd8\xff": "a picture",
    b"GIF8": "a picture",
    b"SQLite format 3": "an SQLite database",
    b"\x7fELF": "a program",
    b"7z\xbc\xaf": "a 7z archive",
    b"Rar!": "a RAR archive",
    b"\x28\xb5\x2f\xfd": "a Zstandard archive",
    b"ARROW1": "an Arrow file",
}
MARKUP = (b"<!doctype", b"<html", b"<?xml", b"{", b"[{")
EXCEL_NAMES = (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods")
PACKED_NAMES: dict[str, bytes | tuple[bytes, ...]] = {
    ".gz": b"\x1f\x8b",
    ".bz2": b"BZh",
    ".xz": b"\xfd7zXZ\x00",
    ".zip": (ZIP, EMPTY_ZIP),
}
CHUNK = 1 << 22
LONGEST_LINE = 1 << 24  # bytes; the splitter takes no longer record
DAMAGE = (  # all that zipfile raises on damaged or unsupported archives
    zipfile.BadZipFile,
    EOFError,
    OSError,
    ValueError,
    RuntimeError,
    zlib.error,
    lzma.LZMAError,
)
ADVICE = "Choose a CSV, TSV, Parquet or Excel file."


@dataclass(frozen=True)
class ReadResult:
    """A table and how it was read.

    Attributes:
      frame: n rows, unique non-blank string names.
      encoding: of text formats, else None.
      warnings: what was decided in doubt, one plain sentence each.
      form: how the file is written, so that synthetic rows can be written alike.
    """

    frame: pd.DataFrame
    encoding: str | None = None
    warnings: tuple[str, ...] = ()
    form: FileForm = field(default_factory=FileForm)


def read_table(
    source: Path | BinaryIO,
    name: str | None = None,
    *,
    limits: ReadLimits | None = None,
    declared: DeclaredWords | None = None,
) -> ReadResult:
    """Read one table.

    Args:
      source: a path, or a binary stream from its current position.
      name: the file's name when the stream has none; only its ending is used, to name a mismatch
        and to prefer tabs in `.tsv`.
      limits: what is too big; see `ReadLimits`.
      declared: see `DeclaredWords`; None where no schema exists yet.

    Returns:
      The frame with at least one row and one column.

    Raises:
      TableReadError: one plain line with what is wrong and what to do. Headers may be quoted,
        values never are.
    """
    limits = limits or ReadLimits()
    label = (name or getattr(source, "name", None) or str(source)).lower()
    data = _load(source, limits)
    if not data:
        raise TableReadError("The file is empty. Choose a file with a header and rows.")
    packed = next((end for end in PACKED_NAMES if label.endswith(end)), None)
    if packed is not None:
        if not data.startswith(PACKED_NAMES[packed]):
            raise TableReadError(
                f"The file is named {packed} but is not compressed that way, or it is damaged. "
                "Compress it again, or choose the plain file."
            )
        label = label.removesuffix(packed)
    data, label = _unpack(data, label, limits)
    result = _read_binary(data, limits, declared)
    if result is None:
        _refuse(data, label)
        text = split_text(data, limits=limits, tabbed=label.endswith((".tsv", ".tab")))
        del data  # the cells are a copy: typing them beside the bytes would double the peak
        result = _typed(text, declared)
    return _finish(result)


def _load(source: Path | BinaryIO, limits: ReadLimits) -> bytes:
    """The file's bytes, refused before they are read when too many."""
    if not isinstance(source, Path):
        return _drain(source, limits)
    try:
        if source.is_dir():
            raise TableReadError("This is a folder. Choose one file in it.")
        if source.stat().st_size > limits.max_bytes:
            raise too_big(limits)
        with source.open("rb") as stream:
            return _drain(stream, limits)
    except FileNotFoundError:
        raise TableReadError("There is no such file. Check the path.") from None
    except OSError as error:
        raise TableReadError(
            f"The file could not be opened ({error.strerror}). Check that you may read it."
        ) from None


def _drain(stream: BinaryIO, limits: ReadLimits) -> bytes:
    """All that is left in a stream, at most the limit: what stops a decompression bomb.

    A text without a line end is refused as soon as that is clear, however long it goes on.
    """
    content = io.BytesIO()  # gives its bytes away without a copy
    unbroken = True
    while chunk := stream.read(CHUNK):
        unbroken = unbroken and b"\n" not in chunk and b"\r" not in chunk
        size = content.tell() + content.write(chunk)
        if size > limits.max_bytes:
            raise too_big(limits)
        if unbroken and size > LONGEST_LINE and not _is_binary(content):
            raise TableReadError(
                f"The file's first {LONGEST_LINE // 1024**2} MB are one line, so it is not a table "
                "with a row on each line. Choose a CSV file with line ends, or a Parquet file."
            )
    return content.getvalue()


def _is_binary(content: io.BytesIO) -> bool:
    """Whether what has been read so far begins as a format that has no lines."""
    with content.getbuffer() as seen:
        return bytes(seen[:8]).startswith((PARQUET_MAGIC, ZIP, EMPTY_ZIP, OLE, *OPENERS))


def _unpack(data: bytes, label: str, limits: ReadLimits) -> tuple[bytes, str]:
    """The content of a compressed single file; the data itself when it is not compressed."""
    for magic, (method, opener) in OPENERS.items():
        if data.startswith(magic):
            try:
                with opener(io.BytesIO(data)) as stream:
                    inner = _drain(stream, limits)
            except (OSError, EOFError, zlib.error, lzma.LZMAError):
                raise TableReadError(
                    f"The {method} file is damaged or cut short. Compress or download it again."
                ) from None
            return _unpacked(inner, label)
    if data.startswith((ZIP, EMPTY_ZIP)):
        return _unzip(data, label, limits)
    return data, label


def _unpacked(data: bytes, label: str) -> tuple[bytes, str]:
    if data.startswith(tuple(OPENERS)):
        raise TableReadError(
            "The compressed file holds another compressed file. Unpack it once and try again."
        )
    return data, label


def _unzip(data: bytes, label: str, limits: ReadLimits) -> tuple[bytes, str]:
    """The one file of a zip; workbooks, which are zips too, pass as they are."""
    damaged = TableReadError("The zip file is damaged. Compress or download it again.")
    try:
        archive = zipfile.ZipFile(io.BytesIO(data))
    except DAMAGE:
        if label.endswith(EXCEL_NAMES):
            raise TableReadError(
                "The Excel file is damaged. Open it in a spreadsheet and save it again."
            ) from None
        raise damaged from None
    names = archive.namelist()
    if "[Content_Types].xml" in names or "META-INF/manifest.xml" in names:
        if sum(entry.file_size for entry in archive.infolist()) > limits.max_bytes:
            raise too_big(limits)
        return data, label
    files = [
        entry
        for entry in archive.infolist()
        if not entry.is_dir()
        and not entry.filename.startswith("__MACOSX/")
        and not entry.filename.endswith((".DS_Store", "Thumbs.db"))
    ]
    if len(files) != 1:
        raise TableReadError(
            f"The zip holds {len(files)} files. Put exactly one table in it, or choose one of them."
        )
    if files[0].flag_bits & 0x1:
        raise TableReadError("The zip is protected by a password. Unpack it and try again.")
    try:
        with archive.open(files[0]) as stream:
            inner = _drain(stream, limits)  # type: ignore[arg-type]
    except TableReadError:  # too big; it is a ValueError, which a damaged directory raises too
        raise
    except DAMAGE:
        raise damaged from None
    return _unpacked(inner, files[0].filename.lower())


def _read_binary(
    data: bytes, limits: ReadLimits, declared: DeclaredWords | None
) -> ReadResult | None:
    """Parquet and workbooks by what the content is; None for what should be text.

    Args:
      data: the file.
      limits: what is too big.
      declared: see `DeclaredWords`; Parquet has cells without a value and no words for them.
    """
    if data.startswith(PARQUET_MAGIC):
        frame, forms, warnings = read_parquet(data, limits=limits)
        return ReadResult(frame, warnings=warnings, form=FileForm.of(forms))
    if data.startswith((ZIP, OLE)):
        frame, forms, warnings = read_workbook(data, limits=limits, declared=declared)
        return ReadResult(frame, warnings=warnings, form=FileForm.of(forms))
    return None


def _typed(text: Delimited, declared: DeclaredWords | None) -> ReadResult:
    """Split text as a typed table."""
    frame, forms, doubts = frame_of_cells(text.table, text.header, declared)
    return ReadResult(
        frame=frame,
        encoding=text.encoding,
        warnings=(*text.warnings, *doubts),
        form=FileForm.of(forms, text.delimiter),
    )


def _refuse(data: bytes, label: str) -> None:
    """Raise for content that is no text table, naming it where it is known."""
    for magic, what in REFUSED.items():
        if data.startswith(magic):
            raise TableReadError(f"This is {what}, not a table. {ADVICE}")
    ending = next((end for end in (*EXCEL_NAMES, ".parquet") if label.endswith(end)), None)
    if ending is not None:
        kind = "a Parquet" if ending == ".parquet" else "an Excel or OpenDocument"
        raise TableReadError(
            f"The file is named {ending} but is not {kind} file, or it is damaged. "
            "Save it again in that format, or rename it if it is a CSV."
        )
    if data[:64].lstrip().lower().startswith(MARKUP):
        raise TableReadError(f"This is a web page, XML or JSON document, not a table. {ADVICE}")


def _finish(result: ReadResult) -> ReadResult:
    """Refuse a table without rows; name columns that hold nothing."""
    if len(result.frame) == 0:
        raise TableReadError("The file has a header but no rows. Choose a file with rows.")
    empty = [str(c) for c in result.frame.columns if result.frame[c].isna().all()]
    return replace(result, warnings=(*result.warnings, *no_values(empty)))


def no_values(empty: Sequence[str]) -> list[str]:
    """A sentence that names columns which hold nothing; none where there are none."""
    named = ", ".join(f"'{name}'" for name in empty)
    return [f"No value is present in {named}."] if empty else []
