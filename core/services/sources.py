"""Sources by address: opened under what this server allows, brought in or read at once."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pandas as pd
import pyarrow as pa

from core.runs.storage.records import TableRecord, is_large
from core.runs.storage.row_batches import row_count
from core.runs.storage.store import RunStore
from core.runs.storage.workspace import Workspace, private_folder
from core.services.imports import Progress, import_source
from core.table.io.address import Address, Allowed
from core.table.io.cells import DeclaredWords
from core.table.io.opening import open_address
from core.table.io.read import ReadResult

__all__ = ["import_address", "is_large_parquet", "read_address"]


def import_address(
    store: RunStore,
    text: str,
    *,
    query: str = "",
    password: str = "",
    signed_in: bool = False,
    owner: str = "",
    progress: Progress = lambda rows: None,
) -> TableRecord:
    """Bring in the table at an address; the password is neither stored nor said.

    Args:
      store: where.
      text: a path, or the address of a database or an object store.
      query: of a database.
      password: in place of one in the address.
      signed_in: whether people sign in to this server, see `Allowed.here`.
      owner: address of who brings it in, "" where nobody signs in.
      progress: hears how many rows have passed.

    Raises:
      TableReadError, RunStoreError: one plain line; nothing was kept.
    """
    address = Address.of(text, query=query, password=password)
    allowed = Allowed.here(signed_in=signed_in, forbidden=store.workspace.home)
    source = open_address(address, allowed)
    return import_source(store, source, name=address.name, owner=owner, progress=progress)


def read_address(
    text: str, *, query: str = "", password: str = "", declared: DeclaredWords | None = None
) -> ReadResult:
    """All rows at an address, in memory, for whoever is at this machine.

    Args:
      text: a path, or the address of a database or an object store.
      query: of a database.
      password: in place of one in the address.
      declared: see `DeclaredWords`; None where no schema exists yet.

    Raises:
      TableReadError: one plain line.
    """
    home = Workspace.default_home()
    address = Address.of(text, query=query, password=password)
    source = open_address(address, Allowed.here(signed_in=False, forbidden=home), declared)
    with tempfile.TemporaryDirectory(prefix="source-", dir=private_folder(home)) as fetched:
        source.prepare(Path(fetched))
        frame = pd.concat(list(source.batches()), ignore_index=True)
    return ReadResult(frame, warnings=source.doubts, form=source.form)


def is_large_parquet(path: Path) -> bool:
    """Whether a file is Parquet with more rows than are read at once."""
    try:
        return is_large(*row_count(path))
    except (pa.ArrowException, OSError):
        return False
