"""Lines over steps or over time, with the marks of numbers and the clock of whoever looks.

Streamlit's own line chart writes an axis's name along the axis, where a long one is cut off, counts
hours to twelve without saying which, and knows English numbers only.
"""

from __future__ import annotations

from typing import Any

import altair as alt
import pandas as pd
import streamlit as st

from pages.shared.language import number, say

HEIGHT = 300  # px
HOURS = pd.Timedelta(days=2)  # a longer line is marked by days
LEGEND = 45  # letters that a phone shows in one row


def draw(frame: pd.DataFrame, *, x_title: str, y_title: str) -> None:
    """A line a column, over the frame's index; times are UTC and shown in the browser's zone.

    Args:
      frame: numbers, with gaps; its columns are called as they are to be shown.
      x_title, y_title: what the axes count, with the unit.
    """
    name = str(frame.index.name or "step")
    drawn = frame.reset_index(names=name).melt(name, var_name="line", value_name="value")
    drawn = drawn.dropna(subset="value")
    across: dict[str, Any] = {"title": x_title, "labelOverlap": True, "grid": False}
    if timed := isinstance(frame.index, pd.DatetimeIndex):
        span = frame.index.max() - frame.index.min()
        unit = pd.Timedelta(minutes=1) if span < HOURS else pd.Timedelta(days=1)
        across["format"] = "%H:%M" if span < HOURS else say("%d %b %Y")
        across["tickCount"] = max(1, min(8, span // unit))  # no mark is written twice
    up = {"title": y_title, "titleAngle": 0, "titleAlign": "left", "titleX": 0, "titleY": -12}
    in_two = sum(map(len, frame.columns)) > LEGEND
    legend = alt.Legend(title=None, orient="bottom", columns=2 if in_two else 0)
    chart = (
        alt.Chart(drawn)
        .mark_line()
        .encode(
            x=alt.X(
                f"{name}:{'T' if timed else 'Q'}",
                axis=alt.Axis(**(across if timed else _marked(across | {"tickMinStep": 1}))),
            ),
            y=alt.Y("value:Q", axis=alt.Axis(**_marked(up))),
            color=alt.Color(
                "line:N",
                sort=list(frame.columns),
                legend=legend if frame.shape[1] > 1 else None,
            ),
        )
    )
    st.altair_chart(chart.properties(height=HEIGHT).configure_axis(labelFlush=False))


def _marked(axis: dict[str, Any]) -> dict[str, Any]:
    """An axis of numbers with the marks of whoever looks."""
    thousands, point = number(","), number(".")
    if (thousands, point) == (",", "."):
        return axis
    label = "replace(replace(replace(datum.label, /,/g, ' '), '.', '{}'), / /g, '{}')"
    return axis | {"labelExpr": label.format(point, thousands)}
