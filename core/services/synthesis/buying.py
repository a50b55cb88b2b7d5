"""Bounds and lists bought with a part of the budget, before the run that uses them."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pandas as pd

from core.message import from_json
from core.privacy.discovery.unbought import as_bought, stand_in, unbought
from core.privacy.ledger.admission import OverBudgetError
from core.privacy.plan import Plan, default_delta
from core.runs.accounts.account import default_limit
from core.runs.accounts.people import linked_accounts
from core.runs.accounts.purchases import purchases, with_purchases
from core.runs.execution.buying import buy_schema, purchase_domain
from core.runs.request import RunRequest
from core.runs.storage.store import RunStore
from core.runs.workspace import Workspace
from core.schema.column import SchemaError
from core.schema.schema import Schema
from core.services.purchases import DELTA_SHARE, at_stake, forecast, plan_purchase
from core.services.synthesis.options import ALL, RefusedError, SynthesisOptions

MOST_SHARE = 0.9


@dataclass(frozen=True)
class Parts:
    """What a run and the purchase before it may spend.

    Attributes:
      epsilon, delta: of the run.
      bought_epsilon, bought_delta: of the purchase; 0 where there is none.
    """

    epsilon: float
    delta: float
    bought_epsilon: float
    bought_delta: float

    def of(self, request: RunRequest) -> RunRequest:
        """The request with what the run itself may spend."""
        return request.model_copy(update={"epsilon": self.epsilon, "delta": self.delta})


def to_buy(options: SynthesisOptions, schema: Schema) -> Schema:
    """The schema with domains to be bought, as `--buy` says."""
    if options.buy is None:
        return schema
    names = None
    if options.buy.strip() != ALL:
        names = [name.strip() for name in options.buy.split(",") if name.strip()]
        if lost := sorted(set(names) - set(schema.names)):
            raise RefusedError(f"no column is called '{lost[0]}' (--buy)")
    return as_bought(schema, names)


def parts(options: SynthesisOptions, schema: Schema, n: int) -> Parts:
    """How ε and δ are split; nothing is spent on a purchase where nothing is left to buy.

    Args:
      options: whose ε is checked already.
      n: number of records to train on.
    """
    epsilon, delta = options.request.epsilon, options.request.delta
    delta = default_delta(n) if delta is None else delta
    if options.buy is None or not unbought(schema).names:
        return Parts(epsilon, delta, 0.0, 0.0)
    share = options.buy_share
    if not 0.0 < share <= MOST_SHARE:
        raise RefusedError(f"--buy-share must lie in 0 to {MOST_SHARE:g}, not {share:g}")
    if epsilon == math.inf:
        raise RefusedError("--buy needs a finite --epsilon; without privacy nothing is bought")
    bought = share * epsilon, DELTA_SHARE * delta
    return Parts(epsilon - bought[0], delta - bought[1], *bought)


def known_purchases(options: SynthesisOptions, frame: pd.DataFrame, schema: Schema) -> Schema:
    """The schema with what the account that would pay has bought before; stores nothing.

    Args:
      frame: the table, whose people may be known.
    """
    home = Workspace.default_home()
    if not home.is_dir() or not unbought(schema).names:
        return schema
    with RunStore(Workspace(home)) as store:
        account_id = options.people
        if account_id is None:
            linked = linked_accounts(store, frame)
            account_id = linked[0].account_id if linked else ""
        return with_purchases(schema, purchases(store, account_id))


def planned(schema: Schema, n: int, split: Parts) -> Plan:
    """The purchase's plan.

    Args:
      n: number of records to train on.
    """
    try:
        return plan_purchase(schema, n, split.bought_epsilon, split.bought_delta)
    except SchemaError as error:
        raise RefusedError(f"{error} (--buy-share)") from None


def say_purchase(schema: Schema, n: int, split: Parts) -> dict[str, Any] | None:
    """Print what a purchase would cost and find; None where nothing is left to buy.

    Args:
      n: number of records to train on.
    """
    if not split.bought_epsilon:
        return None
    plan = planned(schema, n, split)
    print(f"purchase of bounds and lists: ε {split.bought_epsilon:.4g}, δ {split.bought_delta:.3g}")
    lines = forecast(plan, schema)
    for line in lines:
        print(f"  {line.share:5.1%}  {line.name}: {line.words}")
    for sentence in at_stake(schema):
        print(f"note: {sentence}")
    phases = from_json([phase.model_dump(mode="json") for phase in plan.phases])
    names = [line.name for line in lines]
    return {"epsilon": split.bought_epsilon, "delta": split.bought_delta, "names": names} | {
        "phases": phases,
        "digest": plan.digest,
    }


def buy(
    options: SynthesisOptions,
    store: RunStore,
    account_id: str,
    rows: pd.DataFrame,
    schema: Schema,
    n: int,
    plan_of: Callable[[Schema, Parts], Plan],
) -> tuple[Schema, Parts]:
    """Buy what the schema leaves open, or take what these people's account has bought before.

    Nothing is bought for a run that could not be paid for afterwards.

    Args:
      n: number of records that the rows are.
      plan_of: the run's plan, for a declared schema and what the run may spend.

    Raises:
      RefusedError, RunStoreError, LedgerError: one plain line; nothing was spent.

    Returns:
      The schema with what was bought, and how the budget was split.
    """
    known = with_purchases(schema, purchases(store, account_id))
    split = parts(options, known, n)
    if known != schema:
        print("note: domains bought about these people before cost nothing more", file=sys.stderr)
    if options.buy is None or not split.bought_epsilon:
        return known, split
    purchase, tried = planned(known, n, split), stand_in(known)
    releases = [(purchase, purchase_domain(known)), (plan_of(tried, split), tried.domain())]
    request = options.request
    words = {"words": request.shift_words, "unit_words": request.unit_words}
    try:
        store.ledger.rehearse(account_id, releases, limit=default_limit(n), **words)
    except OverBudgetError as error:
        raise OverBudgetError(
            f"{error} Bounds and lists that would be bought first are counted here."
        ) from None
    for sentence in at_stake(known):
        print(f"note: {sentence}", file=sys.stderr)
    result = buy_schema(
        store,
        account_id,
        known,
        purchase,
        lambda names: rows[list(names)],
        again=options.buy_again,
        shift_words=request.shift_words,
        unit_words=request.unit_words,
    )
    _say_bought(known, result)
    return result, split


def _say_bought(before: Schema, after: Schema) -> None:
    """Print what was found, and what falls away."""
    for column in after.columns:
        if column.purchase is not None and before[column.name].purchase is None:
            print(f"bought: '{column.name}': {column.note}", file=sys.stderr)
    for sentence in after.fallen.values():
        print(f"note: {sentence}", file=sys.stderr)
