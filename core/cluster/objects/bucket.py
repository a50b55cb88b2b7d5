"""Bucket: objects by key under one prefix, asked for again while the store does not answer.

The file system is one of fsspec's (`s3://`, `gs://`, `memory://` …). What its driver raises becomes
a `StorageError` with words that name no address, key or credential.
"""

from __future__ import annotations

import errno
import io
import time
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, TypeVar, cast

from core.runs.errors import StorageError

T = TypeVar("T")

AT_ONCE = 2**23  # bytes that are asked for at a time: what libraries read in bits is read in these
FIRST_WAIT, LONGEST_WAIT = 0.5, 15.0  # s between two tries; each is twice the one before
AWAY = (
    "The workspace's object storage does not answer. Try again in a minute, or ask whoever runs "
    "this server."
)
REFUSED = (
    "The workspace's object storage refuses this server: its credentials are missing, expired or "
    "lack permission. Ask whoever runs this server."
)
OURS = (  # mistakes of this program, and what this machine lacks: no store is to blame
    ArithmeticError,
    AssertionError,
    AttributeError,
    ImportError,
    LookupError,
    MemoryError,
    NameError,
    TypeError,
    ValueError,
)
DISK = (errno.ENOSPC, errno.EDQUOT, errno.EROFS)


@dataclass(frozen=True)
class Bucket:
    """Objects under a prefix.

    Attributes:
      files: fsspec's file system; its driver knows endpoint and credentials.
      prefix: in front of every key; no slash at its end.
      patience: seconds to go on trying when the store does not answer, ≥ 0.
    """

    files: Any
    prefix: str
    patience: float = 0.0
    wait: Callable[[float], None] = field(default=time.sleep, compare=False)

    def under(self, name: str) -> Bucket:
        """The objects under a longer prefix."""
        return replace(self, prefix=f"{self.prefix}/{name}")

    def read(self, key: str) -> bytes:
        """All bytes of an object; FileNotFoundError when it is absent."""
        return bytes(self._tried(lambda: self.files.cat_file(self._path(key))))

    def open(self, key: str) -> BinaryIO:
        """A stream that can seek and asks for the parts that are read."""
        path = self._path(key)
        size = int(self._tried(lambda: self.files.info(path))["size"])

        def part(start: int, end: int) -> bytes:
            return bytes(self._tried(lambda: self.files.cat_file(path, start=start, end=end)))

        return cast("BinaryIO", io.BufferedReader(_Parts(part, size), AT_ONCE))

    def write(self, key: str, content: bytes) -> None:
        """Put an object, whole or not at all."""
        self._tried(lambda: self.files.pipe_file(self._path(key), content))

    def create(self, key: str, content: bytes) -> bool:
        """Put an object where there is none; False when there is one, which stays as it is."""
        try:
            self._tried(lambda: self.files.pipe_file(self._path(key), content, mode="create"))
        except FileExistsError:
            return False
        return True

    def upload(self, file: Path, key: str) -> None:
        """Put a file of this machine, whole or not at all."""
        self._tried(lambda: self.files.put_file(str(file), self._path(key)))

    def download(self, key: str, file: Path) -> None:
        """Copy an object into a file of this machine; FileNotFoundError when it is absent."""
        self._tried(lambda: self.files.get_file(self._path(key), str(file)))

    def exists(self, key: str) -> bool:
        """Whether there is an object, or any under the key and a slash."""
        try:
            self._tried(lambda: self.files.info(self._path(key)))
        except FileNotFoundError:
            return False
        return True

    def modified(self, key: str) -> float:
        """When an object was put, seconds since 1970-01-01 UTC."""
        return float(self._tried(lambda: self.files.modified(self._path(key))).timestamp())

    def keys(self, folder: str = "") -> list[str]:
        """Keys of all objects under a folder, in order, as the methods here take them."""
        top = self._path(folder) if folder else self.prefix
        paths = self._tried(lambda: self.files.find(top))
        return sorted(str(path)[len(self.prefix) + 1 :] for path in paths)

    def remove(self, keys: Collection[str]) -> None:
        """Remove objects; those that are absent are passed over."""
        for key in keys:
            with suppress(FileNotFoundError):
                self._tried(partial(self.files.rm_file, self._path(key)))

    def _path(self, key: str) -> str:
        return f"{self.prefix}/{key}"

    def _tried(self, ask: Callable[[], T]) -> T:
        """What the store answers, after some tries where it does not.

        Raises:
          FileNotFoundError, FileExistsError: the answer was that.
          StorageError: it refuses, or does not answer for longer than is waited.
        """
        end, pause = time.monotonic() + self.patience, FIRST_WAIT
        while True:
            try:
                return ask()
            except (FileNotFoundError, FileExistsError, *OURS):
                raise
            except Exception as error:
                # every driver has errors of its own; their texts may name keys and addresses
                if isinstance(error, OSError) and error.errno in DISK:
                    raise
                if isinstance(error, PermissionError) or "Credentials" in type(error).__name__:
                    raise StorageError(REFUSED) from error
                if time.monotonic() + pause > end:
                    raise StorageError(AWAY) from error
            self.wait(pause)
            pause = min(2 * pause, LONGEST_WAIT)


class _Parts(io.RawIOBase):
    """The bytes of an object as a raw stream, each read a request of its own."""

    def __init__(self, part: Callable[[int, int], bytes], size: int) -> None:
        self._part, self._size, self._at = part, size, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        self._at = max(0, base + offset)
        return self._at

    def tell(self) -> int:
        return self._at

    def readinto(self, buffer: Any) -> int:
        end = min(self._at + len(buffer), self._size)
        if end <= self._at:
            return 0
        content = self._part(self._at, end)
        buffer[: len(content)] = content
        self._at += len(content)
        return len(content)
