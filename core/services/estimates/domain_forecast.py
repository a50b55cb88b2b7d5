"""What a run will learn of a table's domain, from public numbers alone."""

from __future__ import annotations

from core.message import Message
from core.privacy.discovery.open_domain import open_domain
from core.privacy.discovery.planning import Forecast, Levels, forecasts
from core.privacy.plan import Plan
from core.schema.schema import Schema


def learned_forecast(plan: Plan, schema: Schema) -> tuple[Forecast, ...]:
    """What a plan will learn of each open column and rule, from public numbers; often nothing."""
    wanted = open_domain(schema)
    return forecasts(plan, wanted) if plan.budget.private and wanted.names else ()


def forecast_sentence(plan: Plan, schema: Schema) -> Message | None:
    """What will be kept, in one sentence; None where nothing is learned."""
    wanted = open_domain(schema)
    columns = (*wanted.numeric, *wanted.listed)
    if not plan.budget.private or not columns:
        return None
    levels = Levels.of(plan, wanted)
    if not wanted.listed:
        return Message(
            "Bounds of {n} columns are learned with noise: ends that fewer than about {count:,.0f} "
            "{records} reach are cut off.",
            n=len(columns),
            count=levels.cell,
            records=Message(plan.records),
        )
    return Message(
        "Bounds and lists of {n} columns are learned with noise: a value that fewer than about "
        "{count:,.0f} of {all:,} {records} share becomes OTHER.",
        n=len(columns),
        count=levels.label,
        all=plan.n,
        records=Message(plan.records),
    )
