"""Where a plan's budget goes."""

from __future__ import annotations

import math

from core.figures.elements import (
    LEGEND,
    PHASES,
    Dumped,
    Figure,
    Trace,
    axis,
    bars,
    figure,
    hatched,
    lines,
    share,
)
from core.message import Message, joined, plural

NAME_HEIGHT, BAR_HEIGHT = 19, 120  # px of a name in the legend, and of the bar with its axis
MECHANISMS = {"gaussian": Message("Gaussian"), "laplace": Message("Laplace")}
HATCHES = ("", "/", "x", ".", "-", "\\", "+")


def budget_figure(plan: Dumped) -> Figure:
    """Where a plan's budget goes: one bar, a piece for each access to private rows.

    Args:
      plan: `Plan.model_dump(mode="json")`.
    """
    epsilon = float(plan["budget"]["epsilon"])
    private = math.isfinite(epsilon)
    data: list[Trace] = []
    for index, phase in enumerate(plan["phases"]):
        title = joined([phase["title"]])
        spent = Message(
            "<b>{title}</b>: {share} of the budget", title=title, share=share(phase["share"])
        )
        hover = lines(spent, joined([phase["what"]]), *([_noise(phase)] if private else []))
        trace = bars(title, [0], [phase["share"]], [hover])
        again, at = divmod(index, len(PHASES))  # colours come again with other hatches
        trace["marker"] = hatched(PHASES[at], HATCHES[(at + again) % len(HATCHES)])
        data.append(trace)
    names = NAME_HEIGHT * len(data) + 30
    title = (
        Message("share of the budget, ε = {epsilon:g}", epsilon=epsilon)
        if private
        else Message("no differential privacy")
    )
    layout = {
        "barmode": "stack",
        "xaxis": axis(title, range=[0, 1.001], tickformat=".0%"),
        "yaxis": {"visible": False},
        "height": BAR_HEIGHT + names,
        "margin": {"l": 10, "r": 10, "t": names, "b": 10},
        "hovermode": "closest",
        "showlegend": True,
        # a name a line, all of them in sight: beside each other they would scroll and hide the bar
        "legend": LEGEND | {"orientation": "v", "traceorder": "normal", "maxheight": names},
    }
    return figure(data, layout)


def _noise(phase: Dumped) -> Message:
    n, rate = phase["count"], phase["sampling_rate"]
    if phase["mechanism"] == "zcdp":
        return plural(
            n,
            "Runs once, ρ = {rho:.3g}.",
            "Runs {n:,} times, ρ = {rho:.3g} each.",
            rho=phase["rho"],
        )
    mechanism = MECHANISMS[phase["mechanism"]]
    values = {"mechanism": mechanism, "noise": phase["noise_multiplier"]}
    if rate is None or rate >= 1.0:
        return plural(
            n,
            "{mechanism} noise of {noise:.3g} times the largest influence of one record, once.",
            "{mechanism} noise of {noise:.3g} times the largest influence of one record, "
            "{n:,} times.",
            **values,
        )
    return plural(
        n,
        "{mechanism} noise of {noise:.3g} times the largest influence of one record, once, on a "
        "random {rate:.3g}% of the records.",
        "{mechanism} noise of {noise:.3g} times the largest influence of one record, {n:,} times, "
        "each time on a random {rate:.3g}% of the records.",
        rate=100 * rate,
        **values,
    )
