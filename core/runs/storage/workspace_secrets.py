"""Secrets of the workspace: how tagged columns are shifted, and how rows are recognised."""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
from pathlib import Path

from core.runs.storage.errors import RunStoreError
from core.runs.storage.workspace import Workspace

__all__ = ["people_key", "shift_key"]

LENGTH = 32  # bytes of a secret
# what a steward without a copy may do, and what it costs
_WITHOUT_COPY = {
    "shift.key": "Without a copy, delete it only if no release of this workspace hid a "
    "distribution yet: a second key would show what the first one hides.",
    "people.key": "Without a copy, delete it: a new one is made, and tables brought in later are "
    "no longer recognised by rows they share with earlier ones.",
}


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

    Raises:
      RunStoreError: the secret on disk is not whole.
    """
    return hashlib.sha256(_secret(workspace, "shift.key") + people.encode()).digest()


def people_key(workspace: Workspace) -> bytes:
    """The secret under which rows are hashed to recognise people again, 32 bytes."""
    return _secret(workspace, "people.key")


def _secret(workspace: Workspace, name: str) -> bytes:
    """32 random bytes in a file that its owner alone can read; made when absent, whole at once.

    A crash or a full disk while it is made leaves no file of that name.

    Raises:
      RunStoreError: the file that is there holds anything else; it is left as it is.
    """
    file = workspace.home / name
    if not file.exists():
        _make(file)
    secret = file.read_bytes()
    if len(secret) != LENGTH:
        raise RunStoreError(
            f"The workspace's secret file {name} holds {len(secret)} bytes instead of {LENGTH}, so "
            "it is not used. Nothing was read, spent or changed. Put it back from a copy of the "
            f"workspace. {_WITHOUT_COPY[name]}"
        )
    return secret


def _make(file: Path) -> None:
    """Fresh bytes on disk first, then their name: whoever finds the name finds all of them."""
    handle, fresh = tempfile.mkstemp(prefix=f".{file.name}.", dir=file.parent)  # mode 0600
    try:
        with os.fdopen(handle, "wb") as new:
            new.write(os.urandom(LENGTH))
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
