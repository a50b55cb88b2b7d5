"""The chain of entries: each is sealed, together with the one before it, by a key of the workspace.

Whoever edits the database and has not the key can change, remove, reorder or add no entry unseen.
How many there were is kept beside the key, outside the database, so entries that were cut off the
end show too. Whoever writes the key's folder as well can do anything, such as put older copies of
both back together.
"""

from __future__ import annotations

import hmac
import json
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

from pydantic import BaseModel, ConfigDict

from core.message import Message, Text

GENESIS = "0" * 64  # what the first entry calls the hash before it
NO_KEY = "The chain cannot be checked: the workspace's file ledger.key is missing."


class LedgerFiles(Protocol):
    """What a workspace keeps of its ledger outside the database, the same on all its machines."""

    def key(self) -> bytes | None:
        """The secret of the chain, 32 bytes; None where there is none."""

    def make_key(self) -> bytes:
        """The secret, made where there is none."""

    def head(self) -> bytes | None:
        """What `keep_head` kept last; None before."""

    def keep_head(self, head: bytes) -> None:
        """Replace the head, whole or not at all."""


class Head(NamedTuple):
    """The newest entry that was kept for certain: entries up to it must be there."""

    entries: int
    hash: str

    def sealed(self, key: bytes) -> bytes:
        """As it is kept outside the database."""
        return json.dumps({**self._asdict(), "seal": self._seal(key)}).encode()

    @classmethod
    def read(cls, key: bytes, kept: bytes) -> Head | None:
        """The head that was kept; None where it was not sealed by this key."""
        try:
            stored = json.loads(kept)
            head = cls(int(stored["entries"]), str(stored["hash"]))
            return head if hmac.compare_digest(str(stored["seal"]), head._seal(key)) else None
        except (ValueError, TypeError, KeyError):
            return None

    def _seal(self, key: bytes) -> str:
        return _hmac(key, json.dumps(["head", self.entries, self.hash]))


class ChainReport(BaseModel):
    """Whether the chain holds; true in a condition exactly when it does.

    Without a key to check it with (`checked`) it is not sound.
    """

    model_config = ConfigDict(frozen=True)

    sound: bool
    checked: bool = True
    entries: int
    head: str
    problem: Text = ""

    def __bool__(self) -> bool:
        return self.sound


def seal(
    key: bytes, *, seq: int, account_id: str, run: str | None, previous: str, body: str
) -> str:
    """The hash of an entry: HMAC-SHA-256 of its row and the hash before it, 64 hex digits."""
    account, debit = len(account_id), "-" if run is None else len(run)  # no two rows read the same
    return _hmac(key, f"{seq} {previous} {account} {debit} {account_id}{run or ''}{body}")


def _hmac(key: bytes, text: str) -> str:
    return hmac.digest(key, text.encode(), "sha256").hex()


def check_chain(
    rows: Sequence[Sequence[Any]], key: bytes | None, kept: bytes | None
) -> ChainReport:
    """Follow the chain from the first entry on."""
    if key is None:
        if not rows and kept is None:
            return ChainReport(sound=True, entries=0, head=GENESIS)
        return ChainReport(sound=False, checked=False, entries=0, head=GENESIS, problem=NO_KEY)
    last, at_head = GENESIS, GENESIS
    head = Head(0, GENESIS) if kept is None else Head.read(key, kept)
    for number, (seq, account_id, run, body, digest) in enumerate(rows, start=1):
        sealed = seal(key, seq=number, account_id=account_id, run=run, previous=last, body=body)
        if seq != number or sealed != digest:
            problem = _problem(key, number, rows[number - 1])
            return ChainReport(sound=False, entries=number - 1, head=last, problem=problem)
        last = digest
        if head is not None and number == head.entries:
            at_head = digest
    problem = _end(len(rows), head, at_head, missing=kept is None)
    return ChainReport(sound=not problem, entries=len(rows), head=last, problem=problem)


def _problem(key: bytes, number: int, row: Sequence[Any]) -> str:
    seq, account_id, run, body, digest = row
    if seq != number:
        return Message("Entry {n} is missing; the next one is number {seq}.", n=number, seq=seq)
    try:
        claimed = json.loads(body)
        previous = str(claimed["previous"])
        own = (claimed["account_id"], claimed["run"])
    except (ValueError, TypeError, KeyError):
        return Message("Entry {n} cannot be read.", n=number)
    if seal(key, seq=seq, account_id=account_id, run=run, previous=previous, body=body) == digest:
        return Message("Entry {n} does not follow the entry before it.", n=number)
    if own != (account_id, run):
        return Message(
            "Entry {n} is filed under a different account or run than it states.", n=number
        )
    return Message(
        "Entry {n} does not match its hash: it was changed after it was written, or ledger.key "
        "belongs to another workspace.",
        n=number,
    )


def _end(entries: int, head: Head | None, at_head: str, *, missing: bool) -> str:
    if missing:
        if not entries:
            return ""
        return "The file ledger.head, which says how many entries there are, is missing."
    if head is None:
        return "The file ledger.head was changed, or belongs to another workspace."
    if head.entries > entries:
        return Message(
            "Entries are missing at the end: {written} were written, and only {found} are here.",
            written=head.entries,
            found=entries,
        )
    if head.hash != at_head:
        return Message("Entry {n} is not the one that ledger.head names.", n=head.entries)
    return ""
