"""Files that are copied before they are read: out of their compression, or from an object store."""

from __future__ import annotations

import bz2
import errno
import gzip
import lzma
import shutil
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, TypeAlias

from core.table.io.cells import ReadLimits, TableReadError, too_big

__all__ = ["EMPTY_ZIP", "PACKED", "ZIP", "Copy", "fetch", "unpack", "unreached", "zipped"]

Copy: TypeAlias = Callable[[IO[bytes]], None]  # writes a file's content to an open one

ZIP, EMPTY_ZIP = b"PK\x03\x04", b"PK\x05\x06"
PACKED: dict[bytes, tuple[str, Callable[[Path], Any]]] = {
    b"\x1f\x8b": ("gzip", gzip.open),
    b"BZh": ("bzip2", bz2.open),
    b"\xfd7zXZ\x00": ("xz", lzma.open),
}
WORKBOOK = ("[Content_Types].xml", "META-INF/manifest.xml")  # what a zip holds that is one
LITTER = (".DS_Store", "Thumbs.db")
CHUNK = 1 << 22
DAMAGE = (  # all that is raised on damaged or unsupported archives
    zipfile.BadZipFile,
    EOFError,
    OSError,
    ValueError,
    RuntimeError,
    zlib.error,
    lzma.LZMAError,
)


def unpack(path: Path, magic: bytes, limits: ReadLimits, copy: IO[bytes]) -> None:
    """Write the content of a compressed file.

    Args:
      path: of it.
      magic: how it begins, one of `PACKED`.
      limits: bytes of the content, which stops a decompression bomb.
      copy: what is written.

    Raises:
      TableReadError: it is damaged, or too large.
    """
    method, opened = PACKED[magic]
    _pour(lambda: opened(path), copy, limits, f"{method} file")


def zipped(path: Path, limits: ReadLimits, *, excel: bool) -> Copy | None:
    """What writes the one file of a zip; None where the zip is a workbook.

    Args:
      path: of the zip.
      limits: bytes of its content.
      excel: whether its name is a workbook's.

    Raises:
      TableReadError: it holds more than one file or none, is locked, damaged or too large.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            entries = archive.infolist()
    except DAMAGE:
        if not excel:
            raise _damaged("zip file") from None
        raise TableReadError(
            "The Excel file is damaged. Open it in a spreadsheet and save it again."
        ) from None
    if any(entry.filename in WORKBOOK for entry in entries):
        if sum(entry.file_size for entry in entries) > limits.max_bytes:
            raise too_big(limits)
        return None
    files = [
        entry
        for entry in entries
        if not entry.is_dir()
        and not entry.filename.startswith("__MACOSX/")
        and not entry.filename.endswith(LITTER)
    ]
    if len(files) != 1:
        raise TableReadError(
            f"The zip holds {len(files)} files. Put exactly one table in it, or choose one of them."
        )
    if files[0].flag_bits & 0x1:
        raise TableReadError("The zip is protected by a password. Unpack it and try again.")

    def copied(copy: IO[bytes]) -> None:
        with zipfile.ZipFile(path) as archive:
            _pour(lambda: archive.open(files[0]), copy, limits, "zip file")

    return copied


def fetch(system: Any, file: str, copy: IO[bytes]) -> None:
    """Write a file of an object store.

    Args:
      system: the store.
      file: in it.
      copy: what is written.

    Raises:
      TableReadError: the store does not give it.
    """
    try:
        with system.open(file, "rb") as there:
            shutil.copyfileobj(there, copy, CHUNK)
    except OSError as error:
        if error.errno == errno.ENOSPC:  # of this machine's disk: not the store's doing
            raise
        raise unreached() from None


def unreached() -> TableReadError:
    """The error for an object store that gives nothing."""
    return TableReadError(
        "The object store could not be reached, or does not let this user in, or there is nothing "
        "at this address. Nothing was read. Check the address, the user and the password."
    )


def _pour(opened: Callable[[], Any], copy: IO[bytes], limits: ReadLimits, what: str) -> None:
    """Write all of a stream.

    Args:
      opened: gives the stream.
      copy: what is written.
      limits: bytes at most.
      what: the stream comes from, for people.
    """
    size = 0
    try:
        with opened() as stream:
            while chunk := stream.read(CHUNK):
                size += len(chunk)
                if size > limits.max_bytes:
                    raise too_big(limits)
                copy.write(chunk)
    except TableReadError:  # a ValueError, which damage raises too
        raise
    except DAMAGE as error:
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EFBIG):
            raise
        raise _damaged(what) from None


def _damaged(what: str) -> TableReadError:
    return TableReadError(f"The {what} is damaged or cut short. Compress or download it again.")
