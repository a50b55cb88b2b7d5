"""Ledger accounts of tables: whose they are, and with or without a limit."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np
import pandas as pd

from core.privacy.ledger import Entry, Ledger, LedgerError, Left
from core.privacy.plan import default_delta
from core.runs.store import RunStore

__all__ = [
    "NO_LIMIT",
    "Account",
    "account",
    "account_of",
    "limited",
    "open_account",
    "people_of",
    "set_limit",
]

# The ledger fixes a limit when an account is opened and refuses what goes beyond. An account that
# was opened without one records every release and has a limit no release ever meets.
NO_LIMIT = 10_000.0


def people_of(frame: pd.DataFrame) -> str:
    """An account name for a table's people: the same rows, in whatever order, get the same one.

    A table with other rows of the same people gets another name: the steward then names the
    account. The digest says nothing about single records of a table of some size, and stays in the
    workspace all the same.

    Args:
      frame: the rows as they were read.

    Returns:
      20 hex digits.
    """
    plain = frame.copy(deep=False)
    for name in plain.columns:
        if plain[name].dtype == object:
            plain[name] = plain[name].astype(str)
    hashes = np.sort(pd.util.hash_pandas_object(plain, index=False).to_numpy())  # uint64 [n]
    digest = hashlib.sha256("\x1f".join(map(str, frame.columns)).encode())
    digest.update(hashes.astype("<u8").tobytes())
    return digest.hexdigest()[:20]


def account_of(ledger: Ledger, people: str) -> Entry | None:
    """The entry that opened the account, or None."""
    return next((entry for entry in ledger.accounts() if entry.people == people), None)


def open_account(ledger: Ledger, people: str, n: int) -> Entry:
    """The people's account; one without a limit is opened when there is none.

    Args:
      ledger: where.
      people: whose.
      n: number of records, ≥ 1.
    """
    known = account_of(ledger, people)
    return ledger.register(people, NO_LIMIT, default_delta(n)) if known is None else known


def limited(account: Entry) -> bool:
    """Whether somebody set a limit for this account."""
    return account.limit < NO_LIMIT


@dataclass(frozen=True)
class Account:
    """What the ledger knows of a table's people.

    Attributes:
      people: the account's name.
      limit, delta: (ε_g, δ_g) for all releases together; None when nobody set a limit.
      left: what the limit still allows; None without a limit.
      entries: the account's ledger entries, oldest first.
    """

    people: str
    limit: float | None
    delta: float | None
    left: Left | None
    entries: tuple[Entry, ...]


def account(store: RunStore, table_id: str) -> Account:
    """The ledger account of a table's people, which may have no entry yet."""
    people = store.table(table_id).people
    ledger = Ledger(store.engine)
    entries = ledger.entries(people)
    opened = account_of(ledger, people)
    if opened is None or not limited(opened):
        return Account(people, None, None, None, entries)
    return Account(people, opened.limit, opened.delta, ledger.left(people), entries)


def set_limit(
    store: RunStore, table_id: str, *, epsilon: float, delta: float | None = None
) -> Account:
    """Set, once, what all releases about a table's people may cost together.

    Args:
      store: where.
      table_id: which table.
      epsilon: ε_g, > 0 and below `core.runs.accounts.NO_LIMIT`.
      delta: δ_g in (0, 1); `default_delta(n)` when None.

    Raises:
      LedgerError: a first release, or somebody, has settled the limit already.
      ValueError: a limit out of range.
    """
    table = store.table(table_id)
    known = account_of(Ledger(store.engine), table.people)
    if known is not None and not limited(known):
        raise LedgerError(
            "A release without a limit was made about these people, so none can be set any more. "
            "Nothing was changed. Set the limit of a table before its first release."
        )
    delta = default_delta(table.n) if delta is None else delta
    Ledger(store.engine).register(table.people, epsilon, delta)
    return account(store, table_id)
