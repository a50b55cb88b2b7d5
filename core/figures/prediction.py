"""How well each column is predicted from the others: learnt from either table."""

from __future__ import annotations

from core.figures import elements as look
from core.figures.elements import Dumped, Figure, Trace
from core.figures.report_figure import ReportFigure
from core.message import Message, plural

KINDS = {
    "F1": Message("lists (F1)"),
    "AUROC": Message("two labels (AUROC)"),
    "R²": Message("numbers (R²)"),
}
NOT_PREDICTABLE = Message("not predictable even from real rows")
FROM_REAL, FROM_SYNTHETIC = Message("trained on real rows"), Message("trained on synthetic rows")


def prediction_figure(report: Dumped) -> Figure | None:
    """How well each column is predicted: learnt from real rows across, from synthetic ones up."""
    columns = report["dimension_prediction"]
    measured = [p for p in columns if p["real"] is not None and p["synthetic"] is not None]
    if not measured:
        return None
    groups: dict[Message, list[Trace]] = {title: [] for title in (*KINDS.values(), NOT_PREDICTABLE)}
    for point in measured:
        groups[KINDS[point["metric"]] if point["predictable"] else NOT_PREDICTABLE].append(point)
    data: list[Trace] = []
    symbols = ("circle", "triangle-up", "square", "x-thin")
    for (title, group), symbol in zip(groups.items(), symbols, strict=True):
        hover = [
            look.lines(
                Message(
                    "<b>{column}</b> ({metric}, 1: perfect)", column=p["column"], metric=p["metric"]
                ),
                Message("trained on real rows: {score:.3f}", score=p["real"]),
                Message("trained on synthetic rows: {score:.3f}", score=p["synthetic"]),
                Message("guessing: {score:.3f}", score=p["baseline"]),
            )
            for p in group
        ]
        real, synthetic = ([p[key] for p in group] for key in ("real", "synthetic"))
        trace = look.points(title, real, synthetic, hover=hover, symbol=symbol)
        trace["marker"]["line"]["color"] = trace["marker"]["color"]
        half_widths = [p.get("half_width") or 0.0 for p in group]
        trace["error_y"] = {"array": half_widths, "color": look.LINE, "thickness": 1, "width": 0}
        if group:
            data.append(trace)
    named = [p for p in measured if p["predictable"]]
    every = {"x": [p["real"] for p in named], "y": [p["synthetic"] for p in named]}
    notes = look.name_points(every, [p["column"] for p in named])
    layout = look.square(FROM_REAL, FROM_SYNTHETIC, low=-0.03, high=1.04)
    return look.figure([look.diagonal(0.0, 1.0), *data], layout | {"annotations": notes})


def describe_prediction(report: Dumped) -> Message:
    """The figure in a sentence."""
    # a synthetic column of one value alone teaches nothing: predictable, but without a score
    scored = [
        p for p in report["dimension_prediction"] if p["predictable"] and p["synthetic"] is not None
    ]
    if not scored:
        return Message("No column can be predicted from the others, or this is not measured yet.")
    worst = look.farthest(scored)
    return plural(
        len(scored),
        "Prediction of 1 column, trained on real and on synthetic rows: {column}, {metric} "
        "{real:.2f} and {synthetic:.2f}.",
        "Predictions of {n} columns, trained on real and on synthetic rows. The largest difference "
        "is for {column}: {metric} {real:.2f} and {synthetic:.2f}.",
        column=worst["column"],
        metric=worst["metric"],
        real=worst["real"],
        synthetic=worst["synthetic"],
    )


FIGURE = ReportFigure(
    id="prediction",
    order=80,
    tab="predictions",
    title=Message("How well each column is predicted"),
    name=Message("predictions"),
    draw=prediction_figure,
    describe=describe_prediction,
)
