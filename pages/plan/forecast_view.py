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
from core.services import runs
from core.services.estimates import domain_forecast, forecast
from core.services.estimates.forecast import Forecast
from core.services.estimates.machine_speed import machine_seconds
from pages.plan import budget_choice
from pages.shared import widgets as shared
from pages.shared.language import number, said, say
from pages.shared.plain import plain
from pages.shared.workspace_store import store


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


def show(table: TableRecord, plan: Plan, claim: Guarantee, beside: DeltaGenerator) -> None:
    """What is kept, what an attacker can tell and how long it takes at this ε.

    Args:
      beside: where all ε are drawn, with this one marked, and doubts are said.
    """
    columns, target = forecast.modelled_columns(table.schema), table.schema.target
    tiles = st.grid(5, min_column_width=150)
    if plan.budget.private:
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
            _rarest(table, plan)
            _attacker(now["attacker"][0])
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


def _rarest(table: TableRecord, plan: Plan) -> None:
    """How many must share a label that the run is to keep."""
    least = domain_forecast.rarest_kept(plan, table.schema)
    if math.isfinite(least):
        words = said(domain_forecast.forecast_sentence(plan, table.schema) or "")
        found = say("about {count:,.0f} {records!t}", count=least, records=table.records)
        st.metric(say("Rarest value kept"), found, help=plain(words))


def _attacker(guess: float) -> None:
    """The most that somebody can tell who guesses whether a person's record was used."""
    most = math.ceil(guess * 100) / 100  # rounded up, for it is said to be the most
    st.metric(
        say("Attacker guesses right"),
        number(f"≤ {most:.0%}") if most < 1.0 else say("almost always"),
        help=say(
            "Someone who had a 50 : 50 chance of guessing whether a person's record was used can "
            "guess right at most this often after seeing the result."
        ),
    )


def _minutes(table: TableRecord, plan: Plan, columns: int) -> None:
    """How long it takes until there is a synthetic table, as a range."""
    seconds = runs.expected_seconds(store(), table.id, plan)
    source = say("Estimated from earlier runs.")
    measured = seconds is not None
    if seconds is None:
        speed = machine_seconds(store().workspace.home)
        seconds = forecast.expected_seconds(plan, columns=columns, speed=speed)
        source = say("Estimated from benchmark runs and this machine's speed.")
    if seconds is None:
        st.metric(say("Time"), "—", help=say("The remaining time is shown once training starts."))
        return
    low, high = forecast.seconds_range(seconds, measured=measured)
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
