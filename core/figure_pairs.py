"""Pictures of pairs of columns: how strongly they belong together in each table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from core.figure_parts import Trace, axis, figure, short

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

__all__ = ["association_figure"]

# One hue a sign, faint at zero, so that nothing is the page's own colour in both themes; the two
# hues are told apart by every common kind of colour-blindness.
SCALE = [
    [0.0, "rgba(213,94,0,0.95)"],
    [0.5, "rgba(127,127,127,0.03)"],
    [1.0, "rgba(0,114,178,0.95)"],
]


def association_figure(report: Mapping[str, Any]) -> Figure | None:
    """Two heat maps on one scale: associations in the real and in the synthetic table."""
    found = report.get("associations")
    if found is None or len(found["columns"]) < 2:
        return None
    names = found["columns"]
    at = list(range(len(names)))
    ticks = {"tickvals": at, "ticktext": [short(name, 14) for name in names]}
    hover = [[f"{a} with {b}" for b in names] for a in names]
    data: list[Trace] = []
    for place, key in enumerate(("real", "synthetic")):
        trace: Trace = {
            "type": "heatmap",
            "name": key,
            "x": at,
            "y": at,
            "z": found[key],
            "zmin": -1.0,
            "zmax": 1.0,
            "colorscale": SCALE,
            "xgap": 1,
            "ygap": 1,
            "showscale": place == 1,
            "colorbar": {"title": {"text": "association"}, "thickness": 10, "outlinewidth": 0},
            "hovertext": hover,
            "hovertemplate": f"%{{hovertext}}<br>{key} %{{z:.2f}} (0 none, 1 fully)<extra></extra>",
        }
        data.append(trace | ({"xaxis": "x2", "yaxis": "y2"} if place else {}))
    upright = {"showgrid": False, "tickangle": -45, **ticks}
    return figure(
        data,
        {
            "xaxis": axis("real", domain=[0.0, 0.48], **upright),
            "yaxis": axis("", showgrid=False, autorange="reversed", **ticks),
            "xaxis2": axis("synthetic", domain=[0.52, 1.0], anchor="y2", **upright),
            "yaxis2": axis("", showgrid=False, matches="y", anchor="x2", showticklabels=False),
            "height": max(340, 150 + 24 * len(names)),
        },
    )
