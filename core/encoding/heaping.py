"""Heaping: people write amounts in round numbers, so rows that are drawn are rounded as theirs are.

Dates are moved to the days and hours that those of their column keep to.

A run that learns a column's bounds also learns how many of its numbers are multiples of 5, 10, 50
and so on (`core.privacy.discovery.grids`). Models draw positions on a line and know none of it.
Here each number moves to a round one next to it, as often as was learned. It stays within one part
in 256 of the line, as fine as histograms are, or in 64 where so many numbers are round that fewer
would have a round one near, so that distributions keep their shape.

Source: Roberts and Brewer, "Measures and tests of heaping in discrete quantitative distributions",
Journal of Applied Statistics 2001 (shares of heaps against those of a smooth distribution).
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from core.encoding.calendar_moves import FIELDS, calendar_kept, nearest_kept
from core.encoding.codec import Block, Codec, Codes, Line
from core.schema.calendar import Calendar
from core.schema.column import DomainColumn, Kind
from core.schema.labels import snap

if TYPE_CHECKING:
    from torch import Generator

WITHIN, MOST_WITHIN = 1.0 / 256.0, 1.0 / 64.0  # of the line, that a number is rounded in
Floats = NDArray[np.float64]


def heaped(
    codec: Codec,
    codes: Codes,
    random: Generator,
    who: NDArray[np.intp] | None = None,
    constant: Collection[str] = (),
) -> Codes:
    """Drawn records with their numbers rounded, and dates moved, as was learned of each column.

    Args:
      codes: NumPy codes of n records; not changed.
      who: whose each record is, 0, 1, …, intp [n]; where people have several, which share what is
        `constant`.
    """
    import torch  # pages import this module, and compute nothing

    # the same for all columns of a record: what is equal stays equal
    size = (len(codes), len(FIELDS))
    chance = own = torch.rand(size, generator=random, dtype=torch.float64).numpy()
    weight = np.ones(len(codes))
    if who is not None:
        own = chance[np.unique(who, return_index=True)[1]][who]
        weight = 1.0 / np.bincount(who)[who]  # as what was learned counts people
    states, values = codes.states.copy(), codes.values.copy()
    for block in codec.blocks:
        learned = block.column.learned
        if block.number is None or learned is None:
            continue
        dated = block.column.kind is Kind.DATETIME
        if not learned.heaps and not (dated and learned.calendar != Calendar()):
            continue
        rows = np.flatnonzero(states[:, block.index] == 0)
        if not len(rows):
            continue
        drawn = block.line.value(values[rows, block.number])
        known = own[rows] if block.column.name in constant else chance[rows]
        if dated:
            kept = dates_kept(drawn, block.column, learned.calendar, known, weight[rows])
        else:
            kept = _rounded(drawn, block, learned.heaps, known[:, 0])
        moved = rows[kept != drawn]
        states[moved, block.index], values[moved, block.number] = block.snapped(kept[kept != drawn])
    return Codes(states, values)


def dates_kept(
    drawn: Floats,
    column: DomainColumn,
    calendar: Calendar,
    chance: Floats,
    weight: Floats | None = None,
) -> Floats:
    """Dates on the days and hours of a calendar, where these are within the column's bounds.

    Args:
      drawn: seconds, none missing, float64 [n].
      chance, weight: see `calendar_kept`.
    """
    line, kept = Line.of(column), calendar_kept(drawn, calendar, chance, weight)
    return np.where((kept < line.low) | (kept > line.high), drawn, line.snap(kept))


def dates_until(limits: Floats, column: DomainColumn, other: DomainColumn) -> Floats:
    """The last date in a column's calendar that is not after another column's, float64 [n].

    NaN where it is out of bounds, or where neither column is of dates with a calendar.

    Args:
      limits: the other's dates, in seconds, float64 [n].
    """
    known = [one.learned.calendar if one.learned else Calendar() for one in (column, other)]
    if known == [Calendar()] * 2:
        return np.full(len(limits), np.nan)
    line, found = Line.of(column), nearest_kept(limits, known[0], -1)
    found = np.floor((found - line.low) / line.unit) * line.unit + line.low
    return np.where(found < line.low, np.nan, found)


def dates_from(limits: Floats, column: DomainColumn) -> Floats:
    """The first date in a column's calendar that is not before another, see `dates_until`."""
    calendar = column.learned.calendar if column.learned else Calendar()
    line, found = Line.of(column), nearest_kept(limits, calendar, 1)
    found = np.ceil((found - line.low) / line.unit) * line.unit + line.low
    return np.where(found > line.high, np.nan, found)


def _rounded(
    numbers: Floats, block: Block, heaps: tuple[tuple[float, float], ...], chance: Floats
) -> Floats:
    """Each number or a round one near it, float64 [n].

    From the coarsest step on, numbers with a multiple near are rounded to it as often as makes up
    the learned share.

    Args:
      heaps: ascending steps, the first the column's own, with the shares of numbers that are
        multiples of each and of no coarser one.
      chance: uniform in [0, 1), float64 [n].
    """
    line, own = block.line, heaps[0][0]
    at = line.position(numbers)
    least, most = (_width(line, at, within) for within in (WITHIN, MOST_WITHIN))
    rounded, still = numbers.copy(), np.ones(len(numbers), dtype=bool)
    random, coarser = chance.copy(), np.inf
    for step, share in reversed(heaps):
        near = _nearest(numbers, step, coarser, chance)
        smooth = own / step * (1.0 - step / coarser)  # share in a distribution without heaps
        width = np.clip(own * share / smooth, least, most)
        there = still & (np.abs(near - numbers) <= width / 2.0) & (near != 0.0)
        often = min(1.0, share * len(numbers) / max(1, there.sum()))
        taken = there & (random < often)
        rounded[taken] = near[taken]
        still &= ~taken
        others = there & ~taken
        random[others] = (random[others] - often) / (1.0 - often)
        coarser = step
    return rounded


def _width(line: Line, at: Floats, within: float) -> Floats:
    """How far it is from either side of a place on a line to the other, in its numbers."""
    return np.asarray(line.value(at + within / 2) - line.value(at - within / 2))


def _nearest(numbers: Floats, step: float, coarser: float, chance: Floats) -> Floats:
    """The nearest multiples of one step that are none of a coarser one, float64 [n]."""
    near = snap(numbers, step)
    if not np.isfinite(coarser):
        return near
    too_round = np.isclose(snap(near, coarser), near, rtol=1e-12, atol=0.0)
    upwards = np.where(numbers == near, (4096.0 * chance) % 1.0 < 0.5, numbers > near)
    return np.where(too_round, snap(near + np.where(upwards, step, -step), step), near)
