"""Secrets of the workspace: how columns are shifted, rows recognised and the ledger sealed."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from core.message import Message, joined, to_say
from core.runs.errors import RunStoreError
from core.runs.storage.storages import Storage, open_storage, random_secret
from core.runs.workspace import Workspace

LENGTH = 32  # bytes of a secret
LEDGER_KEY, LEDGER_HEAD = "ledger.key", "ledger.head"
# what a steward without a copy may do, and what it costs
_WITHOUT_COPY = {
    "shift.key": to_say(
        "Without a copy, delete it only if no release of this workspace has hidden a "
        "distribution: a second key would reveal what the first one hides."
    ),
    "people.key": to_say(
        "Without a copy, delete it. A new one is made, but tables imported later are no longer "
        "recognised by rows that they share with earlier ones."
    ),
    LEDGER_KEY: to_say(
        "Without a copy, start a new workspace and set limits there that leave room for what was "
        "released here."
    ),
}


def shift_key(workspace: Workspace, account_id: str) -> bytes:
    """The secret of 32 bytes that fixes the shifts of an account's tables; never shown.

    All releases about the same people are tilted the same way: were each tilted another way, their
    average would show what the shift hides. That groups and strength stay the same as well is the
    ledger's to see to (`core.privacy.ledger.shift_consistency`).

    Raises:
      RunStoreError: the secret on disk is not whole.
    """
    return hashlib.sha256(_secret(workspace, "shift.key") + account_id.encode()).digest()


def people_key(workspace: Workspace) -> bytes:
    """The secret under which rows are hashed to recognise people again, 32 bytes."""
    return _secret(workspace, "people.key")


@dataclass(frozen=True)
class WorkspaceLedgerFiles:
    """`core.privacy.ledger.chain.LedgerFiles` beside the workspace's other secrets."""

    storage: Storage

    def key(self) -> bytes | None:
        """See `LedgerFiles.key`; a `RunStoreError` where what is there is not 32 bytes."""
        found = self.storage.read_secret(LEDGER_KEY)
        return None if found is None else _whole(LEDGER_KEY, found)

    def make_key(self) -> bytes:
        """See `LedgerFiles.make_key`."""
        return _whole(LEDGER_KEY, random_secret(self.storage, LEDGER_KEY, LENGTH))

    def head(self) -> bytes | None:
        """See `LedgerFiles.head`."""
        return self.storage.read_secret(LEDGER_HEAD)

    def keep_head(self, head: bytes) -> None:
        """See `LedgerFiles.keep_head`."""
        self.storage.write_secret(LEDGER_HEAD, head)


def _secret(workspace: Workspace, name: str) -> bytes:
    """32 random bytes, made when absent, whole at once; the same on all machines of a workspace.

    Raises:
      RunStoreError: what is there is anything else; it is left as it is.
    """
    return _whole(name, random_secret(open_storage(workspace), name, LENGTH))


def _whole(name: str, secret: bytes) -> bytes:
    """The secret, if it is one."""
    if len(secret) != LENGTH:
        raise RunStoreError(
            joined(
                [
                    Message(
                        "The workspace's secret file {name} has {found} bytes instead of {length}. "
                        "It was not used, and nothing was read, spent or changed. Restore it from "
                        "a copy of the workspace.",
                        name=name,
                        found=len(secret),
                        length=LENGTH,
                    ),
                    _WITHOUT_COPY[name],
                ]
            )
        )
    return secret
