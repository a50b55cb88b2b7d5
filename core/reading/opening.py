"""A path or an address to a source: whatever lies there, as rows that come in batches.

The format is told from the content, not the name.
"""

from __future__ import annotations

import bz2
import errno
import gzip
import lzma
import tempfile
import zipfile
import zlib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import fsspec

from core.message import Message
from core.reading.address import EXTRAS, Address, Allowed
from core.reading.cells import ReadLimits, TableReadError, too_big
from core.reading.delimited import DelimitedFile
from core.reading.parquet import PARQUET_MAGIC, ParquetParts
from core.reading.raw_cells import Source
from core.reading.workbook import Workbook
from core.schema.form import FileForm

UNREACHED = (
    "Nothing could be read at this address: the object store cannot be reached, refuses this user, "
    "or holds nothing there. Check the address, the user and the password."
)
ENDING = ".parquet"
HIDDEN = ("_", ".")  # how names of files begin that are not parts of a table
OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
PICTURE = Message("a picture")
REFUSED = {
    b"%PDF": Message("a PDF document"),
    b"\x89PNG": PICTURE,
    b"\xff\xd8\xff": PICTURE,
    b"GIF8": PICTURE,
    b"SQLite format 3": Message("an SQLite database"),
    b"\x7fELF": Message("a program"),
    b"7z\xbc\xaf": Message("a 7z archive"),
    b"Rar!": Message("a RAR archive"),
    b"\x28\xb5\x2f\xfd": Message("a Zstandard archive"),
    b"ARROW1": Message("an Arrow file"),
}
LONGEST_MAGIC = 16  # bytes
EXCEL_NAMES = (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods")
ZIPS = (b"PK\x03\x04", b"PK\x05\x06")
PACKED: dict[str, tuple[str, tuple[bytes, ...], Any]] = {  # by ending: method, magic, opener
    ".gz": ("gzip", (b"\x1f\x8b",), gzip.open),
    ".bz2": ("bzip2", (b"BZh",), bz2.open),
    ".xz": ("xz", (b"\xfd7zXZ\x00",), lzma.open),
    ".zip": ("zip", ZIPS, None),
}
WORKBOOK = ("[Content_Types].xml", "META-INF/manifest.xml")  # what a zip that is one holds
LITTER = (".DS_Store", "Thumbs.db")
CHUNK = 1 << 22
DAMAGE = (  # all that is raised on damaged or unsupported archives
    zipfile.BadZipFile, EOFError, OSError, ValueError, RuntimeError, zlib.error, lzma.LZMAError,
)  # fmt: skip


def open_path(
    path: Path,
    folder: Path,
    name: str = "",
    *,
    limits: ReadLimits | None = None,
    declared: FileForm | None = None,
) -> Source:
    """The source that a file is, by its content.

    `limits` are of bytes that it may be unpacked to and a workbook may take, of a workbook's rows,
    and of columns; what is read in batches may have any number of rows and bytes.
    """
    limits, label = limits or ReadLimits(), (name or path.name).lower()
    begins, label = _beginning(path, label)
    packed = _content(path, label, begins, limits)
    if packed is not None:
        content, refusal, label = packed
        path = _copied(content, folder, refusal, limits)
        begins, label = _beginning(path, label)
        if _content(path, label, begins, limits) is not None:
            raise TableReadError(
                "The compressed file holds another compressed file. Unpack it once and try again."
            )
    if begins.startswith(PARQUET_MAGIC):
        return ParquetParts([str(path)])
    if begins.startswith((*ZIPS, OLE)):
        return Workbook(path, limits)
    _refuse(begins, label)
    return DelimitedFile(path, declared, label.endswith((".tsv", ".tab")), limits)


def _copied(
    content: Callable[[], Any], folder: Path, refusal: str, limits: ReadLimits | None = None
) -> Path:
    """A file of what can be read only once, within limits where that may be a bomb."""
    with tempfile.NamedTemporaryFile(dir=folder, delete=False) as file:
        try:
            with content() as stream:
                while chunk := stream.read(CHUNK):
                    if limits and file.tell() + len(chunk) > limits.max_bytes:
                        raise too_big(limits)
                    file.write(chunk)
        except TableReadError:  # a ValueError, which damage raises too
            raise
        except DAMAGE as error:
            if getattr(error, "errno", None) in (errno.ENOSPC, errno.EFBIG):
                raise  # of this machine's disk: not the file's doing
            raise TableReadError(refusal) from None
    return Path(file.name)


def _beginning(path: Path, label: str) -> tuple[bytes, str]:
    """A file's first bytes, and its name without the ending of a compression, which they bear."""
    try:
        if path.is_dir():
            raise TableReadError("This is a folder. Choose one file in it.")
        with path.open("rb") as stream:
            begins = stream.read(LONGEST_MAGIC)
    except FileNotFoundError:
        raise TableReadError("There is no such file. Check the path.") from None
    except OSError as error:
        raise TableReadError(
            "The file could not be opened ({reason}). Check that you may read it.",
            reason=error.strerror,
        ) from None
    if not begins:
        raise TableReadError("The file is empty. Choose a file with a header and rows.")
    packed = next((end for end in PACKED if label.endswith(end)), "")
    if packed and not begins.startswith(PACKED[packed][1]):
        raise TableReadError(
            "The file's name ends in {ending}, but it is not compressed that way, or it is "
            "damaged. Compress it again, or choose the uncompressed file.",
            ending=packed,
        )
    return begins, label.removesuffix(packed)


def _content(
    path: Path, label: str, begins: bytes, limits: ReadLimits
) -> tuple[Callable[[], Any], str, str] | None:
    """What is compressed in a file, what is said where it is damaged, and its name; else None."""
    for method, magic, opened in PACKED.values():
        if opened and begins.startswith(magic):
            return partial(opened, path), _damaged(method), label
    if not begins.startswith(ZIPS):
        return None
    try:
        archive = zipfile.ZipFile(path)
        entries = archive.infolist()
    except DAMAGE:
        if not label.endswith(EXCEL_NAMES):
            raise TableReadError(_damaged("zip")) from None
        raise TableReadError(
            "The Excel file is damaged. Open it in a spreadsheet and save it again."
        ) from None
    if any(entry.filename in WORKBOOK for entry in entries):
        if sum(entry.file_size for entry in entries) > limits.max_bytes:
            raise too_big(limits)
        return None
    files = [
        one
        for one in entries
        if not one.is_dir()
        and not one.filename.startswith("__MACOSX/")
        and not one.filename.endswith(LITTER)
    ]
    if len(files) != 1:
        raise TableReadError(
            "The zip file holds {n} files. Put exactly one table in it, or choose one of them.",
            n=len(files),
        )
    if files[0].flag_bits & 0x1:
        raise TableReadError("The zip file is protected by a password. Unpack it and try again.")
    return partial(archive.open, files[0]), _damaged("zip"), files[0].filename.lower()


def _damaged(method: str) -> Message:
    return Message(
        "The {method} file is damaged or incomplete. Compress or download it again.", method=method
    )


def _refuse(begins: bytes, label: str) -> None:
    for magic, what in REFUSED.items():
        if begins.startswith(magic):
            raise TableReadError(
                "This is {what}, not a table. Choose a CSV, TSV, Parquet or Excel file.", what=what
            )
    ending = next((end for end in (*EXCEL_NAMES, ENDING) if label.endswith(end)), None)
    if ending is not None:
        raise TableReadError(
            "The file's name ends in {ending}, but it is no such file, or it is damaged. Save "
            "it again in that format, or rename it if it is a CSV file.",
            ending=ending,
        )


def open_address(
    address: Address,
    allowed: Allowed,
    folder: Path,
    declared: FileForm | None = None,
    *,
    limits: ReadLimits | None = None,
) -> Source:
    """The source at an address."""
    allowed.check(address)
    if address.kind == "database":
        from core.reading.sql import query_rows  # see `Address`

        assert address.url is not None
        if address.path is not None and not address.path.is_file():
            raise TableReadError("There is no such database. Nothing was read. Check the path.")
        return query_rows(address.url, address.query, folder)
    if address.kind == "store":
        system, where, found = _stored(address)
        if found == [where] and not where.endswith(ENDING):
            content = _copied(partial(system.open, where, "rb"), folder, UNREACHED)
            name = where.rpartition("/")[2]
            return open_path(content, folder, name, limits=limits, declared=declared)
        return ParquetParts(_parts(found, where), system)
    assert address.path is not None
    path = address.path
    if not path.is_dir():
        return open_path(path, folder, limits=limits, declared=declared)
    found = sorted(str(part) for part in path.rglob(f"*{ENDING}") if part.is_file())
    parts = _parts(found, str(path))
    if any(not Allowed.holds(path, Path(part)) for part in parts):
        raise TableReadError("A file here is a link out of this folder. Nothing was read.")
    for part in parts:  # the folder may be one above the product's own
        allowed.check_own(Path(part))
    return ParquetParts(parts)


def _stored(address: Address) -> tuple[Any, str, list[str]]:
    try:  # the file system is not kept, since it knows the password
        system, where = fsspec.core.url_to_fs(
            address.store, skip_instance_cache=True, **address.options
        )
        return system, where, sorted(system.find(where))
    except ImportError:
        raise TableReadError(
            "This kind of object store needs a driver. Nothing was read. Install it with "
            "`{command}`.",
            command=EXTRAS,
        ) from None
    except Exception:  # each store's library raises its own, and may quote what it was given
        raise TableReadError(UNREACHED) from None


def _parts(found: list[str], where: str) -> list[str]:
    """The Parquet files among those found below a folder or a prefix; hidden ones are no parts."""
    inner = {one: one.removeprefix(where).strip("/").split("/") for one in found}
    parts = [
        one
        for one, names in inner.items()
        if one.endswith(ENDING) and not any(name.startswith(HIDDEN) for name in names)
    ]
    if not parts:
        raise TableReadError("There is no Parquet file here. Nothing was read. Check the address.")
    if any("=" in folder for part in parts for folder in inner[part][:-1]):
        raise TableReadError(
            "Folders here are named after values, such as year=2024, which are not in the files "
            "themselves. Nothing was read. Write the parts with all their columns."
        )
    return parts
