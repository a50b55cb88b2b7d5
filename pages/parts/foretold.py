"""What Plan foretells from runs on generated tables: which model, how near, how long."""

from __future__ import annotations

import streamlit as st

from core.models.card import Card
from core.privacy.plan import Plan
from core.runs.storage.records import TableRecord
from core.services import forecast, runs
from core.services.machine_speed import machine_seconds
from pages.parts import shared
from pages.parts.plain import plain

SOURCE = "Measured on generated tables, with few training steps, not on your rows."


def advised(table: TableRecord, epsilon: float) -> forecast.Advice:
    """Which model to take for this table; from its shape alone."""
    schema, person = table.schema, table.schema.person
    return forecast.advise(
        n=table.training_n,
        columns=forecast.modelled_columns(schema),
        epsilon=epsilon,
        target=schema.target is not None,
        tagged=sum(len(columns) for columns in schema.sensitive.values()),
        rows_of_one=1 if person is None or person.grouped else person.rows,
    )


def show(table: TableRecord, card: Card, plan: Plan) -> None:
    """Distances, what can be learnt, minutes; a warning where noise drowns the table."""
    columns = forecast.modelled_columns(table.schema)
    if plan.budget.private:
        _near(table, card, plan, columns)
    seconds = runs.expected_seconds(shared.store(), table.id, plan)
    source = "going by earlier runs"
    if seconds is None:
        speed = machine_seconds(shared.store().workspace.home)
        seconds = forecast.expected_seconds(plan, columns=columns, speed=speed)
        source = (
            "going by runs on generated tables and how fast it multiplies, where one core is free"
        )
    st.markdown(
        f":material/timer: About {shared.duration(seconds)} on this machine, {source}."
        if seconds is not None
        else ":material/timer: No earlier run to judge by; the time left shows once it trains."
    )


def _near(table: TableRecord, card: Card, plan: Plan, columns: int) -> None:
    """How near the synthetic table may come."""
    asked = {"n": plan.n, "columns": columns}
    epsilon = forecast.effective_epsilon(plan)
    if forecast.drowned(**asked, epsilon=epsilon):
        st.warning(
            f"The noise drowns this table: at ε {plan.budget.epsilon:g} with {plan.n:,} "
            f"{plan.records}, no measured model kept even the shares of single columns. Use more "
            "records or fewer columns, or a higher ε.",
            icon=":material/waves:",
        )
    one = forecast.expect(plan.model, **asked, epsilon=epsilon)
    if one is None:
        st.caption(f":material/query_stats: There is no forecast for {plain(card.name)} yet.")
        return
    single, pairs = one.tvd_1way, one.tvd_2way
    words = (
        f"Expected distances (0 is the same, 1 nothing in common): single columns "
        f"**{single.low:.2f} to {single.high:.2f}**, pairs **{pairs.low:.2f} to {pairs.high:.2f}**."
    )
    if table.schema.target is not None:
        words += (
            f" Learning {plain(table.schema.target)}: **{one.learnt.low:.0%} to "
            f"{one.learnt.high:.0%}** of what real rows teach beyond guessing."
        )
    wide = " Your table is wider than those, so take it as a guess." if one.beyond else ""
    st.markdown(f":material/query_stats: {words}")
    st.caption(f"{SOURCE}{wide}")
