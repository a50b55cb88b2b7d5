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

from core.figures.column import column_figure
from core.figures.elements import (
    BLUE,
    LEGEND,
    LINE,
    PHASES,
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
from core.figures.pairs import association_figure, pairs_figure
from core.figures.plane import density_figure, pca_figure
from core.figures.words import describe

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

__all__ = [
    "association_figure",
    "budget_figure",
    "column_figure",
    "density_figure",
    "describe",
    "pairs_figure",
    "pca_figure",
    "prediction_figure",
    "probability_figure",
    "profile_figure",
]

Report = Mapping[str, Any]

HATCHES = ("", "/", "x", ".", "-", "\\", "+")
KINDS = {"F1": "lists (F1)", "AUROC": "two labels (AUROC)", "R²": "numbers (R²)"}
NOT_PREDICTABLE = "not predictable even from real rows"


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
    groups: dict[str, list[Trace]] = {title: [] for title in (*KINDS.values(), NOT_PREDICTABLE)}
    for point in found:
        groups[KINDS[point["metric"]] if point["predictable"] else NOT_PREDICTABLE].append(point)
    data: list[Trace] = []
    notes: list[Trace] = []
    symbols = ("circle", "triangle-up", "square", "x-thin")
    for (title, kept), symbol in zip(groups.items(), symbols, strict=True):
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
        bands = [p.get("half_width") or 0.0 for p in kept]
        trace["error_y"] = {"array": bands, "color": LINE, "thickness": 1, "width": 0}
        if kept:
            data.append(trace)
        if title != NOT_PREDICTABLE:
            notes += name_points(trace, [p["column"] for p in kept])
    layout = square("learnt from real rows", "learnt from synthetic rows", low=-0.03, high=1.04)
    return figure([diagonal(0.0, 1.0), *data], layout | {"annotations": notes})


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
