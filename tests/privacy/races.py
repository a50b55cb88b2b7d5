"""What processes do that race for one account.

Each of them imports this module anew, so it is light: plans come ready-made, and no tensors.
"""

from __future__ import annotations

from multiprocessing.queues import Queue
from multiprocessing.synchronize import Barrier

from sqlalchemy import Engine, create_engine

from core.privacy.ledger.admission import HiddenError, OverBudgetError
from core.privacy.ledger.ledger import Ledger
from core.privacy.plan import Plan
from core.schema.schema import Domain
from tests.ledger_files import ledger_files


def opened(url: str) -> Engine:
    """An engine whose writers wait for each other; whoever has most to do waits long."""
    patient = {"timeout": 60} if url.startswith("sqlite") else {}
    return create_engine(url, connect_args=patient)


def passes(ledger: Ledger, plan: Plan, account_id: str, key: str) -> bool:
    """Whether the ledger admits a plan."""
    try:
        ledger.debit(account_id, plan, key)
    except OverBudgetError:
        return False
    return True


def spend(
    url: str,
    home: str,
    name: str,
    plan: Plan,
    common: Plan,
    barrier: Barrier,
    results: Queue[tuple[int, int]],
) -> None:
    """Pay 20 times for one plan, then for another under a key that all share.

    Puts how many passed, and the shared entry's number: 0 when it was refused.
    """
    ledger = Ledger(opened(url), ledger_files(home))
    barrier.wait()
    passed = sum(passes(ledger, plan, "people", f"{name}-{i}") for i in range(20))
    try:
        entry = ledger.debit("people", common, "common").seq
    except OverBudgetError:
        entry = 0
    results.put((passed, entry))


def settle(
    url: str,
    home: str,
    name: str,
    plan: Plan,
    domain: Domain,
    barrier: Barrier,
    results: Queue[bool],
) -> None:
    """Pay once for a plan that hides a distribution; puts whether it was admitted."""
    ledger = Ledger(opened(url), ledger_files(home))
    barrier.wait()
    try:
        ledger.debit("people", plan, name, domain=domain)
        results.put(True)
    except HiddenError:
        results.put(False)
