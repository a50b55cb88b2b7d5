"""Pictures of pairs of columns: how strongly they belong together in each table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from core.figure_parts import Trace, axis, figure, short

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

__all__ = ["association_figure", "pairs_figure"]

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
    keys = ["real", "synthetic"] if found["real"] else ["synthetic"]
    for place, key in enumerate(keys):
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
            "showscale": place == len(keys) - 1,
            "colorbar": {"title": {"text": "association"}, "thickness": 10, "outlinewidth": 0},
            "hovertext": hover,
            "hovertemplate": f"%{{hovertext}}<br>{key} %{{z:.2f}} (0 none, 1 fully)<extra></extra>",
        }
        data.append(trace | ({"xaxis": "x2", "yaxis": "y2"} if place else {}))
    upright = {"showgrid": False, "tickangle": -45, **ticks}
    layout = {
        "xaxis": axis(keys[0], **upright, **({"domain": [0.0, 0.48]} if len(keys) > 1 else {})),
        "yaxis": axis("", showgrid=False, autorange="reversed", **ticks),
        "height": max(340, 150 + 24 * len(names)),
    }
    if len(keys) > 1:
        layout |= {
            "xaxis2": axis("synthetic", domain=[0.52, 1.0], anchor="y2", **upright),
            "yaxis2": axis("", showgrid=False, matches="y", anchor="x2", showticklabels=False),
        }
    return figure(data, layout)


def pairs_figure(report: Mapping[str, Any]) -> Figure | None:
    """Heat map of the distance between the joint distributions of every two columns."""
    pairs = report["pairs"]
    if pairs is None:
        return None
    names, tvd = pairs["columns"], pairs["tvd"]
    at = list(range(len(names)))
    ticks = {"tickvals": at, "ticktext": [short(name, 18) for name in names]}
    trace: Trace = {
        "type": "heatmap",
        "x": at,
        "y": at,
        "z": tvd,
        "zmin": 0.0,
        "zmax": max(0.1, *(value for row in tvd for value in row)),
        # Faint to full in one hue, so that near zero is the page's own colour in both themes.
        "colorscale": [
            [0.0, "rgba(213,94,0,0.03)"],
            [0.25, "rgba(213,94,0,0.45)"],
            [1.0, "rgba(213,94,0,0.95)"],
        ],
        "xgap": 1,
        "ygap": 1,
        "colorbar": {"title": {"text": "distance"}, "thickness": 10, "outlinewidth": 0},
        "hovertext": [[_pair(a, b) for b in names] for a in names],
        "hovertemplate": "%{hovertext}<br>distance %{z:.3f} (0 same, 1 nothing in common)"
        "<extra></extra>",
    }
    layout = {
        "xaxis": axis("", showgrid=False, tickangle=-45, **ticks),
        "yaxis": axis("", showgrid=False, autorange="reversed", **ticks),
        "height": max(320, 130 + 28 * len(names)),
    }
    return figure([trace], layout)


def _pair(a: str, b: str) -> str:
    return f"<b>{a}</b> alone" if a == b else f"<b>{a}</b> with <b>{b}</b>"
