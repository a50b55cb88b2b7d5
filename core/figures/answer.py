"""The picture of an answer: points with intervals, cells with theirs, or a curve in a band."""

from __future__ import annotations

from collections.abc import Sequence

from core.figures import elements as look
from core.inference.intervals import Figure, Interval
from core.message import Message

PALE = 2.2  # how far colours go beyond the largest share, so that texts can be read on all
MOST_TEXTS = 8  # columns whose cells have room for their texts
BAND = "rgba(0,114,178,0.2)"
KINDS = (  # of intervals: name, colour and width of the bar
    ("table", Message("real table"), look.BLUE, 5),
    ("population", Message("all people like these"), look.VERMILION, 2),
    ("naive", Message("naive: covers no noise"), look.LINE, 1),
)


def points_figure(values: Sequence[Figure], names: Sequence[Message]) -> look.Figure:
    """Each value as a point with three intervals under one another; coefficients as a forest."""
    data, forest = [], len(values) > 1
    for row, (kind, title, color, width) in enumerate(KINDS):
        known = [(i, one, getattr(one, kind)) for i, one in enumerate(values)]
        drawn = [(i, one.value, ends) for i, one, ends in known if ends is not None]
        bars = {
            "array": [ends.high - value for _, value, ends in drawn],
            "arrayminus": [value - ends.low for _, value, ends in drawn],
        }
        data.append(
            {
                "type": "scatter", "mode": "markers", "name": title, "hovertemplate": "%{x}",
                "x": [value for _, value, _ in drawn],
                "y": [i + 0.22 * (row - 1) for i, _, _ in drawn],
                "marker": {"color": color, "size": 7 if row < 2 else 4},
                "error_x": bars | {
                    "type": "data", "symmetric": False, "color": color, "thickness": width,
                    "width": 0,
                },
            }
        )  # fmt: skip
    percent = ".1~%" if values[0].scale == "share" else ""
    ticks = look.name_ticks(names) if forest else {"showticklabels": False}
    layout = {
        "xaxis": look.axis("", zeroline=forest, zerolinecolor=look.LINE, tickformat=percent),
        "yaxis": look.axis("", range=[len(values) - 0.5, -0.5], showgrid=False, **ticks),
        "height": 130 + 44 * len(values),
        "hovermode": "closest",
    }
    return look.figure(data, layout)


def cells_figure(values: Sequence[Figure]) -> look.Figure:
    """A cross table: shares in colours, with ± in each cell; nothing where noise is all."""
    rows, columns = (list(dict.fromkeys(value.name[i] for value in values)) for i in (0, 1))
    by_name = {value.name: value for value in values}
    grid = [[by_name[row, column] for column in columns] for row in rows]
    texts = [[_cell(value) for value in line] for line in grid]
    shown = [[None if value.reason else value.value for value in line] for line in grid]
    most = max((value.value for value in values if not value.reason), default=1.0)
    trace = look.heatmap(
        shown, limits=(0.0, PALE * most), bar={}, scale=(look.FAINT, *look.TO_BLUE),
        hoverinfo="text", hovertext=texts, xgap=2, ygap=2, showscale=False,
    )  # fmt: skip
    notes = [
        {"x": x, "y": y, "text": text, "showarrow": False, "font": {"size": 12}}
        for y, line in enumerate(texts if len(columns) <= MOST_TEXTS else ())
        for x, text in enumerate(line)
    ]
    up = {"showgrid": False, "autorange": "reversed"}
    layout = {
        "xaxis": look.axis("", showgrid=False, side="top", **look.name_ticks(columns)),
        "yaxis": look.axis("", **up, **look.name_ticks(rows)),
        "height": 110 + 46 * len(rows),
        "annotations": notes,
    }
    return look.figure([trace], layout)


def _cell(value: Figure) -> Message:
    if value.reason:
        return Message("—")
    if value.table is None:
        return Message("{x:.1%}", x=value.value)
    return Message("{x:.1%} ± {half:.1%}", x=value.value, half=value.table.half)


def curve_figure(values: Sequence[Figure], title: Message) -> look.Figure:
    """Shares over time, in the band where the real table lies."""
    known = [value for value in values if not value.reason]
    ends = [value.table or Interval(value.value, value.value) for value in known]
    line: look.Trace = {
        "type": "scatter", "mode": "lines", "x": [float(value.name[0]) for value in known],
        "line": {"width": 0, "color": look.BLUE},
    }  # fmt: skip
    data = [
        line | {"y": [one.low for one in ends], "showlegend": False, "hoverinfo": "skip"},
        line | {"y": [e.high for e in ends], "name": KINDS[0][1], "fill": "tonexty"}
        | {"fillcolor": BAND},
        line | {"y": [value.value for value in known], "name": look.SYNTHETIC}
        | {"line": {"width": 2, "color": look.BLUE}},
    ]  # fmt: skip
    y = look.axis(Message("share without the event"), tickformat=".0%", range=[0, 1.02])
    return look.figure(data, {"xaxis": look.axis(title), "yaxis": y})
