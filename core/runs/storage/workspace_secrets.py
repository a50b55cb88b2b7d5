"""Secrets of the workspace: how tagged columns are shifted, and how rows are recognised."""

from __future__ import annotations

import hashlib

from core.runs.storage.errors import RunStoreError
from core.runs.storage.places import open_places
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
    """32 random bytes, made when absent, whole at once; the same on all machines of a workspace.

    Raises:
      RunStoreError: what is there is anything else; it is left as it is.
    """
    secret = open_places(workspace).secret(name, LENGTH)
    if len(secret) != LENGTH:
        raise RunStoreError(
            f"The workspace's secret file {name} holds {len(secret)} bytes instead of {LENGTH}, so "
            "it is not used. Nothing was read, spent or changed. Put it back from a copy of the "
            f"workspace. {_WITHOUT_COPY[name]}"
        )
    return secret
