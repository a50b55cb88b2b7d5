"""Scratch: a private folder of this machine for what libraries need as files; it never stays.

Each process has one of its own, removed when it ends. A process that was killed leaves its folder,
which the next one that starts here removes: it knows by a lock that the kernel gives back with the
process. (A process number would not do: in a container each has the same one, and another host.)
"""

from __future__ import annotations

import atexit
import fcntl
import os
import secrets
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

from core.runs.errors import StorageError
from core.runs.workspace import private_folder

LOCK = ".lock"  # ending of the file that lies beside a folder and is held while that is in use


class Scratch:
    """The scratch folder of this process."""

    def __init__(self, root: Path) -> None:
        remove_leftovers(private_folder(root))
        self.folder = _own_folder(root, os.getpid())

    @contextmanager
    def folder_for(self, purpose: str) -> Iterator[Path]:
        """A fresh folder, removed when the block ends."""
        folder = Path(tempfile.mkdtemp(prefix=f"{purpose}-", dir=private_folder(self.folder)))
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def copies(self, origin: str) -> Path:
        """Where copies lie that go with this process, a folder for each origin."""
        return private_folder(self.folder / "copies" / origin)


@cache
def _own_folder(root: Path, pid: int) -> Path:
    """One folder a process, however many stores it opens."""
    folder, held = _new_folder(root)

    def leave() -> None:
        if os.getpid() == pid:  # a fork of this process has not ended it
            _remove(folder)
            os.close(held)

    atexit.register(leave)
    return folder


def _new_folder(root: Path) -> tuple[Path, int]:
    """A folder, and what holds it until that is closed."""
    while True:
        folder = root / secrets.token_hex(8)
        held = _held(folder.with_suffix(LOCK))
        if held is not None:  # else another process took it for a leftover before it was held
            return private_folder(folder), held


@contextmanager
def held_folder(root: Path) -> Iterator[Path]:
    """A fresh folder, removed when the block ends; `remove_leftovers` does where it never ends."""
    folder, held = _new_folder(root)
    try:
        yield folder
    finally:
        _remove(folder)
        os.close(held)


def remove_leftovers(root: Path, *, undo: Callable[[Path], None] = lambda folder: None) -> None:
    """Remove folders of processes that ended without doing so.

    Args:
      undo: called with each folder before it is removed. Where it raises StorageError, the folder
        waits for the next time.
    """
    for lock in root.glob(f"*{LOCK}"):
        held = _held(lock)
        if held is None:
            continue
        folder = lock.with_suffix("")
        with suppress(StorageError):
            if folder.exists():
                undo(folder)
            _remove(folder)
        os.close(held)


def _remove(folder: Path) -> None:
    """Remove a folder and, when that is gone, what says that there is one."""
    shutil.rmtree(folder, ignore_errors=True)
    if not folder.exists():
        folder.with_suffix(LOCK).unlink(missing_ok=True)


def _held(lock: Path) -> int | None:
    """The lock, held by this process; None when another one holds it or has removed it."""
    handle = os.open(lock, os.O_CREAT | os.O_RDWR, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if lock.exists() and os.path.samestat(os.fstat(handle), lock.stat()):
            return handle
    except (BlockingIOError, FileNotFoundError):
        pass
    os.close(handle)
    return None
