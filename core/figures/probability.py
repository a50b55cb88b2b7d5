"""How often each value occurs: real across, synthetic up."""

from __future__ import annotations

from core.figures import elements as look
from core.figures.elements import Dumped, Figure
from core.figures.report_figure import ReportFigure
from core.message import Message, joined
from core.quality.report.types import MISSING

AXES = {
    look.REAL: Message("share of real rows"),
    look.SYNTHETIC: Message("share of synthetic rows"),
}


def probability_figure(report: Dumped) -> Figure | None:
    """Share of rows of every label: real across, synthetic up, which may be off as far as told.

    Outside, synthetic shares stand across, and up where real ones may lie.
    """
    labels, halves = report["dimension_probability"], _halves(report)
    first, second = look.REAL, look.SYNTHETIC
    if report["view"] == "outside":
        first, second = look.SYNTHETIC, look.REAL
        labels = [
            {"column": column, "label": label, "real": value, "synthetic": value}
            for (column, label), (value, _) in halves.items()
        ]
    if not labels:
        return None
    names = [f"{label['column']}: {label['label']}" for label in labels]
    real, synthetic = ([label[key] for label in labels] for key in ("real", "synthetic"))
    off = [halves.get((one["column"], one["label"]), (0.0, 0.0))[1] for one in labels]
    hover = [
        look.lines(
            look.bold(name),
            Message("{name}: {share} of rows", name=first, share=look.share(a)),
            joined(
                [
                    Message("{name}: {share} of rows", name=second, share=look.share(b)),
                    *([Message("(± {half})", half=look.share(half))] if half else []),
                ]
            ),
        )
        for name, a, b, half in zip(names, real, synthetic, off, strict=True)
    ]
    trace = look.points(Message("labels"), real, synthetic, hover=hover, symbol="circle-open")
    if any(off):
        trace["error_y"] = {"array": off, "color": look.LINE, "thickness": 1, "width": 0}
    end = min(1.03, 1.06 * max(*real, *synthetic) + 0.01)
    layout = look.square(*(AXES[name] for name in (first, second)), low=-0.02 * end, high=end)
    for name in ("xaxis", "yaxis"):
        layout[name]["tickformat"] = ".0%"
    named = [f"{look.short(one['column'], 12)}: {one['label']}" for one in labels]
    layout |= {"showlegend": False, "annotations": look.name_points(trace, named)}
    return look.figure([look.diagonal(0.0, end), trace], layout)


def _halves(report: Dumped) -> dict[tuple[str, str], tuple[float, float]]:
    """By column and label the synthetic share and how far it may be off, once that is known."""
    columns = (report.get("intervals") or {}).get("columns", {})
    return {
        (name, label): (value, half)
        for name, known in columns.items()
        for label, value, half, scale in known["figures"]
        if scale == "share"
    }


def describe_probability(report: Dumped) -> Message:
    """The figure in a sentence."""
    labels = report["dimension_probability"]
    if report["view"] == "outside":
        widest = max(half for _, half in _halves(report).values())
        return Message(
            "Shares of {n} labels in synthetic rows. Each lies at most {half} above or below the "
            "real one (95%).",
            n=len(_halves(report)),
            half=look.share(widest),
        )
    worst = look.farthest(labels)
    if worst["label"] == MISSING:
        at = Message("missing values of {column}", column=worst["column"])
    else:
        at = Message("“{label}” in {column}", label=worst["label"], column=worst["column"])
    return Message(
        "Shares of {n} labels in real and synthetic rows. The largest difference is for {at}: "
        "{real} of real and {synthetic} of synthetic rows.",
        n=len(labels),
        at=at,
        real=look.share(worst["real"]),
        synthetic=look.share(worst["synthetic"]),
    )


FIGURE = ReportFigure(
    id="probability",
    order=70,
    tab="plane",
    views=("inside", "outside"),
    compared=False,
    title=Message("How often each value occurs"),
    name=Message("how often values occur"),
    draw=probability_figure,
    describe=describe_probability,
)
