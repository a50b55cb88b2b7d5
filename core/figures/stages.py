"""How a table becomes a synthetic one: the stages of a plan as one picture, top to bottom.

Private stages have a full border, a coloured edge and say what they cost; free ones have a dashed
border and say that they touch no real rows. So the picture reads without its colours.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from core.figures import elements as look
from core.figures.elements import Dumped, Figure, Trace
from core.message import Message, joined, plural
from core.privacy.discovery.planning import PHASES as DISCOVERY

ROW = 78  # px a box with its arrow
BOX = 0.62  # of a row's height
LEFT, RIGHT = 0.0, 1.0
NO_ROWS = Message("uses no real rows")


_Box = tuple[Message, Message, Message, str, bool]  # title, text, costs, colour, solid border


def stages_figure(stages: Sequence[Dumped], plan: Dumped) -> Figure:
    """One box a stage between the real and the synthetic table.

    Args:
      stages: `Card.stages`, dumped; private ones that the plan does not hold are left out.
      plan: `Plan.model_dump(mode="json")`.
    """
    counted = _counted(
        plan, Message("{n:,} rows", n=plan["n"]), Message("{n:,} people", n=plan["n"])
    )
    made = Message("made from the results above")
    none = Message("")
    boxes = [(Message("Real table"), counted, none, look.BLUE, True)]
    boxes += [_box(stage, phase, plan) for stage, phase in _held(stages, plan)]
    boxes += [(Message("Synthetic table"), made, none, look.VERMILION, False)]
    shapes: list[Trace] = []
    notes: list[Trace] = []
    for row, (title, text, cost, color, solid) in enumerate(boxes):
        middle = -float(row)
        shapes += _frame(middle, color, solid=solid)
        notes.append(_note(LEFT + 0.035, middle, look.lines(look.bold(title), text), "left"))
        if cost:
            notes.append(_note(RIGHT - 0.02, middle, cost, "right"))
        if row:
            notes.append(_arrow(middle + BOX / 2, middle + 1.0 - BOX / 2))
    hidden = {"visible": False, "fixedrange": True}
    layout = {
        "shapes": shapes,
        "annotations": notes,
        "xaxis": hidden | {"range": [-0.01, 1.01]},
        "yaxis": hidden | {"range": [0.5 - len(boxes), 0.5]},
        "height": ROW * len(boxes) + 10,
        "margin": {"l": 0, "r": 0, "t": 4, "b": 4},
        "showlegend": False,
        "hovermode": False,
    }
    return look.figure([{"type": "scatter", "x": [], "y": []}], layout)


def stages_text(stages: Sequence[Dumped], plan: Dumped) -> Message:
    """The picture in words, for screen readers."""
    parts = []
    for stage, phase in _held(stages, plan):
        how = NO_ROWS if phase is None else joined(_costs(phase, plan), "; ")
        title, makes = joined([stage["title"]]), joined([stage["makes"]])
        parts.append(
            Message("{title} ({how}), which gives {makes}", title=title, how=how, makes=makes)
        )
    return Message(
        "From the real table to the synthetic one: {stages}.", stages=joined(parts, ", then ")
    )


def _held(stages: Sequence[Dumped], plan: Dumped) -> list[tuple[Dumped, Dumped | None]]:
    """Stages of this plan, private ones with their phase."""
    phases = {phase["name"]: phase for phase in plan["phases"]}
    made = {"makes": Message("bounds and lists"), "private": True}  # by what any model may do first
    learned = [phase | made for name, phase in phases.items() if name in DISCOVERY]
    return [
        (stage, phases.get(stage["name"]) if stage["private"] else None)
        for stage in [*learned, *stages, *_protection(plan)]
        if not stage["private"] or stage["name"] in phases
    ]


def _protection(plan: Dumped) -> list[Dumped]:
    """What any model's plan adds for hidden distributions."""
    protection = plan.get("protection")
    if protection is None:
        return []
    certificates: list[Dumped] = [
        {
            "name": f"certificate: {group}",
            "title": Message("Certificate for “{group}”", group=group),
            "makes": Message("a noisy yes or no"),
            "private": True,
        }
        for group in protection["groups"]
    ]
    if not protection["shift"]:
        return certificates
    title = Message("Shift of hidden columns")
    makes = Message("different distributions, by choosing among rows")
    return [{"name": "shift", "title": title, "makes": makes, "private": False}, *certificates]


def _box(stage: Dumped, phase: Dumped | None, plan: Dumped) -> _Box:
    title, text = joined([stage["title"]]), Message("gives {makes}", makes=joined([stage["makes"]]))
    if phase is None:
        return title, text, NO_ROWS, look.LINE, False
    names = [p["name"] for p in plan["phases"]]
    color = look.PHASES[names.index(phase["name"]) % len(look.PHASES)]
    return title, text, look.lines(*_costs(phase, plan)), color, True


def _counted(plan: Dumped, rows: Message, people: Message) -> Message:
    """The one of both that says what n counts; a plan whose unit is a row says no unit."""
    unit = plan.get("unit")
    return people if unit and unit["columns"] else rows


def _costs(phase: Dumped, plan: Dumped) -> list[Message]:
    """What a private stage takes: share, how often on how much, noise."""
    count = phase["count"]
    often = _counted(
        plan,
        plural(count, "all rows, once", "all rows, {n:,} times"),
        plural(count, "all people, once", "all people, {n:,} times"),
    )
    if phase["sampling_rate"] is not None and phase["sampling_rate"] < 1.0:
        rows = round(phase["sampling_rate"] * plan["n"])
        often = Message("{n:,} random batches of {rows:,}", n=count, rows=rows)
    if not phase["noise_multiplier"] and phase["mechanism"] != "zcdp":
        return [often, Message("no noise")]
    spent = Message("{share} of the budget", share=look.share(phase["share"]))
    if phase["mechanism"] == "zcdp":
        epsilon = math.sqrt(8.0 * phase["rho"])
        return [spent, often, Message("random choice, ε₀ = {epsilon:.2g}", epsilon=epsilon)]
    noise = phase["noise_multiplier"]
    return [spent, often, Message("noise {noise:.3g} × one record", noise=noise)]


def _frame(middle: float, color: str, *, solid: bool) -> list[Trace]:
    low, high = middle - BOX / 2, middle + BOX / 2
    border: Trace = {
        "type": "rect", "x0": LEFT, "x1": RIGHT, "y0": low, "y1": high,
        "line": {"color": look.LINE, "width": 1.2, "dash": "solid" if solid else "dot"},
        "fillcolor": "rgba(128,128,128,0.06)",
    }  # fmt: skip
    edge: Trace = {
        "type": "rect", "x0": LEFT, "x1": LEFT + 0.012, "y0": low, "y1": high,
        "line": {"width": 0}, "fillcolor": color,
    }  # fmt: skip
    return [border, edge]


def _note(x: float, y: float, text: Message, side: str) -> Trace:
    return {
        "x": x, "y": y, "text": text, "showarrow": False, "xanchor": side, "yanchor": "middle",
        "align": side, "font": {"size": 12},
    }  # fmt: skip


def _arrow(to: float, start: float) -> Trace:
    return {
        "x": 0.5, "y": to, "ax": 0.5, "ay": start, "xref": "x", "yref": "y", "axref": "x",
        "ayref": "y", "text": "", "showarrow": True, "arrowhead": 2, "arrowsize": 1,
        "arrowwidth": 1.4, "arrowcolor": look.LINE,
    }  # fmt: skip
