"""Distances between the joint distributions of every two columns."""

from __future__ import annotations

from core.figures.elements import Dumped, Figure, axis, figure, heatmap, name_ticks
from core.figures.report_figure import ReportFigure
from core.message import Message, plural


def pairs_figure(report: Dumped) -> Figure | None:
    """Heat map of the distance between the joint distributions of every two columns."""
    pairs = report["pairs"]
    if pairs is None:
        return None
    names, tvd = pairs["columns"], pairs["tvd"]
    ticks = name_ticks(names, 18)
    trace = heatmap(
        tvd,
        limits=(0.0, max(0.1, *(value for row in tvd for value in row))),
        bar={"title": {"text": Message("distance")}},
        # Faint to full in one hue, so that near zero is the page's own colour in both themes.
        colorscale=[
            [0.0, "rgba(213,94,0,0.03)"],
            [0.25, "rgba(213,94,0,0.45)"],
            [1.0, "rgba(213,94,0,0.95)"],
        ],
        xgap=1,
        ygap=1,
        hovertext=[
            [f"<b>{a}</b>" if a == b else f"<b>{a}</b> × <b>{b}</b>" for b in names] for a in names
        ],
        hovertemplate=Message(
            "%{{hovertext}}<br>distance %{{z:.3f}} (0: equal, 1: nothing in common)<extra></extra>"
        ),
    )
    layout = {
        "xaxis": axis("", showgrid=False, tickangle=-45, **ticks),
        "yaxis": axis("", showgrid=False, autorange="reversed", **ticks),
        "height": max(320, 130 + 28 * len(names)),
    }
    return figure([trace], layout)


def describe_pairs(report: Dumped) -> Message:
    """The figure in a sentence."""
    pairs = report["pairs"]
    if pairs is None or len(pairs["columns"]) < 2:
        return Message("Pairs of columns are not measured yet, or there is only one column.")
    names = pairs["columns"]
    distances = [(pairs["tvd"][i][j], i, j) for i in range(len(names)) for j in range(i)]
    worst, i, j = max(distances)
    return plural(
        len(distances),
        "The distance between real and synthetic is {distance:.3f} for the only pair of columns, "
        "{first} with {second} (0: equal).",
        "Distances between real and synthetic for {n} pairs of columns. The largest is "
        "{distance:.3f}, for {first} with {second} (0: equal).",
        distance=worst,
        first=names[j],
        second=names[i],
    )


FIGURE = ReportFigure(
    id="pairs",
    order=50,
    title=Message("Pairs of columns"),
    name=Message("pairs of columns"),
    tab="pairs",
    draw=pairs_figure,
    describe=describe_pairs,
)
