"""Dates that follow on others go to days that they keep to, along with them and never before."""

from __future__ import annotations

import numpy as np
import pandas as pd

from core.encoding.layout.later_dates import keep_calendars, orders_to_keep
from core.schema.calendar import DAY, Calendar
from core.schema.column import DomainColumn, DomainSource, Kind, Learned
from core.schema.person import Person
from core.schema.rules.rules import AtMost, parse_rule

PEOPLE, ROWS = 500, 4
WORKING = Calendar(weekday=(0.2, 0.2, 0.2, 0.2, 0.2, 0.0, 0.0))
MONDAYS = Calendar(weekday=(1.0, *[0.0] * 6))


def dates(name: str, calendar: Calendar) -> DomainColumn:
    low, high = (pd.Timestamp(f"{year}-01-01").timestamp() for year in (2016, 2026))
    column = DomainColumn(
        name=name, kind=Kind.DATETIME, source=DomainSource.LEARNED, dtype="datetime64[us]",
        low=low, high=high - DAY, step=DAY,
    )  # fmt: skip
    return column.model_copy(update={"learned": Learned(domain="", calendar=calendar)})


COLUMNS = {
    name: dates(name, calendar)
    for name, calendar in {
        "born": Calendar(), "asked": MONDAYS, "seen": Calendar(), "left": WORKING,
    }.items()
}  # fmt: skip
ORDERS = [AtMost(low=a, high=b, learned=True) for a, b in (("born", "asked"), ("seen", "left"))]


def visits() -> tuple[dict[str, pd.Series], np.ndarray]:
    """People with a date each when they were born and asked, and some visits of a few days."""
    random, who = np.random.default_rng(0), np.repeat(np.arange(PEOPLE), ROWS)
    begin = pd.Timestamp("2016-01-01")

    def some(days: np.ndarray) -> pd.Series:
        return pd.Series(begin + pd.to_timedelta(days, "D")).astype("datetime64[us]")

    born = random.integers(0, 1000, PEOPLE)[who]
    asked = born + random.integers(0, 9, PEOPLE)[who]
    seen = random.integers(1100, 3600, len(who))
    left = seen + random.integers(0, 9, len(who))
    named = {"born": born, "asked": asked, "seen": seen, "left": left}
    return {name: some(days) for name, days in named.items()}, who


def test_later_dates_keep_days_orders_and_what_is_of_a_person():
    cells, who = visits()
    before, random = dict(cells), np.random.default_rng(1)
    person = Person(columns=("who",), rows=ROWS, constant=("born", "asked"))
    keep_calendars(cells, ORDERS, COLUMNS, random, person=person, who=who)
    for low, high in (("born", "asked"), ("seen", "left")):
        assert (cells[low] <= cells[high]).all() and cells[low].equals(before[low])
    assert (cells["asked"].dt.day_of_week == 0).all()
    assert (cells["left"].dt.day_of_week < 5).all()
    assert (cells["asked"].groupby(who).nunique() == 1).all()
    assert (cells["left"] - before["left"]).abs().max() <= pd.Timedelta(days=4)


def test_a_day_that_many_share_moves_with_nobody():
    """Who is last seen as a study ends is seen that day, whenever they were asked before."""
    cells = visits()[0]
    end = pd.Timestamp("2020-12-31")  # a Thursday
    stays = np.arange(len(cells["left"])) % 3 == 0
    cells["seen"] = cells["seen"].where(~stays, end - pd.Timedelta(days=5))
    cells["left"] = cells["left"].where(~stays, end)
    before, columns = cells["left"].copy(), dict(COLUMNS)
    columns["left"] = columns["left"].model_copy(
        update={"learned": Learned(domain="", calendar=MONDAYS), "spikes": (end.timestamp(),)}
    )
    keep_calendars(cells, ORDERS[1:], columns, np.random.default_rng(1), person=None, who=None)
    assert (cells["left"][stays] == end).all()
    others = ~stays & (before != end)
    assert (cells["left"][others].dt.day_of_week == 0).mean() > 0.99


def test_rows_without_room_stay_and_so_does_what_is_missing():
    cells = {name: column.iloc[:3].copy() for name, column in visits()[0].items()}
    last = pd.Timestamp(COLUMNS["asked"].high, unit="s")  # a Wednesday
    cells["born"][0] = cells["asked"][0] = last
    cells["asked"][1] = pd.NaT
    before = dict(cells)
    keep_calendars(cells, ORDERS[:1], COLUMNS, np.random.default_rng(0), person=None, who=None)
    assert cells["asked"][0] == last and pd.isna(cells["asked"][1])
    assert cells["asked"][2].day_of_week == 0 and cells["left"].equals(before["left"])


def test_only_learned_orders_of_dates_nobody_else_names_are_kept():
    drawn = pd.DataFrame(columns=["born", "asked - born", "seen", "left - seen"])
    assert orders_to_keep(ORDERS, drawn) == ORDERS
    assert orders_to_keep(ORDERS, drawn.assign(left=0)) == ORDERS[:1]
    assert orders_to_keep([*ORDERS, parse_rule("stay = left - seen")], drawn) == ORDERS[:1]
    assert orders_to_keep([*ORDERS, parse_rule("seen[t+1] >= left[t]")], drawn) == ORDERS
    assert orders_to_keep([parse_rule("seen <= left")], drawn) == []
    first, second = (AtMost(low=a, high=b, learned=True) for a, b in (("a", "b"), ("b", "c")))
    assert orders_to_keep([second, first], drawn) == [first, second]
