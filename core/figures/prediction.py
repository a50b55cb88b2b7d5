"""How well each column is predicted from the others: learnt from either table."""

from __future__ import annotations

from core.figures.elements import (
    LINE,
    Dumped,
    Figure,
    Trace,
    diagonal,
    farthest,
    figure,
    name_points,
    points,
    square,
)
from core.figures.report_figure import ReportFigure

__all__ = ["FIGURE", "describe_prediction", "prediction_figure"]

KINDS = {"F1": "lists (F1)", "AUROC": "two labels (AUROC)", "R²": "numbers (R²)"}
NOT_PREDICTABLE = "not predictable even from real rows"


def prediction_figure(report: Dumped) -> Figure | None:
    """How well each column is predicted: learnt from real rows across, from synthetic ones up."""
    columns = report["dimension_prediction"]
    measured = [p for p in columns if p["real"] is not None and p["synthetic"] is not None]
    if not measured:
        return None
    groups: dict[str, list[Trace]] = {title: [] for title in (*KINDS.values(), NOT_PREDICTABLE)}
    for point in measured:
        groups[KINDS[point["metric"]] if point["predictable"] else NOT_PREDICTABLE].append(point)
    data: list[Trace] = []
    notes: list[Trace] = []
    symbols = ("circle", "triangle-up", "square", "x-thin")
    for (title, group), symbol in zip(groups.items(), symbols, strict=True):
        hover = [
            f"<b>{p['column']}</b> ({p['metric']}, 1 is perfect)"
            f"<br>learnt from real rows: {p['real']:.3f}"
            f"<br>learnt from synthetic rows: {p['synthetic']:.3f}"
            f"<br>guessing: {p['baseline']:.3f}"
            for p in group
        ]
        real, synthetic = ([p[key] for p in group] for key in ("real", "synthetic"))
        trace = points(title, real, synthetic, hover=hover, symbol=symbol)
        trace["marker"]["line"]["color"] = trace["marker"]["color"]
        half_widths = [p.get("half_width") or 0.0 for p in group]
        trace["error_y"] = {"array": half_widths, "color": LINE, "thickness": 1, "width": 0}
        if group:
            data.append(trace)
        if title != NOT_PREDICTABLE:
            notes += name_points(trace, [p["column"] for p in group])
    layout = square("learnt from real rows", "learnt from synthetic rows", low=-0.03, high=1.04)
    return figure([diagonal(0.0, 1.0), *data], layout | {"annotations": notes})


def describe_prediction(report: Dumped) -> str:
    """The figure in a sentence."""
    # a synthetic column of one value alone teaches nothing: predictable, but without a score
    scored = [
        p for p in report["dimension_prediction"] if p["predictable"] and p["synthetic"] is not None
    ]
    if not scored:
        return "No column can be predicted from the others, or it is not measured yet."
    worst = farthest(scored)
    return (
        f"Prediction of {len(scored)} columns, learnt from real against synthetic rows; the "
        f"largest difference is {worst['column']}, {worst['metric']} {worst['real']:.2f} against "
        f"{worst['synthetic']:.2f}."
    )


FIGURE = ReportFigure(
    id="prediction",
    order=80,
    title="How well each column is predicted",
    name="predictions",
    tab="predictions",
    draw=prediction_figure,
    describe=describe_prediction,
)
