"""How strongly columns are related in each table."""

from __future__ import annotations

from core.figures.elements import (
    REAL,
    SIGNED,
    SYNTHETIC,
    Dumped,
    Figure,
    Trace,
    axis,
    figure,
    heatmap,
    name_ticks,
    panel,
)
from core.figures.report_figure import ReportFigure
from core.message import Message

DIFFERENCE = Message("difference")


def association_figure(report: Dumped) -> Figure | None:
    """Heat maps on one scale: associations in either table, and what the synthetic one adds."""
    table = report.get("associations")
    if table is None or len(table["columns"]) < 2:
        return None
    names = table["columns"]
    ticks = name_ticks(names, 14)
    panels: dict[Message, list[list[float]]] = {SYNTHETIC: table["synthetic"]}
    if table["real"]:
        rows = zip(table["real"], table["synthetic"], strict=True)
        gaps = [[b - a for a, b in zip(*row, strict=True)] for row in rows]
        panels = {REAL: table["real"], SYNTHETIC: table["synthetic"], DIFFERENCE: gaps}
    layout: Trace = {"height": max(340, 150 + 24 * len(names))}
    data: list[Trace] = []
    for i, (key, z) in enumerate(panels.items()):
        n = str(i + 1) if i else ""
        data.append(_heatmap(key, z, names) | {"xaxis": f"x{n}", "yaxis": f"y{n}"})
        area = {"domain": panel(i, len(panels), gap=0.03), "anchor": f"y{n}"}
        layout[f"xaxis{n}"] = axis(key, showgrid=False, tickangle=-45, **ticks, **area)
        upper = axis("", showgrid=False, autorange="reversed", anchor=f"x{n}", **ticks)
        layout[f"yaxis{n}"] = upper | ({"matches": "y", "showticklabels": False} if i else {})
    data[-1]["showscale"] = True
    return figure(data, layout)


def _heatmap(key: Message, z: list[list[float]], names: list[str]) -> Trace:
    """One panel; the last one shows the scale of all."""
    scale = Message("0: none, 1: full")
    if key == DIFFERENCE:
        scale = Message("0: equal")
    return heatmap(
        z,
        limits=(-1.0, 1.0),
        scale=SIGNED,
        bar={"title": {"text": Message("association"), "side": "right"}},
        name=key,
        xgap=1,
        ygap=1,
        showscale=False,
        hovertext=[[f"{a} × {b}" for b in names] for a in names],
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


FIGURE = ReportFigure(
    id="associations",
    order=60,
    title=Message("Relationships between columns"),
    name=Message("relationships between columns"),
    tab="pairs",
    views=("inside", "outside"),
    draw=association_figure,
    describe=describe_associations,
    headed=True,
)
