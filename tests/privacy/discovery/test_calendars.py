"""Which days and hours dates keep to: what is counted of them, and what follows from that."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.privacy.discovery.grids import CalendarGrid
from core.privacy.discovery.open_domain import open_domain
from core.privacy.discovery.release import first_counts
from core.privacy.mechanisms.domain_release import CellCounts
from core.schema.calendar import LAST, Calendar
from core.schema.column import Kind, SchemaColumn
from core.schema.magnitudes import FIRST_SECOND, LAST_SECOND
from core.schema.schema import Schema
from tests.privacy.discovery.test_domain_release import SLACK, cell_moves, check_delta, units
from tests.privacy.learned_tables import by_name, learn, schema_for, to_learn

N = 6000
DAY, HOUR = pd.Timedelta(days=1), pd.Timedelta(hours=1)


def visits(n: int = N, seed: int = 0) -> pd.DataFrame:
    """Days of eight years, and what depends on them: months, quarters, working days and hours."""
    random = np.random.default_rng(seed)
    day = pd.Series(pd.Timestamp("2016-01-01") + random.integers(0, 2922, n) * DAY)
    late = day.dt.day_of_week.to_numpy() - 4  # after Friday
    quarters = 15 * pd.Timedelta(minutes=1) * random.integers(0, 4, n)
    frame = {
        "any": day,
        "month": day - (day.dt.day - 1) * DAY,
        "quarter": day + pd.offsets.QuarterEnd(0),
        "working": day - np.maximum(late, 0) * DAY,
        "visit": day + random.integers(8, 18, n) * HOUR + quarters,
        "midnight": day,
    }
    return pd.DataFrame(frame).astype("datetime64[us]")


def schema_of(frame: pd.DataFrame) -> Schema:
    """All dates; the last two are written with a time."""
    step = {"visit": 1.0, "midnight": 1.0}
    columns = (to_learn(name, Kind.DATETIME, step=step.get(name, 86_400.0)) for name in frame)
    return Schema(columns=tuple(columns))


def learned(frame: pd.DataFrame, epsilon: float, seed: int = 1) -> dict[str, SchemaColumn]:
    return by_name(learn(frame, schema_of(frame), epsilon, seed))


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10**6), most=st.integers(1, 4))
def test_no_unit_moves_counts_of_calendars_beyond_delta(seed, most):
    owner, weights = units(12, most, seed)
    frame = visits(12, seed=seed)
    frame.loc[0, "visit"] = pd.NaT
    wanted = open_domain(schema_of(frame))
    assert len(wanted.calendars) == 6 * 3 + 2 and len(wanted.clocks) == 2
    assert max(cell_moves(first_counts(wanted), frame, wanted, owner, weights)) <= SLACK


def test_calendars_are_part_of_delta_and_twins_are_caught():
    frame = visits(2)[["visit"]]
    check_delta(frame, schema_of(frame))
    mechanism = first_counts(open_domain(schema_of(frame)))
    own = [not isinstance(grid, CalendarGrid) for grid in mechanism.grids]
    forgets = CellCounts(mechanism.grids[: sum(own)], mechanism.scales[: sum(own)]).sensitivity
    assert forgets < mechanism.sensitivity / 1.1


@pytest.mark.parametrize("seed", range(4))
def test_dates_know_the_days_they_keep_to(seed):
    found = {name: column.learned.calendar for name, column in learned(visits(), 2.0, seed).items()}
    assert found["month"].day[0] == 1.0
    assert found["quarter"].day[LAST] == 1.0
    assert np.flatnonzero(found["quarter"].month).tolist() == [2, 5, 8, 11]
    assert np.flatnonzero(found["working"].weekday).tolist() == [0, 1, 2, 3, 4]
    assert found["working"].weekday[4] == pytest.approx(3 / 7, abs=0.05)
    assert all(found["any"].weekday) and all(found["any"].day) and not found["any"].month
    assert np.flatnonzero(found["visit"].hour).tolist() == list(range(8, 18))


@pytest.mark.parametrize("seed", range(4))
def test_clocks_are_learned(seed):
    found = learned(visits(), 2.0, seed)
    assert found["visit"].step == 900.0 and found["midnight"].step == 86_400.0
    assert not found["midnight"].learned.calendar.hour and found["any"].step == 86_400.0
    frame = visits()
    some = np.arange(N) % 5 == 0  # too many for all to be rounded
    frame["visit"] += np.where(some, 61, 0) * pd.Timedelta(seconds=1)
    assert learned(frame, 2.0, seed)["visit"].step == 1.0


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("share", "found"), [(0.6, True), (0.1, True), (0.02, False)])
def test_a_day_that_many_share_is_no_habit_of_the_others(seed, share, found):
    """At the end of a study most are last seen; who left before did so on any day."""
    end, frame = pd.Timestamp("2019-12-31"), visits()[["any", "visit"]]
    last = np.random.default_rng(seed).random(N) < share
    frame[last] = end
    known = learned(frame, 2.0, seed)
    assert known["any"].spikes == ((end.timestamp(),) if found else ())
    assert known["visit"].spikes == ()  # a day of which the time is known is no single value
    calendar = known["any"].learned.calendar
    assert all(calendar.weekday) and max(calendar.weekday) < 0.25 and calendar.day[LAST] < 0.1


@pytest.mark.parametrize("seed", range(4))
def test_years_beside_a_day_that_many_share_are_not_left_out(seed):
    """Deaths of fifteen years seem few beside those who are still alive when the last one ends."""
    random = np.random.default_rng(seed)
    days = pd.Series(pd.Timestamp("1995-01-01") + random.integers(0, 5479, N) * DAY)
    days[random.random(N) < 0.75] = pd.Timestamp("2009-12-31")
    found = learned(pd.DataFrame({"seen": days.astype("datetime64[us]")}), 2.0, seed)["seen"]
    ends = pd.Timestamp("1995-01-01"), pd.Timestamp("2009-12-31")
    assert (found.low, found.high) == tuple(end.timestamp() for end in ends)
    assert found.learned.outside < 0.02


def test_nothing_is_said_where_noise_hides_it():
    for seed in range(5):
        for column in learned(visits(150), 0.3, seed).values():
            assert column.learned.calendar == Calendar()


def test_dates_that_are_not_learned_know_no_calendar():
    frame = pd.DataFrame({"x": np.arange(500.0)})
    found = by_name(learn(frame, schema_for(frame), 1.0))["x"]
    assert found.learned.calendar == Calendar()


def test_the_first_and_the_last_day_there_are_can_be_learned():
    days = np.random.default_rng(0).choice(["0001-01-01", "9999-12-31", "2020-02-29"], 1500)
    frame = pd.DataFrame({"x": pd.Series(days.astype("datetime64[us]"))})
    found = learned(frame, 2.0)["x"]
    assert found.low <= FIRST_SECOND and found.high >= LAST_SECOND - 86_400.0
