"""What a plan may come to at each ε: what is kept, what is learned, what an attacker can tell."""

from __future__ import annotations

from collections.abc import Sequence

from core.figures import elements as look
from core.figures.elements import Dumped, Figure, Trace
from core.message import Message

# name, colour and dash of each line; the fill of what lies between lowest and highest
LINES: dict[str, tuple[Message, str, str, str]] = {
    "pairs": (Message("pairs of columns in common"), look.BLUE, "solid", "rgba(0,114,178,0.15)"),
    "learnt": (Message("predicting the target"), look.PHASES[2], "dash", "rgba(0,158,115,0.15)"),
    "attacker": (Message("attacker guesses right"), look.VERMILION, "dot", ""),
}
TICKS = (0.1, 0.3, 1, 3, 10)  # of ε


def prospects_figure(points: Sequence[Dumped], today: float) -> Figure:
    """A line a figure over ε, with its range, and a mark at the ε that is planned.

    Args:
      points: by rising ε: "epsilon", and in [0, 1] "pairs", "learnt" and "attacker" as (mean, low,
        high), each only where it is known.
      today: the ε that is planned, one of them.
    """
    data: list[Trace] = []
    for key, (name, color, dash, fill) in LINES.items():
        known = [point for point in points if key in point]
        if not known:
            continue
        at = [point["epsilon"] for point in known]
        mean, low, high = zip(*(point[key] for point in known), strict=True)
        line: Trace = {"type": "scatter", "mode": "lines", "x": at, "hoverinfo": "skip"}
        if fill:
            edge = line | {"line": {"width": 0}, "showlegend": False}
            data += [edge | {"y": low}, edge | {"y": high, "fill": "tonexty", "fillcolor": fill}]
        data.append(
            {
                "type": "scatter",
                "mode": "lines+markers",
                "name": name,
                "x": at,
                "y": mean,
                "line": {"color": color, "width": 2, "dash": dash},
                "marker": {"size": [12 if x == today else 0 for x in at], "opacity": 1},
                "hovertemplate": Message("ε = %{{x}}: %{{y:.0%}} {name}<extra></extra>", name=name),
            }
        )
    mark = {"type": "line", "x0": today, "x1": today, "yref": "paper", "y0": 0, "y1": 1}
    layout = {
        "xaxis": look.axis(
            Message("ε (more private to the left)"),
            type="log",
            tickvals=TICKS,
            ticktext=[Message("{x:g}", x=x) for x in TICKS],
        ),
        "yaxis": look.axis("", tickformat=".0%", range=[0, 1.02]),
        "shapes": [mark | {"line": {"color": look.LINE, "width": 1, "dash": "dot"}}],
        "height": 330,
        "hovermode": "closest",
        "legend": look.LEGEND | {"traceorder": "normal"},
    }
    return look.figure(data, layout)
