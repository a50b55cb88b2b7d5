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
cleverly later plans were chosen; a part of δ_g is set aside where lists are learned, see
`core.privacy.ledger.filters` (Feldman & Zrnic, "Individual privacy accounting via a Rényi
filter", 2021, Theorem 4.3; Rogers et al., "Privacy odometers and filters", 2016).

Entries are only ever added, and only to a chain that holds (`core.privacy.ledger.chain`): it is
checked from the first entry on, under the lock in which the next one is added. That takes about
50 ms for 10,000 entries, less than the price of one plan, so nothing of it is remembered.
"""

from __future__ import annotations

import math
from typing import Any, Literal

from sqlalchemy import Connection, Engine, func, select

from core.privacy.ledger.admission import (
    LedgerError,
    admit,
    confirmation,
    price_of,
    unit_confirmation,
)
from core.privacy.ledger.appending import Appending, SealedChain
from core.privacy.ledger.chain import ChainReport, LedgerFiles
from core.privacy.ledger.entries import Entry, Left, entries_table
from core.privacy.ledger.filters import check_limit, left_of, opening
from core.privacy.ledger.shift_consistency import MAX_WORDS, ReleaseScope, objection
from core.privacy.ledger.transaction import make_absent, repeatable
from core.privacy.ledger.units import unit_objection
from core.privacy.plan import Plan
from core.schema.schema import Domain


class Ledger:
    """Accounts and debits in a database; the chain's key and head lie elsewhere, in `files`."""

    def __init__(self, engine: Engine, files: LedgerFiles):
        self._engine, self._chain = engine, SealedChain(engine, files)
        make_absent(engine, entries_table)

    @repeatable
    def register(self, account_id: str, epsilon: float, delta: float, *, n: int) -> Entry:
        """Open an account with a limit (ε_g, δ_g); again with the same limit changes nothing.

        Raises:
          LedgerError: the account exists with another limit.
          ValueError: a limit out of range: at δ = 1/n, publishing a record outright would pass.
        """
        check_limit(epsilon, delta, n)
        with self._chain.appending() as chain:
            known = opening(_entries(chain.connection, account_id))
            if known is None:
                return _open(chain, account_id, epsilon, delta, n=n)
            if (known.epsilon, known.delta) != (epsilon, delta):
                raise LedgerError(
                    "These people already have an account, with ε {epsilon:g} and δ {delta:g}. "
                    "A limit cannot be changed after registration.",
                    epsilon=known.limit,
                    delta=known.delta,
                )
            return known

    @repeatable
    def debit(
        self,
        account_id: str,
        plan: Plan,
        run: str,
        *,
        allow_non_private: bool = False,
        domain: Domain | None = None,
        words: str = "",
        unit_words: str = "",
        limit: tuple[float, float] | None = None,
    ) -> Entry:
        """Pay for a whole plan, before any row is read; never refunded.

        What is charged is computed here from the plan's phases, whatever the plan says of itself.

        Args:
          run: the debit's key. Paying twice under one key for one plan returns the first entry, so
            a run that goes on from its checkpoint pays once; one that starts again from nothing
            releases again and needs a key of its own.
          allow_non_private: record a plan without differential privacy, marked as such.
          domain: of the released columns; a debit without one counts as showing any column.
          words: what the steward wrote to allow a release that reveals hidden distributions; each
            later certificate of the account repeats it.
          limit: (ε_g, δ_g) that this release opens the account with, when there is none.

        Raises:
          OverBudgetError: the account's limit would be exceeded.
          MixedUnitsError: earlier releases protect another unit, and nobody confirmed that.
          HiddenError: together with earlier releases this one would reveal a hidden distribution,
            and nobody confirmed that in words.
          LedgerError: no such account, the key paid for something else, δ ≥ 1/n, the plan is not
            private and that was not allowed, or the chain does not hold.
        """
        epsilon = price_of(plan)  # takes longer than anybody should wait for the lock
        with self._chain.appending() as chain:
            if (paid := _paid(chain.connection, account_id, plan, run)) is not None:
                return paid
            return _release(
                chain,
                account_id,
                plan,
                run,
                epsilon=epsilon,
                allow_non_private=allow_non_private,
                domain=domain,
                words=words,
                unit_words=unit_words,
                limit=limit,
            )

    @repeatable
    def declare(
        self,
        account_id: str,
        words: str,
        *,
        key: str,
        kind: Literal["statement", "shared"] = "statement",
    ) -> Entry:
        """Keep what was declared about an account, once for a key; later certificates repeat it."""
        if not words.strip():
            raise ValueError("A declaration needs words.")
        with self._chain.appending() as chain:
            for entry in _entries(chain.connection, account_id):
                if entry.run == key:
                    return entry
            return chain.append(
                kind=kind,
                account_id=account_id,
                run=key,
                epsilon=None,
                delta=0.0,
                words=" ".join(words.split())[:MAX_WORDS],
            )

    def settled_shift(self, account_id: str, scope: ReleaseScope) -> Entry | None:
        """The entry that settles the shift of an account's releases of a scope; None without."""
        return next((one for one in self.entries(account_id) if scope.settles(one)), None)

    @repeatable
    def settle_shift(
        self, account_id: str, scope: ReleaseScope, digest: str, *, private: bool
    ) -> Entry:
        """Settle by which function releases of a scope are shifted; whoever is first settles it."""
        with self._chain.appending() as chain:
            for entry in _entries(chain.connection, account_id):
                if scope.settles(entry):
                    return entry
            return chain.append(
                kind="shift",
                account_id=account_id,
                plan=digest,
                epsilon=0.0 if private else None,
                delta=0.0,
                groups=scope.groups,
                shift=scope.shift,
                domain_digest=scope.domain_digest,
            )

    def objection(self, account_id: str, plan: Plan, domain: Domain) -> str | None:
        """Why a debit of this plan would need words about hidden distributions; None if not."""
        return objection(self.entries(account_id), ReleaseScope.of(plan, domain))

    def unit_objection(self, account_id: str, plan: Plan) -> str | None:
        """Why a debit of this plan would need words about whom it protects; None if not."""
        return unit_objection(self.entries(account_id), plan)

    def entries(self, account_id: str | None = None) -> tuple[Entry, ...]:
        """All entries in order, or those of one account."""
        with self._engine.connect() as connection:
            return _entries(connection, account_id)

    def newest(self) -> int:
        """Number of the newest entry; 0 before any."""
        with self._engine.connect() as connection:
            return connection.scalar(select(func.max(entries_table.c.seq))) or 0

    def accounts(self) -> tuple[Entry, ...]:
        """The entries that opened an account, in order."""
        return tuple(entry for entry in self.entries() if entry.kind == "account")

    def left(self, account_id: str) -> Left:
        """What the account's limit still allows."""
        known = self.entries(account_id)
        if opening(known) is None:
            raise LedgerError("These people have no account.")
        return left_of(known)

    def verify(self) -> ChainReport:
        """Check the chain from the first entry on."""
        return self._chain.verify()


def _entries(connection: Connection, account_id: str | None) -> tuple[Entry, ...]:
    query = select(entries_table.c.body, entries_table.c.hash).order_by(entries_table.c.seq)
    if account_id is not None:
        query = query.where(entries_table.c.account_id == account_id)
    return tuple(Entry.read(body, digest) for body, digest in connection.execute(query))


def _of_plan(plan: Plan) -> dict[str, Any]:
    """What an entry says of a plan."""
    return {
        "n": plan.n,
        "model": plan.model,
        "plan": plan.digest,
        "delta": plan.budget.delta,
        "failure": plan.failure,
    }


def _release(
    chain: Appending,
    account_id: str,
    plan: Plan,
    run: str,
    *,
    epsilon: float,
    allow_non_private: bool = False,
    domain: Domain | None,
    words: str,
    unit_words: str,
    limit: tuple[float, float] | None,
) -> Entry:
    """Charge a plan that nobody paid for yet; see `Ledger.debit`. ε is the plan's price."""
    known = _entries(chain.connection, account_id)
    if opening(known) is None and limit is not None:
        known = (*known, _open(chain, account_id, *limit, n=plan.n))
    rho = admit(known, plan, epsilon, allow_non_private=allow_non_private)
    scope = ReleaseScope.of(plan, domain)
    return chain.append(
        before=known,
        kind="release",
        account_id=account_id,
        run=run,
        epsilon=epsilon if math.isfinite(epsilon) else None,
        rho=rho,
        words=confirmation(known, scope, words, run),
        unit_words=unit_confirmation(known, plan, unit_words),
        **_of_plan(plan),
        **scope.fields(),
    )


def _open(chain: Appending, account_id: str, epsilon: float, delta: float, *, n: int) -> Entry:
    check_limit(epsilon, delta, n)
    return chain.append(kind="account", account_id=account_id, epsilon=epsilon, delta=delta)


def _paid(connection: Connection, account_id: str, plan: Plan, run: str) -> Entry | None:
    """What this key paid already, if for the same people and plan."""
    query = select(entries_table.c.body, entries_table.c.hash).where(entries_table.c.run == run)
    row = connection.execute(query).first()
    if row is None:
        return None
    entry = Entry.read(row.body, row.hash)
    if (entry.account_id, entry.plan) != (account_id, plan.digest):
        raise LedgerError(
            "The key '{run}' already paid for another plan. Nothing more was spent. Start a "
            "new run.",
            run=run,
        )
    return entry
