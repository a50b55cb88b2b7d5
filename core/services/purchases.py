"""Purchases: plan, pay for and look up bounds and lists that are released with noise.

`core.table.buying.as_bought` marks what is to be bought; `plan_purchase` and `forecast` say what it
would cost and find, from public numbers alone; `buy` does it.
"""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from core.privacy.buying.planning import Forecast, forecasts, plan_schema
from core.privacy.plan import Budget, Plan, default_delta
from core.runs.accounts.purchases import purchases, with_purchases
from core.runs.execution.buying import buy_schema
from core.runs.storage.records import TableRecord
from core.runs.storage.store import RunStore
from core.services.tables import confirm_schema
from core.table.buying import unbought
from core.table.schema import Schema, SchemaError

__all__ = ["DELTA_SHARE", "bought", "buy", "forecast", "plan_purchase"]

DELTA_SHARE = 0.25  # of a run's δ, for the purchase before it


def plan_purchase(schema: Schema, n: int, epsilon: float, delta: float | None = None) -> Plan:
    """What buying all that a schema leaves open would do and cost; touches no data.

    Args:
      schema: with columns whose source is “bought”.
      n: number of records to learn from (public): `TableRecord.training_n`.
      epsilon: of the purchase, > 0 and finite.
      delta: of the purchase; `DELTA_SHARE` of the default δ when None.

    Raises:
      ValueError: one plain line: nothing is to be bought, or nothing could be found at this ε.
    """
    delta = DELTA_SHARE * default_delta(n) if delta is None else delta
    rows = 1 if schema.person is None else schema.person.rows
    if schema.person is not None and rows > 1 and not schema.person.grouped:
        raise SchemaError(
            "A label is shown when enough people hold it, and no column says whose a row is. "
            "Nothing was spent. Name the columns that say it, or declare the domains."
        )
    budget = Budget(epsilon=epsilon, delta=delta)
    return plan_schema(unbought(schema), n, budget, rows=rows)


def forecast(plan: Plan, schema: Schema) -> tuple[Forecast, ...]:
    """What a plan of `plan_purchase` will say of each column and rule, from public numbers."""
    return forecasts(plan, unbought(schema))


def bought(store: RunStore, table: TableRecord) -> Schema:
    """The table's schema with what was bought about its people before; costs nothing."""
    return with_purchases(table.schema, purchases(store, table.people))


def buy(
    store: RunStore,
    table: TableRecord,
    plan: Plan,
    *,
    again: bool = False,
    shift_words: str = "",
) -> TableRecord:
    """Pay for and release what the table's schema leaves open, and keep the schema with it.

    Args:
      store: where.
      table: whose schema.
      plan: of `plan_purchase`, for `bought(store, table)`.
      again: whether to spend again although an earlier purchase was paid for and lost.
      shift_words: what the steward wrote to allow a release that betrays hidden distributions.

    Raises:
      RunStoreError, LedgerError, ValueError: one plain line; nothing was spent.
    """

    def load(names: Sequence[str]) -> pd.DataFrame:
        return store.load_split(table.id, table.schema.holdout, columns=names)[0]

    schema = buy_schema(
        store,
        table.people,
        bought(store, table),
        plan,
        load,
        table_id=table.id,
        again=again,
        shift_words=shift_words,
    )
    return confirm_schema(store, table.id, schema)
