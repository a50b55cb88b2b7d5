"""Whole tables as dots on two principal axes."""

from __future__ import annotations

from core.figures.elements import LEGEND, Dumped, Figure, Trace, axis, figure, panel, points
from core.figures.report_figure import ReportFigure

__all__ = ["FIGURE", "describe_pca", "pca_figure"]


def pca_figure(report: Dumped) -> Figure | None:
    """The tables on the real one's first two principal axes, side by side on one scale."""
    pca = report["pca"]
    if pca is None:
        return None
    panels = [("synthetic", "synthetic", "diamond")]
    if pca["real"]:
        panels.insert(0, ("real", "real", "circle"))
    if pca.get("before"):
        panels.insert(-1, ("before", "the model's own", "square"))
    first, second = (f"{part:.0%} of the spread" for part in pca["explained"])
    data: list[Trace] = []
    layout: Trace = {
        "height": 400,
        "hovermode": "closest",
        "legend": LEGEND | {"itemsizing": "constant"},
    }
    for i, (key, name, symbol) in enumerate(panels):
        x, y = ([dot[j] for dot in pca[key]] for j in (0, 1))
        hover = [f"{name} row<br>axis 1: {a:.2f}<br>axis 2: {b:.2f}" for a, b in pca[key]]
        trace = points(name, x, y, hover=hover, symbol=symbol)
        trace["marker"] |= {"size": 5, "opacity": 0.45, "line": {"width": 0}}
        domain = panel(i, len(panels), gap=0.04)
        if i == 0:
            layout["xaxis"] = axis(f"axis 1 ({first})", domain=domain)
            layout["yaxis"] = axis(f"axis 2 ({second})")
        else:
            n = i + 1
            trace |= {"xaxis": f"x{n}", "yaxis": f"y{n}"}
            layout[f"xaxis{n}"] = axis("axis 1", domain=domain, matches="x", anchor=f"y{n}")
            layout[f"yaxis{n}"] = axis("", matches="y", anchor=f"x{n}", showticklabels=False)
        data.append(trace)
    return figure(data, layout)


def describe_pca(report: Dumped) -> str:
    """The figure in a sentence."""
    pca = report["pca"]
    if not pca["real"]:
        return "Synthetic rows on their own two principal axes."
    if pca["wscore"] is None:
        return "Real and synthetic rows on two principal axes; the score is not measured yet."
    return (
        f"Real and synthetic rows on two principal axes that hold {sum(pca['explained']):.0%} of "
        f"the spread; Wasserstein score {pca['wscore']:.3f} (1 is the same)."
    )


FIGURE = ReportFigure(
    id="pca",
    order=30,
    title="Rows on two main axes",
    name="two main axes",
    tab="plane",
    views=("inside", "outside"),
    draw=pca_figure,
    describe=describe_pca,
)
