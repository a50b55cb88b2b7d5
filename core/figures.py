"""Plain dicts → Plotly figures, and a sentence for those who cannot see them.

Every figure works on light and dark pages: backgrounds are transparent, text takes the page's
colour, only grid lines and marks have colours of their own (Okabe and Ito's, safe for colour-blind
readers). Real and synthetic differ in more than colour: filled against outlined or hatched bars,
circles against diamonds. Plotly is imported when the first figure is drawn.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

__all__ = [
    "budget_figure",
    "column_figure",
    "describe",
    "pairs_figure",
    "pca_figure",
    "prediction_figure",
    "probability_figure",
    "profile_figure",
]

Report = Mapping[str, Any]
Trace = dict[str, Any]

BLUE, VERMILION = "#0072B2", "#D55E00"
REAL_FILL = "rgba(0,114,178,0.45)"
HATCH_FILL = "rgba(213,94,0,0.25)"
GRID = "rgba(128,128,128,0.22)"
LINE = "rgba(128,128,128,0.75)"
PHASES = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442")
HATCHES = ("", "/", ".", "x", "-", "\\", "+")
GL_POINTS = 1_000  # beyond this many points browsers draw faster with WebGL
TEXT_PAIRS = 16  # more columns than this leave no room for figures in a heat map's cells
SHORT = 22  # characters of a label on an axis
NAMED_POINTS = 6  # points of a scatter that carry their name


def column_figure(report: Report, name: str) -> Figure:
    """One column, real against synthetic: shares of rows per bin or label, missing apart.

    Raises:
      KeyError: the report holds no column of that name.
    """
    picture = report["columns"][name]
    if picture["labels"] is not None:
        return _label_bars(picture)
    return _histogram(picture)


def pca_figure(report: Report) -> Figure | None:
    """Both tables on the real table's first two principal axes, side by side; None before it is."""
    pca = report["pca"]
    if pca is None:
        return None
    total = len(pca["real"]) + len(pca["synthetic"])
    data: list[Trace] = []
    for place, (key, title) in enumerate((("real", "Real"), ("synthetic", "Synthetic"))):
        suffix = "" if place == 0 else "2"
        data.append(
            {
                "type": "scattergl" if total > GL_POINTS else "scatter",
                "mode": "markers",
                "name": title,
                "x": [x for x, _ in pca[key]],
                "y": [y for _, y in pca[key]],
                "xaxis": f"x{suffix}",
                "yaxis": f"y{suffix}",
                "marker": {
                    "size": 5,
                    "opacity": 0.5,
                    "color": (BLUE, VERMILION)[place],
                    "symbol": ("circle", "diamond")[place],
                },
                "hovertemplate": f"{title} row<br>axis 1: %{{x:.2f}}<br>axis 2: %{{y:.2f}}"
                "<extra></extra>",
            }
        )
    first, second = (f"{share:.0%} of the variance" for share in pca["explained"])
    layout = {
        "xaxis": _axis(f"axis 1 ({first})", domain=[0.0, 0.48]),
        "yaxis": _axis(f"axis 2 ({second})"),
        "xaxis2": _axis(f"axis 1 ({first})", domain=[0.52, 1.0], matches="x", anchor="y2"),
        "yaxis2": _axis("", matches="y", anchor="x2", showticklabels=False),
        "height": 400,
    }
    return _figure(data, layout)


def probability_figure(report: Report) -> Figure | None:
    """Share of rows of every label, real across and synthetic up; None when there is no label."""
    points = report["dimension_probability"]
    if not points:
        return None
    names = [f"{point['column']}: {point['label']}" for point in points]
    data = [
        _scatter(
            [point["real"] for point in points],
            [point["synthetic"] for point in points],
            names,
            title="labels",
            color=BLUE,
            symbol="circle-open",
            hover="%{hovertext}<br>real %{x:.1%} of rows<br>synthetic %{y:.1%} of rows",
        )
    ]
    top = max(max(point["real"], point["synthetic"]) for point in points)
    end = min(1.02, 1.08 * top + 0.01)
    layout = _square("share of real rows", "share of synthetic rows", low=0.0, high=end)
    for axis in ("xaxis", "yaxis"):
        layout[axis]["tickformat"] = ".0%"
    figure = _figure([_diagonal(0.0, end), *data], layout | {"showlegend": False})
    return _name_points(figure, data[0])


def prediction_figure(report: Report) -> Figure | None:
    """How well each column is predicted, learnt from real rows across, from synthetic ones up."""
    points = [
        point
        for point in report["dimension_prediction"]
        if point["real"] is not None and point["synthetic"] is not None
    ]
    if not points:
        return None
    looks = {
        "lists (F1)": ("F1", True, BLUE, "circle"),
        "numbers (R²)": ("R²", True, VERMILION, "square"),
        "not predictable even from real rows": (None, False, LINE, "x-thin-open"),
    }
    data: list[Trace] = []
    for title, (metric, predictable, color, symbol) in looks.items():
        kept = [
            p
            for p in points
            if p["predictable"] == predictable and (metric is None or p["metric"] == metric)
        ]
        hover = [f"{p['column']} ({p['metric']}; guessing scores {p['baseline']:.2f})" for p in kept]
        if kept:
            trace = _scatter(
                [p["real"] for p in kept],
                [p["synthetic"] for p in kept],
                hover,
                title=title,
                color=color,
                symbol=symbol,
                hover="%{hovertext}<br>learnt from real rows: %{x:.3f}"
                "<br>learnt from synthetic rows: %{y:.3f}",
            )
            data.append(trace | {"meta": [p["column"] for p in kept]})
    layout = _square("learnt from real rows", "learnt from synthetic rows", low=-0.03, high=1.03)
    figure = _figure([_diagonal(0.0, 1.0), *data], layout)
    for trace in data:
        if "not predictable" not in trace["name"]:
            figure = _name_points(figure, trace | {"hovertext": trace["meta"]})
    return figure


def pairs_figure(report: Report) -> Figure | None:
    """Heat map of the distance between real and synthetic joint distributions of two columns."""
    pairs = report["pairs"]
    if pairs is None:
        return None
    names, tvd = pairs["columns"], pairs["tvd"]
    high = max(0.1, *(value for row in tvd for value in row))
    data: Trace = {
        "type": "heatmap",
        "x": [_short(name) for name in names],
        "y": [_short(name) for name in names],
        "z": tvd,
        "customdata": [[[a, b] for b in names] for a in names],
        "zmin": 0.0,
        "zmax": high,
        # Faint to full in one hue, so that near zero is the page's own colour in both themes.
        "colorscale": [[0.0, "rgba(213,94,0,0.04)"], [1.0, "rgba(213,94,0,1)"]],
        "xgap": 1,
        "ygap": 1,
        "colorbar": {"title": {"text": "distance"}, "thickness": 10, "outlinewidth": 0},
        "hovertemplate": "%{customdata[0]} and %{customdata[1]}"
        "<br>distance %{z:.3f} (0 same, 1 nothing in common)<extra></extra>",
    }
    layout = {
        "xaxis": _axis("", showgrid=False, tickangle=-45, type="category"),
        "yaxis": _axis("", showgrid=False, autorange="reversed", type="category"),
        "height": max(320, 120 + 26 * len(names)),
    }
    figure = _figure([data], layout)
    if len(names) <= TEXT_PAIRS:
        figure.update_traces(texttemplate="%{z:.2f}", textfont={"size": 10, "color": "gray"})
    return figure


def budget_figure(plan: Mapping[str, Any]) -> Figure:
    """Where a plan's budget goes: one bar, a piece for each access to private rows.

    Args:
      plan: `Plan.model_dump(mode="json")`.
    """
    epsilon = float(plan["budget"]["epsilon"])
    private = math.isfinite(epsilon)
    data: list[Trace] = []
    for place, phase in enumerate(plan["phases"]):
        color = PHASES[place % len(PHASES)]
        lines = [f"<b>{phase['title']}</b>: {phase['share']:.0%} of the budget", phase["what"]]
        if private:
            lines.append(_noise(phase))
        data.append(
            {
                "type": "bar",
                "orientation": "h",
                "name": _short(phase["title"], 40),
                "x": [phase["share"]],
                "y": [""],
                "text": f"{phase['share']:.0%}",
                "textposition": "inside",
                "insidetextanchor": "middle",
                "marker": _hatched(color, HATCHES[place % len(HATCHES)]),
                "hovertext": "<br>".join(_wrap(line) for line in lines),
                "hovertemplate": "%{hovertext}<extra></extra>",
            }
        )
    title = f"budget ε = {epsilon:g}" if private else "no differential privacy: ε = ∞"
    layout = {
        "barmode": "stack",
        "xaxis": _axis(f"share of the {title}", range=[0, 1.001], tickformat=".0%"),
        "yaxis": {"visible": False},
        "height": 170,
        "hovermode": "closest",
    }
    return _figure(data, layout)


def profile_figure(column: Mapping[str, Any]) -> Figure:
    """A small picture of one real column, for the Tables page.

    Args:
      column: `ColumnProfile.model_dump(mode="json")`: edges or labels, counts, other, missing.
    """
    counts = list(column["counts"])
    present = sum(counts) + column["other"]
    rows = present / (1.0 - column["missing"]) if column["missing"] < 1.0 else 0.0
    layout = {"height": 190, "showlegend": False, "bargap": 0.05}
    if column["edges"] is not None:
        shares = [count / rows for count in counts] if rows else []
        names = _spans(column["edges"], column["kind"])
        axis = _axis("", tickmode="array", type="linear", showgrid=False)
        axis |= _edge_ticks(column["edges"], column["kind"], most=5)
        data = [_plain_bars(list(range(len(shares))), shares, names)]
        if column["missing"]:
            place = len(shares) + 1
            data.append(_plain_bars([place], [column["missing"]], ["missing"], hatch="/"))
            axis["tickvals"] = [*axis["tickvals"], place]
            axis["ticktext"] = [*axis["ticktext"], "missing"]
        return _figure(
            data, layout | {"xaxis": axis, "yaxis": _axis("share of rows", tickformat=".0%")}
        )
    labels = [*(column["labels"] or ()), *(["other"] if column["other"] else [])]
    shown = [*counts, *([column["other"]] if column["other"] else [])]
    # For identifiers and text the counts are of values, not rows: shares of what is shown.
    whole = rows if not column["kind"] in ("identifier", "text") else sum(shown)
    shares = [count / whole for count in shown] if whole else []
    if column["missing"]:
        labels, shares = [*labels, "missing"], [*shares, column["missing"]]
    bars = _plain_bars(shares, list(range(len(shares))), labels)
    bars |= {"orientation": "h", "hovertemplate": "%{hovertext}: %{x:.1%}<extra></extra>"}
    ticks = {"tickvals": list(range(len(labels))), "ticktext": [_short(x) for x in labels]}
    axis = _axis("", autorange="reversed", showgrid=False) | ticks
    layout["height"] = 90 + 18 * len(labels)
    return _figure([bars], layout | {"yaxis": axis, "xaxis": _axis("", tickformat=".0%")})
