"""How often each value occurs: real across, synthetic up."""

from __future__ import annotations

from core.figures.elements import (
    Dumped,
    Figure,
    diagonal,
    farthest,
    figure,
    name_points,
    points,
    share,
    square,
)
from core.figures.report_figure import ReportFigure
from core.quality.report.types import MISSING

__all__ = ["FIGURE", "describe_probability", "probability_figure"]


def probability_figure(report: Dumped) -> Figure | None:
    """Share of rows of every label: real across, synthetic up."""
    labels = report["dimension_probability"]
    if not labels:
        return None
    names = [f"{label['column']}: {label['label']}" for label in labels]
    real, synthetic = ([label[key] for label in labels] for key in ("real", "synthetic"))
    hover = [
        f"<b>{name}</b><br>real: {share(a)} of rows<br>synthetic: {share(b)} of rows"
        for name, a, b in zip(names, real, synthetic, strict=True)
    ]
    trace = points("labels", real, synthetic, hover=hover, symbol="circle-open")
    end = min(1.03, 1.06 * max(*real, *synthetic) + 0.01)
    layout = square("share of real rows", "share of synthetic rows", low=-0.02 * end, high=end)
    for name in ("xaxis", "yaxis"):
        layout[name]["tickformat"] = ".0%"
    layout |= {"showlegend": False, "annotations": name_points(trace, names)}
    return figure([diagonal(0.0, end), trace], layout)


def describe_probability(report: Dumped) -> str:
    """The figure in a sentence."""
    labels = report["dimension_probability"]
    worst = farthest(labels)
    if worst["label"] == MISSING:
        return (
            f"Shares of {len(labels)} labels, real against synthetic; the largest difference is in "
            f"what is missing of {worst['column']}, {share(worst['real'])} of real and "
            f"{share(worst['synthetic'])} of synthetic rows."
        )
    return (
        f"Shares of {len(labels)} labels, real against synthetic; the largest difference is "
        f"{worst['column']}: {worst['label']}, {share(worst['real'])} of real and "
        f"{share(worst['synthetic'])} of synthetic rows."
    )


FIGURE = ReportFigure(
    id="probability",
    order=70,
    title="How often each value occurs",
    name="how often values occur",
    tab="plane",
    draw=probability_figure,
    describe=describe_probability,
    compared=False,
)
