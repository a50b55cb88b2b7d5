"""The forecast on Plan: which model, how close, how safe, how long; from public numbers alone."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core.figures.prospects import prospects_figure
from core.privacy.plan import Guarantee, Plan
from core.runs.records import TableRecord
from core.services.estimates import domain_forecast, forecast
from core.services.estimates.forecast import Forecast
from core.services.estimates.run_progress import expected_range
from core.services.planning import as_learnable
from pages.plan import budget_choice
from pages.shared import widgets as shared
from pages.shared.language import number, said, say, to_say
from pages.shared.plain import plain
from pages.shared.workspace_store import store

GUESS = to_say(
    "Someone who had a 50 : 50 chance of guessing whether a person's record was used can guess "
    "right at most this often after seeing the result."
)


def show(table: TableRecord, plan: Plan, claim: Guarantee, beside: DeltaGenerator) -> None:
    """What is kept, what an attacker can tell and how long it takes at this ε.

    Args:
      beside: where all ε are drawn, with this one marked, and doubts are said.
    """
    columns = forecast.modelled_columns(as_learnable(table.schema, plan.model))
    target = table.schema.target
    tiles = st.grid(5, min_column_width=150)
    if plan.budget.private:
        with beside.skeleton(height=340):  # the first time, accounting takes seconds
            points = forecast.prospects(
                plan, columns=columns, epsilons=budget_choice.EPSILONS, claim=claim
            )
        if target is None:
            points = [{k: v for k, v in point.items() if k != "learnt"} for point in points]
        now = next(point for point in points if point["epsilon"] == plan.budget.epsilon)
        with beside:
            words = say("Expected quality and the attacker's chance at each ε.")
            figure = prospects_figure(points, plan.budget.epsilon)
            shared.picture(figure, key="prospects", alt=words)
            known = _doubts(plan, columns)
        with tiles:
            if known is not None:
                _quality(now, known, target)
            least = domain_forecast.rarest_kept(plan, table.schema)
            if math.isfinite(least):
                lost = plain(said(domain_forecast.forecast_sentence(plan, table.schema) or ""))
                kept = say("about {count:,.0f} {records!t}", count=least, records=table.records)
                st.metric(say("Rarest value kept"), kept, help=lost)
            most = math.ceil(now["attacker"][0] * 100) / 100  # it is said to be the most
            guess = number(f"≤ {most:.0%}") if most < 1.0 else say("almost always")
            st.metric(say("Attacker guesses right"), guess, help=said(GUESS))
    with tiles:
        _minutes(table, plan, columns)


def _quality(now: Mapping[str, Any], known: Forecast, target: str | None) -> None:
    """How close the table is expected to come."""
    far, one = known.tvd_2way, known.tvd_1way
    distances = say(
        "Expected distance from the real table (0 = identical, 1 = nothing in common): single "
        "columns {low:.2f} to {high:.2f}, pairs of columns {pairs_low:.2f} to {pairs_high:.2f}. "
        "Estimated from benchmark runs on generated tables with few training steps, not from your "
        "rows.",
        low=one.low,
        high=one.high,
        pairs_low=far.low,
        pairs_high=far.high,
    )
    st.metric(say("Pairs in common"), _percent(*now["pairs"]), help=distances)
    if target is not None:
        meaning = say("The improvement over guessing, as a share of what real rows allow.")
        title = say("Predicting {target}", target=plain(target))
        st.metric(title, _percent(*now["learnt"]), help=meaning)


def _percent(_: float, low: float, high: float) -> str:
    ends = f"{low:.0%}", f"{high:.0%}"
    return number(ends[0] if ends[0] == ends[1] else f"{ends[0][:-1]}–{ends[1]}")


def _minutes(table: TableRecord, plan: Plan, columns: int) -> None:
    """How long it takes until there is a synthetic table, as a range."""
    found = expected_range(store(), table.id, plan, columns=columns)
    if found is None:
        st.metric(say("Time"), "—", help=say("The remaining time is shown once training starts."))
        return
    low, high, measured = found
    source = say("Estimated from benchmark runs and this machine's speed.")
    if measured:
        source = say("Estimated from earlier runs.")
    busy = say("The upper end allows for what else this machine does now.")
    st.metric(say("Time"), shared.rough_duration(low, high), help=f"{source} {busy}")


def _doubts(plan: Plan, columns: int) -> Forecast | None:
    """The forecast; where noise decides what comes out, or nothing is known, the page says so."""
    own = forecast.effective_epsilon(plan)
    if forecast.drowned(n=plan.n, columns=columns, epsilon=own):
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
    known = forecast.expect(plan.model, n=plan.n, columns=columns, epsilon=own)
    if known is None:
        model = shared.model_name(plan.model)
        st.caption(say("There is no quality forecast for {model} yet.", model=model))
    elif known.beyond:
        st.caption(say("Your table is wider than those we tested, so this is a rough guess."))
    return known
