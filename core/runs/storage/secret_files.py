"""Secret files: random bytes, made once and whole at once, that their owner alone can read."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path

__all__ = ["secret_file"]


def secret_file(file: Path, length: int) -> bytes:
    """What a secret file holds; `length` random bytes where there was none.

    A crash or a full disk while it is made leaves no file of that name.

    Args:
      file: in a folder that is there.
      length: of a new secret, in bytes.
    """
    if not file.exists():
        _make(file, length)
    return file.read_bytes()


def _make(file: Path, length: int) -> None:
    """Fresh bytes on disk first, then their name: whoever finds the name finds all of them."""
    handle, fresh = tempfile.mkstemp(prefix=f".{file.name}.", dir=file.parent)  # mode 0600
    try:
        with os.fdopen(handle, "wb") as new:
            new.write(os.urandom(length))
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
