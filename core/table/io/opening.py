"""An address to a source: whatever lies there, as rows that come in batches."""

from __future__ import annotations

import errno
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import fsspec
import pandas as pd
from fsspec.implementations.local import LocalFileSystem

from core.table.form import FileForm
from core.table.io.address import Address, Allowed
from core.table.io.apart import read_apart
from core.table.io.cells import DeclaredWords, TableReadError
from core.table.io.large_text import LargeText, is_large_text
from core.table.io.parquet import PARQUET_MAGIC
from core.table.io.parquet_parts import ParquetParts
from core.table.io.read import ReadResult
from core.table.io.sources import Source
from core.table.io.sql import EXTRAS, SqlQuery
from core.table.raw_cells import batch_rows

__all__ = ["open_address"]

ENDING = ".parquet"
HIDDEN = ("_", ".")  # how names of files begin that are not parts of a table


def open_address(
    address: Address, allowed: Allowed, declared: DeclaredWords | None = None
) -> Source:
    """The source at an address; of a database nothing is asked yet.

    Args:
      address: where.
      allowed: what may be opened.
      declared: see `DeclaredWords`; None where no schema exists yet.

    Raises:
      TableReadError: it may not be opened, or there is no table.
    """
    allowed.check(address)
    if address.kind == "database":
        assert address.url is not None
        if address.path is not None and not address.path.is_file():
            raise TableReadError("There is no such database. Nothing was read. Check the path.")
        return SqlQuery(address.url, address.query, address.words)
    if address.kind == "store":
        return _stored(address, declared)
    assert address.path is not None
    path = address.path
    if path.is_dir():
        parts = sorted(str(part) for part in path.rglob(f"*{ENDING}") if _is_part(part, path))
        if any(not Allowed.holds(path, Path(part)) for part in parts):
            raise TableReadError("A part of this folder is a link out of it. Nothing was read.")
        for part in parts:  # the folder may be one above the product's own
            allowed.check_own(Path(part))
        return _parts(parts, LocalFileSystem(), address.words, str(path))
    if not path.is_file():
        raise TableReadError("There is no such file. Check the path.")
    if _is_parquet(path):
        return ParquetParts([str(path)], LocalFileSystem(), address.words)
    return _file(path, address.words, declared)


@dataclass
class WholeFile:
    """A `Source`: a file that is read at once, in a process of its own.

    Attributes:
      path: of the file.
      words: where it lies, for people.
      declared: see `DeclaredWords`.
    """

    path: Path
    words: str
    declared: DeclaredWords | None = None

    def __post_init__(self) -> None:
        self._result: ReadResult | None = None

    @property
    def form(self) -> FileForm:
        """See `Source.form`."""
        return FileForm() if self._result is None else self._result.form

    @property
    def doubts(self) -> tuple[str, ...]:
        """See `Source.doubts`."""
        return () if self._result is None else self._result.warnings

    def prepare(self, folder: Path) -> None:
        """See `Source.prepare`."""
        self._result = read_apart(self.path, declared=self.declared)

    def batches(self) -> Iterator[pd.DataFrame]:
        """See `Source.batches`."""
        assert self._result is not None, "prepare() comes first"
        frame = self._result.frame
        size = batch_rows(frame.shape[1])
        for first in range(0, len(frame), size):
            yield frame.iloc[first : first + size]


@dataclass
class FetchedFile:
    """A `Source`: a file of an object store that is fetched before it is read.

    Attributes:
      system: the store.
      file: in it.
      words: where it lies, for people.
      declared: see `DeclaredWords`.
    """

    system: Any = field(repr=False)
    file: str
    words: str
    declared: DeclaredWords | None = None

    def __post_init__(self) -> None:
        self._file: Source | None = None

    @property
    def form(self) -> FileForm:
        """See `Source.form`."""
        return FileForm() if self._file is None else self._file.form

    @property
    def doubts(self) -> tuple[str, ...]:
        """See `Source.doubts`."""
        return () if self._file is None else self._file.doubts

    def prepare(self, folder: Path) -> None:
        """See `Source.prepare`."""
        here = folder / self.file.rpartition("/")[2]
        try:
            with self.system.open(self.file, "rb") as there, here.open("wb") as copy:
                shutil.copyfileobj(there, copy, 1 << 22)
        except OSError as error:
            if error.errno == errno.ENOSPC:  # of this machine's disk: not the store's doing
                raise
            raise _unreached() from None
        self._file = _file(here, self.words, self.declared)
        self._file.prepare(folder)

    def batches(self) -> Iterator[pd.DataFrame]:
        """See `Source.batches`."""
        assert self._file is not None, "prepare() comes first"
        return self._file.batches()


def _file(path: Path, words: str, declared: DeclaredWords | None) -> Source:
    """A file that is no Parquet: in batches where it is large and can be.

    Args:
      path: of the file.
      words: where it lies, for people.
      declared: see `DeclaredWords`.
    """
    kind = LargeText if is_large_text(path) else WholeFile
    return kind(path, words, declared)


def _stored(address: Address, declared: DeclaredWords | None) -> Source:
    """What lies in an object store: one file, or the Parquet files below a prefix."""
    system, where = _file_system(address.store, address.options)
    try:
        found = sorted(system.find(where))
    except Exception:  # each store's library raises its own, and may quote what it was given
        raise _unreached() from None
    if found == [where] and not where.endswith(ENDING):
        return FetchedFile(system, where, address.words, declared)
    parts = [one for one in found if one.endswith(ENDING) and not _hidden(one, where)]
    return _parts(parts, system, address.words, where)


def _file_system(store: str, options: Mapping[str, Any]) -> tuple[Any, str]:
    """The store's file system and the place in it; it is not kept, since it knows the password."""
    try:
        system, where = fsspec.core.url_to_fs(store, skip_instance_cache=True, **options)
    except ImportError:
        raise TableReadError(
            f"This kind of object store needs its driver. Nothing was read. Install it with "
            f"`{EXTRAS}`."
        ) from None
    except Exception:
        raise _unreached() from None
    return system, str(where)


def _parts(parts: list[str], system: Any, words: str, where: str) -> ParquetParts:
    if not parts:
        raise TableReadError("There is no Parquet file here. Nothing was read. Check the address.")
    if any("=" in folder for part in parts for folder in part.removeprefix(where).split("/")[:-1]):
        raise TableReadError(
            "Folders here are named after values, such as year=2024, and these are not in the "
            "files. Nothing was read. Write the parts with all their columns."
        )
    return ParquetParts(parts, system, words)


def _is_part(part: Path, folder: Path) -> bool:
    return part.is_file() and not _hidden(str(part), str(folder))


def _hidden(part: str, where: str) -> bool:
    inner = part.removeprefix(where).strip("/").split("/")
    return any(name.startswith(HIDDEN) for name in inner)


def _is_parquet(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(len(PARQUET_MAGIC)) == PARQUET_MAGIC
    except OSError as error:
        raise TableReadError(
            f"The file could not be opened ({error.strerror}). Check that you may read it."
        ) from None


def _unreached() -> TableReadError:
    return TableReadError(
        "The object store could not be reached, or does not let this user in, or there is nothing "
        "at this address. Nothing was read. Check the address, the user and the password."
    )
