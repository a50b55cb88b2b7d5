"""Every two columns: how strongly they are related in each table, how far the tables are apart."""

from __future__ import annotations

from collections.abc import Sequence

from core.figures import elements as look
from core.figures.elements import Dumped, Figure, Trace, axis, figure, heatmap, name_ticks
from core.figures.report_figure import ReportFigure
from core.message import Message, plural

DIFFERENCE = Message("difference")
LETTERS = 14  # of a name on an axis


def association_figure(report: Dumped) -> Figure | None:
    """Heat maps on one scale: associations in either table, and what the synthetic one adds."""
    table = report.get("associations")
    if table is None or len(table["columns"]) < 2:
        return None
    names, height = table["columns"], max(340, 150 + 24 * len(table["columns"]))
    drawn = side_by_side(
        table["real"], table["synthetic"], names, names, Message("association"), height
    )
    halves = (report.get("intervals") or {}).get("associations")
    if halves and not table["real"]:
        drawn["data"][0]["hovertext"] = [
            [_pair(a, b, half) for b, half in zip(names, line, strict=True)]
            for a, line in zip(names, halves, strict=True)
        ]
    return drawn


def _pair(a: str, b: str, half: float) -> Message:
    return Message("{a} × {b} (real table: ± {half:.2f})", a=a, b=b, half=half)


def side_by_side(
    real: list[list[float]],
    synthetic: list[list[float]],
    across: Sequence[str],
    up: Sequence[str],
    what: Message,
    height: int,
) -> Figure:
    """Heat maps [up][across] of both tables and of their difference; `real` may be empty."""
    panels: dict[Message, list[list[float]]] = {look.SYNTHETIC: synthetic}
    if real:
        rows = zip(real, synthetic, strict=True)
        gaps = [[b - a for a, b in zip(*row, strict=True)] for row in rows]
        panels = {look.REAL: real, look.SYNTHETIC: synthetic, DIFFERENCE: gaps}
    layout: Trace = {"height": height}
    data: list[Trace] = []
    for i, (key, z) in enumerate(panels.items()):
        n = str(i + 1) if i else ""
        data.append(_heatmap(key, z, across, up, what) | {"xaxis": f"x{n}", "yaxis": f"y{n}"})
        area = {"domain": look.panel(i, len(panels), gap=0.03), "anchor": f"y{n}"}
        lower = look.name_ticks(across, LETTERS)
        layout[f"xaxis{n}"] = look.axis(key, showgrid=False, tickangle=-45, **lower, **area)
        side = look.name_ticks(up, LETTERS)
        upper = look.axis("", showgrid=False, autorange="reversed", anchor=f"x{n}", **side)
        layout[f"yaxis{n}"] = upper | ({"matches": "y", "showticklabels": False} if i else {})
    data[-1]["showscale"] = True
    return look.figure(data, layout)


def _heatmap(
    key: Message, z: list[list[float]], across: Sequence[str], up: Sequence[str], what: Message
) -> Trace:
    """One panel; the last one shows the scale of all."""
    scale = Message("0: none, 1: full")
    if key == DIFFERENCE:
        scale = Message("0: equal")
    return look.heatmap(
        z,
        limits=(-1.0, 1.0),
        scale=look.SIGNED,
        bar={"title": {"text": what, "side": "right"}},
        name=key,
        xgap=1,
        ygap=1,
        showscale=False,
        hovertext=[[Message("{a} × {b}", a=a, b=b) for b in across] for a in up],
        hovertemplate=Message(
            "%{{hovertext}}<br>{table} %{{z:.2f}} ({scale})<extra></extra>", table=key, scale=scale
        ),
    )


def describe_associations(report: Dumped) -> Message:
    """The figure in a sentence."""
    table = report["associations"]
    names, real, synthetic = table["columns"], table["real"], table["synthetic"]
    if not real:
        return Message(
            "How strongly columns are related in the synthetic table (0: not at all, 1: fully)."
        )
    pairs = [(i, j) for i in range(len(names)) for j in range(i)]
    i, j = max(pairs, key=lambda pair: abs(real[pair[0]][pair[1]] - synthetic[pair[0]][pair[1]]))
    return Message(
        "The relationship that differs most is that of {first} and {second}: {real:.2f} in the "
        "real and {synthetic:.2f} in the synthetic table (0: none, 1: full).",
        first=names[j],
        second=names[i],
        real=real[i][j],
        synthetic=synthetic[i][j],
    )


def pairs_figure(report: Dumped) -> Figure | None:
    """Heat map of the distance between the joint distributions of every two columns."""
    pairs = report["pairs"]
    if pairs is None:
        return None
    names, tvd = pairs["columns"], pairs["tvd"]
    ticks = name_ticks(names, 18)
    trace = heatmap(
        tvd,
        limits=(0.0, max(0.1, *(value for row in tvd for value in row))),
        bar={"title": {"text": Message("distance")}},
        # Faint to full in one hue, so that near zero is the page's own colour in both themes.
        colorscale=[
            [0.0, "rgba(213,94,0,0.03)"],
            [0.25, "rgba(213,94,0,0.45)"],
            [1.0, "rgba(213,94,0,0.95)"],
        ],
        xgap=1,
        ygap=1,
        hovertext=[
            [f"<b>{a}</b>" if a == b else f"<b>{a}</b> × <b>{b}</b>" for b in names] for a in names
        ],
        hovertemplate=Message(
            "%{{hovertext}}<br>distance %{{z:.3f}} (0: equal, 1: nothing in common)<extra></extra>"
        ),
    )
    layout = {
        "xaxis": axis("", showgrid=False, tickangle=-45, **ticks),
        "yaxis": axis("", showgrid=False, autorange="reversed", **ticks),
        "height": max(320, 130 + 28 * len(names)),
    }
    return figure([trace], layout)


def describe_pairs(report: Dumped) -> Message:
    """The figure in a sentence."""
    pairs = report["pairs"]
    if pairs is None or len(pairs["columns"]) < 2:
        return Message("Pairs of columns are not measured yet, or there is only one column.")
    names = pairs["columns"]
    distances = [(pairs["tvd"][i][j], i, j) for i in range(len(names)) for j in range(i)]
    worst, i, j = max(distances)
    return plural(
        len(distances),
        "The distance between real and synthetic is {distance:.3f} for the only pair of columns, "
        "{first} with {second} (0: equal).",
        "Distances between real and synthetic for {n} pairs of columns. The largest is "
        "{distance:.3f}, for {first} with {second} (0: equal).",
        distance=worst,
        first=names[j],
        second=names[i],
    )


FIGURES = (
    ReportFigure(
        id="associations",
        order=60,
        tab="pairs",
        views=("inside", "outside"),
        headed=True,
        title=Message("Relationships between columns"),
        name=Message("relationships between columns"),
        draw=association_figure,
        describe=describe_associations,
    ),
    ReportFigure(
        id="pairs",
        order=50,
        tab="pairs",
        title=Message("Pairs of columns"),
        name=Message("pairs of columns"),
        draw=pairs_figure,
        describe=describe_pairs,
    ),
)
