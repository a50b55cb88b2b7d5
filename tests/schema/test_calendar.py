"""Fields of the calendar by arithmetic agree with those of a library, on both kinds of arrays."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch
from pydantic import ValidationError

from core.schema.calendar import (
    CELLS,
    CLOCK,
    LAST,
    WEEKDAYS,
    Calendar,
    cells_of,
    civil,
    days_since,
    named_fields,
    number_of,
)


def moments(n: int = 20_000) -> tuple[np.ndarray, pd.Series]:
    """Of the years 1 to 9999, in seconds, and as a library has them."""
    seconds = np.random.default_rng(0).integers(-62_135_596_800, 253_402_300_799, n)
    return seconds.astype(np.float64), pd.Series(seconds.astype("datetime64[s]"))


@pytest.mark.parametrize("field", ["month", "weekday", "hour"])
def test_fields_are_those_of_a_library(field: str) -> None:
    seconds, stamps = moments()
    found = getattr(stamps.dt, "day_of_week" if field == "weekday" else field)
    assert np.array_equal(cells_of(field, seconds), found - (field == "month"))


def test_last_days_of_months_have_one_cell() -> None:
    seconds, stamps = moments()
    expected = np.where(stamps.dt.is_month_end, LAST, stamps.dt.day - 1)
    assert np.array_equal(cells_of("day", seconds), expected)


def test_clocks_are_as_round_as_they_can_be() -> None:
    seconds = np.array([0.5, 1.0, 60.0, 300.0, 900.0, 1800.0, 7200.0, 86_400.0, -86_400.0])
    assert cells_of("clock", seconds).tolist() == [0, 1, 2, 3, 4, 5, 6, 7, 7]
    assert all(b % a == 0 for a, b in zip(CLOCK, CLOCK[1:], strict=False))


@pytest.mark.parametrize("field", CELLS)
def test_tensors_and_arrays_agree_and_missing_ones_stay(field: str) -> None:
    seconds = np.append(moments(500)[0], np.nan)
    cells = cells_of(field, seconds)
    assert np.array_equal(cells, cells_of(field, torch.from_numpy(seconds)), equal_nan=True)
    assert np.isnan(cells[-1]) and cells[:-1].min() >= 0 and cells[:-1].max() < CELLS[field]


def test_days_come_back_from_their_dates() -> None:
    days = np.arange(-719_162, 2_932_896, 7, dtype=np.float64)
    assert np.array_equal(days_since(*civil(days)), days)


def test_numbers_of_fields_are_as_people_count_them() -> None:
    seconds, stamps = moments()
    for field in ("year", "quarter", "month", "day", "hour"):
        assert np.array_equal(number_of(field, seconds), getattr(stamps.dt, field)), field
    monday = stamps.dt.day_of_week
    assert np.array_equal(number_of("Monday 1", seconds), monday + 1)
    assert np.array_equal(number_of("Sunday 0", seconds), (monday + 1) % 7)


def test_names_say_which_field_a_column_may_be() -> None:
    assert named_fields("admission_year") == named_fields("AdmissionYear") == ("year",)
    assert set(named_fields("Wochentag")) == {*WEEKDAYS, "day"}
    assert named_fields("mnth") == ("month",) and named_fields("sale_yr") == ("year",)
    assert "day" in named_fields("day_of_month") and named_fields("amount") == ()


@pytest.mark.parametrize("shares", [(1.0,), (0.5,) * 6, (-1.0, *[1.0] * 6), (0.0,) * 7])
def test_a_forged_calendar_is_refused(shares: tuple[float, ...]) -> None:
    with pytest.raises(ValidationError, match="a share for each"):
        Calendar(weekday=shares)
    assert Calendar(weekday=(0.0, *[1.0] * 6)).weekday and Calendar().weekday == ()
