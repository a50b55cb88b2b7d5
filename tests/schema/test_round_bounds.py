"""Proposed bounds hold every value, and are numbers that many tables share."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.proposing.rare import RareCounts, common_labels, danger, rare_counts
from core.reading.tally import Tally
from core.schema.column import Column, Kind
from core.schema.round_bounds import WHOLE_STEPS, number_step, round_bounds, rung, whole_years

FINITE = st.floats(-1e15, 1e15).filter(lambda x: x == 0 or abs(x) > 1e-9)


@given(st.floats(1e-12, 1e18))
def test_a_rung_is_the_next_of_one_two_five(x: float) -> None:
    digits, power = f"{rung(x):.0e}".split("e")
    assert digits in "125" and x <= rung(x)
    below = {"1": float(f"5e{int(power) - 1}"), "2": float(f"1e{power}"), "5": float(f"2e{power}")}
    assert below[digits] < x


@given(st.sampled_from(WHOLE_STEPS), st.lists(st.integers(-999, 999), min_size=2, unique=True))
def test_whole_numbers_have_the_coarsest_step(step: float, multiples: list[int]) -> None:
    numbers = np.sort(np.array(multiples) * step)
    found = number_step(numbers)
    assert found >= step and not (numbers % found).any()
    low, high = round_bounds(numbers[0], numbers[-1], step=found)
    assert low % found == high % found == 0
    assert number_step(np.append(numbers, 3.0)) == 1.0 and number_step(numbers + 0.25) == 0.01


def test_what_sums_of_floats_leave_behind_makes_no_step_finer() -> None:
    prices = np.array([3.86, 0.1 + 0.2, 840.0, 9.99 - 9.98 - 0.01])
    assert not np.isin(prices, np.round(prices, 2)).all()
    assert number_step(prices) == 0.01 and number_step(np.append(prices, 1e-5)) == 1e-5


@given(FINITE, FINITE)
def test_bounds_hold_the_values_and_are_round(a: float, b: float) -> None:
    least, greatest = min(a, b), max(a, b)
    low, high = round_bounds(least, greatest)
    assert low <= least and greatest <= high
    assert high - low <= 6 * max(greatest - least, abs(greatest), abs(least))
    near = least <= 0 <= greatest or min(abs(a), abs(b)) <= max(abs(a), abs(b)) / 2
    if near:
        assert all(bound == 0 or abs(bound) == rung(abs(bound)) for bound in (low, high))
        # any other table with an end on the same rung gets the same bound
        assert round_bounds(min(low, 0.0), max(high, 0.0)) == (min(low, 0.0), max(high, 0.0))


@given(st.integers(-10_000, 10_000), st.integers(0, 5_000))
def test_whole_numbers_get_whole_bounds(low: int, span: int) -> None:
    assert all(bound == int(bound) for bound in round_bounds(low, low + span, step=1))


def test_a_small_type_keeps_its_own_limits() -> None:
    assert round_bounds(3, 250, step=1, dtype="uint8") == (0, 255)
    assert round_bounds(-120, 100, step=1, dtype="int8") == (-128, 100)


@given(
    st.datetimes(dt.datetime(1700, 1, 1), dt.datetime(2200, 1, 1)),
    st.datetimes(dt.datetime(1700, 1, 1), dt.datetime(2200, 1, 1)),
    st.sampled_from([86_400.0, 3600.0, 1.0, 0.001]),
)
def test_dates_get_whole_years(one: dt.datetime, other: dt.datetime, step: float) -> None:
    first, last = sorted(x.replace(tzinfo=dt.UTC).timestamp() for x in (one, other))
    first, last = (np.floor(x / step) * step for x in (first, last))
    low, high = whole_years(first, last, step=step)
    assert low <= first and last <= high
    begin, end = (pd.Timestamp(x, unit="s") for x in (low, high))
    assert (begin.month, begin.day, begin.hour) == (1, 1, 0)
    assert begin.year == pd.Timestamp(first, unit="s").year
    assert end.year == pd.Timestamp(last, unit="s").year and (end.month, end.day) == (12, 31)


def test_the_last_year_that_can_be_written_has_an_end() -> None:
    last = pd.Timestamp("9999-12-31").timestamp()
    assert whole_years(0.0, last, step=86_400.0) == (0.0, last)
    nanoseconds = whole_years(0.0, 106_750 * 86_400.0, step=86_400.0, dtype="datetime64[ns]")
    assert pd.Timestamp(nanoseconds[1], unit="s").as_unit("ns").year == 2262


def test_rare_values_are_counted_and_named() -> None:
    labels = Tally.of(pd.Series(["a"] * 10 + ["b"] * 9 + ["c", "d"])).labels()
    column = Column(name="x", kind=Kind.CATEGORY, categories=("a", "b", "c", "d", "never"))
    counts = rare_counts(labels, column)
    assert counts == RareCounts(listed=5, rare=3, single=2)
    words = danger(counts)
    assert "In fewer than ten rows: 3 of 5 values; in a single row only: 2." in words
    assert danger(RareCounts(listed=5, rare=0, single=0)) == ""
    merged = column.model_copy(update={"categories": ("a", "OTHER"), "other": "OTHER"})
    assert rare_counts(labels, merged) == RareCounts(listed=1, rare=0, single=0)
    assert rare_counts(labels, Column(name="x", kind=Kind.TEXT)) == RareCounts(0, 0, 0)


@pytest.mark.parametrize(("rare", "kept"), [(9, ["a"]), (45, None)])
def test_merging_leaves_something_to_learn(rare: int, kept: list[str] | None) -> None:
    counts = pd.Series([40] + [9] * (rare // 9), index=["a", *map(str, range(rare // 9))])
    assert common_labels(counts) == kept
