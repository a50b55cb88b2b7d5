"""Storage: the artefacts of a workspace's tables and runs, and its secrets.

That is the workspace's folder, or an object store that FACSIMILE_STORAGE names.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import time
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit

from core.runs.errors import StorageError
from core.runs.extensions import cluster_module
from core.runs.storage.artefacts import ArtefactStore, LocalArtefacts
from core.runs.workspace import Workspace, private_folder
from core.writing.whole_files import replacing

STORAGE = "FACSIMILE_STORAGE"
FRESH_SECONDS = 600.0


class Storage(Protocol):
    """Where artefacts lie. Ids are plain: the stores that ask have looked at them."""

    def table(self, table_id: str) -> ArtefactStore:
        """A table's rows, and what is kept beside them."""

    def run(self, run_id: str) -> ArtefactStore:
        """What a run keeps."""

    def read_secret(self, name: str) -> bytes | None:
        """A secret that all machines of the workspace share; None where there is none."""

    def create_secret(self, name: str, content: bytes) -> bytes:
        """Store a secret unless there is one of that name; the one that is stored."""

    def write_secret(self, name: str, content: bytes) -> None:
        """Replace a secret, whole or not at all."""


@dataclass(frozen=True)
class LocalStorage:
    """`Storage` in the workspace's own folder."""

    workspace: Workspace

    def table(self, table_id: str) -> LocalArtefacts:
        """See `Storage.table`; the folder is made when absent."""
        return LocalArtefacts(private_folder(self.workspace.tables_dir / table_id))

    def run(self, run_id: str) -> LocalArtefacts:
        """See `Storage.run`."""
        return LocalArtefacts(self.workspace.runs_dir / run_id)

    def read_secret(self, name: str) -> bytes | None:
        """See `Storage.read_secret`."""
        file = self.workspace.home / name
        return file.read_bytes() if file.exists() else None

    def create_secret(self, name: str, content: bytes) -> bytes:
        """See `Storage.create_secret`; in a file that its owner alone can read.

        A crash or a full disk while it is made leaves no file of that name.
        """
        file = self.workspace.home / name
        if not file.exists():
            private_folder(file.parent)
            _make_secret(file, content)
        return file.read_bytes()

    def write_secret(self, name: str, content: bytes) -> None:
        """See `Storage.write_secret`."""
        with replacing(self.workspace.home / name) as file:
            file.write(content)


def _make_secret(file: Path, content: bytes) -> None:
    """The bytes on disk first, then their name: whoever finds the name finds all of them."""
    handle, fresh = tempfile.mkstemp(prefix=f".{file.name}.", dir=file.parent)  # mode 0600
    try:
        with os.fdopen(handle, "wb") as new:
            new.write(content)
            new.flush()
            os.fsync(new.fileno())
        with contextlib.suppress(FileExistsError):
            os.link(fresh, file)  # fails when another process was first; its bytes are used
    finally:
        os.unlink(fresh)
    folder = os.open(file.parent, os.O_RDONLY)
    try:
        os.fsync(folder)  # the name itself, or a power cut would give the next release another key
    finally:
        os.close(folder)


def random_secret(storage: Storage, name: str, length: int) -> bytes:
    """A secret of the workspace; `length` random bytes where there was none."""
    stored = storage.read_secret(name)
    return storage.create_secret(name, os.urandom(length)) if stored is None else stored


def forget_logs(workspace: Workspace, runs: Collection[str]) -> None:
    """Remove what this machine still keeps of deleted runs whose artefacts lie elsewhere."""
    if not os.environ.get(STORAGE):
        return  # the folder that a run keeps is the artefacts themselves
    fresh = time.time() - FRESH_SECONDS  # of a run that was made since its id was asked for
    for folder in workspace.runs_dir.iterdir():
        if folder.name not in runs and folder.stat().st_mtime < fresh:
            shutil.rmtree(folder, ignore_errors=True)


def open_storage(workspace: Workspace, *, patience: float = 0.0) -> Storage:
    """Where the artefacts of a workspace lie.

    Args:
      workspace: the folder; with FACSIMILE_STORAGE it keeps this machine's logs and scratch.
      patience: seconds to go on trying when an object store does not answer, ≥ 0.

    Raises:
      StorageError: FACSIMILE_STORAGE names no storage that can be used; nothing was read.
    """
    url = os.environ.get(STORAGE)
    if not url:
        return LocalStorage(workspace)
    if urlsplit(url).password is not None:
        raise StorageError(
            "FACSIMILE_STORAGE contains a password, which does not belong there. Nothing was read. "
            "Give credentials to the storage's driver in its own environment variables."
        )
    objects = cluster_module("objects.storage", setting=STORAGE)
    storage: Storage = objects.open_object_storage(workspace, url, patience=patience)
    return storage
