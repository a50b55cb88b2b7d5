"""What a run will learn of a table's domain, from public numbers alone."""

from __future__ import annotations

import math

from core.message import Message, joined
from core.privacy.discovery.open_domain import open_domain
from core.privacy.discovery.planning import Forecast, Levels, forecasts, label_needed
from core.privacy.plan import Plan
from core.schema.schema import Schema
from core.services.estimates.forecast import modelled_columns

MANY_COLUMNS = 8  # of fewer, nobody needs advice on which to leave out


def learned_forecast(plan: Plan, schema: Schema) -> tuple[Forecast, ...]:
    """What a plan will learn of each open column and rule, from public numbers; often nothing."""
    wanted = open_domain(schema)
    return forecasts(plan, wanted) if plan.budget.private and wanted.names else ()


def rarest_kept(plan: Plan, schema: Schema) -> float:
    """How many records must share a label so that it is kept; inf where none is learned."""
    wanted = open_domain(schema)
    return label_needed(plan, wanted) if plan.budget.private and wanted.names else math.inf


def forecast_sentence(plan: Plan, schema: Schema) -> Message | None:
    """What will be kept, and with half as many columns; None where nothing is learned.

    All columns share one precision, so the noise in a count grows with the root of their number.
    """
    wanted, columns = open_domain(schema), modelled_columns(schema)
    learned, records = len(wanted.numeric) + len(wanted.listed), Message(plan.records)
    if not plan.budget.private or not learned:
        return None
    needed = label_needed(plan, wanted)
    words = Message(
        "Bounds and lists of {n} columns are learned with noise: a value that fewer than about "
        "{count:,.0f} of {all:,} {records} share becomes OTHER.",
        n=learned, count=needed, all=plan.n, records=records,
    )  # fmt: skip
    if math.isinf(needed):  # there is no label to find
        needed = Levels.of(plan, wanted).cell
        words = Message(
            "Bounds of {n} columns are learned with noise: ends that fewer than about {count:,.0f} "
            "{records} reach are cut off.",
            n=learned, count=needed, records=records,
        )  # fmt: skip
    if columns < MANY_COLUMNS:
        return words
    fewer = Message(
        "{n} columns share ε: with {half}, about {count:,.0f} {records} would be enough. On the "
        "Tables page, leave out or make up columns that nobody needs.",
        n=columns, half=columns // 2, count=needed * math.sqrt(columns // 2 / columns),
        records=records,
    )  # fmt: skip
    return joined([words, fewer])
