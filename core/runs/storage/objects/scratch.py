"""Scratch: a private folder of this machine for what libraries need as files; it never stays.

Each process has one of its own, removed when it ends. A process that was killed leaves its folder,
which the next one that starts on this machine removes.
"""

from __future__ import annotations

import atexit
import shutil
import socket
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from os import getpid
from pathlib import Path

import psutil

from core.runs.storage.process import process_alive, started_since_boot
from core.runs.storage.workspace import private_folder

__all__ = ["Scratch"]


class Scratch:
    """The scratch folder of this process.

    Attributes:
      folder: mode 0700.
    """

    def __init__(self, root: Path) -> None:
        remove_leftovers(private_folder(root))
        self.folder = _own_folder(root, getpid())

    @contextmanager
    def folder_for(self, purpose: str) -> Iterator[Path]:
        """A fresh folder, removed when the block ends."""
        folder = Path(tempfile.mkdtemp(prefix=f"{purpose}-", dir=private_folder(self.folder)))
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def copies(self, place: str) -> Path:
        """Where copies lie that go with this process, a folder for each place they come from."""
        return private_folder(self.folder / "copies" / place)


@cache
def _own_folder(root: Path, pid: int) -> Path:
    """One folder a process, however many stores it opens."""
    started = started_since_boot(psutil.Process(pid))
    folder = private_folder(root / f"{socket.gethostname()}_{pid}_{started:.3f}")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def remove_leftovers(root: Path) -> None:
    """Remove folders of processes of this machine that ended without doing so."""
    for folder in root.iterdir():
        host, _, rest = folder.name.rpartition("_")[0].rpartition("_")
        started = folder.name.rpartition("_")[2]
        with suppress(ValueError):  # not one of ours
            mine = host == socket.gethostname()
            if mine and not process_alive(int(rest), float(started)):
                shutil.rmtree(folder, ignore_errors=True)
