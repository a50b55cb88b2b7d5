"""Purchases: plan, pay for and look up bounds and lists that are released with noise.

`core.privacy.discovery.unbought.as_bought` marks what is to be bought; `plan_purchase` and
`forecast` say what it would cost and find, from public numbers alone; `buy` does it.
"""

from __future__ import annotations

import math

from core.privacy.discovery.planning import Forecast, forecasts, plan_schema
from core.privacy.discovery.unbought import as_bought, at_stake, stand_in, unbought
from core.privacy.plan import Budget, Plan, default_delta
from core.runs.accounts.purchases import (
    lost_purchase,
    purchases,
    purchases_used,
    with_purchases,
)
from core.runs.execution.buying import buy_schema
from core.runs.execution.training_rows import StoredRows
from core.runs.records import TableRecord
from core.runs.storage.store import RunStore
from core.schema.column import SchemaError
from core.schema.schema import Schema
from core.services.tables import confirm_schema

__all__ = [
    "DELTA_SHARE",
    "at_stake",
    "buy",
    "forecast",
    "lost",
    "paid_before",
    "plan_purchase",
    "to_buy",
    "usual_epsilon",
]

ROUND_EPSILONS = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0)
DELTA_SHARE = 0.25  # of a run's δ, for the purchase before it


def plan_purchase(schema: Schema, n: int, epsilon: float, delta: float | None = None) -> Plan:
    """What buying all that a schema leaves open would do and cost; touches no data.

    Args:
      schema: with columns whose source is “bought”.
      n: number of records to learn from (public): `TableRecord.training_n`.
      epsilon: of the purchase, > 0 and finite.
      delta: of the purchase; `DELTA_SHARE` of the default δ when None.

    Raises:
      ValueError: one plain line: nothing is to be bought, nothing could be found at this ε, or
        what is declared could not be planned with whatever was found.
    """
    stand_in(schema).domain()  # what no purchase can mend is refused before it
    delta = DELTA_SHARE * default_delta(n) if delta is None else delta
    budget = Budget(epsilon=epsilon, delta=delta)
    return plan_schema(unbought(schema), n, budget, unit=schema.person)


def usual_epsilon(schema: Schema, n: int) -> float:
    """A twentieth, or the least of a few round numbers at which something can be found; no data.

    Args:
      n: number of records to learn from, public.
    """
    for epsilon in ROUND_EPSILONS:
        try:
            plan_purchase(schema, n, epsilon)
        except SchemaError:
            continue
        return epsilon
    return ROUND_EPSILONS[-1]


def forecast(plan: Plan, schema: Schema) -> tuple[Forecast, ...]:
    """What a plan of `plan_purchase` will say of each column and rule, from public numbers."""
    return forecasts(plan, unbought(schema))


def to_buy(store: RunStore, table: TableRecord) -> Schema:
    """The table's schema with all that was read from its rows to be bought, but what is already.

    Nothing is kept of it; what was bought about these people before costs nothing.
    """
    return with_purchases(as_bought(table.schema), purchases(store, table.account_id))


def paid_before(store: RunStore, table: TableRecord) -> float:
    """ε of the purchases that the table's schema rests on; it adds to that of each run.

    Raises:
      RunStoreError: something is marked as bought that these people's account never paid for.
    """
    return math.fsum(one.epsilon for one in purchases_used(store, table.account_id, table.schema))


def lost(store: RunStore, table: TableRecord) -> bool:
    """Whether a purchase about these people was paid for and not kept, or is being made."""
    return lost_purchase(store, table.account_id) is not None


def buy(
    store: RunStore,
    table: TableRecord,
    plan: Plan,
    schema: Schema,
    *,
    again: bool = False,
    shift_words: str = "",
    unit_words: str = "",
) -> TableRecord:
    """Pay for and release what a schema leaves open, and keep the schema with it.

    Args:
      plan: of `plan_purchase`, for the schema.
      schema: such as `to_buy` gives.
      again: whether to spend again although an earlier purchase was paid for and lost.
      shift_words: what the steward wrote to allow a release that betrays hidden distributions.
      unit_words: what the steward wrote to allow a release that protects another unit.

    Raises:
      RunStoreError, LedgerError, ValueError: one plain line; nothing was spent, and the table's
        schema stays as it was.
    """
    with_bought = buy_schema(
        store,
        table.account_id,
        schema,
        plan,
        StoredRows(store, table.id, schema).whole,
        table_id=table.id,
        again=again,
        shift_words=shift_words,
        unit_words=unit_words,
    )
    return confirm_schema(store, table.id, with_bought)
