"""Bins of a public grid in a row: the clearest above noise, and how far bounds reach from there."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from core.privacy.discovery.grids import ROUND, SMALL, PublicGrid
from core.privacy.discovery.planning import MOST_TOGETHER, NEIGHBOUR_DOUBT
from core.privacy.discovery.thresholds import cell_threshold

USUAL = (1e-3, 1e6)  # magnitudes among which the likeliest bins are taken where noise hides all
RUNGS_TOGETHER = 3  # that are taken so, at least: a power of ten
LOOK_AHEAD = 6  # bins that bounds may reach at once: two powers of ten
# rows that overlap pass for records as often as so many a bin would that do not, as simulated
ROWS_A_BIN = 3
Counts = NDArray[np.float64]


def likeliest(
    grid: PublicGrid, bins: Counts, atom_counts: Counts
) -> tuple[NDArray[np.int64], list[float]]:
    """The ends of the bins in a row that stand clearest above noise, and an atom that does more so.

    Of numbers, a power of ten or more, of usual magnitudes: few records in one bin would be seen.
    """
    if not grid.atoms:
        return clearest(grid, bins)[1], []
    usual = magnitudes(grid, *USUAL)
    height, row = clearest(grid, bins, least=RUNGS_TOGETHER, among=usual)
    clear = [grid.atoms[int(np.argmax(atom_counts))]] if atom_counts.max() > height else []
    return row, clear


def magnitudes(grid: PublicGrid, least: float, most: float) -> NDArray[np.bool_]:
    """Which edges lie so far from zero, at least and at most."""
    far = np.abs(grid.edges)
    return (far >= least) & (far <= most)


def clear_rows(grid: PublicGrid, bins: Counts, threshold: float) -> NDArray[np.int64]:
    """The ends of all bins in a row, each apart from the others, that stand above a threshold."""
    free, ends = np.ones(len(bins), dtype=bool), np.zeros(0, dtype=np.int64)
    while True:
        height, row = clearest(grid, bins, free=free)
        if height <= threshold:
            return ends
        free[row[0] : row[1] + 1], ends = False, np.union1d(ends, row)


def clearest(
    grid: PublicGrid,
    bins: Counts,
    *,
    least: int = 1,
    among: NDArray[np.bool_] | None = None,
    free: NDArray[np.bool_] | None = None,
) -> tuple[float, NDArray[np.int64]]:
    """Of bins in a row, the clearest: its count over the root of its length, and its two ends.

    The noise of so many counts together grows with that root. Numbers in a row have one sign. Small
    whole numbers, of which each has a bin, also come together from one round number to another, as
    greater ones do.

    Args:
      least: of how many bins they are, where small numbers between round ones are one.
      among: [edges], whether a row may begin or end there; anywhere if None.
      free: [bins], which a row may hold; any if None.
    """
    edges = np.array(grid.edges)
    allowed = np.ones(len(edges), dtype=bool) if among is None else among
    ends = _rungs(edges)
    before: NDArray[np.int64] = np.cumsum(ends)
    sums, height, row = np.append(0.0, np.cumsum(bins)), -math.inf, (0, 0)
    taken = np.append(0, np.cumsum(np.zeros(len(bins)) if free is None else ~free))
    for length in range(1, min(MOST_TOGETHER + int(SMALL), len(bins)) + 1):
        together = (before[length:] - before[:-length]).clip(min=1)
        fits = allowed[:-length] & allowed[length:] & (together >= least)
        fits &= (together <= MOST_TOGETHER) & (taken[length:] == taken[:-length])
        if length > MOST_TOGETHER:
            fits &= ends[:-length] & ends[length:]
        if grid.atoms:  # dates have no sign
            fits &= (edges[:-length] >= 0.0) | (edges[length:] <= 0.0)
        above = np.where(fits, sums[length:] - sums[:-length], -math.inf) / math.sqrt(length)
        start = int(above.argmax())
        if above[start] > height:
            height, row = float(above[start]), (start, start + length - 1)
    return height, np.array(row, dtype=np.int64)


def _rungs(edges: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Which edges do not lie between two round numbers, as those of small whole numbers may."""
    far = np.abs(edges)
    return np.asarray((far > SMALL) | np.isin(far, (0.0, *ROUND)) | (edges % 1.0 != 0.0))


def bin_of(grid: PublicGrid, value: float) -> int:
    """The bin that a value would lie in, were it no atom."""
    place = int(np.searchsorted(grid.edges, value, side="right")) - 1
    return min(max(place, 0), grid.bins - 1)


def reach(bins: Counts, start: int, end: int, std: float) -> int:
    """The last bin from `start` towards `end` that records seem to lie in.

    A bin beside what was found counts above what noise passes with `NEIGHBOUR_DOUBT`, and so do k
    bins together, with that over k⁴: the further a bound is too far, the more it harms. Bounds do
    not reach across zero so: amounts seldom change their sign, and where they do, enough records
    say it.
    """
    at, step = start, 1 if end > start else -1
    counted = range(1, LOOK_AHEAD + 1)
    needed = np.array([cell_threshold(std, k**4, NEIGHBOUR_DOUBT) * math.sqrt(k) for k in counted])
    while at != end:
        ahead = [at + step * i for i in range(1, min(LOOK_AHEAD, abs(end - at)) + 1)]
        sums = np.cumsum(bins[ahead])
        beyond = np.flatnonzero(sums > needed[: len(sums)])
        if not len(beyond):
            break
        at = ahead[int(beyond[0])]
    return at


def with_rest(grid: PublicGrid, bins: Counts, last: int, rest: float) -> int:
    """The bin up to which so many more records seem to lie than up to another one.

    That many lie beyond is known better than where: all counts up to there say it together. Nowhere
    farther than bounds may reach at once, from one round number to another.
    """
    edges = np.array(grid.edges[last + 1 :])
    rungs = np.flatnonzero(_rungs(edges))
    most = last + int(rungs[: LOOK_AHEAD + 1][-1]) if len(rungs) else last
    sums = np.cumsum(bins[last + 1 : most + 1])
    if not len(sums):
        return last
    return last + 1 + int(np.argmax(sums >= min(rest, sums.max())))
