"""Pictures of tagged columns: what a synthetic table would reveal, and what a shift makes of it."""

from __future__ import annotations

import math

from core.figures import elements as look
from core.figures.elements import Dumped, Figure, Trace
from core.message import Message, joined

STRENGTH = 0.75  # of the example's shift


def shift_figure(column: Dumped) -> Figure:
    """One real column, and one of the many ways a shift may bend it; for the Tables page.

    The second line is an example with made-up waves: the real shift is random, secret, and made
    from synthetic records.

    Args:
      column: `ColumnProfile.model_dump(mode="json")`.
    """
    counts = [float(count) for count in column["counts"]]
    n = max(1, len(counts))
    waves = [math.cos(2.2 * math.pi * i / n + 0.6) for i in range(n)]
    bent = [c * math.exp(0.9 * STRENGTH * wave) for c, wave in zip(counts, waves, strict=True)]
    listed = column["edges"] is None
    if listed:
        ticks = look.name_ticks([str(label) for label in column["labels"] or ()])
    else:
        ticks = look.edge_ticks(column["edges"], column["kind"], most=5)
    traces: list[Trace] = []
    for label, weights, colour, dash in (
        (Message("would be revealed"), counts, look.BLUE, "solid"),
        (Message("shifted (an example)"), bent, look.VERMILION, "dash"),
    ):
        trace: Trace = {
            "name": label,
            "x": list(range(n)),
            "y": [weight / (sum(weights) or 1.0) for weight in weights],
            "hovertemplate": Message("%{{y:.1%}}<extra>{label}</extra>", label=label),
        }
        if listed:
            marker = {"color": colour} if dash == "solid" else look.hatched(colour, "/")
            traces.append(trace | {"type": "bar", "marker": marker})
        else:
            line = {"shape": "hvh", "color": colour, "dash": dash, "width": 2}
            traces.append(trace | {"type": "scatter", "mode": "lines", "line": line})
    layout = {
        "height": 190,
        "margin": dict.fromkeys("lrtb", 8),
        "showlegend": False,
        "barmode": "group",
        "xaxis": look.axis("", showgrid=False, **ticks),
        "yaxis": look.axis("", tickformat=".0~%", rangemode="tozero"),
    }
    return look.figure(traces, layout)


def verdict_words(check: Dumped) -> Message:
    """One plain sentence on a group's inside check."""
    names = ", ".join(check["columns"])
    if check["differs"]:
        return Message(
            "The released distribution of {columns} differs from the real one: two tests on {n:,} "
            "real rows both tell them apart.",
            columns=names,
            n=check["records"],
        )
    return Message(
        "The released distribution of {columns} may reveal the real one: {n:,} real rows are not "
        "enough for both tests to tell them apart.",
        columns=names,
        n=check["records"],
    )


def certificate_words(certificate: Dumped) -> Message:
    """What one group's private certificate counted, needed and cost.

    Args:
      certificate: "count" of groups with its noise, of "groups" in all; "threshold"; "epsilon". One
        without a count was lost by a crash, and says so in its "test".
    """
    if "count" not in certificate:
        return Message(
            "Certificate: {test}. It cost ε = {epsilon:g}.",
            test=joined([certificate["test"]]),
            epsilon=certificate["epsilon"],
        )
    count = min(max(certificate["count"], 0), certificate["groups"])
    return Message(
        "Certificate: the difference showed in about {count:.0f} of {groups} groups of 128 real "
        "rows (counted with noise); more than {threshold:.1f} were needed. It cost ε = {epsilon:g} "
        "and may be shown to others.",
        count=count,
        groups=certificate["groups"],
        threshold=certificate["threshold"],
        epsilon=certificate["epsilon"],
    )
