"""A moment's place in the calendar: its month, day of the month, weekday and hour, and its clock.

People write dates of a kind: a statement's on the last of a month, a booking's on working days, a
visit's at a quarter past. Fields are cells that arithmetic finds, of NumPy arrays or torch tensors.
"""

from __future__ import annotations

import math
import re
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator

from core.message import ReportedError

DAY = 86_400.0
CLOCK = (1.0, 60.0, 300.0, 900.0, 1800.0, 3600.0, DAY)  # seconds; each is a factor of the next
WEEKDAYS = ("Monday 0", "Monday 1", "Sunday 0", "Sunday 1")  # how weeks begin, with which number
LAST = 30  # the cell of a month's last day, whichever that is; others are counted from 0
CELLS = {"month": 12, "day": LAST + 1, "weekday": 7, "hour": 24, "clock": len(CLOCK) + 1}
_EPOCH = 719_468  # days from 1 March of the year 0, where a four hundred years' cycle begins
_CYCLE = 146_097


# numbers of a date's fields, as columns beside it may repeat them, by how such a name's words end
NAMED = {
    "year": ("year",), "jahr": ("year",), "quarter": ("quarter",), "quartal": ("quarter",),
    "month": ("month",), "monat": ("month",), "hour": ("hour",), "stunde": ("hour",),
    "day": ("day", *WEEKDAYS), "tag": ("day", *WEEKDAYS), "week": WEEKDAYS, "dow": WEEKDAYS,
    "yr": ("year",), "qtr": ("quarter",), "mth": ("month",), "mnth": ("month",),
}  # fmt: skip
# the last number of fields that have one; of hours counted from 1, 24
ENDS = {"quarter": 4.0, "month": 12.0, "hour": 23.0, "day": 31.0, **dict.fromkeys(WEEKDAYS, 7.0)}
_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+")


class Calendar(BaseModel):
    """How often dates lie in each cell of a field, summing to one; () where noise hides it.

    Attributes:
      noise: the standard deviation of each share; those of cells that surely are empty are zero.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    month: tuple[float, ...] = ()
    day: tuple[float, ...] = ()
    weekday: tuple[float, ...] = ()
    hour: tuple[float, ...] = ()
    noise: float = Field(default=0.0, ge=0.0)

    @field_validator("month", "day", "weekday", "hour")
    @classmethod
    def _of_all_cells(cls, shares: tuple[float, ...], info: ValidationInfo) -> tuple[float, ...]:
        size, lowest = CELLS[info.field_name or ""], min(shares, default=0.0)
        if shares and not (len(shares) == size and lowest >= 0.0 and 0.0 < sum(shares) < math.inf):
            raise ReportedError("A calendar needs a share for each of its cells.")
        return shares


def cells_of(field: str, seconds: Any) -> Any:
    """The cell of each moment, float64 [n]: of `CELLS[field]`, NaN where there is none.

    "clock" counts how many of `CLOCK` the moment is a multiple of.

    Args:
      seconds: since 1970-01-01, float64 [n].
    """
    if field == "clock":
        return sum((seconds % step == 0.0) * 1.0 for step in CLOCK) + 0.0 * seconds
    if field == "hour":
        return seconds % DAY // 3600.0
    days = seconds // DAY
    if field == "weekday":
        return (days + 3.0) % 7.0  # the first of 1970 was a Thursday; weeks begin on Mondays
    _, month, day = civil(days)
    if field == "month":
        return month - 1.0
    last = civil(days + 1.0)[2] == 1.0
    return (day - 1.0) * ~last + LAST * last


def named_fields(name: str) -> tuple[str, ...]:
    """Fields of a date whose number a column may be, by its name; see `number_of`.

    >>> named_fields("Geburtsjahr"), named_fields("saleMonth"), named_fields("wage")
    (('year',), ('month',), ())
    """
    words = tuple(word.lower() for word in _WORDS.findall(name))
    found = (fields for end, fields in NAMED.items() if any(word.endswith(end) for word in words))
    return tuple(dict.fromkeys(field for fields in found for field in fields))


def last_number(name: str, first: float) -> float | None:
    """The greatest number of the field that a column is by its name, if there is one.

    Args:
      first: the least number in the column.

    >>> last_number("birthDay", 1.0), last_number("Monat", 0.0), last_number("hour", 1.0)
    (31.0, 12.0, 24.0)
    """
    ends = [end for field in named_fields(name) if 0.0 <= first <= (end := ENDS.get(field, -1.0))]
    return max(ends) + (ends == [ENDS["hour"]] and first == 1.0) if ends else None


def number_of(field: str, seconds: Any) -> Any:
    """The number of a field as people count it, float64 [n]: years, 1 to 12 for months and so on.

    Args:
      field: one that `named_fields` gives.
    """
    if field in WEEKDAYS:
        begin, first = field.split()
        return (cells_of("weekday", seconds) + (begin == "Sunday")) % 7.0 + float(first)
    if field == "hour":
        return cells_of("hour", seconds)
    year, month, day = civil(seconds // DAY)
    quarter = (month - 1.0) // 3.0 + 1.0
    return {"year": year, "quarter": quarter, "month": month, "day": day}[field]


def civil(days: Any) -> tuple[Any, Any, Any]:
    """Year, month (1 to 12) and day (1 to 31) of days since 1970-01-01, each float64 [n].

    Years are counted from March on, so that a leap day is the last of one, as in Richards,
    "Calendars", Explanatory Supplement to the Astronomical Almanac, 3rd edition, chapter 15.
    """
    cycle, of_cycle = (days + _EPOCH) // _CYCLE, (days + _EPOCH) % _CYCLE
    leap_days = of_cycle // 1460.0 - of_cycle // 36_524.0 + of_cycle // (_CYCLE - 1.0)
    year = (of_cycle - leap_days) // 365.0
    of_year = of_cycle - (365.0 * year + year // 4.0 - year // 100.0)
    march = (5.0 * of_year + 2.0) // 153.0  # months since March
    day = of_year - (153.0 * march + 2.0) // 5.0 + 1.0
    early = (march >= 10.0) * 1.0
    return cycle * 400.0 + year + early, march + 3.0 - 12.0 * early, day


def days_since(year: Any, month: Any, day: Any) -> Any:
    """Days since 1970-01-01 of a date, the inverse of `civil`, float64 [n].

    >>> days_since(1970, 1, 1), days_since(2024, 2, 29)
    (0, 19782)
    """
    march = (month + 9) % 12
    year = year - (month <= 2)
    of_year = (153 * march + 2) // 5 + day - 1
    return year // 400 * _CYCLE + of_year + _in_cycle(year % 400) - _EPOCH


def _in_cycle(year: Any) -> Any:
    return year * 365 + year // 4 - year // 100
