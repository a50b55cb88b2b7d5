"""Distances between the joint distributions of every two columns."""

from __future__ import annotations

from core.figures.elements import Dumped, Figure, axis, figure, heatmap, name_ticks
from core.figures.report_figure import ReportFigure

__all__ = ["FIGURE", "describe_pairs", "pairs_figure"]


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
        bar={"title": {"text": "distance"}},
        # Faint to full in one hue, so that near zero is the page's own colour in both themes.
        colorscale=[
            [0.0, "rgba(213,94,0,0.03)"],
            [0.25, "rgba(213,94,0,0.45)"],
            [1.0, "rgba(213,94,0,0.95)"],
        ],
        xgap=1,
        ygap=1,
        hovertext=[
            [f"<b>{a}</b> alone" if a == b else f"<b>{a}</b> with <b>{b}</b>" for b in names]
            for a in names
        ],
        hovertemplate="%{hovertext}<br>distance %{z:.3f} (0 same, 1 nothing in common)"
        "<extra></extra>",
    )
    layout = {
        "xaxis": axis("", showgrid=False, tickangle=-45, **ticks),
        "yaxis": axis("", showgrid=False, autorange="reversed", **ticks),
        "height": max(320, 130 + 28 * len(names)),
    }
    return figure([trace], layout)


def describe_pairs(report: Dumped) -> str:
    """The figure in a sentence."""
    pairs = report["pairs"]
    if pairs is None or len(pairs["columns"]) < 2:
        return "Distances of pairs of columns are not measured yet, or there is one column only."
    names = pairs["columns"]
    distances = [(pairs["tvd"][i][j], i, j) for i in range(len(names)) for j in range(i)]
    worst, i, j = max(distances)
    return (
        f"Distances of {len(distances)} pairs of columns between real and synthetic; the largest "
        f"is {worst:.3f}, {names[j]} with {names[i]} (0 is the same)."
    )


FIGURE = ReportFigure(
    id="pairs",
    order=50,
    title="Pairs of columns",
    name="pairs of columns",
    tab="pairs",
    draw=pairs_figure,
    describe=describe_pairs,
)
