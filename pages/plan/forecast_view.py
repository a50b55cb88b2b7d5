"""What Plan foretells from runs on generated tables: which model, how near, how long."""

from __future__ import annotations

import streamlit as st

from core.models.card import Card
from core.privacy.plan import Plan
from core.runs.records import TableRecord
from core.services import forecast, runs
from core.services.machine_speed import machine_seconds
from pages.shared import glossary
from pages.shared import widgets as shared
from pages.shared.language import say
from pages.shared.plain import plain

GOOD = 0.9  # AUROC of a target that real rows predict well, as an example


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
    source = say("going by earlier runs")
    if seconds is None:
        speed = machine_seconds(shared.store().workspace.home)
        seconds = forecast.expected_seconds(plan, columns=columns, speed=speed)
        source = say(
            "going by runs on generated tables and how fast it multiplies, where one core is free"
        )
    if seconds is None:
        words = say("No earlier run to judge by; the time left shows once it trains.")
    else:
        time = shared.duration(seconds)
        words = say("About {time} on this machine, {source}.", time=time, source=source)
    st.markdown(f":material/timer: {words}")


def _near(table: TableRecord, card: Card, plan: Plan, columns: int) -> None:
    """How near the synthetic table may come."""
    asked = {"n": plan.n, "columns": columns}
    epsilon = forecast.effective_epsilon(plan)
    if forecast.drowned(**asked, epsilon=epsilon):
        st.warning(
            say(
                "The noise drowns this table: at ε {epsilon:g} with {n:,} {records!t}, no measured "
                "model kept even the shares of single columns. Use more records or fewer columns, "
                "or a higher ε.",
                epsilon=plan.budget.epsilon,
                n=plan.n,
                records=plan.records,
            ),
            icon=":material/waves:",
        )
    one = forecast.expect(plan.model, **asked, epsilon=epsilon)
    if one is None:
        words = say("There is no forecast for {model} yet.", model=plain(card.name))
        st.caption(f":material/query_stats: {words}")
        return
    words = say(
        "Expected distances (0 is the same, 1 nothing in common): single columns "
        "**{low:.2f} to {high:.2f}**, pairs **{pairs_low:.2f} to {pairs_high:.2f}**.",
        low=one.tvd_1way.low,
        high=one.tvd_1way.high,
        pairs_low=one.tvd_2way.low,
        pairs_high=one.tvd_2way.high,
    )
    behind = None
    if table.schema.target is not None:
        low, high = one.auroc(GOOD)
        behind = say(
            "Where real rows teach trees an AUROC of {good:.2f}, synthetic ones teach "
            "{low:.2f} to {high:.2f}.",
            good=GOOD,
            low=low,
            high=high,
        )
        behind = f"{behind}\n\n{glossary.entry('AUROC')}"
        words += " " + say(
            "Learning {target}: **{low:.0%} to {high:.0%}** of what real rows teach beyond "
            "guessing.",
            target=plain(table.schema.target),
            low=one.learnt.low,
            high=one.learnt.high,
        )
    source = say("Measured on generated tables, with few training steps, not on your rows.")
    wide = say("Your table is wider than those, so take it as a guess.")
    st.markdown(f":material/query_stats: {words}", help=behind)
    st.caption(f"{source} {wide}" if one.beyond else source)
