"""From noisy counts to bounds, atoms and scales, by released and public numbers alone."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from core.message import Message
from core.privacy.discovery.bins_in_a_row import (
    Counts,
    bin_of,
    clearest,
    likeliest,
    reach,
    with_rest,
)
from core.privacy.discovery.grids import (
    SINGLE,
    SMALL,
    PublicGrid,
    day_grid,
    grid_of,
    value_grid,
    year_grid,
)
from core.privacy.discovery.planning import (
    BESIDE,
    BOUNDS,
    SINGLY,
    Levels,
)
from core.privacy.discovery.thresholds import cell_threshold
from core.privacy.discovery.whole_numbers import (
    begins_at_zero,
    gone_on,
    up_to_our_time,
    within_field,
)
from core.schema.calendar import last_number
from core.schema.column import Column, Kind, Learned, SchemaColumn
from core.schema.round_bounds import date_bounds, round_bounds

OFTEN = 0.05  # share of the records on one value from which on it is an atom
FINE_GRID = 128  # steps of a range; in a coarser one every value is an atom already
DIGITS_WRITTEN = 4  # of numbers whose step is unknown, beyond the first of their range
HEAVY = 0.75  # share of the records in the inner tenth of a range, from which on its tail is heavy
SURE = 1.5  # standard deviations of noise that counts of what is empty leave room for
MANY = 4.0  # … that all counts by step must exceed to be believed
EMPTY = 0.125  # of what other years hold, below which a year at an end is left out
RARE_RECORDS = 0.005  # share of the records that are left out though noise does not explain them
FEW_RECORDS = 0.02  # share of the records that years or parts left out hold at most
FAR = 0.2  # of the end farther from zero, that the other lies beyond where a range lies far from it
NARROW = 8  # of a range, the part beyond which bins are not added to those that surely hold records
REACHED = 0.05  # … or may lie, as noise can pass for records in a bin on either side
HEAPED = 3.0  # standard deviations of noise above which numbers of one step are believed
LEFT = 3.0  # … and records beyond a range, which make it longer


@dataclass(frozen=True)
class FirstLook:
    """What the public grid of a numeric column showed.

    Attributes:
      low, high: of the cells that were found, low ≤ high; `inside`, records in their bins.
      bins: the ends of those bins; the same where single values alone were found.
      atoms: values with a cell of their own that were found; `often` those that are the column's.
      peaks: other single values that many records hold, with their counts.
      heavy: whether most of the range is a thin tail.
      outside: estimated share of the records outside, in [0, 1], and its standard error.
    """

    low: float
    high: float
    bins: tuple[float, float]
    inside: float
    atoms: tuple[float, ...]
    often: tuple[float, ...]
    peaks: Mapping[float, float]
    missing: bool
    heavy: bool
    outside: tuple[float, float]


@dataclass(frozen=True)
class Narrowed:
    """Where a second look saw numbers: from low to high, but for so many records; its noise."""

    low: float
    high: float
    lost: float
    std: float


def first_look(
    column: Column, counts: Counts, levels: Levels, n: int, *, beside: Counts, single: Counts
) -> FirstLook:
    """Read the noisy counts of a column's grid, of years or steps beside it, and of single values.

    Bins above `levels.cell`, by themselves or some in a row, are found, and from the outermost ones
    on what `reach` adds; whatever lies between two found ones is inside. Where noise hides all
    bins, the likeliest are taken, so that no column is lost.
    """
    grid = grid_of(column)
    bins, atom_counts = counts[1 : grid.bins + 1], counts[grid.bins + 2 : -1]
    found = [a for a, c in zip(grid.atoms, atom_counts, strict=True) if c > levels.cell]
    often = [
        a for a, c in zip(grid.atoms, atom_counts, strict=True) if c > max(levels.cell, OFTEN * n)
    ]
    seeds = np.flatnonzero(bins > levels.cell)
    height, row = clearest(grid, bins)
    if height > levels.cell:
        seeds = np.union1d(seeds, row)
    if not len(seeds) and not found:
        seeds, found = likeliest(grid, bins, atom_counts)
    around = [*seeds.tolist(), *(bin_of(grid, atom) for atom in found)]
    first, last = _reached(column, counts, around, found, levels, n)
    std = levels.std[BOUNDS]
    if column.kind is Kind.INTEGER and grid.edges[first] == 1.0 and 0.0 not in found:
        zeros = float(atom_counts[grid.atoms.index(0.0)])
        found += [0.0] if begins_at_zero(bins, zeros, first, min(around), levels) else []
    apart = not len(seeds) and (first, last) == (min(around), max(around))
    whole = 1.0 if column.kind is Kind.INTEGER else 0.0  # the last one before an edge
    ends = [*found, *(() if apart else (grid.edges[first], grid.edges[last + 1] - whole))]
    peaks = _peaks(single, levels, n)
    top = max(peaks, default=-math.inf)
    rest_noise = std * math.hypot(1.0, 1.0 / SINGLY)  # of a bin without a single value
    kept: Counts = np.zeros(0)
    if column.kind is Kind.DATETIME:
        *ends, kept = _without_empty_years(min(ends), max(ends), grid, beside, bins, peaks, std)
    elif grid.edges[last] <= top and bins[last] - peaks[top] <= SURE * rest_noise:
        ends = [*(end for end in ends if end < top), top]
    elif column.kind is Kind.INTEGER:
        ends = within_field(column.name, grid, ends, bins, single, std)
    missing = bool(counts[-1] > levels.missing[BOUNDS])
    whole_range = slice(min(first, *around), max(last, *around) + 1)  # beside atoms, too
    inside = [*bins[whole_range], *atom_counts] if not len(kept) else [*kept]
    inside += [counts[-1]] if missing else []
    return FirstLook(
        low=min(ends),
        high=max(ends),
        bins=(min(ends), min(ends)) if apart else (grid.edges[first], grid.edges[last + 1]),
        inside=float(bins[first : last + 1].sum()),
        atoms=(*found, *peaks),
        often=tuple(dict.fromkeys((*often, *peaks))),
        peaks=peaks,
        missing=missing,
        heavy=_heavy(grid, bins, first, last, found=found, atom_counts=atom_counts),
        outside=rest_of(inside, std / BESIDE if len(kept) else std, n),
    )


def _reached(
    column: Column,
    counts: Counts,
    around: Sequence[int],
    found: Sequence[float],
    levels: Levels,
    n: int,
) -> tuple[int, int]:
    """The first and the last bin that records seem to lie in, around those that were found."""
    grid, std = grid_of(column), levels.std[BOUNDS]
    bins = counts[1 : grid.bins + 1]
    zero = bin_of(grid, 0.0) if grid.atoms else 0  # dates have no sign
    first = reach(bins, min(around), zero if min(around) >= zero else 0, std)
    last = reach(bins, max(around), len(bins) - 1 if max(around) >= zero else zero - 1, std)
    if column.kind is not Kind.INTEGER:
        return first, last
    if first >= zero:
        alone = [grid.atoms.index(atom) for atom in {0.0, *found}]
        held = [*bins[zero : last + 1], *counts[grid.bins + 2 + np.array(alone)], counts[-1]]
        rest, error = (n * one for one in rest_of(held, std, n))
        if rest > max(FEW_RECORDS * n, LEFT * error):
            last = with_rest(grid, bins, last, rest - error)
    atoms, least = [bin_of(grid, atom) for atom in found], RARE_RECORDS * n
    down, up = (gone_on(grid, bins, at, by, std, least) for at, by in ((first, -1), (last, 1)))
    return first if first in atoms else down, last if last in atoms else up


def _peaks(counts: Counts, levels: Levels, n: int) -> dict[float, float]:
    """Single numbers or days that `OFTEN` of the records hold, beyond noise, with their counts."""
    values = {value_grid().size: SINGLE, day_grid().size: np.array(day_grid().edges)}
    if len(counts) not in values:  # of something else
        return {}
    least = max(OFTEN * n, cell_threshold(levels.std[BOUNDS] / SINGLY, len(counts)))
    cells = np.flatnonzero(counts[1:-2] > least)
    known = values[len(counts)][cells]
    return dict(zip(known.tolist(), counts[cells + 1].tolist(), strict=True))


def _without_empty_years(
    low: float,
    high: float,
    grid: PublicGrid,
    years: Counts,
    bins: Counts,
    peaks: Mapping[float, float],
    std: float,
) -> tuple[float, float, Counts]:
    """The ends of a date's range without years that surely hold next to nothing.

    Their count, with `SURE` standard deviations of its noise, is less than `EMPTY` of what as many
    of the other years hold. All years left out hold no more than `FEW_RECORDS`, nor than
    `RARE_RECORDS` or noise explains, and none surely many by itself. The counts of the others come
    along, none where no year is left out.

    Args:
      years, bins: of `year_grid` and of `grid`, the date's own one, noisy.
      peaks: days that many share, with their counts; beside them other years would seem to hold
        nothing, and theirs stay.
      std: of the noise in each of `bins`.
    """
    edges = np.array(year_grid().edges)
    if low < edges[0] or high > edges[-1]:
        return low, high, np.zeros(0)
    counts, error = _years_of_decades(grid, years, bins, peaks, std)
    first, end = start, stop = np.searchsorted(edges, (low, high)).tolist()
    shared = np.searchsorted(edges, list(peaks), side="right") - 1
    stay = int(min([*shared, stop - 1])), int(max([*shared, start]))
    every = math.fsum([*counts[start:stop], *peaks.values()])
    few = max(HEAPED * std / BESIDE, FEW_RECORDS * every)  # in one year
    left_out, before = 0.0, -1
    while before != end - first:
        before = end - first
        for step in (1, -1):
            own = counts[first:end][::step]
            cut = np.arange(1, len(own))
            held = np.cumsum(own)[:-1]
            others = (own.sum() - held) / (len(own) - cut)
            noise = [error(first, first + c) if step > 0 else error(end - c, end) for c in cut]
            empty = held + SURE * np.array(noise) <= EMPTY * cut * others
            lost, known = left_out + held, math.hypot(error(start, first), error(end, stop))
            empty &= lost <= np.maximum(RARE_RECORDS * every, np.hypot(noise, known))
            empty &= lost <= FEW_RECORDS * every
            empty &= np.maximum.accumulate(own)[:-1] <= few
            empty &= cut <= (stay[0] - first if step > 0 else end - 1 - stay[1])
            gone = int(cut[empty][-1]) if empty.any() else 0
            first, end = (first + gone, end) if step > 0 else (first, end - gone)
            left_out = float(counts[start:first].sum() + counts[end:stop].sum())
    kept = np.append(counts[first:end], list(peaks.values()))
    return float(edges[first]), float(edges[end]), kept if before < stop - start else kept[:0]


def _years_of_decades(
    grid: PublicGrid, years: Counts, bins: Counts, peaks: Mapping[float, float], std: float
) -> tuple[Counts, Callable[[int, int], float]]:
    """Counts of years that agree with those of decades, and how far those from … to may be off.

    Least squares: a decade's total is the mean of both, by their variances, and what is lacking
    goes to its years in equal parts. Single days are taken out.
    """
    edges, decades = np.array(year_grid().edges), np.array(grid.edges)
    counts, wide = years[1 : len(edges)].copy(), bins.copy()
    for day, count in peaks.items():
        counts[np.searchsorted(edges, day, side="right") - 1] -= count
        wide[np.searchsorted(decades, day, side="right") - 1] -= count
    of = np.searchsorted(decades, edges[:-1], side="right") - 1
    within = (decades[:-1] >= edges[0]) & (decades[1:] <= edges[-1])
    # By how much a decade's years are moved for each record that it has more.
    weight = within / (np.bincount(of, minlength=len(wide)) + BESIDE**2)
    counts += (weight * (wide - np.bincount(of, counts, minlength=len(wide))))[of]

    def error(first: int, end: int) -> float:
        own = np.bincount(of[first:end], minlength=len(wide)).astype(np.float64)
        return std / BESIDE * math.sqrt(float((own - weight * np.square(own)).sum()))

    return counts, error


def _heavy(
    grid: PublicGrid,
    bins: Counts,
    first: int,
    last: int,
    *,
    found: Sequence[float],
    atom_counts: Counts,
) -> bool:
    """Whether most records lie in the inner tenth of the range, or on a zero that begins it."""
    if first > last or not grid.atoms:  # dates have no tail
        return False
    edges = np.array(grid.edges[first : last + 2])
    masses = np.maximum(bins[first : last + 1], 0.0)
    reach = float(np.abs(edges).max())
    inner = (np.abs(edges[:-1]) <= 0.1 * reach * (1 + 1e-9)) & (
        np.abs(edges[1:]) <= 0.1 * reach * (1 + 1e-9)
    )
    zero = max(0.0, float(atom_counts[grid.atoms.index(0.0)])) if 0.0 in found else 0.0
    inflated = zero > 0.5 * (zero + masses.sum()) and (edges[0] >= 0.0 or edges[-1] <= 0.0)
    return bool(inflated or masses[inner].sum() > HEAVY * masses.sum())


def far_from_zero(column: Column, look: FirstLook, least: float = FAR) -> bool:
    """Whether round numbers say little of where a long range of numbers lies, as of a longitude.

    Args:
      least: of its far end, that the near one is.
    """
    near, far = sorted(look.bins, key=abs)
    long = near != far and not _short(column, *look.bins)
    return long and column.kind is not Kind.DATETIME and near / far >= least


def _short(column: Column, low: float, high: float) -> bool:
    return bool(column.step) and (high - low) / column.step < FINE_GRID


def bounded(
    column: SchemaColumn, look: FirstLook, n: int, narrowed: Narrowed | None = None
) -> SchemaColumn:
    """The column with its bounds, atoms and scale, by what a second look narrowed, if it did."""
    low, high = _rounded(column, look.low, look.high)
    if far_from_zero(column, look):  # up to zero there would be noise alone
        step = column.step
        low = max(low, math.floor(look.low / step) * step if step else look.low)
        high = min(high, math.ceil(look.high / step) * step if step else look.high)
    if look.high in (*look.often, last_number(column.name, look.low)):  # where numbers are cut off
        high = look.high
    share, error = look.outside
    if narrowed is not None:
        low, high = narrowed.low, narrowed.high
        share = min(1.0, share + narrowed.lost / n)
        error = math.hypot(error, narrowed.std / n)
    high = up_to_our_time(column.name, low, high)
    spread_out = not _short(column, low, high)
    often = tuple(value for value in look.often if low <= value <= high)
    note = Message(
        "About {share:.1%} (± {error:.1%}) of the records lie outside.",
        share=share,
        error=1.96 * error,
    )
    found = column.model_copy(
        update={
            "low": low,
            "high": high,
            "step": column.step or written_step(low, high),
            "missing": look.missing,
            "scale": "log" if look.heavy and spread_out else "linear",
            "spikes": often if spread_out else (),
            "categories": None,
            "other": None,
            "note": note,
        }
    )
    return marked_learned(found, share, error)


def written_step(low: float, high: float) -> float:
    """A step of numbers of which none was found: no cell that noise shows is as fine; 0 at a point.

    >>> written_step(0.0, 5.0), written_step(-120.0, 900.0), written_step(0.0, 2e6)
    (0.0001, 0.1, 1.0)
    """
    if low >= high:
        return 0.0
    return min(1.0, float(f"1e{math.floor(math.log10(high - low)) - DIGITS_WRITTEN}"))


def _rounded(column: SchemaColumn, low: float, high: float) -> tuple[float, float]:
    if column.kind is Kind.DATETIME:
        last = max(low, high - max(column.step, 1.0))  # an edge is the first instant after
        return date_bounds(
            low, last, step=column.step, dtype=column.dtype, date_format=column.date_format
        )
    ends = round_bounds(low, high, step=column.step, dtype=column.dtype)
    if column.kind is Kind.INTEGER:  # zero would have been found
        return low if low == 1.0 else ends[0], high if 0.0 <= high < SMALL else ends[1]
    return ends


def rest_of(inside: Sequence[float], std: float, n: int) -> tuple[float, float]:
    """The share of n records that noisy counts leave, and its standard error."""
    share = 1.0 - math.fsum(inside) / n
    return min(1.0, max(0.0, share)), std * math.sqrt(len(inside)) / n


def marked_learned(
    column: SchemaColumn,
    outside: float,
    error: float,
    *,
    known: int = 0,
    placeholders: int = 0,
    nearest: bool = False,
) -> SchemaColumn:
    """The column, with its domain recorded as learned in this run."""
    learned = Learned(
        domain=column.domain_digest,
        known=known,
        outside=outside,
        error=error,
        placeholders=placeholders,
        nearest=nearest,
    )
    return column.model_copy(update={"learned": learned})
