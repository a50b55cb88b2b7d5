"""How often each value occurs: real across, synthetic up."""

from __future__ import annotations

from core.figures.elements import (
    REAL,
    SYNTHETIC,
    Dumped,
    Figure,
    bold,
    diagonal,
    farthest,
    figure,
    lines,
    name_points,
    points,
    share,
    square,
)
from core.figures.report_figure import ReportFigure
from core.message import Message
from core.quality.report.types import MISSING


def probability_figure(report: Dumped) -> Figure | None:
    """Share of rows of every label: real across, synthetic up."""
    labels = report["dimension_probability"]
    if not labels:
        return None
    names = [f"{label['column']}: {label['label']}" for label in labels]
    real, synthetic = ([label[key] for label in labels] for key in ("real", "synthetic"))
    hover = [
        lines(
            bold(name),
            Message("{name}: {share} of rows", name=REAL, share=share(a)),
            Message("{name}: {share} of rows", name=SYNTHETIC, share=share(b)),
        )
        for name, a, b in zip(names, real, synthetic, strict=True)
    ]
    trace = points(Message("labels"), real, synthetic, hover=hover, symbol="circle-open")
    end = min(1.03, 1.06 * max(*real, *synthetic) + 0.01)
    layout = square(
        Message("share of real rows"),
        Message("share of synthetic rows"),
        low=-0.02 * end,
        high=end,
    )
    for name in ("xaxis", "yaxis"):
        layout[name]["tickformat"] = ".0%"
    layout |= {"showlegend": False, "annotations": name_points(trace, names)}
    return figure([diagonal(0.0, end), trace], layout)


def describe_probability(report: Dumped) -> Message:
    """The figure in a sentence."""
    labels = report["dimension_probability"]
    worst = farthest(labels)
    if worst["label"] == MISSING:
        at = Message("missing values of {column}", column=worst["column"])
    else:
        at = Message("“{label}” in {column}", label=worst["label"], column=worst["column"])
    return Message(
        "Shares of {n} labels in real and synthetic rows. The largest difference is for {at}: "
        "{real} of real and {synthetic} of synthetic rows.",
        n=len(labels),
        at=at,
        real=share(worst["real"]),
        synthetic=share(worst["synthetic"]),
    )


FIGURE = ReportFigure(
    id="probability",
    order=70,
    title=Message("How often each value occurs"),
    name=Message("how often values occur"),
    tab="plane",
    draw=probability_figure,
    describe=describe_probability,
    compared=False,
)
