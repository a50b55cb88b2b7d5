"""The look that all figures share: axes, bars, points and the wording of bins.

Backgrounds are transparent and text takes the page's colour, so that one figure suits light and
dark pages. Figures are plain dicts as Plotly takes them. What is ours in them is a `Message`, names
are plain strings; `core.language.catalogue` says them in a language.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from core.message import Message, clock, day, joined, minute
from core.schema.calendar import DAY
from core.schema.date_text import CLOCK_DAY

Trace = dict[str, Any]
Figure = dict[str, Any]  # "data" and "layout"
Dumped = Mapping[str, Any]  # a model as `model_dump(mode="json")`

BLUE, VERMILION = "#0072B2", "#D55E00"  # Okabe and Ito's, safe for colour-blind readers
PHASES = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442")
# Of heat maps: a full hue for each sign, faint at zero, so that nothing is the page's own colour in
# both themes.
FULL_BLUE, FULL_VERMILION = "rgba(0,114,178,0.95)", "rgba(213,94,0,0.95)"
FAINT = "rgba(127,127,127,0.03)"
_STRENGTHS = (0.95, 0.85, 0.7, 0.45)  # a quarter of the scale must show already
TO_VERMILION = tuple(f"rgba(213,94,0,{strength})" for strength in reversed(_STRENGTHS))
TO_BLUE = tuple(f"rgba(0,114,178,{strength})" for strength in reversed(_STRENGTHS))
SIGNED = (*TO_VERMILION[::-1], FAINT, *TO_BLUE)
GRID = "rgba(128,128,128,0.2)"
LINE = "rgba(128,128,128,0.8)"
REAL, SYNTHETIC = Message("real"), Message("synthetic")  # names of series
MISSING_VALUES = Message("missing")  # name of a bar
GL_POINTS = 1_000  # beyond this many points browsers draw faster with WebGL
SHORT = 24  # characters of a label on an axis
LEGEND: Trace = {"orientation": "h", "x": 0, "y": 1, "yanchor": "bottom", "xanchor": "left"}
NAMED_POINTS = 8  # points of a scatter that carry their name
NAMED_GAP = 0.02  # points nearer the diagonal than this need no name
NAME_WIDE, NAME_HIGH = 0.3, 0.06  # of a name, as shares of the picture
MANY_DAYS = 30  # from which an axis names no hours


def figure(data: Sequence[Trace], layout: Mapping[str, Any]) -> Figure:
    """Traces and layout as a figure with the common look."""
    look = {
        "template": "none",
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "margin": {"l": 10, "r": 10, "t": 36, "b": 10},
        "legend": LEGEND,
        "hoverlabel": {"align": "left"},
        "height": 340,
    }
    return {"data": list(data), "layout": look | dict(layout)}


def lines(*texts: Message) -> Message:
    """Texts under one another, in a hover box or a note."""
    return joined(texts, "<br>")


def bold(name: str) -> Message:
    """A name in a text of ours."""
    return Message("<b>{name}</b>", name=name)


def axis(title: str, **settings: Any) -> Trace:
    """An axis with thin grid lines and no box; `settings` are Plotly's own."""
    look: Trace = {
        "gridcolor": GRID,
        "gridwidth": 1,
        "zeroline": False,
        "showline": False,
        "ticks": "outside",  # unseen, to keep labels off the marks
        "ticklen": 4,
        "tickcolor": "rgba(0,0,0,0)",
        "automargin": True,
        "title": {"text": title, "standoff": 14 if title else 0},
    }
    return look | settings


def hatched(color: str, pattern: str) -> Trace:
    """Marker of a bar: filled, or outlined with a hatch in the same colour."""
    if not pattern:
        return {"color": color, "line": {"width": 0}}
    return {
        "color": "rgba(0,0,0,0)",
        "line": {"width": 1.2, "color": color},
        "pattern": {"shape": pattern, "fgcolor": color, "bgcolor": "rgba(0,0,0,0)", "size": 6},
    }


def bars(title: str, at: Sequence[Any], shares: Sequence[float], hover: Sequence[str]) -> Trace:
    """Horizontal bars: real ones filled, all others hatched.

    Args:
      title: of the series, which names the kind of rows.
      at: positions or labels, k of them.
      hover: a sentence a bar, k of them.
    """
    color, pattern = (BLUE, "") if title == REAL else (VERMILION, "/")
    return {
        "type": "bar",
        "orientation": "h",
        "name": title,
        "y": list(at),
        "x": list(shares),
        "marker": hatched(color, pattern),
        "hovertext": list(hover),
        "hovertemplate": "%{hovertext}<extra></extra>",
    }


def points(
    title: str, x: Sequence[float], y: Sequence[float], *, hover: Sequence[str], symbol: str
) -> Trace:
    """A scatter trace; WebGL when there are many points. A colour for each kind of symbol.

    Args:
      hover: a sentence a point, k of them.
    """
    colors = {"x-thin": LINE, "circle": BLUE, "circle-open": BLUE, "triangle-up": PHASES[2]}
    color = colors.get(symbol, VERMILION)
    return {
        "type": "scattergl" if len(x) > GL_POINTS else "scatter",
        "mode": "markers",
        "name": title,
        "x": list(x),
        "y": list(y),
        "marker": {"size": 8, "symbol": symbol, "color": color, "line": {"width": 1.5}},
        "hovertext": list(hover),
        "hovertemplate": "%{hovertext}<extra></extra>",
    }


def heatmap(
    z: Sequence[Sequence[float | None]],
    *,
    limits: tuple[float, float],
    bar: Trace,
    scale: Sequence[str] = (),
    **settings: Any,
) -> Trace:
    """A heat map with a thin colour bar.

    Args:
      z: values [y][x], at 0, 1, 2, … both ways; None stays empty.
      limits: the values at both ends of the colours.
      scale: colours at even steps between the limits.
      settings: Plotly's own; `x` and `y` where the cells are elsewhere.
    """
    steps = [[i / (len(scale) - 1), color] for i, color in enumerate(scale)]
    return {
        "type": "heatmap",
        "z": z,
        "zmin": limits[0],
        "zmax": limits[1],
        "colorscale": steps,
        "colorbar": {"thickness": 10, "outlinewidth": 0} | bar,
    } | settings


def panel(i: int, count: int, *, gap: float) -> list[float]:
    """Domain of the i-th of several panels side by side, in shares of the figure's width.

    Args:
      count: of panels, ≥ 1.
      gap: between two of them, as a share of the width.
    """
    width = (1.0 - gap * (count - 1)) / count
    start = i * (width + gap)
    return [start, start + width]


def diagonal(low: float, high: float) -> Trace:
    """The line on which synthetic equals real."""
    return {
        "type": "scatter",
        "mode": "lines",
        "name": Message("equal"),
        "x": [low, high],
        "y": [low, high],
        "line": {"color": LINE, "width": 1, "dash": "dot"},
        "hoverinfo": "skip",
    }


def square(x: str, y: str, *, low: float, high: float) -> Trace:
    """Layout of a scatter whose two axes have one scale."""
    both = {"range": [low, high], "constrain": "domain"}
    return {
        "xaxis": axis(x, **both),
        "yaxis": axis(y, **both, scaleanchor="x", scaleratio=1),
        "height": 420,
        "hovermode": "closest",
    }


def name_points(trace: Trace, names: Sequence[str]) -> list[Trace]:
    """Annotations for the few points farthest from the diagonal, none over another."""
    gaps = [abs(a - b) for a, b in zip(trace["x"], trace["y"], strict=True)]
    far = sorted(range(len(gaps)), key=lambda i: -gaps[i])[:NAMED_POINTS]
    width = max((abs(value) for value in (*trace["x"], *trace["y"])), default=1.0) or 1.0

    def covered(i: int) -> bool:
        """Whether the name would lie over that of a point still farther away."""
        return any(
            abs(trace["y"][i] - trace["y"][j]) < NAME_HIGH * width
            and abs(trace["x"][i] - trace["x"][j]) < NAME_WIDE * width
            for j in far[: far.index(i)]
        )

    return [
        {
            "x": trace["x"][i],
            "y": trace["y"][i],
            "text": short(names[i]),
            "showarrow": False,
            # Above the diagonal names go left, below right: away from the crowd on the line.
            "xanchor": "right" if trace["y"][i] > trace["x"][i] else "left",
            "xshift": -8 if trace["y"][i] > trace["x"][i] else 8,
            "font": {"size": 11},
        }
        for i in far
        if gaps[i] >= NAMED_GAP and not covered(i)
    ]


def farthest(points: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """The point whose real and synthetic value differ most."""
    return max(points, key=lambda point: abs(point["real"] - point["synthetic"]))


def share(value: float) -> Message:
    """A share in per cent, never rounding something to nothing.

    >>> share(0.1234), share(0.00004), share(0.0)
    ('12.3%', '< 0.1%', '0%')
    """
    if value == 0.0:
        return Message("{share:.0%}", share=value)
    if value < 0.0005:
        return Message("< {share:.1%}", share=0.001)
    return Message("{share:.1%}", share=value)


def short(text: str, most: int = SHORT) -> str:
    """A label cut to fit an axis.

    >>> short("Married-civ-spouse", 10)
    'Married-c…'
    """
    return text if len(text) <= most else text[: most - 1] + "…"


def spans(edges: Sequence[float], kind: str) -> list[Message]:
    """Bins in words: "17 to 19" for whole numbers, "exactly 0" for a bin without width.

    >>> spans([-0.5, 1.5, 3.5], "integer"), spans([0, 0, 2, 9], "integer")
    (['0 to 1', '2 to 3'], ['exactly 0', '1', '2 to 9'])
    """
    out, kind = [], _axis_kind(edges, kind)
    for i, (low, high) in enumerate(zip(edges, edges[1:], strict=False)):
        if low == high:
            only = _value(low, kind)
            out.append(Message("exactly {value}", value=only) if len(edges) > 2 else only)
            continue
        if kind == "integer":
            after_atom = i > 0 and edges[i - 1] == low
            low = math.floor(low) + 1 if after_atom else math.ceil(low)
            # A bin ends before its upper edge, except the last one.
            high = math.floor(high) if i == len(edges) - 2 else math.ceil(high) - 1
        first, last = _value(low, kind), _value(high, kind)
        same = first == last
        out.append(first if same else Message("{first} to {last}", first=first, last=last))
    return out


def name_ticks(names: Sequence[str], most: int = SHORT) -> Trace:
    """Axis ticks at 0, 1, 2, … with the names of bars or cells."""
    texts = [name if isinstance(name, Message) else short(name, most) for name in names]
    return {"tickvals": list(range(len(names))), "ticktext": texts}


def edge_ticks(edges: Sequence[float], kind: str, *, most: int = 7) -> Trace:
    """Axis ticks for bins drawn at 0, 1, 2, …: a few edges, each at its bin's left end; both ends.

    Args:
      edges: of the bins, ascending, in the column's unit.
      most: ticks there may be, ≥ 2; of dates, which are long, at most three.
    """
    kind = _axis_kind(edges, kind)
    last, parts = len(edges) - 1, min(most, 3 if kind == "datetime" else most) - 1
    every = max(1, math.ceil(last / parts))
    ticks = [*range(0, last - every + 1, every), last] if last else [0]
    firsts = [_first(edges[tick], kind) for tick in ticks]
    if kind == "integer" and last > 0:
        firsts[-1] = math.floor(edges[-1])  # the last bin's last value
    if kind == "datetime" and edges[-1] - edges[0] > MANY_DAYS * DAY:
        firsts = [first // DAY * DAY for first in firsts]  # hours only crowd such an axis
    return {
        "tickmode": "array",
        "tickvals": [tick - 0.5 for tick in ticks],
        "ticktext": [_value(first, kind) for first in firsts],
    }


def _axis_kind(edges: Sequence[float], kind: str) -> str:
    """The kind, but "clock" where all moments lie in the day of times without a date."""
    dated = kind == "datetime" and len(edges) > 0 and edges[0] < edges[-1]
    return "clock" if dated and CLOCK_DAY <= edges[0] and edges[-1] <= CLOCK_DAY + DAY else kind


def _first(edge: float, kind: str) -> float:
    """The first value of the bin that starts at an edge."""
    return math.ceil(edge) if kind == "integer" else edge


def _value(x: float, kind: str) -> Message:
    """One value for people: dates as dates, whole numbers whole, others to three digits."""
    if kind in ("datetime", "clock"):
        when = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=x)
        if kind == "clock":
            return clock(when) if x < CLOCK_DAY + DAY else Message("24:00")
        return day(when) if x % DAY == 0 else minute(when)
    if kind == "integer" or (x == int(x) and abs(x) < 1e9):
        return Message("{x:,}", x=round(x))
    return Message("{x:.3g}", x=x) if abs(x) < 999.5 else Message("{x:,.0f}", x=x)
