"""Pictures of pairs of columns: how strongly they belong together in each table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from core.figures.elements import Trace, axis, figure, short

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
    """Heat maps on one scale: associations in either table, and what the synthetic one adds."""
    found = report.get("associations")
    if found is None or len(found["columns"]) < 2:
        return None
    names = found["columns"]
    at = list(range(len(names)))
    ticks = {"tickvals": at, "ticktext": [short(name, 14) for name in names]}
    panels = {"synthetic": found["synthetic"]}
    if found["real"]:
        rows = zip(found["real"], found["synthetic"], strict=True)
        gap = [[made - real for real, made in zip(*row, strict=True)] for row in rows]
        panels = {"real": found["real"], "synthetic": found["synthetic"], "difference": gap}
    upright = {"showgrid": False, "tickangle": -45, **ticks}
    layout: Trace = {"height": max(340, 150 + 24 * len(names))}
    width = (1.0 - 0.03 * (len(panels) - 1)) / len(panels)
    data: list[Trace] = []
    for place, (key, z) in enumerate(panels.items()):
        n = str(place + 1) if place else ""
        data.append(_map(key, z, at, names) | {"xaxis": f"x{n}", "yaxis": f"y{n}"})
        start = place * (width + 0.03)
        domain = {"domain": [start, start + width], "anchor": f"y{n}"}
        layout[f"xaxis{n}"] = axis(key, **upright, **domain)
        upper = axis("", showgrid=False, autorange="reversed", anchor=f"x{n}", **ticks)
        layout[f"yaxis{n}"] = upper | ({"matches": "y", "showticklabels": False} if place else {})
    data[-1]["showscale"] = True
    return figure(data, layout)


def _map(key: str, z: list[list[float]], at: list[int], names: list[str]) -> Trace:
    """One panel; the last one shows the scale of all."""
    scale = "0 the same" if key == "difference" else "0 none, 1 fully"
    return {
        "type": "heatmap",
        "name": key,
        "x": at,
        "y": at,
        "z": z,
        "zmin": -1.0,
        "zmax": 1.0,
        "colorscale": SCALE,
        "xgap": 1,
        "ygap": 1,
        "showscale": False,
        "colorbar": {
            "title": {"text": "association", "side": "right"},
            "thickness": 10,
            "outlinewidth": 0,
        },
        "hovertext": [[f"{a} with {b}" for b in names] for a in names],
        "hovertemplate": f"%{{hovertext}}<br>{key} %{{z:.2f}} ({scale})<extra></extra>",
    }


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
