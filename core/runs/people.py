"""Whose people a table is about: which ledger account pays for its releases.

What is released about people adds up over all tables they are in, so an account belongs to people.
At import the rows are compared with every table the workspace has seen (also with those that were
deleted since, and those that the command line read), and the account with the largest overlap is
proposed. Rows that are kept out of training count like all others. The steward may say otherwise;
where rows overlap that takes words, which the ledger keeps and certificates repeat.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

import pandas as pd
from sqlalchemy import Connection, func, insert, select, update

from core.privacy.exclusive import exclusive
from core.privacy.ledger import Ledger
from core.runs.accounts import people_of
from core.runs.database import RunRow, SketchRow, TableRow
from core.runs.keys import people_key
from core.runs.store import RunStore, RunStoreError
from core.table.fingerprint import HashedTable, Sketch, exact_digest, sketch
from core.table.overlap import Overlap, compare

__all__ = [
    "NEW",
    "Likeness",
    "Whose",
    "account_names",
    "answered",
    "change",
    "likenesses",
    "settle",
    "whose",
]

NEW = "new"  # for `--people`: people that no earlier table is about
MOST_NAME = 60  # characters of an account's name


@dataclass(frozen=True)
class Likeness:
    """An account whose people a table is probably about.

    Attributes:
      people: the account.
      evidence: a sentence for the steward; it comes from rows and stays inside.
      strength: estimated share of rows shared, [0, 1].
    """

    people: str
    evidence: str
    strength: float


@dataclass(frozen=True)
class Whose:
    """Whose people a table is about.

    Attributes:
      people: the account that pays.
      alike: accounts that share rows with the table, the likeliest first; the first was proposed.
      words: what the steward wrote to keep these people apart from an account that shares rows.
    """

    people: str
    alike: tuple[Likeness, ...]
    words: str = ""

    @property
    def rivals(self) -> tuple[Likeness, ...]:
        """Accounts that share rows with the table and do not pay for it."""
        return tuple(one for one in self.alike if one.people != self.people)

    @property
    def open(self) -> bool:
        """Whether the steward still has to say whose people these are."""
        return bool(self.rivals) and not self.words


def account_names(store: RunStore, *, without: str | None = None) -> dict[str, str]:
    """All accounts, newest first, with the tables they are known by.

    Args:
      store: where.
      without: a table that is left out, with the account that nothing else is known by.
    """
    query = select(SketchRow.people, SketchRow.title, SketchRow.table_id)
    names: dict[str, list[str]] = {}
    with store.engine.connect() as connection:
        for people, title, table_id in connection.execute(query.order_by(SketchRow.id.desc())):
            if without is None or table_id != without:
                names.setdefault(people, []).append(f"'{title}'")
    for table in store.tables():
        if table.id != without:
            names.setdefault(table.people, []).append(f"'{table.name}'")
    own = None if without is None else store.table(without).people
    for entry in Ledger(store.engine).accounts():
        if entry.people != own:
            names.setdefault(entry.people, [])
    return {
        people: ", ".join(dict.fromkeys(titles)) or f"account {people}"
        for people, titles in names.items()
    }


def likenesses(store: RunStore, frame: pd.DataFrame) -> tuple[Likeness, ...]:
    """The accounts that share rows with a table, the likeliest first; stores nothing."""
    return _Comparison(store, frame).look()


def settle(
    store: RunStore,
    frame: pd.DataFrame,
    *,
    title: str,
    table_id: str | None = None,
    people: str | None = None,
    words: str = "",
) -> Whose:
    """Say which account pays for a table, and keep what its people are recognised by.

    Args:
      store: where.
      frame: all rows of the table, n ≥ 1, those kept out of training too.
      title: of the table, for people.
      table_id: of the table that will be stored; None for one that is not.
      people: an account's name; one that is not there is opened, and `NEW` opens a fresh one. None
        takes the account with the largest overlap, or a fresh one without any.
      words: why the table is to be kept apart from accounts that share rows.

    Returns:
      The account, with what was found; `Whose.open` when words are needed and there are none.

    Raises:
      RunStoreError: the name cannot be one.
    """
    comparison = _Comparison(store, frame)
    fresh = secrets.token_hex(10)
    while True:
        alike = comparison.look()
        chosen = _chosen(people, alike, fresh)
        answer = Whose(chosen, alike, words.strip() if people is not None else "")
        if not answer.rivals:
            answer = Whose(chosen, alike)
        row = comparison.row(answer, title=title, table_id=table_id)
        with exclusive(store.engine, SketchRow.__tablename__) as connection:
            # two imports of one table at once must end in one account: the later one looks again
            if _newest(connection) == comparison.seen:
                _keep(connection, row)
                break
    _declare(store, answer, key=table_id or row["exact"][:20])
    return answer


def whose(store: RunStore, table_id: str) -> Whose:
    """What is known of whose people a stored table is about."""
    with store.engine.connect() as connection:
        row = connection.execute(
            select(SketchRow.alike, SketchRow.words).where(SketchRow.table_id == table_id)
        ).first()
    people = store.table(table_id).people
    if row is None:  # kept by an older version
        return Whose(people, ())
    return Whose(people, tuple(Likeness(**one) for one in row.alike), row.words)


def answered(store: RunStore, table_id: str) -> None:
    """Refuse a table that shares rows with accounts that would not pay for it.

    Raises:
      RunStoreError: the steward has to say first whose people these are.
    """
    if whose(store, table_id).open:
        raise RunStoreError(
            "Rows of this table are also in tables of another account. Nothing was spent. Say on "
            "the Tables page whose people these are."
        )


def change(store: RunStore, table_id: str, people: str, words: str = "") -> Whose:
    """Let another account pay for a stored table, before anything was released of it.

    Args:
      store: where.
      table_id: which table.
      people: an account, or `NEW`.
      words: needed when another account shares rows with the table.

    Raises:
      RunStoreError: words are missing, or a run or release of the table is there already; nothing
        was changed.
    """
    before = whose(store, table_id)
    chosen = _chosen(people, before.alike, secrets.token_hex(10))
    answer = Whose(chosen, before.alike, words.strip())
    if answer.open:
        raise RunStoreError(
            "Rows of this table are also in a table of another account. Nothing was changed. Say "
            "in words why these are other people."
        )
    if not answer.rivals:
        answer = Whose(chosen, before.alike)
    if store.table(table_id).people != chosen:
        with exclusive(store.engine, SketchRow.__tablename__) as connection:
            _movable(store, connection, table_id)
    _declare(store, answer, key=table_id)  # first: a declaration too many is no false claim
    with exclusive(store.engine, SketchRow.__tablename__) as connection:
        if before.people != chosen:
            _movable(store, connection, table_id)
        values = {"people": chosen, "words": answer.words}
        mine = SketchRow.table_id == table_id
        connection.execute(update(SketchRow).where(mine).values(**values))
        connection.execute(update(TableRow).where(TableRow.id == table_id).values(people=chosen))
    return answer


def _movable(store: RunStore, connection: Connection, table_id: str) -> None:
    """Refuse to move a table that something may have been released of."""
    table = store.table(table_id)
    runs = connection.execute(select(func.count()).where(RunRow.table_id == table_id)).scalar_one()
    since = table.created.timestamp()
    entries = Ledger(store.engine).entries(table.people)
    if runs or any(entry.kind == "release" and entry.time >= since for entry in entries):
        raise RunStoreError(
            "Runs were made about these people since the table was brought in, and their account "
            "paid. Nothing was changed. Bring the table in again to say otherwise."
        )


def _chosen(people: str | None, alike: Sequence[Likeness], fresh: str) -> str:
    if people is None:
        return alike[0].people if alike else fresh
    name = people.strip()
    if name == NEW:
        return fresh
    if not 0 < len(name) <= MOST_NAME or not name.isprintable():
        raise RunStoreError(
            f"An account's name has 1 to {MOST_NAME} characters on one line. Nothing was changed."
        )
    return name


def _declare(store: RunStore, answer: Whose, *, key: str) -> None:
    """Into the ledger: these people are apart from those that share rows with them."""
    if not answer.rivals or not answer.words:
        return
    ledger = Ledger(store.engine)
    for people in (answer.people, *(rival.people for rival in answer.rivals)):
        ledger.declare(people, answer.words, key=f"people {key} {people} {answer.people}")


# -- comparing ----------------------------------------------------------------------------------


class _Comparison:
    """One table against all that were seen, also those that appear meanwhile.

    Attributes:
      seen: number of the newest sketch that was compared, 0 before any.
    """

    def __init__(self, store: RunStore, frame: pd.DataFrame) -> None:
        self.seen = 0
        self._store, self._frame = store, frame
        self._key = people_key(store.workspace)
        self._hashed = HashedTable.of(frame, self._key)
        self._exact = exact_digest(self._hashed, self._key)
        self._alike: dict[str, Likeness] = {}

    def look(self) -> tuple[Likeness, ...]:
        """Compare with what is new; all that is alike so far."""
        _catch_up(self._store, self._key)
        for row in _later(self._store, self.seen):
            self.seen = row.id
            overlap = compare(self._hashed, Sketch.from_bytes(row.body))
            exact = row.exact == self._exact
            if exact or (overlap is not None and overlap.same_people):
                self._add(row.people, _evidence(row, None if exact else overlap))
        self._older()
        return tuple(sorted(self._alike.values(), key=lambda one: -one.strength))

    def row(self, answer: Whose, *, title: str, table_id: str | None) -> dict[str, Any]:
        """What is kept of the table."""
        return {
            "table_id": table_id,
            "people": answer.people,
            "title": title,
            "created": time.time(),
            "exact": self._exact,
            "body": sketch(self._frame, self._key).to_bytes(),
            "alike": [asdict(one) for one in answer.alike],
            "words": answer.words,
        }

    def _older(self) -> None:
        """Accounts that an older version's command line opened: it kept no rows, only a digest."""
        accounts = {entry.people for entry in Ledger(self._store.engine).accounts()}
        with self._store.engine.connect() as connection:
            sketched = set(connection.scalars(select(SketchRow.people).distinct()))
        if accounts - sketched:
            people = people_of(self._frame)
            if people in accounts - sketched:
                self._add(people, ("All rows of this table were in an earlier one.", 1.0))

    def _add(self, people: str, found: tuple[str, float]) -> None:
        best = self._alike.get(people)
        if best is None or found[1] > best.strength:
            self._alike[people] = Likeness(people, *found)


def _catch_up(store: RunStore, key: bytes) -> None:
    """Sketch stored tables that have none: older versions kept none."""
    with store.engine.connect() as connection:
        there = set(connection.scalars(select(SketchRow.table_id)))
    for table in store.tables():
        if table.id in there:
            continue
        frame = store.load_frame(table.id)
        row = {
            "table_id": table.id,
            "people": table.people,
            "title": table.name,
            "created": table.created.timestamp(),
            "exact": exact_digest(HashedTable.of(frame, key), key),
            "body": sketch(frame, key).to_bytes(),
            "alike": [],
            "words": "",
        }
        with exclusive(store.engine, SketchRow.__tablename__) as connection:
            _keep(connection, row)


def _later(store: RunStore, seen: int) -> Iterator[SketchRow]:
    with store.engine.connect() as connection:
        query = select(SketchRow.id).where(SketchRow.id > seen).order_by(SketchRow.id)
        numbers = list(connection.scalars(query))
    for number in numbers:  # one at a time: together they may be large
        with store.engine.connect() as connection:
            row = connection.execute(select(SketchRow).where(SketchRow.id == number)).first()
        if row is not None:
            yield row  # type: ignore[misc]  # a row with the attributes of SketchRow


def _newest(connection: Connection) -> int:
    return connection.execute(select(func.coalesce(func.max(SketchRow.id), 0))).scalar_one()


def _keep(connection: Connection, row: dict[str, Any]) -> None:
    """Add a sketch, unless the same is there; the caller holds the lock."""
    same = select(SketchRow.id).where(
        SketchRow.people == row["people"],
        SketchRow.exact == row["exact"],
        SketchRow.table_id.is_(None)
        if row["table_id"] is None
        else SketchRow.table_id == row["table_id"],
    )
    if connection.execute(same).first() is None:
        connection.execute(insert(SketchRow).values(**row))


def _evidence(row: SketchRow, overlap: Overlap | None) -> tuple[str, float]:
    """A sentence on what is shared, and how much; None says that the tables are equal."""
    day = datetime.fromtimestamp(row.created, UTC)
    other = f"'{row.title}' (brought in {day.day} {day:%b %Y})"
    if overlap is None:
        return f"All rows of this table are also in {other}.", 1.0
    if overlap.of_new >= overlap.of_old or overlap.of_new >= 0.1:
        return f"{_many(overlap.of_new)} of this table are also in {other}.", overlap.of_new
    return f"{_many(overlap.of_old)} of {other} are also in this table.", overlap.of_old


def _many(share: float) -> str:
    """A share of rows in words, for reading aloud.

    >>> _many(1.0), _many(0.91), _many(0.031)
    ('Nearly all rows', 'About 9 of 10 rows', 'About 3 of 100 rows')
    """
    if share >= 0.95:
        return "Nearly all rows"
    if share >= 0.095:
        return f"About {round(10 * share)} of 10 rows"
    return f"About {max(1, round(100 * share))} of 100 rows"
