"""People in tables of several owners: for the privacy officer, who alone may know.

At import nobody is told what somebody else's table holds (`core.runs.accounts.record_linkage`), so
accounts of different owners may be about the same people and are not added up. The privacy officer
sees where that is so, joins the accounts while one of them has paid for nothing yet, or has later
certificates of both say it.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

from sqlalchemy import func, select, update

from core.privacy.ledger.entries import entries_table
from core.privacy.ledger.transaction import exclusive_transaction
from core.runs.accounts.record_linkage import shared_rows
from core.runs.errors import RunStoreError
from core.runs.storage.database import RunRow, SketchRow, TableRow
from core.runs.storage.store import RunStore

LOCKED = (
    TableRow.__tablename__, RunRow.__tablename__, SketchRow.__tablename__, entries_table.name,
)  # fmt: skip


@dataclass(frozen=True)
class SharedPeople:
    """Two tables of different owners that share rows, and whose accounts are not the same.

    Attributes:
      titles, owners, accounts: of both tables, the earlier one first; an owner is "" where nobody
        signed in.
      rows: about how many rows they share; it comes from rows and stays with the officer.
      noted: whether certificates of both accounts say so already.
    """

    titles: tuple[str, str]
    owners: tuple[str, str]
    accounts: tuple[str, str]
    rows: int
    noted: bool


def has_owners(store: RunStore) -> bool:
    """Whether the workspace holds tables of several owners, of whom one may be nobody."""
    with store.engine.connect() as connection:
        owners = select(func.count(func.distinct(SketchRow.owner)))
        return connection.execute(owners).scalar_one() > 1


def shared_people(store: RunStore) -> list[SharedPeople]:
    """Where tables of different owners share rows, most rows first.

    Compares what is kept of every two of them, so it takes a while where there are many.
    """
    with store.engine.connect() as connection:
        rows = connection.execute(select(SketchRow).order_by(SketchRow.id)).all()
    keys = {entry.run for entry in store.ledger.entries() if entry.kind == "shared"}
    found = []
    for earlier, later in combinations(rows, 2):
        if earlier.owner == later.owner or earlier.account_id == later.account_id:
            continue
        shared = shared_rows(earlier, later)
        if shared:
            pair = (earlier.account_id, later.account_id)
            found.append(
                SharedPeople(
                    titles=(earlier.title, later.title),
                    owners=(earlier.owner, later.owner),
                    accounts=pair,
                    rows=shared,
                    noted=_key(*pair, earlier.account_id) in keys,
                )
            )
    return sorted(found, key=lambda one: -one.rows)


def join_accounts(store: RunStore, one: str, other: str) -> str:
    """Let one account pay for all tables of two; the account that goes on.

    Args:
      one, other: accounts; the one that paid for something, or has a limit, goes on.

    Raises:
      RunStoreError: both have an entry in the ledger, or the one that would go has runs; nothing
        was changed.
    """
    ledger = store.ledger
    kept, gone = (other, one) if ledger.entries(other) else (one, other)
    with exclusive_transaction(store.engine, *LOCKED) as connection:
        tables = select(TableRow.id).where(TableRow.account_id == gone)
        runs = select(func.count()).where(RunRow.table_id.in_(tables))
        if ledger.entries(gone) or connection.execute(runs).scalar_one():
            raise RunStoreError(
                "Both accounts have a limit, releases or runs of their own, which cannot be "
                "put together any more. Nothing was changed. Note instead that they are "
                "about the same people: later certificates of both then say so."
            )
        for rows in (TableRow, SketchRow):
            connection.execute(update(rows).where(rows.account_id == gone).values(account_id=kept))
    return kept


def note_shared(store: RunStore, one: str, other: str, author: str) -> None:
    """Let later certificates of both accounts say that they share some of their people."""
    for account_id in (one, other):
        store.ledger.declare(account_id, author, key=_key(one, other, account_id), kind="shared")


def _key(one: str, other: str, account_id: str) -> str:
    """Of the ledger's entry in one of the two accounts."""
    return f"shared {' '.join(sorted((one, other)))} in {account_id}"
