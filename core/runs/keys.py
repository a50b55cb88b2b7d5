"""shift_key: the secret that fixes how a table's tagged columns are shifted."""

from __future__ import annotations

import hashlib
import os

from core.runs.workspace import Workspace

__all__ = ["shift_key"]


def shift_key(workspace: Workspace, people: str) -> bytes:
    """The secret that fixes a table's shifts; made with the workspace, never shown.

    All releases of one table are tilted the same way: were each tilted another way, their average
    would show what the shift hides.
    """
    file = workspace.home / "shift.key"
    try:
        with open(file, "xb", opener=_private) as new:
            new.write(os.urandom(32))
    except FileExistsError:
        pass
    return hashlib.sha256(file.read_bytes() + people.encode()).digest()


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
