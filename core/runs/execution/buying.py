"""buy_schema: debit, then read and release, then keep, in this order.

A crash after the debit leaves it spent and nothing kept; whoever asks again is told so first.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import pandas as pd

from core.privacy.accounting.accountant import guarantee
from core.privacy.ledger.entries import PURCHASE
from core.privacy.ledger.ledger import Entry, Ledger
from core.privacy.meter import Meter
from core.privacy.plan import Guarantee, Plan
from core.runs.accounts.account import pay
from core.runs.accounts.people import require_account
from core.runs.accounts.purchases import (
    BoughtColumn,
    PurchaseRecord,
    lost_purchase,
    save_purchase,
    with_purchases,
)
from core.runs.storage.errors import RunStoreError
from core.runs.storage.store import RunStore
from core.table.buying import Unbought, unbought
from core.table.schema import Column, Domain, DomainColumn, Schema

if TYPE_CHECKING:  # needs torch, and pages import this module
    from core.privacy.buying.release import Released

__all__ = ["buy_schema"]


def buy_schema(
    store: RunStore,
    people: str,
    schema: Schema,
    plan: Plan,
    load: Callable[[Sequence[str]], pd.DataFrame],
    *,
    table_id: str | None = None,
    again: bool = False,
    shift_words: str = "",
) -> Schema:
    """Buy what a schema leaves open; the schema with it.

    Args:
      store: holds the ledger that pays and what was bought.
      people: the account.
      schema: with columns and rules to be bought.
      plan: for exactly these, from `core.privacy.buying.planning.plan_schema`.
      load: rows of the named columns that are trained on; called once, after the debit.
      table_id: of the stored table; None for one that is not stored.
      again: whether to spend again although an earlier purchase was paid for and lost.
      shift_words: what the steward wrote to allow a release that betrays hidden distributions.

    Raises:
      RunStoreError: an earlier purchase was lost, or the account is not settled; nothing was spent.
      LedgerError: as `Ledger.debit`; nothing was spent.
      ValueError: the plan is for something else; nothing was spent.
    """
    wanted = unbought(schema)
    _require_plan_for(wanted, plan)
    if not again:
        _refuse_lost(store, people)
    if table_id is not None:
        require_account(store, table_id)
    entry = pay(
        Ledger(store.engine),
        people,
        plan,
        f"schema-{secrets.token_hex(8)}",  # its own: what is released again is paid for again
        domain=Domain(columns=tuple(DomainColumn.of(schema[name]) for name in wanted.names)),
        allow_non_private=False,
        shift_words=shift_words,
    )
    from core.privacy.buying.release import release_schema  # torch; pages import this module

    meter = Meter(plan)
    released = release_schema(load(wanted.names), wanted, plan, meter)
    cost = guarantee(meter.executed, plan.budget.delta)
    record = _record(schema, released, entry, cost)
    save_purchase(store, people, record)
    return with_purchases(schema, [record])


def _record(schema: Schema, released: Released, entry: Entry, cost: Guarantee) -> PurchaseRecord:
    return PurchaseRecord(
        entry=entry.id,
        epsilon=cost.epsilon,
        epsilon_replace=cost.epsilon_replace,
        delta=cost.delta,
        columns=tuple(
            BoughtColumn(
                asked=schema[column.name].kind, column=Column(**column.fields()), note=column.note
            )
            for column in released.columns
        ),
        rules=released.rules,
    )


def _require_plan_for(wanted: Unbought, plan: Plan) -> None:
    columns = [column.name for column in (*wanted.numeric, *wanted.listed)]
    rules = [rule.text for rule in wanted.rules]
    planned = plan.settings.get("columns"), plan.settings.get("rules")
    if plan.model != PURCHASE or planned != (columns, rules) or not wanted.names:
        raise ValueError("The plan buys something else. Nothing was spent. Make a new plan.")


def _refuse_lost(store: RunStore, people: str) -> None:
    lost = lost_purchase(store, people)
    if lost is not None:
        raise RunStoreError(
            f"A purchase about these people was paid for (ledger entry {lost.id}, "
            f"ε {lost.limit:.3g}) and not kept: it is being made just now, or it was lost when its "
            "process ended, and then it stays spent. Nothing more was spent. Look again, or "
            "confirm that another one is to be paid for (--buy-again)."
        )
