"""How events of people follow on one another: what follows what, time to an event, ten people."""

from __future__ import annotations

from typing import Any

from core.figures import elements as look
from core.figures.associations import side_by_side
from core.figures.elements import Dumped, Figure, Trace
from core.figures.report_figure import ReportFigure
from core.message import Message

SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross")
PANELS = 4  # labels whose times are drawn
END = Message("end of the history")
TITLES = {
    "events": Message("events per person"),
    "gaps": Message("time between events"),
    "first": Message("first event"),
    "runs": Message("equal events in a row"),
}


def choices(report: Dumped) -> list[tuple[int, int]]:
    """Whose events can be shown: a file, and a column of it, if it has one."""
    each = enumerate(report.get("histories") or ())
    return [(at, i) for at, one in each for i in range(max(1, len(one["states"])))]


def chosen_file(report: Dumped) -> Any:
    """The file whose events are shown: the first one, or the one that a page chose."""
    found = report.get("histories") or [None]
    return found[report.get("history", (0, 0))[0]]


def chosen_state(report: Dumped) -> Any:
    """The column whose events are shown."""
    found = chosen_file(report)
    if not found or not found["states"]:
        return None
    return found["states"][report.get("history", (0, 0))[1]]


def history_columns(report: Dumped) -> dict[str, Any]:
    """Pictures of numbers of histories, by their titles."""
    found = chosen_file(report)
    if not found:
        return {}
    state = chosen_state(report)
    runs = {} if state is None else {"runs": state["runs"]}
    return {TITLES[key]: one for key, one in (found["pictures"] | runs).items()}


def transition_figure(report: Dumped) -> Figure | None:
    """Heat maps of what follows each label, in either table, and the difference."""
    state = chosen_state(report)
    if state is None:
        return None
    labels, after = state["labels"], [*state["labels"], END]
    return side_by_side(
        state["real"], state["synthetic"], after, labels, Message("share"), 200 + 24 * len(labels)
    )


def describe_transitions(report: Dumped) -> Message:
    """The figure in a sentence."""
    state = chosen_state(report)
    real, made, after = state["real"], state["synthetic"], [*state["labels"], END]
    if not real:
        return Message(
            "What comes after each event of {column} in the synthetic table: a row for each event.",
            column=state["column"],
        )
    cells = [(i, j) for i, row in enumerate(real) for j in range(len(row))]
    i, j = max(cells, key=lambda at: abs(real[at[0]][at[1]] - made[at[0]][at[1]]))
    return Message(
        "What comes after each event of {column}. The largest difference: {label} is followed by "
        "{after} in {real:.1%} of real and {synthetic:.1%} of synthetic cases.",
        column=state["column"],
        label=after[i],
        after=after[j],
        real=real[i][j],
        synthetic=made[i][j],
    )


def survival_figure(report: Dumped) -> Figure | None:
    """Shares of people who have not had an event yet, a panel for each of the first labels."""
    state = chosen_state(report)
    if state is None:
        return None
    data: list[Trace] = []
    layout: Trace = {"height": 300}
    shown = state["labels"][:PANELS]
    for i, label in enumerate(shown):
        n = str(i + 1) if i else ""
        for name, late, color, dash in (
            (look.REAL, state["real_not_yet"], look.BLUE, "solid"),
            (look.SYNTHETIC, state["synthetic_not_yet"], look.VERMILION, "dash"),
        ):
            if late:
                line = {"color": color, "dash": dash, "width": 2, "shape": "hv"}
                data.append({"type": "scatter", "mode": "lines", "name": name, "line": line})
                data[-1] |= {"x": state["times"], "y": late[i], "showlegend": not i}
                data[-1] |= {"xaxis": f"x{n}", "yaxis": f"y{n}"}
        area = {"domain": look.panel(i, len(shown), gap=0.04), "anchor": f"y{n}"}
        layout[f"xaxis{n}"] = look.axis(look.short(label), **area)
        side = look.axis("", range=[0, 1.03], tickformat=".0%", anchor=f"x{n}")
        layout[f"yaxis{n}"] = side | ({"matches": "y", "showticklabels": False} if i else {})
    return look.figure(data, layout)


def describe_survival(report: Dumped) -> Message:
    """The figure in a sentence."""
    days = chosen_file(report)["days"]
    return Message(
        "Share of people who have not had an event of {column} so long after their first event "
        "({unit}), by Kaplan and Meier: whoever's history ends earlier counts until then.",
        column=chosen_state(report)["column"],
        unit=Message("in days") if days else Message("in the unit of the column that sorts"),
    )


def timeline_figure(report: Dumped) -> Figure | None:
    """Ten synthetic people, a line each, a mark for each event."""
    found = chosen_file(report)
    if not found or not found["people"]:
        return None
    labels = found["states"][0]["labels"] if found["states"] else [""]
    places = [(i + 1, *event) for i, events in enumerate(found["people"]) for event in events]
    data: list[Trace] = [{"type": "scatter", "mode": "lines", "showlegend": False}]
    data[0] |= {"hoverinfo": "skip", "line": {"color": look.LINE, "width": 1}}
    ends = [(events[0][0], events[-1][0], None) for events in found["people"]]
    data[0] |= {"x": [x for line in ends for x in line]}
    data[0] |= {"y": [y for i in range(len(ends)) for y in (i + 1, i + 1, None)]}
    for k, label in enumerate(labels):
        own = [(x, y) for y, x, its in places if its == label]
        mark = {
            "size": 10,
            "color": look.PHASES[k % len(look.PHASES)],
            "symbol": SYMBOLS[k % len(SYMBOLS)],
        }
        data.append({"type": "scatter", "mode": "markers", "marker": mark})
        data[-1] |= {"name": look.short(label) or Message("event")}
        data[-1] |= {"x": [x for x, _ in own], "y": [y for _, y in own]}
    days = found["days"]
    title = Message("days since the first event") if days else Message("since the first event")
    up = look.axis(Message("person"), autorange="reversed", dtick=1)
    return look.figure(data, {"xaxis": look.axis(title), "yaxis": up, "height": 420})


def describe_timeline(report: Dumped) -> Message:
    """The figure in a sentence."""
    return Message(
        "The first {n} synthetic people with several events: a line a person, a mark an event.",
        n=len(chosen_file(report)["people"]),
    )


_HISTORY: dict[str, Any] = {
    "tab": "histories",
    "views": ("inside", "outside"),
    "headed": True,
    "compared": False,
}
FIGURES = (
    ReportFigure(
        id="transitions",
        order=90,
        **_HISTORY,
        title=Message("What follows what"),
        name=Message("what follows what"),
        draw=transition_figure,
        describe=describe_transitions,
    ),
    ReportFigure(
        id="survival",
        order=91,
        **_HISTORY,
        title=Message("Time to an event"),
        name=Message("time to an event"),
        draw=survival_figure,
        describe=describe_survival,
    ),
    ReportFigure(
        id="timeline",
        order=92,
        **_HISTORY,
        title=Message("Ten synthetic histories"),
        name=Message("ten synthetic histories"),
        draw=timeline_figure,
        describe=describe_timeline,
    ),
)
