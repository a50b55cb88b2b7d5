"""What keeping at most m rows of a person costs and keeps, from declared figures alone."""

from __future__ import annotations

from collections.abc import Sequence

from core.figures.elements import BLUE, LINE, VERMILION, Figure, Trace, axis, figure
from core.message import Message, plural

LIMITS = (1, 2, 3, 5, 8, 12, 20)


def share_of_rows(most: int, mean: float) -> float:
    """Share of rows that a limit keeps where rows of a person follow a geometric law.

    Args:
      most: rows of one person at most, m ≥ 1.
      mean: rows of a person, declared, ≥ 1.

    Returns:
      E[min(R, m)] / E[R] = 1 - (1 - 1/mean)^m, in (0, 1].

    >>> share_of_rows(1, 2.0), share_of_rows(3, 1.0)
    (0.5, 1.0)
    """
    return 1.0 - (1.0 - 1.0 / max(mean, 1.0)) ** most


def row_limit_figure(mean: float, most: int, *, grouped: bool) -> Figure:
    """Rows kept, and noise, against the limit.

    Args:
      mean: rows of a person, declared, ≥ 1.
      grouped: whether a column says who; then noise does not grow with the limit.
    """
    limits = sorted({*LIMITS, most})
    noise = [1.0 if grouped else float(limit) for limit in limits]
    data = [
        _line(Message("rows kept"), limits, [share_of_rows(m, mean) for m in limits], BLUE, "y"),
        _line(Message("noise, in multiples of that of one row"), limits, noise, VERMILION, "y2"),
    ]
    layout = {
        "xaxis": axis(Message("most rows of one person"), type="log", tickvals=limits,
                      ticktext=[f"{limit}" for limit in limits]),
        "yaxis": axis(Message("rows kept"), range=[0, 1.05], tickformat=".0%"),
        "yaxis2": axis(Message("noise"), overlaying="y", side="right", showgrid=False,
                       range=[0, max(2.0, max(noise) * 1.05)], tickvals=sorted({1.0, max(noise)})),
        "shapes": [{"type": "line", "x0": most, "x1": most, "yref": "paper", "y0": 0, "y1": 1,
                    "line": {"color": LINE, "dash": "dot", "width": 1}}],
        "height": 260,
    }  # fmt: skip
    return figure(data, layout)


def _line(name: Message, x: Sequence[int], y: Sequence[float], color: str, side: str) -> Trace:
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "name": name,
        "x": list(x),
        "y": list(y),
        "yaxis": side,
        "line": {"color": color, "width": 2, "dash": "solid" if side == "y" else "dash"},
    }


def row_limit_words(mean: float, most: int, *, grouped: bool) -> Message:
    """The figure in words.

    Args:
      mean: rows of a person, declared, ≥ 1.
    """
    noise = Message("the noise of one row")
    if not grouped:
        noise = plural(most, "the noise of one row", "{n} times the noise of one row")
    return plural(
        most,
        "Keeping 1 row of each person keeps about {share:.0%} of the rows where people have "
        "{mean:g} on average. It needs {noise}.",
        "Keeping at most {n} rows of each person keeps about {share:.0%} of the rows where people "
        "have {mean:g} on average. It needs {noise}.",
        share=share_of_rows(most, mean),
        mean=mean,
        noise=noise,
    )
