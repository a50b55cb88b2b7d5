"""Ledger accounts: their limit, and paying from them. Whose they are: `runs.accounts.people`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from core.message import ReportedError
from core.privacy.ledger.admission import HiddenError, MixedUnitsError
from core.privacy.ledger.entries import Entry, Left
from core.privacy.ledger.filters import opening
from core.privacy.ledger.ledger import Ledger
from core.privacy.plan import LARGEST_EPSILON, Plan
from core.runs import operations_log
from core.runs.records import RunRecord
from core.runs.storage.store import RunStore
from core.schema.schema import Domain

DEFAULT_LIMIT = 10.0  # ε_g of an account that nobody set a limit for before its first release
MOST_DELTA = 2e-5  # δ_g of such an account, unless it has so many records that less is needed


def default_limit(n: int) -> tuple[float, float]:
    """(ε_g, δ_g) for people nobody set a limit for: 10, and min(2e-5, 1/(2n)).

    Public numbers alone decide. δ_g stays below 1/n, and above the δ that runs use, so that a first
    run that takes most of ε_g is not refused for its δ.

    Args:
      n: number of records, ≥ 1.

    >>> default_limit(891), default_limit(1_000_000)
    ((10.0, 2e-05), (10.0, 5e-07))
    """
    return DEFAULT_LIMIT, min(MOST_DELTA, 1.0 / (2 * n))


def pay(
    ledger: Ledger,
    account_id: str,
    plan: Plan,
    key: str,
    *,
    domain: Domain,
    allow_non_private: bool,
    shift_words: str = "",
    unit_words: str = "",
) -> Entry:
    """Debit a run's plan; a first release opens the account, with the default limit.

    Args:
      key: of the debit, see `Ledger.debit`.
      allow_non_private: whether the steward confirmed a run without differential privacy.
      shift_words: what the steward wrote to allow a release that betrays hidden distributions.
      unit_words: what the steward wrote to allow a release that protects another unit.

    Raises:
      LedgerError: as `Ledger.debit`; nothing was spent.
    """
    entry = ledger.debit(
        account_id,
        plan,
        key,
        allow_non_private=allow_non_private,
        domain=domain,
        words=shift_words,
        unit_words=unit_words,
        limit=default_limit(plan.n),
    )
    operations_log.record(
        "debit", entry=entry.id, model=entry.model, epsilon=entry.epsilon, delta=entry.delta
    )
    return entry


def require_words(
    ledger: Ledger,
    account_id: str,
    plan: Plan,
    *,
    domain: Domain,
    shift_words: str,
    unit_words: str,
) -> None:
    """Refuse a plan that `pay` would refuse for want of words.

    Raises:
      HiddenError, MixedUnitsError: words are needed; nothing was spent.
    """
    hidden = ledger.objection(account_id, plan, domain)
    if hidden is not None and not shift_words.strip():
        raise HiddenError(hidden)
    mixed = ledger.unit_objection(account_id, plan)
    if mixed is not None and not unit_words.strip():
        raise MixedUnitsError(mixed)


def debits_of(entries: Iterable[Entry], run: RunRecord) -> tuple[Entry, ...]:
    """The entries that paid for a run: one, and one more for each start from the beginning.

    The run's own note of its entry is written after the debit, so that a process may die between
    the two, and it is forgotten when the run begins again.
    """
    again = f"{run.id}."
    return tuple(e for e in entries if e.run == run.id or (e.run or "").startswith(again))


def charges(store: RunStore, run: RunRecord) -> int:
    """How often the ledger was debited for a run: at most once for each of its attempts."""
    found = len(debits_of(store.ledger.entries(run.account_id), run))
    return max(found, int(run.debit is not None))


def unpaid_again(store: RunStore, run: RunRecord) -> bool:
    """Whether a run is to begin again at its full price, and could not pay it yet."""
    return run.debit is None and run.attempt > max(1, charges(store, run))


@dataclass(frozen=True)
class Account:
    """What the ledger knows of a table's people.

    Attributes:
      limit, delta: (ε_g, δ_g) for all releases together; None before the account is opened.
      left: what the limit still allows; None before the account is opened.
      entries: the account's ledger entries, oldest first.
    """

    account_id: str
    limit: float | None
    delta: float | None
    left: Left | None
    entries: tuple[Entry, ...]


def table_account(store: RunStore, table_id: str) -> Account:
    """The ledger account of a table's people, which may have no entry yet."""
    account_id = store.table(table_id).account_id
    ledger = store.ledger
    entries = ledger.entries(account_id)
    opened = opening(entries)
    if opened is None:
        return Account(account_id, None, None, None, entries)
    return Account(account_id, opened.limit, opened.delta, ledger.left(account_id), entries)


def set_limit(
    store: RunStore, table_id: str, *, epsilon: float, delta: float | None = None
) -> Account:
    """Set, once, what all releases about a table's people may cost together.

    Args:
      epsilon: ε_g in (0, 100], see `core.privacy.plan.LARGEST_EPSILON`.
      delta: δ_g in (0, 1/n); that of `default_limit` when None.

    Raises:
      LedgerError: a first release, or somebody, has settled the limit already.
      ValueError: a limit out of range.
    """
    if epsilon > LARGEST_EPSILON:
        raise ReportedError(
            "A limit of ε {epsilon:g} protects nobody: above ε {largest_epsilon:g} hardly any "
            "noise is left in what is released. Nothing was changed. Choose a smaller limit.",
            epsilon=epsilon,
            largest_epsilon=LARGEST_EPSILON,
        )
    table, ledger = store.table(table_id), store.ledger
    delta = default_limit(table.training_n)[1] if delta is None else delta
    ledger.register(table.account_id, epsilon, delta, n=table.training_n)
    return table_account(store, table_id)
