"""Drawn dates move to the days that their column keeps to, no more of them and no farther."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from core.encoding.calendar_moves import agreeing, calendar_kept, nearest_kept
from core.schema.calendar import CELLS, DAY, LAST, Calendar, cells_of, number_of

N = 6000


def drawn(n: int = N, seed: int = 0, *, days: int = 1461) -> np.ndarray:
    """Moments of some years from 2016 on, in seconds, at whole minutes."""
    first = pd.Timestamp("2016-01-01").timestamp()
    return first + 60.0 * np.random.default_rng(seed).integers(0, days * 1440, n)


def only(field: str, *cells: int) -> tuple[float, ...]:
    return tuple(float(i in cells) / len(cells) for i in range(CELLS[field]))


def kept(seconds: np.ndarray, calendar: Calendar, seed: int = 1) -> np.ndarray:
    return calendar_kept(seconds, calendar, np.random.default_rng(seed).random((len(seconds), 4)))


def test_dates_go_to_the_nearest_first_of_a_month() -> None:
    before = drawn()
    after = kept(before, Calendar(day=only("day", 0)))
    stamps = pd.Series(after.astype("datetime64[s]"))
    assert (stamps.dt.day == 1).all() and np.abs(after - before).max() <= 16 * DAY
    assert np.array_equal(after % DAY, before % DAY)


def test_dates_go_to_ends_of_quarters() -> None:
    shares = only("month", 2, 5, 8, 11)
    after = kept(drawn(), Calendar(month=shares, day=only("day", LAST)))
    stamps = pd.Series(after.astype("datetime64[s]"))
    assert stamps.dt.is_quarter_end.all()
    assert np.abs(after - drawn()).max() <= 77 * DAY  # half a quarter, and to the end of a month


def test_working_days_come_as_often_as_they_do() -> None:
    shares = (0.15, 0.15, 0.15, 0.15, 0.4, 0.0, 0.0)
    after = kept(drawn(), Calendar(weekday=shares, noise=0.001))
    found = np.bincount(cells_of("weekday", after).astype(int), minlength=7) / N
    assert np.abs(found - shares).max() < 0.01 and not found[5:].any()
    moved = np.abs(after - drawn())
    assert (
        moved.max() <= 3 * DAY and (moved > 0).mean() < 0.32
    )  # weekends, and two of seven Fridays


def test_dates_go_to_the_nearest_day_with_their_fields() -> None:
    before, random = drawn(), np.random.default_rng(3)
    wanted = {
        "Monday 1": random.integers(1, 8, N).astype(float),
        "month": number_of("month", before),
        "hour": random.integers(0, 24, N).astype(float),
    }
    wanted["Monday 1"][:100] = np.nan
    after = agreeing(before, wanted)
    for field, number in wanted.items():
        assert (number_of(field, after) == number)[100:].all(), field
    days = np.abs(after // DAY - before // DAY)
    assert days.max() <= 6 and (days <= 3).mean() > 0.8  # the other way at a month's ends
    assert not days[:100].any()  # what is not known moves nothing
    assert np.array_equal(after % 3600, before % 3600)


def test_what_no_day_near_has_moves_no_date() -> None:
    before = drawn()
    far = {"month": (number_of("month", before) + 5.0) % 12.0 + 1.0}
    assert np.array_equal(agreeing(before, far), before)
    assert np.array_equal(agreeing(before, {"hour": np.full(N, 31.0)}), before)  # no hour at all


def test_hours_stay_on_their_day() -> None:
    after = kept(drawn(), Calendar(hour=only("hour", *range(8, 18))))
    assert np.array_equal(after // DAY, drawn() // DAY)
    assert np.array_equal(after % 3600, drawn() % 3600)
    assert np.isin(cells_of("hour", after), range(8, 18)).all()


def test_what_noise_explains_moves_nothing() -> None:
    shares = np.bincount(cells_of("weekday", drawn()).astype(int), minlength=7) / N
    noisy = shares + 0.02 * np.array([1, -1, 1, -1, 1, -1, 0])
    loud, quiet = (Calendar(weekday=tuple(noisy / noisy.sum()), noise=x) for x in (0.02, 0.001))
    assert np.array_equal(kept(drawn(), loud), drawn())
    assert 0.02 < (kept(drawn(), quiet) != drawn()).mean() < 0.1


def test_days_of_the_month_come_before_weekdays() -> None:
    calendar = Calendar(day=only("day", 0), weekday=only("weekday", 0, 1, 2, 3, 4))
    stamps = pd.Series(kept(drawn(), calendar).astype("datetime64[s]"))
    assert (stamps.dt.day == 1).all()


@pytest.mark.parametrize("n", [0, 1, 3])
def test_few_dates_keep_to_what_is_empty(n: int) -> None:
    calendar = Calendar(day=only("day", 0), noise=0.01)
    assert (cells_of("day", kept(drawn(n), calendar)) == 0).all()
    even = Calendar(weekday=(0.1, 0.1, 0.1, 0.1, 0.2, 0.2, 0.2), noise=0.01)
    assert np.array_equal(kept(drawn(n), even), drawn(n))


def test_equal_dates_move_alike() -> None:
    first, second = drawn(N // 2), drawn(N // 2)
    chance = np.random.default_rng(0).random((N // 2, 4))
    calendar = Calendar(weekday=(0.2, 0.2, 0.2, 0.2, 0.2, 0.0, 0.0))
    both = [calendar_kept(one, calendar, chance) for one in (first, second)]
    assert np.array_equal(*both)


@pytest.mark.parametrize("ahead", [-1, 1])
def test_the_next_kept_moment_is_the_nearest_one_that_way(ahead: int) -> None:
    calendar = Calendar(
        month=only("month", 2, 8), weekday=only("weekday", 0, 4), hour=only("hour", 9, 10)
    )
    before = drawn(300)
    after = nearest_kept(before, calendar, ahead)
    assert ((after - before) * ahead >= 0).all()
    for field in ("month", "weekday", "hour"):
        shares = np.array(getattr(calendar, field))
        assert (shares[cells_of(field, after).astype(int)] > 0).all()
    hours = pd.Series(pd.date_range("2015-01-01", "2021-01-01", freq="h"))
    good = hours[
        hours.dt.month.isin([3, 9])
        & hours.dt.day_of_week.isin([0, 4])
        & hours.dt.hour.isin([9, 10])
    ]
    good = good.to_numpy().astype("datetime64[s]").astype(float)  # hours begin there
    for x, y in zip(before[:50], after[:50], strict=True):
        inside = np.any((good <= x) & (x < good + 3600))
        expected = x if inside else good[good > x][0] if ahead > 0 else good[good < x][-1] + 3599
        assert y == expected
