"""Groups side by side: the rate of an outcome in real and in synthetic rows, and all figures."""

from __future__ import annotations

from core.figures import elements as look
from core.figures.elements import Dumped, Figure, Trace
from core.message import Message, to_say

SHARES = to_say("{real:.1%} → {synthetic:.1%}")
DISTANCES = to_say("{real:.3f} → {synthetic:.3f}")
MEANS = to_say("{real:,.4g} → {synthetic:,.4g}")
HEADS = (  # of the table, whence each column is read, and how it is written
    ("share", Message("Rows"), SHARES),
    ("single", Message("Columns: distance"), DISTANCES),
    ("pairs", Message("Pairs: distance"), DISTANCES),
    ("rate", "", SHARES),  # named as the outcome is
    ("score", Message("Prediction"), DISTANCES),
    ("found", Message("Cases found"), SHARES),
)


def groups_figure(grouping: Dumped) -> Figure | None:
    """Each group's rate of the outcome, real and synthetic joined by a line; None without one."""
    groups = [group for group in grouping["groups"] if group["rate"] is not None]
    if not groups:
        return None
    at, share = range(len(groups)), " = " in grouping["outcome"]
    join = {
        "type": "scatter",
        "mode": "lines",
        "x": [x for group in groups for x in (*group["rate"], None)],
        "y": [y for i in at for y in (i, i, None)],
        "line": {"color": look.LINE, "width": 1},
        "hoverinfo": "skip",
        "showlegend": False,
    }
    data: list[Trace] = [join]
    for side, (title, symbol) in enumerate(
        ((look.REAL, "circle"), (look.SYNTHETIC, "diamond-open"))
    ):
        rates = [group["rate"][side] for group in groups]
        words = [Message("{x:.1%}", x=x) if share else Message("{x:,.4g}", x=x) for x in rates]
        hover = [look.lines(group["name"], word) for group, word in zip(groups, words, strict=True)]
        data.append(look.points(title, rates, list(at), hover=hover, symbol=symbol))
    settings = {"tickformat": ".0%", "rangemode": "tozero"} if share else {}
    names = look.name_ticks([group["name"] for group in groups])
    layout = {
        "xaxis": look.axis(grouping["outcome"], **settings),
        "yaxis": look.axis("", autorange="reversed", **names),
        "height": 130 + 26 * len(groups),
        "hovermode": "closest",
    }
    return look.figure(data, layout)


def group_table(grouping: Dumped) -> list[dict[str, str]]:
    """A row for each group, those farthest off first; figures of real → of synthetic rows."""
    seen = [head for head in HEADS if any(group[head[0]] for group in grouping["groups"])]

    def row(group: Dumped) -> dict[str, str]:
        figures: dict[str, str] = {Message("Group"): Message("{name}", name=group["name"])}
        for key, head, template in seen:
            mean = key == "rate" and " = " not in grouping["outcome"]
            two = dict(zip(("real", "synthetic"), group[key] or (), strict=False))
            head = grouping["outcome"] if key == "rate" else head
            figures[head] = Message(MEANS if mean else template, **two) if two else "—"
        return figures

    far = sorted(grouping["groups"], key=lambda group: group["pairs"][0] - group["pairs"][1])
    return [row(group) for group in far]
