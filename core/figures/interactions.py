"""Which columns a private scan found related: pairs as a matrix, larger sets as bars."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from core.figures import elements as look
from core.figures.elements import Dumped, Figure, Trace
from core.figures.report_figure import ReportFigure
from core.message import Message, joined, plural

MOST_COLUMNS, MOST_SETS = 40, 12  # of the matrix, and of the bars
ROW = 24  # pixels
NOTHING = Message("nothing above noise and chance")


def interactions_figure(report: Dumped) -> Figure | None:
    """A matrix of pairs coloured by score on a log scale, and bars of larger sets.

    Args:
      report: whose "significant_sets" holds `core.models.events.Interaction`s, if any.
    """
    found = report.get("significant_sets", ())
    pairs = [one for one in found if len(one["columns"]) == 2]
    larger = [one for one in found if len(one["columns"]) > 2][:MOST_SETS]
    if not found:
        return None
    names = list(dict.fromkeys(name for one in pairs for name in one["columns"]))[:MOST_COLUMNS]
    heights = [ROW * len(names) + 60 if names else 0, ROW * len(larger) + 60 if larger else 0]
    whole = sum(heights)
    split = heights[1] / whole  # the bars stand below
    data: list[Trace] = []
    layout: Trace = {"height": max(220, whole + 130), "showlegend": False}
    if names:
        ticks = look.name_ticks(names, 18)
        data.append(_matrix(pairs, names, _associations(report)))
        layout["xaxis"] = look.axis("", showgrid=False, tickangle=-45, side="top", **ticks)
        layout["yaxis"] = look.axis("", showgrid=False, autorange="reversed", **ticks)
        layout["yaxis"]["domain"] = [min(1.0, split + 0.08) if larger else 0.0, 1.0]
    if larger:
        scores = [max(one["score"], 1.0) for one in larger]
        trace = look.bars("", range(len(larger)), scores, [_hover(one) for one in larger])
        trace |= {"marker": look.hatched(look.BLUE, ""), "xaxis": "x2", "yaxis": "y2"}
        data.append(trace)
        labels = [look.short(" × ".join(one["columns"]), 48) for one in larger]
        title = Message("score of larger sets (log scale)")
        top = math.ceil(math.log10(max(10.0, larger[0]["score"])))
        layout["xaxis2"] = look.axis(title, type="log", anchor="y2", dtick=1, range=[0, top])
        layout["yaxis2"] = look.axis("", showgrid=False, autorange="reversed", anchor="x2")
        layout["yaxis2"] |= look.name_ticks(labels, 48)
        layout["yaxis2"]["domain"] = [0.0, max(0.1, split - 0.08) if names else 1.0]
    return look.figure(data, layout)


def _associations(report: Dumped) -> dict[frozenset[str], Message]:
    """How strongly the synthetic table ties pairs of columns, and how far that may be off."""
    table, halves = report.get("associations"), (report.get("intervals") or {}).get("associations")
    if not table or not halves:
        return {}
    names = table["columns"]
    return {
        frozenset((names[i], names[j])): Message(
            "association {x:.2f} (real table: ± {half:.2f})",
            x=table["synthetic"][i][j],
            half=halves[i][j],
        )
        for i in range(len(names))
        for j in range(i)
    }


def _matrix(
    pairs: Sequence[Dumped], names: Sequence[str], tied: Mapping[frozenset[str], Message]
) -> Trace:
    """Pairs of the named columns; those that are not significant have no colour."""
    index = {name: i for i, name in enumerate(names)}
    grid: list[list[float | None]] = [[None] * len(names) for _ in names]
    hover = [[look.lines(_named((a, b)), NOTHING) for b in names] for a in names]
    for one in pairs:
        if not set(one["columns"]) <= set(names):
            continue
        i, j = (index[name] for name in one["columns"])
        for a, b in ((i, j), (j, i)):
            grid[a][b] = math.log10(max(one["score"], 1.0))
            about = tied.get(frozenset(one["columns"]))
            hover[a][b] = _hover(one) if about is None else look.lines(_hover(one), about)
    top = max(1.0, *(value for row in grid for value in row if value is not None))
    powers = list(range(math.ceil(top) + 1))
    bar = {
        "title": {"text": Message("score"), "side": "right"},
        "tickvals": powers,
        "ticktext": [Message("{x:,}", x=10**power) for power in powers],
    }
    return look.heatmap(
        grid,
        limits=(0.0, top),
        scale=("rgba(213,94,0,0.12)", look.FULL_VERMILION),
        bar=bar,
        xgap=1,
        ygap=1,
        hoverongaps=False,
        hovertext=hover,
        hovertemplate="%{hovertext}<extra></extra>",
    )


def _named(columns: Sequence[str]) -> Message:
    return joined([look.bold(name) for name in columns], " × ")


def _hover(one: Dumped) -> Message:
    score = Message("{score:,.0f} standard deviations above noise and chance", score=one["score"])
    more = [Message("differs between the values of the target")] if one["target"] else []
    return look.lines(_named(one["columns"]), score, *more)


def describe_interactions(report: Dumped) -> Message:
    """The figure in words."""
    found = report["significant_sets"]
    pairs = [one for one in found if len(one["columns"]) == 2]
    larger = [one for one in found if len(one["columns"]) > 2]
    best = max(found, key=lambda one: one["score"])
    counts = [
        plural(len(pairs), "1 pair of columns", "{n} pairs of columns"),
        plural(len(larger), "1 larger set", "{n} larger sets"),
    ]
    return Message(
        "A scan that ε paid for found significant relationships: {found}. The clearest is that of "
        "{columns}, {score:,.0f} standard deviations above noise and chance. No real row was read "
        "for this figure.",
        found=joined(
            [one for one, many in zip(counts, (pairs, larger), strict=True) if many], ", "
        ),
        columns=" × ".join(best["columns"]),
        score=best["score"],
    )


FIGURE = ReportFigure(
    id="interactions",
    order=45,
    tab="pairs",
    views=("inside", "outside"),
    headed=True,
    compared=False,
    title=Message("Significant relationships"),
    name=Message("significant relationships"),
    draw=interactions_figure,
    describe=describe_interactions,
)
