"""Record linkage: whose people a table is about, by the rows it shares with earlier tables.

Compared are stored tables, tables that were deleted since, and those that the command line read.
Where people sign in, a table is compared only with what its owner may see: that its rows are also
in somebody else's table would tell the owner who is in there. What others hold is not even read, so
that time does not tell it either.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any, Self

import pandas as pd
from sqlalchemy import Connection, insert, select, update

from core.importing import record_hashes as hashes
from core.importing.record_overlap import Overlap, estimate_overlap
from core.message import Message, day, from_json, to_json
from core.reading.raw_cells import raw_frame
from core.runs.storage.access import accesses
from core.runs.storage.database import SketchRow, TableRow
from core.runs.storage.store import RunStore
from core.runs.storage.workspace_secrets import people_key


@dataclass(frozen=True)
class LinkedAccount:
    """An account whose people a table is probably about.

    Attributes:
      evidence: a sentence for the steward; it comes from rows and stays inside.
      strength: estimated share of rows shared, [0, 1].
    """

    account_id: str
    evidence: str
    strength: float


@dataclass(frozen=True)
class Compared:
    """What of a table is compared with others, and kept of it.

    Attributes:
      hashed: of all of them, or of a random part.
      exact: a digest that equal tables share.
    """

    n: int
    hashed: hashes.HashedTable
    exact: str
    sample: hashes.RecordSample

    @classmethod
    def of(cls, frame: pd.DataFrame, key: bytes) -> Self:
        """A table that is in memory.

        Args:
          frame: all its rows, typed, n ≥ 1.
          key: secret bytes of the workspace.
        """
        most = hashes.most_compared(frame.shape[1])
        if len(frame) > most:
            rows, seed = hashes.DrawnRows(), int.from_bytes(key[:4], "big")
            rows.add(raw_frame(frame))
            names = tuple(map(str, frame.columns))
            part = frame.sample(most, random_state=seed)
            return cls.of_part(part, len(frame), names, rows.sums(), key)
        hashed = hashes.HashedTable.of(frame, key)
        exact, sample = hashes.table_digest(hashed, key), hashes.sample_records(frame, hashed, key)
        return cls(len(frame), hashed, exact, sample)

    @classmethod
    def of_part(
        cls, part: pd.DataFrame, n: int, names: tuple[str, ...], sums: str, key: bytes
    ) -> Self:
        """A table of which a part is enough to meet others; equal ones are told by all rows.

        Args:
          part: rows of it, typed, in random order; all of them, in any order, where there are few.
          sums: of all rows, see `DrawnRows.sums`.
          key: secret bytes of the workspace.
        """
        if len(part) == n:
            return cls.of(part, key)
        told = "\x1f".join((*names, str(n), sums)).encode()
        exact = hashlib.blake2b(told, key=key, digest_size=32).hexdigest()
        return cls(n, hashes.HashedTable.of(part, key), exact, hashes.sample_of_drawn(part, n, key))

    def sketch(
        self,
        account_id: str,
        *,
        title: str,
        table_id: str | None,
        linked: tuple[LinkedAccount, ...] = (),
        words: str = "",
        owner: str = "",
    ) -> dict[str, Any]:
        """What is kept of the table, whose account is known.

        Args:
          table_id: of the table; None for one that is not stored.
          linked: accounts that share rows, the likeliest first.
          words: why the table is kept apart from them, or "".
          owner: of the table, or "".
        """
        return {
            "table_id": table_id,
            "account_id": account_id,
            "title": title,
            "created": time.time(),
            "exact": self.exact,
            "body": self.sample.to_bytes(),
            "alike": to_json([asdict(one) for one in linked]),
            "words": words,
            "owner": owner,
        }


class Comparison:
    """One table against all that were seen, also those that appear meanwhile.

    Attributes:
      seen: number of the newest sketch that was looked for, 0 before any.

    Args:
      viewer: who would hear of what is found; see `visible_sketches`.
    """

    def __init__(self, store: RunStore, table: pd.DataFrame | Compared, viewer: str | None) -> None:
        self.seen, self._viewer = 0, viewer
        self._store = store
        if not isinstance(table, Compared):
            table = Compared.of(table, people_key(store.workspace))
        self.table = table
        self._linked: dict[str, LinkedAccount] = {}

    def linked(self) -> tuple[LinkedAccount, ...]:
        """Compare with what is new; every account linked so far."""
        table = hashes.RecordSample(self.table.n, self.table.hashed)
        there = visible_sketches(self._store, None)
        seen = visible_sketches(self._store, self._viewer)
        for row in _read(self._store, [number for number in seen if number > self.seen]):
            _add(self._linked, row.account_id, _shared(row, table, self.table.exact))
        self.seen = max((self.seen, *there))
        return _likeliest_first(self._linked)


def visible_sketches(store: RunStore, viewer: str | None) -> list[int]:
    """Numbers of the sketches of tables that somebody may see, in order.

    Args:
      viewer: address of a steward who signed in; "" for who is here where nobody signs in, and sees
        what has no owner; None for whoever runs the machine, and sees everything.
    """
    query = select(SketchRow.id, SketchRow.owner, SketchRow.table_id).order_by(SketchRow.id)
    with store.engine.connect() as connection:
        rows = connection.execute(query).all()
        stored = set(connection.scalars(select(TableRow.id)))
    if viewer is None:
        return [row.id for row in rows]
    if not viewer:
        return [row.id for row in rows if not row.owner]
    allowed = accesses(store)
    shared = {
        table_id
        for table_id in stored
        if table_id not in allowed or allowed[table_id].admits(viewer, steward=True)
    }
    return [row.id for row in rows if row.owner == viewer or row.table_id in shared]


def link_anew(store: RunStore, table_id: str) -> tuple[LinkedAccount, ...]:
    """The accounts that share rows with a stored table by now, the likeliest first; they are kept.

    Compared is what the table's owner may see.

    What was found at import knows nothing of tables that came in later, and no row is read for
    those: what is kept of all tables is compared.
    """
    with store.engine.connect() as connection:
        own = connection.execute(select(SketchRow).where(SketchRow.table_id == table_id)).one()
    mine = hashes.RecordSample.from_bytes(own.body)
    found = {one["account_id"]: LinkedAccount(**from_json(one)) for one in own.alike}
    for row in _read(store, visible_sketches(store, own.owner)):
        if row.table_id != table_id:
            _add(found, row.account_id, _shared(row, mine, own.exact))
    linked = _likeliest_first(found)
    with store.engine.begin() as connection:
        kept = to_json([asdict(one) for one in linked])
        connection.execute(update(SketchRow).where(SketchRow.id == own.id).values(alike=kept))
    return linked


def _shared(row: Any, table: hashes.RecordSample, exact: str) -> tuple[str, float] | None:
    """How a table shares rows with one that was seen, in words and strength; None where not.

    Args:
      row: what is kept of the one that was seen.
    """
    earlier = hashes.RecordSample.from_bytes(row.body)
    if row.exact == exact or _equal(table, earlier):
        return _evidence(row, None)
    overlap = estimate_overlap(table.sample, earlier, n=table.n)
    return _evidence(row, overlap) if overlap is not None and overlap.same_people else None


def shared_rows(earlier: Any, later: Any) -> int:
    """About how many rows two tables share; 0 where their people differ."""
    old, new = (hashes.RecordSample.from_bytes(one.body) for one in (earlier, later))
    if earlier.exact == later.exact or _equal(new, old):
        return new.n
    overlap = estimate_overlap(new.sample, old, n=new.n)
    if overlap is None or not overlap.same_people:
        return 0
    return max(1, round(overlap.of_new * new.n))


def _add(
    linked: dict[str, LinkedAccount], account_id: str, evidence: tuple[str, float] | None
) -> None:
    """Keep the strongest evidence for each account."""
    best = linked.get(account_id)
    if evidence is not None and (best is None or evidence[1] > best.strength):
        linked[account_id] = LinkedAccount(account_id, *evidence)


def _likeliest_first(linked: dict[str, LinkedAccount]) -> tuple[LinkedAccount, ...]:
    return tuple(sorted(linked.values(), key=lambda one: -one.strength))


def _equal(one: hashes.RecordSample, other: hashes.RecordSample) -> bool:
    """Whether two tables of which all rows are here hold the same ones."""
    whole = all(table.n == table.sample.n for table in (one, other))
    return whole and hashes.same_rows(one.sample, other.sample)


def _read(store: RunStore, numbers: Sequence[int]) -> Iterator[SketchRow]:
    for number in numbers:  # one at a time: together they may be large
        with store.engine.connect() as connection:
            row = connection.execute(select(SketchRow).where(SketchRow.id == number)).first()
        if row is not None:
            yield row  # type: ignore[misc]  # a row with the attributes of SketchRow


def _evidence(row: SketchRow, overlap: Overlap | None) -> tuple[str, float]:
    """A sentence on what is shared, and how much; None says that the tables are equal."""
    imported = day(datetime.fromtimestamp(row.created, UTC))
    other = Message("'{title}' (imported on {day})", title=row.title, day=imported)
    if overlap is None:
        return Message("All rows of this table are also in {other}.", other=other), 1.0
    if overlap.of_new >= overlap.of_old or overlap.of_new >= 0.1:
        return Message(
            "{share} of this table are also in {other}.", share=_many(overlap.of_new), other=other
        ), overlap.of_new
    return Message(
        "{share} of {other} are also in this table.", share=_many(overlap.of_old), other=other
    ), overlap.of_old


def _many(share: float) -> Message:
    """A share of rows in words, for reading aloud.

    >>> _many(1.0), _many(0.91), _many(0.031)
    ('Nearly all rows', 'About 9 of 10 rows', 'About 3 of 100 rows')
    """
    if share >= 0.95:
        return Message("Nearly all rows")
    if share >= 0.095:
        return Message("About {n} of 10 rows", n=round(10 * share))
    return Message("About {n} of 100 rows", n=max(1, round(100 * share)))


def add_sketch(connection: Connection, row: dict[str, Any]) -> None:
    """Add a sketch, unless the same is there; the caller holds the lock."""
    same = select(SketchRow.id).where(
        SketchRow.account_id == row["account_id"],
        SketchRow.exact == row["exact"],
        SketchRow.table_id.is_(None)
        if row["table_id"] is None
        else SketchRow.table_id == row["table_id"],
    )
    if connection.execute(same).first() is None:
        connection.execute(insert(SketchRow).values(**row))
