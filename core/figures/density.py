"""Where on two principal axes the synthetic table has too few or too many rows."""

from __future__ import annotations

from core.figures.elements import (
    SIGNED,
    Dumped,
    Figure,
    axis,
    figure,
    heatmap,
    share,
)
from core.figures.pca import axis_names
from core.figures.report_figure import ReportFigure
from core.message import Message


def density_figure(report: Dumped) -> Figure | None:
    """One signed heat map over the plane of the first two principal axes."""
    density = report.get("density")
    if density is None:
        return None
    x, y = (
        [(a + b) / 2 for a, b in zip(edges, edges[1:], strict=False)]
        for edges in (density["x"], density["y"])
    )
    rows = list(zip(density["real"], density["synthetic"], strict=True))
    gaps = [[b - a for a, b in zip(*row, strict=True)] for row in rows]
    most = max(1e-4, *(abs(gap) for row in gaps for gap in row))
    trace = heatmap(
        gaps,
        x=x,
        y=y,
        limits=(-most, most),
        # blue: rows that are missing there; orange: rows that are too many
        scale=SIGNED[::-1],
        bar={
            "title": {"text": Message("too few … too many"), "side": "right"},
            "tickformat": "+.1%",
        },
        customdata=[list(zip(*row, strict=True)) for row in rows],
        hovertemplate=Message(
            "real: %{{customdata[0]:.2%}} of rows here<br>synthetic: %{{customdata[1]:.2%}}"
            "<extra></extra>"
        ),
    )
    across, up = axis_names(report)
    return figure([trace], {"xaxis": axis(across), "yaxis": axis(up), "height": 400})


def describe_density(report: Dumped) -> Message:
    """The figure in a sentence."""
    density = report["density"]
    rows = zip(density["real"], density["synthetic"], strict=True)
    gaps = [abs(a - b) for row in rows for a, b in zip(*row, strict=True)]
    return Message(
        "Where the synthetic table has too few (blue) or too many (orange) rows on two principal "
        "axes. The largest difference is {share} of rows in one cell.",
        share=share(max(gaps)),
    )


FIGURE = ReportFigure(
    id="density",
    order=40,
    title=Message("Where there are too few or too many rows"),
    name=Message("too few or too many rows"),
    tab="plane",
    draw=density_figure,
    describe=describe_density,
    headed=True,
)
