"""The forecast on Plan: which model, how close, how long; from public numbers alone."""

from __future__ import annotations

import streamlit as st

from core.models.card import Card
from core.privacy.plan import Plan
from core.runs.records import TableRecord
from core.services import runs
from core.services.estimates import forecast
from core.services.estimates.machine_speed import machine_seconds
from pages.shared import glossary
from pages.shared import widgets as shared
from pages.shared.language import say
from pages.shared.plain import plain
from pages.shared.workspace_store import store

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
    """Distances, what can be learnt, minutes; a warning where there is too much noise."""
    columns = forecast.modelled_columns(table.schema)
    if plan.budget.private:
        _closeness(table, card, plan, columns)
    seconds = runs.expected_seconds(store(), table.id, plan)
    source = say("Estimated from earlier runs.")
    if seconds is None:
        speed = machine_seconds(store().workspace.home)
        seconds = forecast.expected_seconds(plan, columns=columns, speed=speed)
        source = say(
            "Estimated from benchmark runs and this machine's speed, assuming one free processor "
            "core."
        )
    if seconds is None:
        words = say("No estimate yet. The remaining time is shown once training starts.")
    else:
        time = shared.duration(seconds)
        words = say("About {time} on this machine. {source}", time=time, source=source)
    st.markdown(f":material/timer: {words}")


def _closeness(table: TableRecord, card: Card, plan: Plan, columns: int) -> None:
    """How close the synthetic table is expected to be."""
    asked = {"n": plan.n, "columns": columns}
    epsilon = forecast.effective_epsilon(plan)
    if forecast.drowned(**asked, epsilon=epsilon):
        st.warning(
            say(
                "Too much noise for this table: at ε = {epsilon:g} with {n:,} {records!t}, no "
                "model we tested preserved even single columns. Use more rows, fewer columns or a "
                "higher ε.",
                epsilon=plan.budget.epsilon,
                n=plan.n,
                records=plan.records,
            ),
            icon=":material/waves:",
        )
    one = forecast.expect(plan.model, **asked, epsilon=epsilon)
    if one is None:
        words = say("There is no quality forecast for {model} yet.", model=plain(card.name))
        st.caption(f":material/query_stats: {words}")
        return
    words = say(
        "Expected distance from the real table (0 = identical, 1 = nothing in common): single "
        "columns **{low:.2f} to {high:.2f}**, pairs of columns **{pairs_low:.2f} to "
        "{pairs_high:.2f}**.",
        low=one.tvd_1way.low,
        high=one.tvd_1way.high,
        pairs_low=one.tvd_2way.low,
        pairs_high=one.tvd_2way.high,
    )
    behind = None
    if table.schema.target is not None:
        low, high = one.auroc(GOOD)
        behind = say(
            "If decision trees trained on real rows reach an AUROC of {good:.2f}, trees trained on "
            "synthetic rows reach {low:.2f} to {high:.2f}.",
            good=GOOD,
            low=low,
            high=high,
        )
        behind = f"{behind}\n\n{glossary.entry('AUROC')}"
        words += " " + say(
            "Predicting {target}: **{low:.0%} to {high:.0%}** of the improvement over guessing "
            "that real rows allow.",
            target=plain(table.schema.target),
            low=one.learnt.low,
            high=one.learnt.high,
        )
    source = say(
        "Estimated from benchmark runs on generated tables with few training steps, not from your "
        "rows."
    )
    wide = say("Your table has more columns than those, so this is only a rough guess.")
    st.markdown(f":material/query_stats: {words}", help=behind)
    st.caption(f"{source} {wide}" if one.beyond else source)
