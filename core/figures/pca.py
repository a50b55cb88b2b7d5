"""Whole tables on two principal axes: as dots, and where rows are too few or too many."""

from __future__ import annotations

from core.figures import elements as look
from core.figures.elements import Dumped, Figure, Trace
from core.figures.report_figure import ReportFigure
from core.message import Message, joined


def pca_figure(report: Dumped) -> Figure | None:
    """The tables on the real one's first two principal axes, side by side on one scale."""
    pca = report["pca"]
    if pca is None:
        return None
    panels = [("synthetic", look.SYNTHETIC, Message("synthetic row"), "diamond")]
    if pca["real"]:
        panels.insert(0, ("real", look.REAL, Message("real row"), "circle"))
    if pca.get("before"):
        own = Message("before boosting"), Message("row before boosting")
        panels.insert(-1, ("before", *own, "square"))
    across, up = axis_names(report)
    data: list[Trace] = []
    layout: Trace = {
        "height": 400,
        "hovermode": "closest",
        "legend": look.LEGEND | {"itemsizing": "constant"},
    }
    for i, (key, name, row, symbol) in enumerate(panels):
        x, y = ([dot[j] for dot in pca[key]] for j in (0, 1))
        hover = [
            look.lines(row, Message("axis 1: {x:.2f}", x=a), Message("axis 2: {x:.2f}", x=b))
            for a, b in pca[key]
        ]
        trace = look.points(name, x, y, hover=hover, symbol=symbol)
        trace["marker"] |= {"size": 5, "opacity": 0.45, "line": {"width": 0}}
        domain = look.panel(i, len(panels), gap=0.04)
        if i == 0:
            layout |= {"xaxis": look.axis(across, domain=domain), "yaxis": look.axis(up)}
        else:
            n = i + 1
            trace |= {"xaxis": f"x{n}", "yaxis": f"y{n}"}
            layout[f"xaxis{n}"] = look.axis(across, domain=domain, matches="x", anchor=f"y{n}")
            layout[f"yaxis{n}"] = look.axis("", matches="y", anchor=f"x{n}", showticklabels=False)
        data.append(trace)
    return look.figure(data, layout)


def axis_names(report: Dumped) -> tuple[Message, Message]:
    """Both axes by the columns that drive them, where these are known."""
    names = [Message("axis {n}", n=n) for n in (1, 2)]
    pca = report["pca"]
    if pca is None:
        return names[0], names[1]
    if pca.get("drivers"):
        names = [
            joined([Message("{name}", name=x) for x in one], ", ") if one else axis
            for one, axis in zip(pca["drivers"], names, strict=True)
        ]
    first, second = (
        Message("{columns} ({share:.0%} of the variance)", columns=name, share=share)
        for name, share in zip(names, pca["explained"], strict=True)
    )
    return first, second


def describe_pca(report: Dumped) -> Message:
    """The figure in a sentence."""
    pca = report["pca"]
    if not pca["real"]:
        return Message("Synthetic rows on their own two principal axes.")
    if pca["wscore"] is None:
        return Message(
            "Real and synthetic rows on two principal axes. The score is not measured yet."
        )
    return Message(
        "Real and synthetic rows on two principal axes, which hold {share:.0%} of the variance. "
        "The Wasserstein score is {score:.3f} (1: equal).",
        share=sum(pca["explained"]),
        score=pca["wscore"],
    )


PCA = ReportFigure(
    id="pca",
    order=30,
    tab="plane",
    views=("inside", "outside"),
    title=Message("Rows on two principal axes"),
    name=Message("two principal axes"),
    draw=pca_figure,
    describe=describe_pca,
)


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
    trace = look.heatmap(
        gaps,
        x=x,
        y=y,
        limits=(-most, most),
        # blue: rows that are missing there; orange: rows that are too many
        scale=look.SIGNED[::-1],
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
    return look.figure([trace], {"xaxis": look.axis(across), "yaxis": look.axis(up), "height": 400})


def describe_density(report: Dumped) -> Message:
    """The figure in a sentence."""
    density = report["density"]
    rows = zip(density["real"], density["synthetic"], strict=True)
    gaps = [abs(a - b) for row in rows for a, b in zip(*row, strict=True)]
    return Message(
        "Where the synthetic table has too few (blue) or too many (orange) rows on two principal "
        "axes. The largest difference is {share} of rows in one cell.",
        share=look.share(max(gaps)),
    )


DENSITY = ReportFigure(
    id="density",
    order=40,
    tab="plane",
    headed=True,
    title=Message("Where there are too few or too many rows"),
    name=Message("too few or too many rows"),
    draw=density_figure,
    describe=describe_density,
)
FIGURES = (PCA, DENSITY)
