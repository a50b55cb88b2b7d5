"""Secrets of the workspace: how tagged columns are shifted, and how rows are recognised."""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile

from core.runs.storage.workspace import Workspace

__all__ = ["people_key", "shift_key"]


def shift_key(workspace: Workspace, people: str) -> bytes:
    """The secret that fixes the shifts of an account's tables; never shown.

    All releases about the same people are tilted the same way: were each tilted another way, their
    average would show what the shift hides. That groups and strength stay the same as well is the
    ledger's to see to (`core.privacy.ledger.shift_consistency`).

    Args:
      workspace: its secret is made on first use.
      people: the account.

    Returns:
      32 bytes.
    """
    return hashlib.sha256(_secret(workspace, "shift.key") + people.encode()).digest()


def people_key(workspace: Workspace) -> bytes:
    """The secret under which rows are hashed to recognise people again, 32 bytes."""
    return _secret(workspace, "people.key")


def _secret(workspace: Workspace, name: str) -> bytes:
    """32 random bytes in a file that its owner alone can read; made when absent, whole at once."""
    file = workspace.home / name
    if not file.exists():
        handle, fresh = tempfile.mkstemp(prefix=f".{name}.", dir=workspace.home)  # mode 0600
        with os.fdopen(handle, "wb") as new:
            new.write(os.urandom(32))
        with contextlib.suppress(FileExistsError):
            os.link(fresh, file)  # fails when another process was first; its bytes are used
        os.unlink(fresh)
    return file.read_bytes()
