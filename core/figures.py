"""Plain dicts → Plotly figures, and a sentence for those who cannot see them.

Real and synthetic differ in more than colour: filled against outlined or hatched bars, circles
against diamonds. Shares are of all rows of a table, so that bars and "missing" add up to 100 %.
`report` is a report.json (`Report.model_dump(mode="json")`); a figure whose part is not measured
yet is None.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from core.figure_pairs import association_figure
from core.figure_parts import (
    BLUE,
    LEGEND,
    LINE,
    PHASES,
    VERMILION,
    Trace,
    axis,
    bars,
    diagonal,
    edge_ticks,
    figure,
    hatched,
    name_points,
    points,
    share,
    short,
    spans,
    square,
    wrap,
)
from core.figure_plane import pca_figure
from core.figure_words import describe

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

__all__ = [
    "association_figure",
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

REAL_FILL = "rgba(0,114,178,0.45)"
HATCHES = ("", "/", "x", ".", "-", "\\", "+")
NOT_PREDICTABLE = "not predictable even from real rows"


def column_figure(report: Report, name: str) -> Figure:
    """One column, real against synthetic: share of rows per bin or label, missing apart.

    Raises:
      KeyError: the report holds no column of that name.
    """
    picture = report["columns"][name]
    if picture["labels"] is not None:
        labels = list(picture["labels"])
        return figure(*_state_bars(labels, picture, picture["real"], picture["synthetic"]))
    return _histogram(picture)


def _state_bars(
    labels: list[str], picture: Trace, real: Sequence[float], synthetic: Sequence[float]
) -> tuple[list[Trace], Trace]:
    """Two horizontal bars per label, "missing" last."""
    real, synthetic = list(real), list(synthetic)
    if picture["missing_real"] or picture["missing_synthetic"]:
        labels = [*labels, "missing"]
        real.append(picture["missing_real"])
        synthetic.append(picture["missing_synthetic"])
    hover = [
        f"<b>{label}</b><br>real: {share(a)} of rows<br>synthetic: {share(b)} of rows"
        for label, a, b in zip(labels, real, synthetic, strict=True)
    ]
    at = list(range(len(labels)))
    ticks = {"tickvals": at, "ticktext": [short(label) for label in labels]}
    layout: Trace = {
        "barmode": "group",
        "bargap": 0.25,
        "xaxis": axis("share of rows", tickformat=".0%", rangemode="tozero"),
        "yaxis": axis("", autorange="reversed", showgrid=False, **ticks),
        "height": 110 + 30 * len(labels),
        "hovermode": "closest",
    }
    return [bars("real", at, real, hover), bars("synthetic", at, synthetic, hover)], layout


def _histogram(picture: Trace) -> Figure:
    """Bins as filled steps (real) under an outline (synthetic); atoms and missing in a strip apart.

    An atom such as the exact 0 of an amount would dwarf every bin, so it has its own scale.
    """
    edges, kind = picture["edges"], picture["kind"]
    atoms = [i for i in range(len(edges) - 1) if edges[i] == edges[i + 1]]
    whole = [i for i in range(len(edges) - 1) if i not in atoms]
    names = spans(edges, kind)
    states, state_layout = _state_bars(
        [names[i] for i in atoms],
        picture,
        [picture["real"][i] for i in atoms],
        [picture["synthetic"][i] for i in atoms],
    )
    if not whole:
        return figure(states, state_layout)
    shown = {key: [picture[key][i] for i in whole] for key in ("real", "synthetic")}
    bins = [names[i] for i in whole]
    ends = [edges[i] for i in whole] + [edges[whole[-1] + 1]]
    data = _steps(shown["real"], shown["synthetic"], bins)
    layout: Trace = {
        "bargap": 0.0,
        "xaxis": axis("", showgrid=False, **edge_ticks(ends, kind)),
        "yaxis": axis("share of rows", tickformat=".1~%", rangemode="tozero"),
        "height": 340,
        "hovermode": "x",
    }
    count = len(states[0]["y"])
    if not count:
        return figure(data, layout)
    strip = min(0.4, 0.14 + 0.11 * count)  # of the figure's height
    for trace in states:
        trace |= {"xaxis": "x2", "yaxis": "y2", "showlegend": False}
    return figure(
        [*data, *states],
        layout
        | {
            "height": 340 + 50 * count,
            "barmode": "group",
            "yaxis": layout["yaxis"] | {"domain": [strip + 0.14, 1.0]},
            "xaxis2": state_layout["xaxis"] | {"anchor": "y2"},
            "yaxis2": state_layout["yaxis"] | {"anchor": "x2", "domain": [0.0, strip]},
        },
    )


def _steps(real: Sequence[float], synthetic: Sequence[float], bins: Sequence[str]) -> list[Trace]:
    """Real bins as filled bars at 0, 1, 2, …; synthetic ones as an outline over them."""
    hover = [
        f"<b>{name}</b><br>real: {share(a)} of rows<br>synthetic: {share(b)} of rows"
        for name, a, b in zip(bins, real, synthetic, strict=True)
    ]
    at = [-0.5, *(x - 0.5 for x in range(len(bins))), len(bins) - 0.5, len(bins) - 0.5]
    return [
        {
            "type": "bar",
            "name": "real",
            "x": list(range(len(bins))),
            "y": list(real),
            "marker": {"color": REAL_FILL, "line": {"width": 0}},
            "hovertext": hover,
            "hovertemplate": "%{hovertext}<extra></extra>",
        },
        {
            "type": "scatter",
            "mode": "lines",
            "name": "synthetic",
            "x": at,
            "y": [0.0, *synthetic, synthetic[-1], 0.0],
            "line": {"shape": "hv", "color": VERMILION, "width": 2},
            "hoverinfo": "skip",
        },
    ]


def probability_figure(report: Report) -> Figure | None:
    """Share of rows of every label: real across, synthetic up."""
    found = report["dimension_probability"]
    if not found:
        return None
    names = [f"{point['column']}: {point['label']}" for point in found]
    real, synthetic = ([point[key] for point in found] for key in ("real", "synthetic"))
    hover = [
        f"<b>{name}</b><br>real: {share(a)} of rows<br>synthetic: {share(b)} of rows"
        for name, a, b in zip(names, real, synthetic, strict=True)
    ]
    trace = points("labels", real, synthetic, hover=hover, symbol="circle-open")
    end = min(1.03, 1.06 * max(*real, *synthetic) + 0.01)
    layout = square("share of real rows", "share of synthetic rows", low=-0.02 * end, high=end)
    for name in ("xaxis", "yaxis"):
        layout[name]["tickformat"] = ".0%"
    layout |= {"showlegend": False, "annotations": name_points(trace, names)}
    return figure([diagonal(0.0, end), trace], layout)


def prediction_figure(report: Report) -> Figure | None:
    """How well each column is predicted: learnt from real rows across, from synthetic ones up."""
    found = [
        point
        for point in report["dimension_prediction"]
        if point["real"] is not None and point["synthetic"] is not None
    ]
    if not found:
        return None
    groups: dict[str, list[Trace]] = {"lists (F1)": [], "numbers (R²)": [], NOT_PREDICTABLE: []}
    for point in found:
        kind = f"{'numbers' if point['metric'] == 'R²' else 'lists'} ({point['metric']})"
        groups[kind if point["predictable"] else NOT_PREDICTABLE].append(point)
    data: list[Trace] = []
    notes: list[Trace] = []
    for (title, kept), symbol in zip(groups.items(), ("circle", "square", "x-thin"), strict=True):
        hover = [
            f"<b>{p['column']}</b> ({p['metric']}, 1 is perfect)"
            f"<br>learnt from real rows: {p['real']:.3f}"
            f"<br>learnt from synthetic rows: {p['synthetic']:.3f}"
            f"<br>guessing: {p['baseline']:.3f}"
            for p in kept
        ]
        real, synthetic = ([p[key] for p in kept] for key in ("real", "synthetic"))
        trace = points(title, real, synthetic, hover=hover, symbol=symbol)
        trace["marker"]["line"]["color"] = trace["marker"]["color"]
        if kept:
            data.append(trace)
        if title != NOT_PREDICTABLE:
            notes += name_points(trace, [p["column"] for p in kept])
    layout = square("learnt from real rows", "learnt from synthetic rows", low=-0.03, high=1.04)
    return figure([diagonal(0.0, 1.0), *data], layout | {"annotations": notes})


def pairs_figure(report: Report) -> Figure | None:
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


def budget_figure(plan: Mapping[str, Any]) -> Figure:
    """Where a plan's budget goes: one bar, a piece for each access to private rows.

    Args:
      plan: `Plan.model_dump(mode="json")`.
    """
    epsilon = float(plan["budget"]["epsilon"])
    private = math.isfinite(epsilon)
    data: list[Trace] = []
    for place, phase in enumerate(plan["phases"]):
        lines = [f"<b>{phase['title']}</b>: {share(phase['share'])} of the budget"]
        lines += [wrap(phase["what"]), *([wrap(_noise(phase))] if private else [])]
        trace = bars(short(phase["title"], 40), [0], [phase["share"]], ["<br>".join(lines)])
        at = place % len(PHASES)
        trace["marker"] = hatched(PHASES[at], HATCHES[at])
        data.append(trace)
    title = f"share of the budget, ε = {epsilon:g}" if private else "no differential privacy"
    layout = {
        "barmode": "stack",
        "xaxis": axis(title, range=[0, 1.001], tickformat=".0%"),
        "yaxis": {"visible": False},
        "height": 180,
        "hovermode": "closest",
        "showlegend": True,
        "legend": LEGEND | {"traceorder": "normal"},
    }
    return figure(data, layout)


def _noise(phase: Mapping[str, Any]) -> str:
    """How one phase protects, in a sentence."""
    times = "once" if phase["count"] == 1 else f"{phase['count']:,} times"
    if phase["mechanism"] == "zcdp":
        return f"Runs {times}, ρ = {phase['rho']:.3g} each."
    text = f"{phase['mechanism'].capitalize()} noise of {phase['noise_multiplier']:.3g} times "
    text += f"one record's largest influence, {times}"
    if phase["sampling_rate"] is not None:
        text += f", each time on a random {100 * phase['sampling_rate']:.2g} % of the records"
    return text + "."


def profile_figure(column: Mapping[str, Any]) -> Figure:
    """A small picture of one real column, for the Tables page.

    Args:
      column: `ColumnProfile.model_dump(mode="json")`: edges or labels, counts, other, missing.
    """
    counts, gaps, kind = list(column["counts"]), column["missing"], column["kind"]
    values = sum(counts) + column["other"]
    # Identifiers and text count values; everything else counts rows, of which gaps are a share.
    rows = values if kind in ("identifier", "text") else values / max(1.0 - gaps, 1e-12)
    shares = [count / rows for count in counts] if values else []
    layout: Trace = {"showlegend": False, "height": 190, "margin": dict.fromkeys("lrtb", 8)}
    if column["edges"] is not None:
        names = spans(column["edges"], kind)
        at = list(range(len(names)))
        ticks = edge_ticks(column["edges"], kind, most=5)
        if gaps:
            names, shares, at = [*names, "missing"], [*shares, gaps], [*at, len(at) + 1]
            ticks["tickvals"].append(at[-1])
            ticks["ticktext"].append("missing")
        trace = _small_bars(shares, names, missing=bool(gaps)) | {"x": at, "y": shares}
        layout |= {
            "bargap": 0.04,
            "xaxis": axis("", showgrid=False, **ticks),
            "yaxis": axis("", tickformat=".0~%", rangemode="tozero"),
        }
        return figure([trace], layout)
    labels = list(column["labels"] or ())
    if column["other"]:
        labels, shares = [*labels, "other"], [*shares, column["other"] / rows]
    if gaps:
        labels, shares = [*labels, "missing"], [*shares, gaps]
    at = list(range(len(labels)))
    ticks = {"tickvals": at, "ticktext": [short(label) for label in labels]}
    trace = _small_bars(shares, labels, missing=bool(gaps)) | {"x": shares, "y": at}
    layout |= {
        "height": 60 + 20 * max(len(labels), 1),
        "bargap": 0.25,
        "xaxis": axis("", tickformat=".0~%", rangemode="tozero"),
        "yaxis": axis("", autorange="reversed", showgrid=False, **ticks),
    }
    return figure([trace | {"orientation": "h"}], layout)


def _small_bars(shares: Sequence[float], names: Sequence[str], *, missing: bool) -> Trace:
    """Blue bars; the last one grey and hatched when it stands for missing values."""
    last = len(shares) - 1 if missing else -1
    return {
        "type": "bar",
        "marker": {
            "color": [LINE if i == last else BLUE for i in range(len(shares))],
            "pattern": {
                "shape": ["/" if i == last else "" for i in range(len(shares))],
                "fillmode": "overlay",
            },
            "line": {"width": 0},
        },
        "hovertext": [
            f"<b>{name}</b>: {share(part)}" for name, part in zip(names, shares, strict=True)
        ],
        "hovertemplate": "%{hovertext}<extra></extra>",
    }
