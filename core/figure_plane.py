"""The picture of whole tables on two principal axes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from core.figure_parts import LEGEND, Trace, axis, figure, points

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

__all__ = ["pca_figure"]


def pca_figure(report: Mapping[str, Any]) -> Figure | None:
    """The tables on the real one's first two principal axes, side by side on one scale."""
    pca = report["pca"]
    if pca is None:
        return None
    panels = [("real", "real", "circle"), ("synthetic", "synthetic", "diamond")]
    if pca.get("before"):
        panels.insert(1, ("before", "before boosting", "square"))
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
        title, domain = f"axis 1 ({first})", [start, start + width]
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
