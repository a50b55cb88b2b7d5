"""Adding to the chain: only where it holds, and the head is kept afterwards."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, NamedTuple

from sqlalchemy import Connection, Engine, insert, select

from core.message import joined
from core.privacy.ledger.admission import LedgerError
from core.privacy.ledger.chain import GENESIS, ChainReport, Head, LedgerFiles, check_chain
from core.privacy.ledger.entries import Entry, entries_table
from core.privacy.ledger.shift_consistency import statements
from core.privacy.ledger.transaction import exclusive_transaction

REFUSED = (
    "No further run can be paid for. Nothing was read or spent. Restore the workspace from a "
    "backup that holds all entries. Without a backup, continue in a new workspace, with limits "
    "that leave room for what was released here."
)


class Appending(NamedTuple):
    """A transaction that may add to a chain that holds."""

    connection: Connection
    key: bytes

    def append(self, *, before: tuple[Entry, ...] = (), n: int = 1, **fields: Any) -> Entry:
        """Add an entry; `before` are the account's, which a release's certificate repeats."""
        end = _end(self.connection)
        plain = {"run": None, "model": "", "plan": "", "rho": 0.0}
        entry = Entry(seq=end.entries + 1, time=time.time(), previous=end.hash, **(plain | fields))
        if entry.kind == "release":
            entry = entry.model_copy(update={"statements": statements((*before, entry), n)})
        entry = entry.sealed(self.key)
        self.connection.execute(insert(entries_table).values(entry.row()))
        return entry


class SealedChain:
    """All entries of a database as one chain."""

    def __init__(self, engine: Engine, files: LedgerFiles):
        self._engine, self._files = engine, files

    def verify(self) -> ChainReport:
        """Check the chain from the first entry on."""
        for _ in range(2):  # an entry that is added between two looks is no fault
            with self._engine.connect() as connection:
                report, _key = self._check(connection)
            if report:
                break
        return report

    def _check(self, connection: Connection) -> tuple[ChainReport, bytes | None]:
        """Whether the chain holds, and its key; the head is looked at first, since entries grow."""
        kept = self._files.head()
        rows = connection.execute(select(entries_table).order_by(entries_table.c.seq)).all()
        key = self._files.key()
        return check_chain(rows, key, kept), key

    def _locked(self) -> AbstractContextManager[Connection]:
        return exclusive_transaction(self._engine, entries_table.name)

    @contextmanager
    def appending(self) -> Iterator[Appending]:
        """A transaction that may add to the chain; what it added is kept in the head afterwards.

        Were the head kept before the transaction ends, a crash between would leave a head without
        its entry, and a ledger that nobody can use. Kept after it, a crash leaves an entry that
        could be cut off unseen, of a release that has read no row yet.

        Raises:
          LedgerError: the chain does not hold, or cannot be checked; nothing was added.
        """
        with self._locked() as connection:
            report, key = self._check(connection)
            if not report:
                raise LedgerError(joined([report.problem, REFUSED]))
            key = key or self._files.make_key()
            if not report.entries:
                self._files.keep_head(Head(0, GENESIS).sealed(key))
            yield Appending(connection, key)
            end = _end(connection)
        self._keep(end, key)

    def _keep(self, end: Head, key: bytes) -> None:
        """Keep the head, under the lock: of two debits that end at once the later one holds."""
        with self._locked():
            kept = self._files.head()
            known = None if kept is None else Head.read(key, kept)
            if known is None or known.entries < end.entries:
                self._files.keep_head(end.sealed(key))


def _end(connection: Connection) -> Head:
    newest = select(entries_table.c.seq, entries_table.c.hash).order_by(entries_table.c.seq.desc())
    last = connection.execute(newest.limit(1)).first()
    return Head(0, GENESIS) if last is None else Head(last.seq, last.hash)
