"""From noisy counts to bounds, atoms and scales, by released and public numbers alone."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.message import Message
from core.privacy.discovery.bins_in_a_row import (
    ROWS_A_BIN,
    USUAL,
    Counts,
    bin_of,
    clear_rows,
    clearest,
    likeliest,
    magnitudes,
    reach,
    with_rest,
)
from core.privacy.discovery.empty_years import without_empty_years
from core.privacy.discovery.grids import (
    SINGLE,
    SMALL,
    PublicGrid,
    day_grid,
    grid_of,
    value_grid,
)
from core.privacy.discovery.planning import (
    BESIDE,
    BOUNDS,
    NEIGHBOUR_DOUBT,
    SINGLY,
    Levels,
)
from core.privacy.discovery.thresholds import (
    FEW_RECORDS,
    RARE_RECORDS,
    SURE,
    cell_threshold,
)
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
FAR = 0.2  # of the end farther from zero, that the other lies beyond where a range lies far from it
REACHED = 0.05  # … or may lie, as noise can pass for records in a bin on either side
TINY_NUMBERS = 1e-3  # of the number farthest from zero, which are hardly told from it
NARROW = 8  # of a range, the part beyond which bins are not added to those that surely hold records
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

    Bins above `levels.cell`, by themselves or some in a row, are found; where those lack records,
    what `_where_lacking` finds; and from the outermost ones on what `reach` adds. Whatever lies
    between two found ones is inside. Where noise hides all bins, the likeliest are taken, so that
    no column is lost.
    """
    grid = grid_of(column)
    bins, atom_counts = counts[1 : grid.bins + 1], counts[grid.bins + 2 : -1]
    found = [a for a, c in zip(grid.atoms, atom_counts, strict=True) if c > levels.cell]
    often = [
        a for a, c in zip(grid.atoms, atom_counts, strict=True) if c > max(levels.cell, OFTEN * n)
    ]
    seeds = clear_rows(grid, bins, levels.cell)
    if not len(seeds) and not found:
        seeds, found = likeliest(grid, bins, atom_counts)
    std = levels.std[BOUNDS]
    seeds = np.union1d(seeds, _where_lacking(grid, counts, seeds.tolist(), found, std, n))
    around = [*seeds.tolist(), *(bin_of(grid, atom) for atom in found)]
    first, last = _reached(column, counts, around, found, levels, n)
    if column.kind is Kind.INTEGER and grid.edges[first] == 1.0 and 0.0 not in found:
        zeros = float(atom_counts[grid.atoms.index(0.0)])
        alone = first + np.flatnonzero(np.append(bins[first : last + 1], np.inf) > levels.cell)
        found += [0.0] if begins_at_zero(bins, zeros, first, int(alone[0]), levels) else []
    apart = not len(seeds) and (first, last) == (min(around), max(around))
    whole = 1.0 if column.kind is Kind.INTEGER else 0.0  # the last one before an edge
    ends = [*found, *(() if apart else (grid.edges[first], grid.edges[last + 1] - whole))]
    peaks = _peaks(single, levels, n)
    top = max(peaks, default=-math.inf)
    rest_noise = std * math.hypot(1.0, 1.0 / SINGLY)  # of a bin without a single value
    kept: Counts = np.zeros(0)
    if column.kind is Kind.DATETIME:
        *ends, kept = without_empty_years(min(ends), max(ends), grid, beside, bins, peaks, std)
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
    first, last = _seen_beside(grid, bins, around, std)
    if column.kind is not Kind.INTEGER:
        return first, last
    if grid.edges[first] >= 0.0:
        held = bins[bin_of(grid, 0.0) : last + 1]
        rest, error = _beyond(grid, counts, held, found, std, n)
        if rest > max(FEW_RECORDS * n, LEFT * error):
            last = with_rest(grid, bins, last, rest - error)
    atoms, least = [bin_of(grid, atom) for atom in found], RARE_RECORDS * n
    down, up = (gone_on(grid, bins, at, by, std, least) for at, by in ((first, -1), (last, 1)))
    return first if first in atoms else down, last if last in atoms else up


def _seen_beside(
    grid: PublicGrid, bins: Counts, around: Sequence[int], std: float
) -> tuple[int, int]:
    """The first and the last bin that stand above noise beside those that were found."""
    zero = bin_of(grid, 0.0) if grid.atoms else 0  # dates have no sign
    first = reach(bins, min(around), zero if min(around) >= zero else 0, std)
    return first, reach(bins, max(around), len(bins) - 1 if max(around) >= zero else zero - 1, std)


def _beyond(
    grid: PublicGrid, counts: Counts, bins: Counts, found: Sequence[float], std: float, n: int
) -> tuple[float, float]:
    """How many records lie neither in some bins nor on what was found, and how noisy that is."""
    alone = [grid.atoms.index(atom) for atom in {0.0, *found}]
    rest, error = rest_of([*bins, *counts[grid.bins + 2 + np.array(alone)], counts[-1]], std, n)
    return n * rest, n * error


def _where_lacking(
    grid: PublicGrid,
    counts: Counts,
    seeds: Sequence[int],
    found: Sequence[float],
    std: float,
    n: int,
) -> NDArray[np.int64]:
    """Bins in a row that seem to hold what is lacking in those that were found, if anything is.

    Such a row need not stand above noise as clearly as any: of numbers that lie no farther from
    zero, where others do not lie far from it; where single values alone were found, of any usual
    ones.
    """
    bins, nothing = counts[1 : grid.bins + 1], np.zeros(0, dtype=np.int64)
    if not grid.atoms:  # dates have no sign
        return nothing
    zero, held, (least, most) = bin_of(grid, 0.0), bins[:0], USUAL
    if seeds:
        around = [*seeds, *(bin_of(grid, atom) for atom in found)]
        first, last = _seen_beside(grid, bins, around, std)
        held = bins[min(first, zero) : max(last + 1, zero)]
        near, most = sorted((abs(grid.edges[first]), abs(grid.edges[last + 1])))
        if near >= FAR * most:
            return nothing
        least = TINY_NUMBERS * most
    rest, error = _beyond(grid, counts, held, found, std, n)
    if rest <= max(FEW_RECORDS * n, SURE * error):
        return nothing
    among = magnitudes(grid, least, most)
    height, row = clearest(grid, bins, among=among)
    threshold = cell_threshold(std, ROWS_A_BIN * int(among.sum()), NEIGHBOUR_DOUBT)
    return row if height > threshold else nothing


def _peaks(counts: Counts, levels: Levels, n: int) -> dict[float, float]:
    """Single numbers or days that `OFTEN` of the records hold, beyond noise, with their counts."""
    values = {value_grid().size: SINGLE, day_grid().size: np.array(day_grid().edges)}
    if len(counts) not in values:  # of something else
        return {}
    least = max(OFTEN * n, cell_threshold(levels.std[BOUNDS] / SINGLY, len(counts)))
    cells = np.flatnonzero(counts[1:-2] > least)
    known = values[len(counts)][cells]
    return dict(zip(known.tolist(), counts[cells + 1].tolist(), strict=True))


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
