"""buy_schema: debit, then read and release, then keep, in this order.

A crash after the debit leaves it spent and nothing kept; whoever asks again is told so first.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import pandas as pd

from core.message import Message
from core.privacy.accounting.accountant import guarantee
from core.privacy.discovery.unbought import Unbought, unbought
from core.privacy.ledger.entries import Entry
from core.privacy.meter import Meter
from core.privacy.plan import Plan
from core.runs.accounts.account import pay
from core.runs.accounts.people import require_account
from core.runs.accounts.purchases import (
    BoughtColumn,
    PurchaseRecord,
    lost_purchase,
    save_purchase,
    with_purchases,
)
from core.runs.errors import RunStoreError
from core.runs.storage.store import RunStore
from core.schema.column import Column, DomainColumn
from core.schema.schema import Domain, Schema

if TYPE_CHECKING:
    from core.privacy.discovery.release import Released


def buy_schema(
    store: RunStore,
    account_id: str,
    schema: Schema,
    plan: Plan,
    load: Callable[[Sequence[str]], pd.DataFrame],
    *,
    table_id: str | None = None,
    again: bool = False,
    shift_words: str = "",
    unit_words: str = "",
) -> Schema:
    """Buy what a schema leaves open; the schema with it.

    Args:
      store: holds the ledger that pays and what was bought.
      schema: with columns and rules to be bought.
      plan: for exactly these, from `core.privacy.discovery.planning.plan_schema`.
      load: rows of the named columns that are trained on; called once, after the debit.
      table_id: of the stored table; None for one that is not stored.
      again: whether to spend again although an earlier purchase was paid for and lost.
      shift_words, unit_words: as for `pay`.

    Raises:
      RunStoreError: an earlier purchase was lost, the account is not settled, or the table moved to
        another account; it says what was spent.
      LedgerError: as `Ledger.debit`; nothing was spent.
      ValueError: the plan is for something else; nothing was spent.
    """
    wanted = unbought(schema)
    _check_plan(plan, wanted, schema)
    _check_lost(store, account_id, again=again)
    if table_id is not None:
        require_account(store, table_id)
    _same_account(store, table_id, account_id, Message("Nothing was spent."))
    entry = pay(
        store.ledger,
        account_id,
        plan,
        f"schema-{secrets.token_hex(8)}",  # its own: what is released again is paid for again
        domain=purchase_domain(schema),
        allow_non_private=False,
        shift_words=shift_words,
        unit_words=unit_words,
    )
    # once more: now that its account paid, the table cannot be moved any more
    unread = Message("Nothing was read; ledger entry {id} paid.", id=entry.id)
    _same_account(store, table_id, account_id, unread)
    from core.privacy.discovery.release import release_schema  # torch; pages import this module

    meter = Meter(plan)
    who = () if plan.unit is None else plan.unit.columns
    rows = load(list(dict.fromkeys((*wanted.names, *who))))
    record = _record(schema, release_schema(rows, wanted, plan, meter), plan, meter, entry)
    save_purchase(store, account_id, record)
    return with_purchases(schema, [record])


def _check_lost(store: RunStore, account_id: str, *, again: bool) -> None:
    """Refuse to pay once more for what was paid for and lost, unless `again` is said."""
    lost = lost_purchase(store, account_id)
    if lost is not None and not again:
        raise RunStoreError(
            Message(
                "A purchase about these people was paid for (ledger entry {id}, ε "
                "{limit:.3g}) and not kept: it is being made just now, or it was lost "
                "when its process ended, and then it stays spent. Nothing more was "
                "spent. Look again, or confirm that another one is to be paid for.",
                id=lost.id,
                limit=lost.limit,
            )
        )


def _same_account(store: RunStore, table_id: str | None, account_id: str, spent: str) -> None:
    """Refuse to read a table that was moved to another account since its record was loaded.

    Args:
      table_id: which; None for one that is not stored.
      spent: what was spent until now, in a sentence.

    Raises:
      RunStoreError: another account would have to pay.
    """
    if table_id is not None and store.table(table_id).account_id != account_id:
        raise RunStoreError(
            Message(
                "Meanwhile somebody said that this table is about other people. {spent} "
                "Load the page again, and buy from their account.",
                spent=spent,
            )
        )


def purchase_domain(schema: Schema) -> Domain:
    """The columns that a purchase releases something of: those left to be bought."""
    names = unbought(schema).names
    return Domain(columns=tuple(DomainColumn.of(schema[name]) for name in names))


def _check_plan(plan: Plan, wanted: Unbought, schema: Schema) -> None:
    """Refuse a plan that buys something else, or for another unit of privacy."""
    planned = (plan.settings.get("columns"), plan.settings.get("rules"))
    columns = [column.name for column in (*wanted.numeric, *wanted.listed)]
    rules = [rule.text for rule in wanted.rules]
    if planned != (columns, rules) or not columns + rules or plan.unit != schema.person:
        raise ValueError(
            Message("The plan buys something else. Nothing was spent. Make a new plan.")
        )


def _record(
    schema: Schema, released: Released, plan: Plan, meter: Meter, entry: Entry
) -> PurchaseRecord:
    """What was bought, with what it cost by what ran."""
    cost = guarantee(meter.executed, plan.budget.delta, rows=plan.rows_of_one)
    return PurchaseRecord(
        entry=entry.id,
        unit=plan.unit,
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
