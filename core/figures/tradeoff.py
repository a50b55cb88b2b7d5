"""Pictures of several runs: what each ε bought."""

from __future__ import annotations

import math
from collections.abc import Sequence

from core.figures.elements import LINE, PHASES, Dumped, Figure, Trace, axis, bold, figure, short
from core.message import Message, joined

SYMBOLS = ("circle", "diamond", "square", "triangle-up", "cross", "star", "hexagon")
BEYOND = 4.0  # runs without privacy stand this many times right of the largest ε


def tradeoff_figure(runs: Sequence[Dumped], title: str) -> Figure:
    """A score against ε, a line for each model.

    Args:
      runs: "title", "model", "epsilon" (inf for none), "value", and "ceiling" where there is one.
    """
    finite = [run["epsilon"] for run in runs if math.isfinite(run["epsilon"])]
    last = BEYOND * max(finite, default=1.0)
    data: list[Trace] = []
    for index, model in enumerate(dict.fromkeys(run["model"] for run in runs)):
        own = sorted((r for r in runs if r["model"] == model), key=lambda r: r["epsilon"])
        data.append(
            {
                "type": "scatter",
                "mode": "lines+markers",
                "name": model,
                "x": [min(run["epsilon"], last) for run in own],
                "y": [run["value"] for run in own],
                "line": {"color": PHASES[index % len(PHASES)], "width": 1.5},
                "marker": {"size": 10, "symbol": SYMBOLS[index % len(SYMBOLS)]},
                "hovertext": [bold(short(r["title"], 60)) for r in own],
                "hovertemplate": "%{hovertext}<br>%{y:.4g}<extra></extra>",
            }
        )
    ceilings = [run["ceiling"] for run in runs if run.get("ceiling") is not None]
    shapes: list[Trace] = []
    if ceilings:
        line = {"color": LINE, "dash": "dot", "width": 1}
        level = sum(ceilings) / len(ceilings)
        shapes = [{"type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": level, "y1": level}]
        shapes[0]["line"] = line
    at = sorted({*finite, *([last] if len(finite) < len(runs) else [])})
    names = [
        Message("no privacy") if x == last and x not in finite else Message("{x:g}", x=x)
        for x in at
    ]
    layout = {
        "xaxis": axis(
            Message("ε (more private to the left)"), type="log", tickvals=at, ticktext=names
        ),
        "yaxis": axis(title),
        "shapes": shapes,
        "height": 380,
        "hovermode": "closest",
        "showlegend": True,
    }
    return figure(data, layout)


def tradeoff_words(runs: Sequence[Dumped], title: str, goal: str) -> Message:
    """The figure in one sentence.

    Args:
      runs: one mapping a run, as for the figure.
      goal: "higher" or "lower" is closer.
    """
    if not runs:
        return Message("No run has this score yet.")
    best = (max if goal == "higher" else min)(runs, key=lambda run: run["value"])
    at = Message("ε {epsilon:g}", epsilon=best["epsilon"])
    if not math.isfinite(best["epsilon"]):
        at = Message("no privacy")
    return Message(
        "{score} of {n} runs. The best is {run} at {at}: {value:.4g}.",
        score=joined([title]),
        n=len(runs),
        run=best["title"],
        at=at,
        value=best["value"],
    )
