"""A disk that fills up at the k-th write: files, checkpoints and the database alike."""

from __future__ import annotations

import errno
import os
import sqlite3
from pathlib import Path

import pytest
from sqlalchemy import event

from core.runs.storage import engine as storage_engine

WRITES = ("INSERT", "UPDATE", "DELETE", "COMMIT", "BEGIN")


class Disk:
    """Counts writes and refuses those for which there is no room.

    Attributes:
      writes: so far.
      first: the number of the first write without room; 0 while there is enough.
      last: of the last one.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.writes = self.first = self.last = 0
        fsync, write_text, make = os.fsync, Path.write_text, storage_engine.create_engine

        def synced(handle: int) -> None:  # what is kept for good ends with one
            self.count_file()
            fsync(handle)

        def written(path: Path, *args: object, **more: object) -> int:
            self.count_file()
            return write_text(path, *args, **more)  # type: ignore[arg-type]

        def executed(_cursor: object, statement: str, *_: object) -> None:
            if statement.split()[0] in WRITES and self.full():
                raise sqlite3.OperationalError("database or disk is full")

        def engine(*args: object, **more: object) -> object:
            made = make(*args, **more)
            event.listen(made, "do_execute", executed)
            event.listen(made, "do_execute_no_params", executed)
            return made

        monkeypatch.setattr(os, "fsync", synced)
        monkeypatch.setattr(Path, "write_text", written)
        monkeypatch.setattr(storage_engine, "create_engine", engine)

    def fill(self, first: int, last: int) -> None:
        """From the `first` write from now on to the `last` there is no room."""
        self.writes, self.first, self.last = 0, first, last

    def make_room(self) -> int:
        """As many writes as there were since `fill`."""
        self.first = 0
        return self.writes

    def full(self) -> bool:
        self.writes += 1
        return 0 < self.first <= self.writes <= self.last

    def count_file(self) -> None:
        if self.full():
            raise OSError(errno.ENOSPC, "No space left on device")
