"""Files written whole or not at all: beside the target, then moved into its place."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

__all__ = ["replacing"]


@contextmanager
def replacing(path: Path, *, mode: int = 0o600) -> Iterator[BinaryIO]:
    """A new file that takes the place of `path` only when the block ends well.

    The bytes go to a temporary file in the same folder, are flushed to disk and renamed over
    `path`, so that a reader sees the old file or the new one and never half of one.

    Args:
      path: where the file shall be; its folder exists.
      mode: permission bits of the new file.
    """
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent)
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.chmod(mode)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
