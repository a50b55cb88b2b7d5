"""How a table becomes a synthetic one: the stages of a plan as one picture, top to bottom.

Private stages have a full border, a coloured edge and say what they cost; free ones have a dashed
border and say that they touch no real rows. So the picture reads without its colours.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from core.figures.elements import BLUE, LINE, PHASES, VERMILION, Dumped, Figure, Trace, figure, wrap

__all__ = ["stages_figure", "stages_text"]

ROW = 78  # px a box with its arrow
BOX = 0.62  # of a row's height
LEFT, RIGHT = 0.0, 1.0


def stages_figure(stages: Sequence[Dumped], plan: Dumped) -> Figure:
    """One box a stage between the real and the synthetic table.

    Args:
      stages: `Card.stages`, dumped; private ones that the plan does not hold are left out.
      plan: `Plan.model_dump(mode="json")`.
    """
    boxes = [("Real table", f"{plan['n']:,} {_records(plan)}", "", BLUE, True)]
    boxes += [_box(stage, phase, plan) for stage, phase in _held(stages, plan)]
    boxes += [("Synthetic table", "made from what came out above", "", VERMILION, False)]
    shapes: list[Trace] = []
    notes: list[Trace] = []
    for row, (title, text, cost, color, solid) in enumerate(boxes):
        middle = -float(row)
        shapes += _frame(middle, color, solid=solid)
        notes.append(_note(LEFT + 0.035, middle, f"<b>{title}</b><br>{text}", "left"))
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
    return figure([{"type": "scatter", "x": [], "y": []}], layout)


def stages_text(stages: Sequence[Dumped], plan: Dumped) -> str:
    """The picture in words, for screen readers."""
    parts = []
    for stage, phase in _held(stages, plan):
        how = "touches no real rows" if phase is None else "; ".join(_costs(phase, plan))
        parts.append(f"{stage['title']} ({how}), which gives {stage['makes']}")
    return "From the real table to the synthetic one: " + ", then ".join(parts) + "."


def _held(stages: Sequence[Dumped], plan: Dumped) -> list[tuple[Dumped, Dumped | None]]:
    """Stages of this plan, private ones with their phase."""
    phases = {phase["name"]: phase for phase in plan["phases"]}
    return [
        (stage, phases.get(stage["name"]) if stage["private"] else None)
        for stage in [*stages, *_protection(plan)]
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
            "title": f"Certificate for “{group}”",
            "makes": "a noisy yes or no",
            "private": True,
        }
        for group in protection["groups"]
    ]
    if not protection["shift"]:
        return certificates
    title, makes = "Shift of hidden columns", "other distributions, by choosing among rows"
    return [{"name": "shift", "title": title, "makes": makes, "private": False}, *certificates]


def _box(stage: Dumped, phase: Dumped | None, plan: Dumped) -> tuple[str, str, str, str, bool]:
    text = f"gives {stage['makes']}"
    if phase is None:
        return stage["title"], text, "touches no<br>real rows", LINE, False
    names = [p["name"] for p in plan["phases"]]
    color = PHASES[names.index(phase["name"]) % len(PHASES)]
    return stage["title"], text, "<br>".join(_costs(phase, plan)), color, True


def _records(plan: Dumped) -> str:
    """What n counts; plans of earlier versions say no unit."""
    unit = plan.get("unit")
    return "people" if unit and unit["columns"] else "rows"


def _costs(phase: Dumped, plan: Dumped) -> list[str]:
    """What a private stage takes: share, how often on how much, noise."""
    count = phase["count"]
    everything = f"all {_records(plan)}"
    often = f"{everything}, once" if count == 1 else f"{everything}, {count:,} times"
    if phase["sampling_rate"] is not None and phase["sampling_rate"] < 1.0:
        rows = round(phase["sampling_rate"] * plan["n"])
        often = f"{count:,} random batches of {rows:,}"
    if not phase["noise_multiplier"] and phase["mechanism"] != "zcdp":
        return [often, "no noise"]
    spent = f"{100 * phase['share']:.0f} % of the budget"
    if phase["mechanism"] == "zcdp":
        return [spent, often, f"random choice, ε₀ = {math.sqrt(8.0 * phase['rho']):.2g}"]
    return [spent, often, f"noise {phase['noise_multiplier']:.3g} × one record"]


def _frame(middle: float, color: str, *, solid: bool) -> list[Trace]:
    low, high = middle - BOX / 2, middle + BOX / 2
    border: Trace = {
        "type": "rect", "x0": LEFT, "x1": RIGHT, "y0": low, "y1": high,
        "line": {"color": LINE, "width": 1.2, "dash": "solid" if solid else "dot"},
        "fillcolor": "rgba(128,128,128,0.06)",
    }  # fmt: skip
    edge: Trace = {
        "type": "rect", "x0": LEFT, "x1": LEFT + 0.012, "y0": low, "y1": high,
        "line": {"width": 0}, "fillcolor": color,
    }  # fmt: skip
    return [border, edge]


def _note(x: float, y: float, text: str, side: str) -> Trace:
    lines = "<br>".join(
        wrap(part, 44) if "<b>" not in part else part for part in text.split("<br>")
    )
    return {
        "x": x, "y": y, "text": lines, "showarrow": False, "xanchor": side, "yanchor": "middle",
        "align": side, "font": {"size": 12},
    }  # fmt: skip


def _arrow(to: float, start: float) -> Trace:
    return {
        "x": 0.5, "y": to, "ax": 0.5, "ay": start, "xref": "x", "yref": "y", "axref": "x",
        "ayref": "y", "text": "", "showarrow": True, "arrowhead": 2, "arrowsize": 1,
        "arrowwidth": 1.4, "arrowcolor": LINE,
    }  # fmt: skip
