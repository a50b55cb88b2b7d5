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
    share,
    short,
    wrap,
)

__all__ = ["budget_figure"]

NAME_HEIGHT, BAR_HEIGHT = 19, 120  # px of a name in the legend, and of the bar with its axis
HATCHES = ("", "/", "x", ".", "-", "\\", "+")


def budget_figure(plan: Dumped) -> Figure:
    """Where a plan's budget goes: one bar, a piece for each access to private rows.

    Args:
      plan: `Plan.model_dump(mode="json")`.
    """
    epsilon = float(plan["budget"]["epsilon"])
    private = math.isfinite(epsilon)
    data: list[Trace] = []
    for place, phase in enumerate(plan["phases"]):
        lines = [f"<b>{phase['title']}</b>: {share(phase['share'])} of the budget"]
        lines += [wrap(phase["what"]), *([wrap(_noise(phase))] if private else [])]
        trace = bars(short(phase["title"], 40), [0], [phase["share"]], ["<br>".join(lines)])
        again, at = divmod(place, len(PHASES))  # colours come again with other hatches
        trace["marker"] = hatched(PHASES[at], HATCHES[(at + again) % len(HATCHES)])
        data.append(trace)
    names = NAME_HEIGHT * len(data) + 30
    title = f"share of the budget, ε = {epsilon:g}" if private else "no differential privacy"
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


def _noise(phase: Dumped) -> str:
    """How one phase protects, in a sentence."""
    times = "once" if phase["count"] == 1 else f"{phase['count']:,} times"
    if phase["mechanism"] == "zcdp":
        return f"Runs {times}, ρ = {phase['rho']:.3g} each."
    text = f"{phase['mechanism'].capitalize()} noise of {phase['noise_multiplier']:.3g} times "
    text += f"one record's largest influence, {times}"
    rate = phase["sampling_rate"]
    if rate is not None and rate < 1.0:
        text += f", each time on a random {100 * rate:.3g} % of the records"
    return text + "."
