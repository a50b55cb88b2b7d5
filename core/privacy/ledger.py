"""Ledger: what all releases about the same people may cost together, and what they did cost.

An account belongs to people, not to a file: overlapping or derived tables share one. It holds a
limit (ε_g, δ_g) set once, at registration. Later releases are chosen after seeing earlier ones, so
their ε cannot simply be composed afterwards; a *filter* decides, before data is read, whether a
release may still be admitted. Which filter is settled by the first release, before anything is
known about the data:

  RDP filter: at one order fixed with the limit, α* = 1 + 2 ln(1/δ_g)/ε_g, admit while
    Σρᵢ(α*) ≤ ε_g + ln(δ_g α*)/(α* - 1) - ln(1 - 1/α*).
  Sum filter, when the first release alone is too large for that but within the limit: admit while
    Σεᵢ ≤ ε_g and Σδᵢ ≤ δ_g.

Either keeps everything released about these people within (ε_g, δ_g) under zero-out, however
cleverly later plans were chosen (Feldman & Zrnic, "Individual privacy accounting via a Rényi
filter", 2021, Theorem 4.3; Rogers et al., "Privacy odometers and filters", 2016).

Entries are only ever added, each with the hash of the one before. The chain shows changed, removed
or reordered entries; that the newest ones were cut off shows only against a hash kept elsewhere,
such as the one in a certificate.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import Connection, Engine, insert, select
from sqlalchemy.schema import CreateTable

from core.privacy.entries import GENESIS, ChainReport, Entry, Left, check_chain, entries_table
from core.privacy.plan import Plan

__all__ = ["ChainReport", "Entry", "Ledger", "LedgerError", "Left", "OverBudgetError"]


class LedgerError(RuntimeError):
    """The ledger refused; nothing was spent."""


class OverBudgetError(LedgerError):
    """A release would exceed what may be learned about these people; nothing was spent."""


class Ledger:
    """Accounts and debits in a database.

    Args:
      engine: SQLite or PostgreSQL; the ledger's one table is made when absent.
    """

    def __init__(self, engine: Engine):
        self._engine = engine
        with engine.begin() as connection:
            connection.execute(CreateTable(entries_table, if_not_exists=True))

    def register(self, people: str, epsilon: float, delta: float) -> Entry:
        """Open an account; doing it again with the same limit changes nothing.

        Args:
          people: who the account is about; the key of every debit.
          epsilon: ε_g > 0, finite: the limit for all releases together.
          delta: δ_g in (0, 1), below one over the number of people.

        Raises:
          LedgerError: the account exists with another limit.
          ValueError: a limit out of range.
        """
        if not (math.isfinite(epsilon) and epsilon > 0.0 and 0.0 < delta < 1.0):
            raise ValueError(f"A limit needs finite ε > 0 and 0 < δ < 1, got ({epsilon}, {delta}).")
        with self._locked() as connection:
            known = _account(_entries(connection, people))
            if known is None:
                return _append(
                    connection, kind="account", people=people, epsilon=epsilon, delta=delta
                )
            if (known.epsilon, known.delta) != (epsilon, delta):
                raise LedgerError(
                    f"These people already have an account, with ε {known.epsilon:g} and "
                    f"δ {known.delta:g}. A limit cannot be changed after registration."
                )
            return known

    def debit(self, people: str, plan: Plan, run: str, *, allow_non_private: bool = False) -> Entry:
        """Pay for a whole plan, before any row is read; never refunded.

        What is charged is computed here from the plan's phases, whatever the plan says of itself.

        Args:
          people: a registered account.
          plan: what will run.
          run: the debit's key. Paying twice under one key for one plan returns the first entry, so
            a run that goes on from its checkpoint pays once; a run that starts again from nothing
            releases again and needs a key of its own.
          allow_non_private: record a plan without differential privacy, marked as such.

        Raises:
          OverBudgetError: the account's limit would be exceeded.
          LedgerError: no such account, the key paid for something else, or the plan is not private
            and that was not allowed.
        """
        from core.privacy.accountant import epsilon as compose  # costs 65 MB
        from core.privacy.accountant import renyi

        value, _ = compose(plan.charged, plan.budget.delta)
        private = math.isfinite(value)
        with self._locked() as connection:
            known = _entries(connection, people)
            paid = _paid(connection, people, plan, run)
            if paid is not None:
                return paid
            account = _account(known)
            if account is None:
                raise LedgerError("These people have no account. Register one before a run.")
            rho = renyi(plan.charged, _order(account)) if private else 0.0
            if private:
                _admit(known, epsilon=value, delta=plan.budget.delta, rho=rho)
            elif not allow_non_private:
                raise LedgerError(
                    "This run has no differential privacy, so no budget can pay for it. Nothing "
                    "was read. Confirm in words that it may run without protection, or choose a "
                    "finite ε."
                )
            return _append(
                connection,
                kind="release",
                people=people,
                run=run,
                model=plan.model,
                plan=plan.digest,
                epsilon=value if private else None,
                delta=plan.budget.delta,
                rho=rho,
            )

    def entries(self, people: str | None = None) -> tuple[Entry, ...]:
        """All entries in order, or those of one account."""
        with self._engine.connect() as connection:
            return _entries(connection, people)

    def accounts(self) -> tuple[Entry, ...]:
        """The entries that opened an account, in order."""
        return tuple(entry for entry in self.entries() if entry.kind == "account")

    def left(self, people: str) -> Left:
        """What the account's limit still allows.

        Raises:
          LedgerError: no such account.
        """
        known = self.entries(people)
        if _account(known) is None:
            raise LedgerError("These people have no account.")
        return _left(known)

    def would_admit(self, people: str, plan: Plan) -> bool:
        """Whether a debit of this private plan would pass now; spends nothing."""
        from core.privacy.accountant import epsilon as compose  # costs 65 MB
        from core.privacy.accountant import renyi

        value, _ = compose(plan.charged, plan.budget.delta)
        known = self.entries(people)
        account = _account(known)
        if account is None or not math.isfinite(value):
            return False
        rho = renyi(plan.charged, _order(account))
        return _admitted(known, epsilon=value, delta=plan.budget.delta, rho=rho)

    def verify(self) -> ChainReport:
        """Recompute every hash from the first entry on."""
        with self._engine.connect() as connection:
            query = select(entries_table).order_by(entries_table.c.seq)
            return check_chain([row._asdict() for row in connection.execute(query)])

    @contextmanager
    def _locked(self) -> Iterator[Connection]:
        """A transaction that no other writer can be in, on disk when it ends.

        Checking and paying must be one step: with SQLite's lazy BEGIN two processes could both
        read, both find room and both pay. The store's `synchronous = NORMAL` may lose the last
        transactions in a power cut, and a lost debit is a lost charge, so FULL is asked for.
        """
        sqlite = self._engine.dialect.name == "sqlite"
        if not sqlite:
            with self._engine.begin() as connection:
                connection.exec_driver_sql(f"LOCK TABLE {entries_table.name} IN EXCLUSIVE MODE")
                yield connection
            return
        with self._engine.connect() as connection:
            connection = connection.execution_options(isolation_level="AUTOCOMMIT")
            connection.exec_driver_sql("PRAGMA synchronous = FULL")
            connection.exec_driver_sql("BEGIN IMMEDIATE")
            try:
                yield connection
            except BaseException:
                connection.exec_driver_sql("ROLLBACK")
                raise
            connection.exec_driver_sql("COMMIT")


def _entries(connection: Connection, people: str | None) -> tuple[Entry, ...]:
    query = select(entries_table.c.body, entries_table.c.hash).order_by(entries_table.c.seq)
    if people is not None:
        query = query.where(entries_table.c.people == people)
    return tuple(Entry.read(body, digest) for body, digest in connection.execute(query))


def _append(
    connection: Connection,
    *,
    kind: str,
    people: str,
    epsilon: float | None,
    delta: float,
    run: str | None = None,
    model: str = "",
    plan: str = "",
    rho: float = 0.0,
) -> Entry:
    """Add an entry to the chain; the caller holds the lock."""
    newest = select(entries_table.c.seq, entries_table.c.hash).order_by(entries_table.c.seq.desc())
    last = connection.execute(newest.limit(1)).first()
    entry = Entry(
        seq=1 if last is None else last.seq + 1,
        time=time.time(),
        kind="account" if kind == "account" else "release",
        people=people,
        run=run,
        model=model,
        plan=plan,
        epsilon=epsilon,
        delta=delta,
        rho=rho,
        previous=GENESIS if last is None else last.hash,
    ).sealed()
    connection.execute(insert(entries_table).values(entry.row()))
    return entry


def _account(known: tuple[Entry, ...]) -> Entry | None:
    return next((entry for entry in known if entry.kind == "account"), None)


def _paid(connection: Connection, people: str, plan: Plan, run: str) -> Entry | None:
    """What this key paid already, if for the same people and plan."""
    query = select(entries_table.c.body, entries_table.c.hash).where(entries_table.c.run == run)
    row = connection.execute(query).first()
    if row is None:
        return None
    entry = Entry.read(row.body, row.hash)
    if (entry.people, entry.plan) != (people, plan.digest):
        raise LedgerError(
            f"The key '{run}' already paid for another plan. Nothing more was spent. "
            "Start a new run."
        )
    return entry


# -- filters --------------------------------------------------------------------------------------


def _order(account: Entry) -> float:
    """α*, fixed by the account's limit alone."""
    return 1.0 + 2.0 * math.log(1.0 / account.delta) / account.limit


def _capacity(account: Entry) -> float:
    """The most Σρᵢ(α*) may reach; can be ≤ 0 for limits so tight that only the sum filter works."""
    order = _order(account)
    correction = math.log(account.delta * order) / (order - 1.0)
    return account.limit + correction - math.log1p(-1.0 / order)


def _releases(known: tuple[Entry, ...]) -> list[Entry]:
    return [e for e in known if e.kind == "release" and e.private]


def _by_sum(known: tuple[Entry, ...], first_rho: float) -> bool:
    """Whether the sum filter governs: settled by the first private release, before any output."""
    account = _account(known)
    assert account is not None
    earlier = _releases(known)
    rho = earlier[0].rho if earlier else first_rho
    return rho > _capacity(account)


def _admitted(known: tuple[Entry, ...], *, epsilon: float, delta: float, rho: float) -> bool:
    account = _account(known)
    assert account is not None
    earlier = _releases(known)
    if not _by_sum(known, rho):
        total = math.fsum([*(e.rho for e in earlier), rho])
        return total <= _capacity(account)
    spent = math.fsum([*(e.limit for e in earlier), epsilon])
    failed = math.fsum([*(e.delta for e in earlier), delta])
    return spent <= account.limit and failed <= account.delta


def _admit(known: tuple[Entry, ...], *, epsilon: float, delta: float, rho: float) -> None:
    if _admitted(known, epsilon=epsilon, delta=delta, rho=rho):
        return
    left = _left(known)
    raise OverBudgetError(
        f"This run needs ε {epsilon:.2f}; {left.words(delta)} is left of these people's "
        f"ε {left.limit:g} (δ {left.delta:g}). Nothing was spent. Lower ε or ask the table's owner."
    )


def _left(known: tuple[Entry, ...]) -> Left:
    account = _account(known)
    assert account is not None
    earlier = _releases(known)
    by_sum = _by_sum(known, 0.0)
    return Left(
        limit=account.limit,
        delta=account.delta,
        order=_order(account),
        releases=len(earlier),
        non_private=sum(not e.private for e in known if e.kind == "release"),
        filter="sum" if by_sum else "rdp",
        capacity=account.limit if by_sum else _capacity(account),
        spent=math.fsum((e.limit if by_sum else e.rho) for e in earlier),
        delta_spent=math.fsum(e.delta for e in earlier) if by_sum else 0.0,
    )
