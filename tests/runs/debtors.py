"""A process that pays from accounts of a workspace, beside others that do the same.

    python -m tests.runs.debtors HOME server|worker [--unlocked]

Reads one line of JSON, [[people, plan, key], …], when it is told to begin; writes one line with
what became of each key and the seconds it took. A server opens the accounts and looks at them
between debits, as pages do; a worker only pays, as runs do. Unlocked, it is the broken twin:
looking and writing are two steps.
"""

from __future__ import annotations

import contextlib
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import IntegrityError

from core.privacy.accounting.accountant import epsilon as price  # imported before the race begins
from core.privacy.ledger import appending
from core.privacy.ledger import ledger as book
from core.privacy.ledger.admission import LedgerError, OverBudgetError
from core.privacy.ledger.ledger import Ledger
from core.privacy.plan import Plan
from core.runs.accounts.account import pay
from core.runs.storage.store import RunStore
from core.runs.workspace import Workspace
from core.schema.column import Column, Kind
from core.schema.schema import Schema

__all__ = ["DOMAIN", "LIMIT", "N", "main"]

N = 1000  # records of every account
LIMIT = (2.0, 1e-5)  # of the accounts that servers open
DEFAULTED = "opened by a debit"
COLUMN = Column(name="x", kind=Kind.NUMBER, low=0.0, high=1.0, dtype="float64")
DOMAIN = Schema(columns=(COLUMN,)).domain()
WINDOW = 0.2  # seconds between looking and writing, where nothing is locked


@contextlib.contextmanager
def unlocked(engine: Engine, table: str) -> Iterator[Connection]:
    """What `exclusive_transaction` must not be: an ordinary transaction."""
    with engine.begin() as connection:
        yield connection


def slowly(admit: Any) -> Any:
    """The filter's decision, then a moment in which another process may write."""

    def decide(*given: Any, **more: Any) -> Any:
        decision = admit(*given, **more)
        time.sleep(WINDOW)
        return decision

    return decide


def attempt(ledger: Ledger, account_id: str, plan: Plan, key: str, *, opens: bool) -> str:
    """Pay once; the entry's name, "" where the ledger refused."""
    while True:
        try:
            if opens:
                ledger.register(account_id, *LIMIT, n=N)
            entry = pay(ledger, account_id, plan, key, domain=DOMAIN, allow_non_private=False)
            return entry.id
        except OverBudgetError:
            return ""
        except (IntegrityError, LedgerError):
            if appending.exclusive_transaction is not unlocked:
                raise  # where it is locked nothing takes a number twice or sees half an entry


def main() -> int:
    """Pay as told on stdin."""
    home, role, *flags = sys.argv[1:]
    if flags:
        # refuses a name that the ledger no longer uses, which would leave it locked
        patch.multiple(book, admit=slowly(book.admit)).start()
        patch.multiple(appending, exclusive_transaction=unlocked).start()
    with RunStore(Workspace(Path(home))) as store:
        ledger = store.ledger
        print("ready", flush=True)
        debits = json.loads(sys.stdin.readline())
        plans = {text: Plan.model_validate_json(text) for text in {plan for _, plan, _ in debits}}
        for plan in plans.values():
            price(plan.charged, plan.budget.delta)
        began = time.monotonic()
        told, seen = {}, set[str]()
        for account_id, plan, key in debits:
            opens = account_id != DEFAULTED and (role == "server" or account_id not in seen)
            seen.add(account_id)
            told[key] = attempt(ledger, account_id, plans[plan], key, opens=opens)
            if role == "server":
                store.runs()
                left = ledger.left(account_id)
                assert flags or left.spent <= left.capacity, account_id
        print(json.dumps({"told": told, "seconds": time.monotonic() - began}), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
