"""Drawn dates moved to the days and hours that dates of their column keep to.

Of each field (month, day of the month, weekday, hour) it was learned how often dates lie in its
cells (`core.privacy.discovery.calendars`). Where drawn ones lie in a cell too often, as many as are
too many move to cells with too few, by the plan that moves them least, and to the date of that cell
nearest to their own. How many do follows from what noise alone would explain.

Source: James and Stein 1961 (positive part), towards the shares that were drawn.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.schema.calendar import DAY, LAST, Calendar, cells_of, civil, days_since, number_of

Floats = NDArray[np.float64]
FIELDS = ("month", "day", "weekday", "hour")
ROUNDS = 366 + 2 * 24  # in which each day of the year and each hour of two days is tried
LEAST = 1e-9  # share of a cell that is not empty
FEW, SURE = 0.02, 1.5  # what cells that seem empty may hold, and with so many deviations of noise
MOST_DAYS = 15  # that a date is moved to agree with its fields: half a month
NEAR_WEEKDAYS, NEAR_MONTHS = (0.0, -7.0, 7.0), (0.0, -1.0, 1.0)


def calendar_kept(
    seconds: Floats, calendar: Calendar, chance: Floats, weight: Floats | None = None
) -> Floats:
    """Moments with as many in each cell of a field as was learned, float64 [n].

    Args:
      seconds: of drawn moments, none missing, float64 [n].
      chance: uniform in [0, 1), float64 [n, 4]: a row for a moment, whose fields move by it.
      weight: of each moment, float64 [n], > 0, where those of a person count as one; None alike.
    """
    weight = np.ones(len(seconds)) if weight is None else weight
    moved = seconds.copy()
    if not len(moved):
        return moved
    for field, random in zip(FIELDS, chance.T, strict=True):
        shares = getattr(calendar, field)
        if shares:
            cells = cells_of(field, moved).astype(np.int64)
            drawn = np.bincount(cells, weight, minlength=len(shares)) / weight.sum()
            aim = _aim(drawn, np.array(shares), calendar.noise, len(cells))
            wanted = _wanted(cells, drawn, aim, random, ends=field == "hour")
            rows = np.flatnonzero(wanted != cells)
            target = _Target(calendar, wanted[rows].astype(np.float64))
            moved[rows] = getattr(target, field)(moved[rows])
    return moved


def agreeing(seconds: Floats, wanted: Mapping[str, Floats]) -> Floats:
    """The nearest moments that have the numbers of these fields, or as many of them as any near.

    What a model draws of a field, such as a weekday, it ties to other columns; of dates it knows
    weeks or months, where any day is as good.

    Args:
      seconds: of drawn moments, none missing, float64 [n].
      wanted: float64 [n] by field, see `number_of`; NaN where there is none.
    """
    found = seconds.copy()
    if "hour" in wanted:
        known = (wanted["hour"] >= 0.0) & (wanted["hour"] < 24.0)
        found[known] += (wanted["hour"] - number_of("hour", found))[known] * 3600.0

    def agree(moments: Floats, rows: NDArray[np.intp]) -> NDArray[np.int64]:
        same = [number_of(field, moments) == number[rows] for field, number in wanted.items()]
        return np.asarray(np.sum(same, axis=0), dtype=np.int64)

    rows = np.arange(len(found))
    most, start = agree(found, rows), found.copy()
    for days in sorted(range(-MOST_DAYS, MOST_DAYS + 1), key=abs):
        rows = rows[most[rows] < len(wanted)]
        tried = start[rows] + days * DAY
        same = agree(tried, rows)
        better = same > most[rows]
        found[rows[better]], most[rows[better]] = tried[better], same[better]
    return found


def nearest_kept(seconds: Floats, calendar: Calendar, ahead: int) -> Floats:
    """The first moment from each on, or before it, on a day and in an hour that hold something.

    Args:
      seconds: float64 [n].
      ahead: 1 for later ones, -1 for earlier ones.
    """
    found = seconds.copy()
    for _ in range(ROUNDS):
        unit = np.zeros(len(found))  # of what is empty, which is left
        for field in reversed(FIELDS):
            if shares := getattr(calendar, field):
                empty = np.array(shares)[cells_of(field, found).astype(np.int64)] == 0.0
                unit[empty] = 3600.0 if field == "hour" else DAY
        rows = np.flatnonzero(unit)
        if not len(rows):
            break
        left = unit[rows]
        edge = (found[rows] // left + ahead) * left  # where the next one begins
        found[rows] = edge if ahead > 0 else edge + left - 1.0
    return found


def _wanted(
    cells: NDArray[np.int64], drawn: Floats, aim: Floats, random: Floats, *, ends: bool
) -> NDArray[np.int64]:
    """The cell that each moment is to lie in, int64 [n]; its own for those that stay.

    Args:
      drawn, aim: shares of cells as they are and as they are to be, float64 [cells].
      ends: whether the cells lie on a line, rather than in a circle.
    """
    size = len(drawn)
    many, few = np.maximum(drawn - aim, 0.0), np.maximum(aim - drawn, 0.0)
    if many.sum() <= LEAST:
        return cells
    from ot import emd  # takes a while

    far = np.abs(np.subtract.outer(np.arange(size), np.arange(size)))
    far = far if ends else np.minimum(far, size - far)
    plan = emd(many / many.sum(), few / few.sum(), far.astype(np.float64)) * many.sum()
    plan[np.arange(size), np.arange(size)] += np.minimum(drawn, aim)
    passed = np.cumsum(plan, axis=1)
    wanted = cells.copy()
    for cell in np.flatnonzero(many > 0.0):
        rows = np.flatnonzero(cells == cell)
        wanted[rows] = np.searchsorted(passed[cell], random[rows] * passed[cell, -1], "right")
    return wanted.clip(max=size - 1)


def _aim(drawn: Floats, learned: Floats, noise: float, n: int) -> Floats:
    """Shares of cells that drawn moments are to have, float64 [cells]: what noise does not explain.

    Cells that seem to be empty are taken to be if as many as were drawn there could not be hidden.
    """
    empty = learned == 0.0
    some = min(int(empty.sum()), int((~empty).sum()) + 1)
    if drawn[empty].sum() <= FEW + 2.0 * SURE * noise * np.sqrt(some):
        learned = np.where(empty, drawn, learned * (1.0 - drawn[empty].sum()))
        empty = empty & (drawn == 0.0)
    apart = float(((learned - drawn) ** 2).sum())
    trusted = max(0.0, 1.0 - (len(learned) * noise**2 + 1.0 / n) / max(apart, LEAST**2))
    aim: Floats = np.where(empty, 0.0, np.maximum(drawn + trusted * (learned - drawn), LEAST))
    aim /= aim.sum()
    return aim


@dataclass(frozen=True)
class _Target:
    """Moves moments [n] to a cell of a field each, or leaves those for which there is no date.

    Each field keeps what those before it were moved for: a date goes to no month or day of the
    month that holds nothing.
    """

    calendar: Calendar
    cells: Floats

    def month(self, seconds: Floats) -> Floats:
        """The same day of the nearest such month, or its last."""
        year, month, day = civil(seconds // DAY)
        ahead = (self.cells + 1.0 - month + 6.0) % 12.0 - 6.0
        first, last = _month(year, month + ahead)
        moved: Floats = np.minimum(first + day - 1.0, last) * DAY + seconds % DAY
        return moved

    def day(self, seconds: Floats) -> Floats:
        """The nearest such day of a month, as far as months hold anything."""
        days = seconds // DAY
        year, month, _ = civil(days)
        tried = []
        for ahead in NEAR_MONTHS:
            first, last = _month(year, month + ahead)
            there = np.where(self.cells == LAST, last, first + self.cells)
            tried.append(np.where((self.cells < LAST) & (there >= last), np.nan, there))
        return self._nearest(days, np.array(tried)) * DAY + seconds % DAY

    def weekday(self, seconds: Floats) -> Floats:
        """The nearest such weekday, as far as months and their days hold anything."""
        days = seconds // DAY
        ahead = (self.cells - cells_of("weekday", seconds) + 3.0) % 7.0 - 3.0
        tried = days + ahead + np.array(NEAR_WEEKDAYS)[:, None]
        return self._nearest(days, tried, ("month", "day")) * DAY + seconds % DAY

    def hour(self, seconds: Floats) -> Floats:
        """The same minute of that hour of the day."""
        return seconds // DAY * DAY + self.cells * 3600.0 + seconds % 3600.0

    def _nearest(self, days: Floats, tried: Floats, fields: tuple[str, ...] = ("month",)) -> Floats:
        """The nearest day of those tried, float64 [k, n], whose fields hold something; else own."""
        far = np.where(np.isnan(tried), np.inf, np.abs(tried - days))
        for field in fields:
            shares = np.array(getattr(self.calendar, field))
            if len(shares):
                cells = cells_of(field, np.where(np.isnan(tried), 0.0, tried) * DAY)
                far[shares[cells.astype(np.int64)] == 0.0] = np.inf
        best = far.argmin(axis=0)
        own, at = np.isinf(far.min(axis=0)), np.arange(len(days))
        return np.where(own, days, tried[best, at])


def _month(year: Floats, month: Floats) -> tuple[Floats, Floats]:
    """The first and the last day of a month, which may lie before January or after December."""
    year, month = year + (month - 1.0) // 12.0, (month - 1.0) % 12.0 + 1.0
    following = days_since(year + month // 12.0, month % 12.0 + 1.0, 1.0)
    return days_since(year, month, 1.0), following - 1.0
