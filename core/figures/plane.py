"""The picture of whole tables on two principal axes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from core.figures.elements import LEGEND, Trace, axis, figure, points

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

__all__ = ["density_figure", "pca_figure"]


def pca_figure(report: Mapping[str, Any]) -> Figure | None:
    """The tables on the real one's first two principal axes, side by side on one scale."""
    pca = report["pca"]
    if pca is None:
        return None
    panels = [("synthetic", "synthetic", "diamond")]
    if pca["real"]:
        panels.insert(0, ("real", "real", "circle"))
    if pca.get("before"):
        panels.insert(-1, ("before", "before boosting", "square"))
    first, second = (f"{part:.0%} of the spread" for part in pca["explained"])
    width = (1.0 - 0.04 * (len(panels) - 1)) / len(panels)
    data: list[Trace] = []
    layout: Trace = {}
    for place, (key, name, symbol) in enumerate(panels):
        x, y = ([dot[i] for dot in pca[key]] for i in (0, 1))
        hover = [f"{name} row<br>axis 1: {a:.2f}<br>axis 2: {b:.2f}" for a, b in pca[key]]
        trace = points(name, x, y, hover=hover, symbol=symbol)
        trace["marker"] |= {"size": 5, "opacity": 0.45, "line": {"width": 0}}
        start = place * (width + 0.04)
        title = "axis 1" if place else f"axis 1 ({first})"
        domain = [start, start + width]
        if place == 0:
            layout |= {"xaxis": axis(title, domain=domain), "yaxis": axis(f"axis 2 ({second})")}
        else:
            n = place + 1
            trace |= {"xaxis": f"x{n}", "yaxis": f"y{n}"}
            layout[f"xaxis{n}"] = axis(title, domain=domain, matches="x", anchor=f"y{n}")
            layout[f"yaxis{n}"] = axis("", matches="y", anchor=f"x{n}", showticklabels=False)
        data.append(trace)
    layout |= {
        "height": 400,
        "hovermode": "closest",
        "legend": LEGEND | {"itemsizing": "constant"},
    }
    return figure(data, layout)


def density_figure(report: Mapping[str, Any]) -> Figure | None:
    """Where on the plane the synthetic table has too few or too many rows: one signed heat map."""
    found = report.get("density")
    if found is None:
        return None
    x, y = ([(a + b) / 2 for a, b in zip(e, e[1:], strict=False)] for e in (found["x"], found["y"]))
    rows = list(zip(found["real"], found["synthetic"], strict=True))
    gap = [[b - a for a, b in zip(*row, strict=True)] for row in rows]
    most = max(1e-4, *(abs(value) for line in gap for value in line))
    trace: Trace = {
        "type": "heatmap",
        "x": x,
        "y": y,
        "z": gap,
        "zmin": -most,
        "zmax": most,
        # blue: rows that are missing there; orange: rows that are too many
        "colorscale": [
            [0.0, "rgba(0,114,178,0.95)"],
            [0.5, "rgba(127,127,127,0.03)"],
            [1.0, "rgba(213,94,0,0.95)"],
        ],
        "colorbar": {
            "title": {"text": "too few … too many", "side": "right"},
            "tickformat": "+.1%",
            "thickness": 10,
            "outlinewidth": 0,
        },
        "customdata": [list(zip(*row, strict=True)) for row in rows],
        "hovertemplate": "real %{customdata[0]:.2%} of rows here<br>synthetic "
        "%{customdata[1]:.2%}<extra></extra>",
    }
    return figure([trace], {"xaxis": axis("axis 1"), "yaxis": axis("axis 2"), "height": 400})
