"""Which columns stood out of a private scan: pairs as a matrix, larger sets as bars."""

from __future__ import annotations

import math
from collections.abc import Sequence

from core.figures.elements import (
    BLUE,
    FULL_VERMILION,
    Dumped,
    Figure,
    Trace,
    axis,
    bars,
    figure,
    hatched,
    heatmap,
    name_ticks,
    short,
)
from core.figures.report_figure import ReportFigure

__all__ = ["FIGURE", "describe_interactions", "interactions_figure"]

MOST_COLUMNS, MOST_SETS = 40, 12  # of the matrix, and of the bars
ROW = 24  # pixels


def interactions_figure(report: Dumped) -> Figure | None:
    """A matrix of pairs coloured by score on a log scale, and bars of larger sets.

    Args:
      report: whose "significant_sets" holds `core.models.events.Interaction`s, if any.
    """
    told = report.get("significant_sets", ())
    pairs = [one for one in told if len(one["columns"]) == 2]
    larger = [one for one in told if len(one["columns"]) > 2][:MOST_SETS]
    if not told:
        return None
    names = list(dict.fromkeys(name for one in pairs for name in one["columns"]))[:MOST_COLUMNS]
    heights = [ROW * len(names) + 60 if names else 0, ROW * len(larger) + 60 if larger else 0]
    whole = sum(heights)
    split = heights[1] / whole  # the bars stand below
    data: list[Trace] = []
    layout: Trace = {"height": max(220, whole + 130), "showlegend": False}
    if names:
        ticks = name_ticks(names, 18)
        data.append(_matrix(pairs, names))
        layout["xaxis"] = axis("", showgrid=False, tickangle=-45, side="top", **ticks)
        layout["yaxis"] = axis("", showgrid=False, autorange="reversed", **ticks)
        layout["yaxis"]["domain"] = [min(1.0, split + 0.08) if larger else 0.0, 1.0]
    if larger:
        scores = [max(one["score"], 1.0) for one in larger]
        trace = bars("", range(len(larger)), scores, [_hover(one) for one in larger])
        trace |= {"marker": hatched(BLUE, ""), "xaxis": "x2", "yaxis": "y2"}
        data.append(trace)
        labels = [short(" × ".join(one["columns"]), 48) for one in larger]
        title = "score of larger sets (log scale)"
        top = math.ceil(math.log10(max(10.0, larger[0]["score"])))
        layout["xaxis2"] = axis(title, type="log", anchor="y2", dtick=1, range=[0, top])
        layout["yaxis2"] = axis("", showgrid=False, autorange="reversed", anchor="x2")
        layout["yaxis2"] |= name_ticks(labels, 48)
        layout["yaxis2"]["domain"] = [0.0, max(0.1, split - 0.08) if names else 1.0]
    return figure(data, layout)


def _matrix(pairs: Sequence[Dumped], names: Sequence[str]) -> Trace:
    """Pairs of the named columns; what did not stand out has no colour."""
    place = {name: i for i, name in enumerate(names)}
    grid: list[list[float | None]] = [[None] * len(names) for _ in names]
    hover = [
        [f"<b>{a}</b> with <b>{b}</b><br>nothing above noise and chance" for b in names]
        for a in names
    ]
    for one in pairs:
        if not set(one["columns"]) <= set(names):
            continue
        i, j = (place[name] for name in one["columns"])
        for a, b in ((i, j), (j, i)):
            grid[a][b] = math.log10(max(one["score"], 1.0))
            hover[a][b] = _hover(one)
    top = max(1.0, *(value for row in grid for value in row if value is not None))
    powers = list(range(math.ceil(top) + 1))
    bar = {
        "title": {"text": "score", "side": "right"},
        "tickvals": powers,
        "ticktext": [f"{10**power:,}" for power in powers],
    }
    return heatmap(
        grid,
        limits=(0.0, top),
        scale=("rgba(213,94,0,0.12)", FULL_VERMILION),
        bar=bar,
        xgap=1,
        ygap=1,
        hoverongaps=False,
        hovertext=hover,
        hovertemplate="%{hovertext}<extra></extra>",
    )


def _hover(one: Dumped) -> str:
    names = " with ".join(f"<b>{name}</b>" for name in one["columns"])
    more = "<br>differs between the target's values" if one["target"] else ""
    return f"{names}<br>{one['score']:,.0f} standard deviations above noise and chance{more}"


def describe_interactions(report: Dumped) -> str:
    """The figure in a sentence."""
    told = report["significant_sets"]
    pairs = [one for one in told if len(one["columns"]) == 2]
    larger = [one for one in told if len(one["columns"]) > 2]
    best = max(told, key=lambda one: one["score"])
    counts = [(len(pairs), "pair of columns", "pairs of columns")]
    counts += [(len(larger), "larger set", "larger sets")]
    words = [f"{many} {one if many == 1 else more}" for many, one, more in counts if many]
    return (
        f"{' and '.join(words)} stood out of the noise of a scan "
        f"that ε paid for; most clearly {' with '.join(best['columns'])}, {best['score']:,.0f} "
        "standard deviations above noise and chance (higher is clearer). No real row was read "
        "for this picture."
    )


FIGURE = ReportFigure(
    id="interactions",
    order=45,
    title="What stood out of the scan",
    name="what stood out of the scan",
    tab="pairs",
    views=("inside", "outside"),
    draw=interactions_figure,
    describe=describe_interactions,
    headed=True,
    compared=False,
)
