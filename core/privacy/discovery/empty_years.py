"""Dates' ranges without years that surely hold next to nothing, by released counts alone."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np

from core.privacy.discovery.bins_in_a_row import Counts
from core.privacy.discovery.grids import PublicGrid, year_grid
from core.privacy.discovery.planning import BESIDE
from core.privacy.discovery.thresholds import FEW_RECORDS, HEAPED, RARE_RECORDS, SURE

EMPTY = 0.125  # of what other years hold, below which a year at an end is left out


def without_empty_years(
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
