"""Whose people a table is about: which ledger account pays for its releases.

What is released about people adds up over all tables they are in, so an account belongs to people.
At import the rows are compared with every table the workspace has seen (also with those that were
deleted since, and those that the command line read) and that the table's owner may see, and the
account with the largest overlap is proposed. What different owners' tables share is for the privacy
officer alone (`core.runs.accounts.between_owners`). Rows that are kept out of training count like
all others. The steward may say otherwise; where rows overlap that takes words, which the ledger
keeps and certificates repeat.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd
from sqlalchemy import Connection, func, select, update

from core.message import from_json
from core.privacy.ledger.entries import entries_table
from core.privacy.ledger.transaction import exclusive_transaction
from core.runs.accounts.record_linkage import (
    Compared,
    Comparison,
    LinkedAccount,
    add_sketch,
    link_anew,
    visible_sketches,
)
from core.runs.errors import RunStoreError
from core.runs.records import NEWEST
from core.runs.storage.database import RunRow, SketchRow, TableRow
from core.runs.storage.store import RunStore

NEW = "new"  # for `--people`: people that no earlier table is about
# what a change of account looks at and changes: no run and no debit may come in between
MOVED = (
    TableRow.__tablename__, RunRow.__tablename__, SketchRow.__tablename__, entries_table.name,
)  # fmt: skip
MOST_NAME = 60  # characters of an account's name


@dataclass(frozen=True)
class AccountChoice:
    """Whose people a table is about.

    Attributes:
      account_id: the account that pays.
      linked: accounts that share rows with the table, the likeliest first; the first was proposed.
      words: what the steward wrote to keep these people apart from an account that shares rows.
    """

    account_id: str
    linked: tuple[LinkedAccount, ...]
    words: str = ""

    @property
    def others(self) -> tuple[LinkedAccount, ...]:
        """Accounts that share rows with the table and do not pay for it."""
        return tuple(one for one in self.linked if one.account_id != self.account_id)

    @property
    def open(self) -> bool:
        """Whether the steward still has to say whose people these are."""
        return bool(self.others) and not self.words


def account_names(
    store: RunStore, *, without: str | None = None, viewer: str | None = None
) -> dict[str, str]:
    """The accounts of tables that somebody may see, newest first, with what they are known by.

    Args:
      without: a table that is left out, with the account that nothing else is known by.
      viewer: who sees; see `visible_sketches`. None, who runs the machine, sees every account.
    """
    query = select(SketchRow.account_id, SketchRow.title, SketchRow.table_id, SketchRow.id)
    names: dict[str, list[str]] = {}
    seen = set(visible_sketches(store, viewer))
    with store.engine.connect() as connection:
        for account_id, title, table_id, number in connection.execute(
            query.order_by(SketchRow.id.desc())
        ):
            if number in seen and (without is None or table_id != without):
                names.setdefault(account_id, []).append(f"'{title}'")
    own = None if without is None else store.table(without).account_id
    for entry in store.ledger.accounts() if viewer is None else ():
        if entry.account_id != own:
            names.setdefault(entry.account_id, [])
    return {
        account_id: ", ".join(dict.fromkeys(titles)) or f"account {account_id}"
        for account_id, titles in names.items()
    }


def choose_account(
    store: RunStore,
    frame: pd.DataFrame | Compared,
    *,
    title: str,
    table_id: str | None = None,
    account_id: str | None = None,
    words: str = "",
    owner: str | None = None,
) -> AccountChoice:
    """Say which account pays for a table, and keep what its people are recognised by.

    Args:
      frame: all rows of the table, n ≥ 1, those kept out of training too; or what is compared of
        a table that is larger than memory.
      table_id: of the table that will be stored; None for one that is not.
      account_id: an account's name; one that is not there is opened, and `NEW` opens a fresh one.
        None takes the account with the largest overlap, or a fresh one without any.
      words: why the table is to be kept apart from accounts that share rows.
      owner: who brings it in, and hears what is found; see `visible_sketches`.

    Returns:
      The account, with what was found; it is `open` when words are needed and there are none.

    Raises:
      RunStoreError: the name cannot be one.
    """
    comparison = Comparison(store, frame, owner)
    fresh = secrets.token_hex(10)
    while True:
        linked = comparison.linked()
        chosen = _chosen(account_id, linked, fresh)
        answer = AccountChoice(chosen, linked, words.strip() if account_id is not None else "")
        if not answer.others:
            answer = AccountChoice(chosen, linked)
        row = comparison.table.sketch(
            chosen,
            title=title,
            table_id=table_id,
            linked=linked,
            words=answer.words,
            owner=owner or "",
        )
        with exclusive_transaction(store.engine, SketchRow.__tablename__) as connection:
            # two imports of one table at once must end in one account: the later one looks again
            if _newest(connection) == comparison.seen:
                add_sketch(connection, row)
                break
    _declare(store, answer, key=table_id or row["exact"][:20])
    return answer


def account_choice(store: RunStore, table_id: str) -> AccountChoice:
    """What is known of whose people a stored table is about."""
    with store.engine.connect() as connection:
        row = connection.execute(
            select(SketchRow.alike, SketchRow.words).where(SketchRow.table_id == table_id)
        ).first()
    account_id = store.table(table_id).account_id
    if row is None:  # stored without being compared
        return AccountChoice(account_id, ())
    linked = tuple(LinkedAccount(**one) for one in from_json(row.alike))
    return AccountChoice(account_id, linked, row.words)


def require_account(store: RunStore, table_id: str) -> None:
    """Refuse a table that shares rows with accounts that would not pay for it.

    Raises:
      RunStoreError: the steward has to say first whose people these are.
    """
    if account_choice(store, table_id).open:
        raise RunStoreError(
            "Rows of this table are also in tables of another account. Nothing was spent. "
            "Say on the Tables page whose people these are."
        )


def change_account(
    store: RunStore, table_id: str, account_id: str, words: str = ""
) -> AccountChoice:
    """Let another account pay for a stored table, before anything was released of it.

    Args:
      account_id: an account, or `NEW`.
      words: needed when another account shares rows with the table by now.

    Raises:
      RunStoreError: words are missing, or a run or release of the table is there already; nothing
        was changed.
    """
    before, fresh = store.table(table_id).account_id, secrets.token_hex(10)
    while True:
        with store.engine.connect() as connection:
            seen = _newest(connection)
        # tables that came in since count too, or the first of two could leave without a word
        linked = link_anew(store, table_id)
        chosen = _chosen(account_id, linked, fresh)
        answer = AccountChoice(chosen, linked, words.strip())
        if answer.open:
            raise RunStoreError(
                "Rows of this table are also in a table of another account. Nothing was "
                "changed. Say in words why these are other people."
            )
        if not answer.others:
            answer = AccountChoice(chosen, linked)
        if before != chosen:
            with exclusive_transaction(store.engine, *MOVED) as connection:
                _movable(store, connection, table_id)
        _declare(store, answer, key=table_id)  # first: a declaration too many is no false claim
        with exclusive_transaction(store.engine, *MOVED) as connection:
            if _newest(connection) != seen:
                continue  # another table came in meanwhile
            if before != chosen:
                _movable(store, connection, table_id)
            values = {"account_id": chosen, "words": answer.words}
            mine = SketchRow.table_id == table_id
            connection.execute(update(SketchRow).where(mine).values(**values))
            connection.execute(
                update(TableRow).where(TableRow.id == table_id).values(account_id=chosen)
            )
        return answer


def _movable(store: RunStore, connection: Connection, table_id: str) -> None:
    """Refuse to move a table that something may have been released of."""
    table = store.table(table_id)
    runs = connection.execute(select(func.count()).where(RunRow.table_id == table_id)).scalar_one()
    paid = [one for one in store.ledger.entries(table.account_id) if one.kind == "release"]
    if runs or any(one.seq > table.profile[NEWEST] for one in paid):
        raise RunStoreError(
            "Runs were made about these people since the table was brought in, and their "
            "account paid. Nothing was changed. Bring the table in again to say otherwise."
        )


def _chosen(account_id: str | None, linked: Sequence[LinkedAccount], fresh: str) -> str:
    if account_id is None:
        return linked[0].account_id if linked else fresh
    name = account_id.strip()
    if name == NEW:
        return fresh
    if not 0 < len(name) <= MOST_NAME or not name.isprintable():
        raise RunStoreError(
            "An account's name has 1 to {most_name} characters on one line. Nothing was changed.",
            most_name=MOST_NAME,
        )
    return name


def _declare(store: RunStore, answer: AccountChoice, *, key: str) -> None:
    """Into the ledger: these people are apart from those that share rows with them."""
    if not answer.others or not answer.words:
        return
    ledger = store.ledger
    for account_id in (answer.account_id, *(rival.account_id for rival in answer.others)):
        ledger.declare(
            account_id, answer.words, key=f"people {key} {account_id} {answer.account_id}"
        )


def _newest(connection: Connection) -> int:
    return connection.execute(select(func.coalesce(func.max(SketchRow.id), 0))).scalar_one()
