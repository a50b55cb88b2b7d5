"""Days on which many end, or begin, stay such days where models see the time between two dates."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.encoding.layout.layout import Layout
from core.encoding.layout.violations import count_violations
from core.schema.column import Column, Kind
from core.schema.rules.rules import parse_rule
from core.schema.schema import Schema

DAY = 86_400.0
BEGIN, END = (pd.Timestamp(day).timestamp() for day in ("2010-01-01", "2012-12-31"))
ORDER = parse_rule("entered <= left")


def study(*, left: tuple[float, ...] = (), entered: tuple[float, ...] = ()) -> Layout:
    """Of who enters a study and leaves it, with days that many share."""
    dates = {"kind": Kind.DATETIME, "low": BEGIN, "high": END, "step": DAY, "missing": True}
    dates |= {"dtype": "datetime64[us]"}
    columns = (
        Column(name="entered", spikes=entered, **dates),
        Column(name="left", spikes=left, **dates),
    )
    return Layout(Schema(columns=columns, rules=(ORDER,)).domain())


def rows(days: list[tuple[int | None, int | None]]) -> pd.DataFrame:
    """Days since the begin, the earlier one first."""
    table = pd.DataFrame(days, columns=["entered", "left"]).astype("Float64")
    seconds = (table * DAY + BEGIN).astype("float64")
    return seconds.apply(pd.to_datetime, unit="s").astype("datetime64[us]")


day = st.none() | st.integers(0, 1095)  # the last is the end


@given(st.lists(st.tuples(day, day), min_size=1))
def test_a_shared_last_day_comes_back_whatever_came_before(days):
    real = rows([(a, b) if None in (a, b) or a <= b else (b, a) for a, b in days])
    layout = study(left=(END,))
    seen = layout.to_model(real)
    assert not any(count_violations(real, layout.output).values())
    drawn = layout.from_model(seen, seed=0)
    pd.testing.assert_frame_equal(drawn, real)
    [gap] = [column for column in layout.domain.columns if column.name != "entered"]
    ended = (real["left"] == pd.Timestamp(END, unit="s")).to_numpy()
    assert (seen[gap.name][ended] == gap.spikes[-1]).all(), "one state for all who stay to the end"
    assert not np.isin(seen[gap.name][~ended], gap.spikes[1:]).any()


def test_the_day_is_kept_though_the_one_before_is_another():
    """A model draws who is there to the end apart from when they came."""
    layout = study(left=(END,))
    seen = layout.to_model(rows([(5, 1095), (900, 1095), (30, 40)]))
    seen["entered"] = np.roll(seen["entered"], -1)
    drawn = layout.from_model(seen, seed=0)
    assert (drawn["left"][:2] == pd.Timestamp(END, unit="s")).all()
    without = study()
    seen = without.to_model(rows([(5, 1095), (900, 1095), (30, 40)]))
    seen["entered"] = np.roll(seen["entered"], -1)
    moved = without.from_model(seen, seed=0)
    assert moved["left"][1] < pd.Timestamp(END, unit="s"), "as a distance it is lost"


def test_nobody_leaves_on_a_shared_day_before_entering():
    middle = BEGIN + 500 * DAY
    layout = study(left=(middle, END))
    seen = layout.to_model(rows([(10, 500), (700, 1095)]))
    seen["entered"] = list(seen["entered"])[::-1]
    drawn = layout.from_model(seen, seed=0)
    assert not any(count_violations(drawn, layout.output).values())
    assert drawn["left"][1] == pd.Timestamp(END, unit="s")


@pytest.mark.parametrize("target", ["left", None])
def test_of_an_earlier_date_too(target):
    dates = study(entered=(BEGIN,)).output.columns
    layout = Layout(Schema(columns=dates, rules=(ORDER,), target=target).domain())
    real = rows([(0, 7), (0, 900), (3, 4), (None, 5), (0, None)])
    pd.testing.assert_frame_equal(layout.from_model(layout.to_model(real), seed=0), real)
