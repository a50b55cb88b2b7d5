"""Where a line of fine cells begins and ends to hold records, from their noisy histogram.

Bounds are round, and where they reach too far there are no values. Post-processing.

Source: Kass and Raftery, "Bayes factors", 1995 (what counts as strong evidence).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from core.models.steps.counting.lines.densities import (
    FEWEST,
    TAPER,
    Floats,
    RangeCount,
    densities,
    likeliest,
    precision_of,
)

# Standard deviations above none, from which on a range has records beside one that has some, and
# apart from all: where there are many, noise shows records in one.
SEEN, APART = 2.0, 3.0
# Sudden ends: of so many that leave less than a share of records beyond, those whose logarithmic
# evidence is within what is called strong of the best.
ENDS, THIN, CLEARLY = 10, 0.05, 4.0
EMPTY = 0.125  # of the density beside it, below which a run of fine cells at a bound is empty
# Standard deviations above noise, from which on there are records behind an empty stretch. Of
# columns without such records one in a hundred still has some, in place of one in ten; of columns
# with a fifth of 5,000 there, one in ten loses them where noise is a hundred, none at sixty.
ISLAND = 2.5
EDGE = 3 * FEWEST  # cells that say how densely records lie where they end


def seen(
    counts: Floats, cells: NDArray[np.int64], noise: float, ranges: Sequence[RangeCount] = ()
) -> tuple[int, int]:
    """The fine cells first … end - 1 without those at the bounds that seem to hold nothing.

    Bounds are round, and where they reach too far the table has no values: none are made up there.

    Args:
      cells: int64 [fine cells], ascending: runs of like mass that stand above the noise.
      ranges: further counts. No cells are seen farther out than the next one to those that show
        records.
    """
    first, end = _seen_by_cells(counts, cells, noise)
    inside = [(np.flatnonzero(one.cells), one) for one in ranges]
    held = [(int(at[0]), int(at[-1]) + 1, one) for at, one in inside if len(at)]
    clear, likely = (
        [(a, b) for a, b, one in held if one.count > least * one.std] for least in (APART, SEEN)
    )
    low, high = _together(clear)
    for _ in held:
        low, high = _together([(low, high), *_beside(likely, low, high)])
    if low < high:  # tails reach into the next range, if there is one, and no farther
        first, end = min(first, low), max(end, high)
        least, most = _together([(low, high), *_beside([(a, b) for a, b, _ in held], low, high)])
        first = max(first, least) if least < low else first
        end = min(end, most) if most > high else end
    return int(first), int(end)


def supported(
    counts: Floats,
    noise: float,
    ends: tuple[int, int],
    precision: Floats | None = None,
    held: Floats | None = None,
) -> tuple[int, int]:
    """Where a density ends that falls at once, within the ends that are `seen`.

    What is smooth spills over such an end, and shows values that cannot be, such as shares above
    one. Of the ends beyond which counts show no records, the farthest is taken under which all
    counts are not clearly less likely than under the best.

    Args:
      counts, noise, precision, held: see `densities`.
    """
    if ends[1] - ends[0] < FEWEST or noise <= 1e-6:
        return ends
    precision = precision_of(len(counts)) if precision is None else precision
    held = np.ones(len(counts)) if held is None else held
    shown, covariance = counts / noise, np.asarray(np.linalg.inv(precision), dtype=np.float64)
    _, weight, _, _ = likeliest(precision * np.outer(held, held), precision @ shown * held)

    def last(turn: slice, end: int) -> int:
        sides = shown[turn], precision[turn, turn], covariance[turn, turn], held[turn]
        return _sudden_end(*sides, end, weight)

    back = slice(None, None, -1)
    high, low = last(slice(None), ends[1]), len(counts) - last(back, len(counts) - ends[0])
    return (low, high) if high - low >= FEWEST else ends


def without_islands(
    counts: Floats,
    noise: float,
    ends: tuple[int, int],
    precision: Floats | None = None,
    held: Floats | None = None,
) -> tuple[int, int]:
    """The ends without what lies far from most records, where noise explains it.

    Of a hundred empty cells some always seem to hold records, as far out as bounds leave room; so
    those behind more than `FEWEST` must stand above noise together, alone or with all that is
    beyond the gap, if that surely is empty: as dense as records are at its edge, it would show
    `APART` standard deviations of noise. What falls slowly has thin edges, and no such gaps.

    Args:
      counts, noise, ends, precision, held: see `densities`.
    """
    if len(counts) < FEWEST or noise <= 1e-6:
        return ends
    precision = precision_of(len(counts)) if precision is None else precision
    possible = np.arange(len(counts)) if held is None else np.flatnonzero(held > 0.0)
    records = densities(counts, noise, ends, 0, (), precision, held)[0]
    there = np.flatnonzero(records[possible] > 0.0)  # among cells that have a value
    known, splits = possible[there], np.flatnonzero(np.diff(there) > FEWEST) + 1
    if not len(splits):
        return ends
    covariance = np.asarray(np.linalg.inv(precision))
    body = max(np.split(known, splits), key=lambda part: float(records[part].sum()))

    def error(first: int, end: int) -> float:
        return noise * math.sqrt(float(covariance[first:end, first:end].sum()))

    def beside(at: int) -> float:
        """The density of the last cells with records before a gap, seen from most records."""
        near = known[max(0, at - EDGE) : at] if known[at] > body[0] else known[at : at + EDGE]
        return float(records[near].mean())

    clear = []
    for at in splits.tolist():
        expected = beside(at) * (there[at] - there[at - 1] - 1)
        if expected > APART * error(known[at - 1] + 1, known[at]):
            clear.append(at)
    parts = [(int(part[0]), int(part[-1]) + 1) for part in np.split(known, clear)]

    def shows(first: int, end: int) -> bool:
        return float(counts[first:end].sum()) > ISLAND * error(first, end)

    own = next(i for i, (a, b) in enumerate(parts) if a <= body[0] < b)
    low = [i for i in range(own) if shows(*parts[i]) or shows(ends[0], parts[i + 1][0])]
    high = [
        i for i in range(own + 1, len(parts)) if shows(*parts[i]) or shows(parts[i - 1][1], ends[1])
    ]
    least, most = min([own, *low]), max([own, *high])
    first = parts[least][0] if least else ends[0]
    return first, parts[most][1] if most < len(parts) - 1 else ends[1]


def _sudden_end(
    counts: Floats, precision: Floats, covariance: Floats, held: Floats, end: int, weight: float
) -> int:
    """Behind the last of fine cells, of counts in units of their noise, if they end by `end`."""
    holding = np.cumsum(held[:end] > 0.0)  # counts of fewer cells say nothing of a line
    if end < FEWEST or holding[-1] < FEWEST:
        return end
    known = precision[:end, :end] * np.outer(held[:end], held[:end])
    information, smoothness = (precision @ counts)[:end] * held[:end], np.array([weight])
    evidence, _, smooth, _ = likeliest(known, information, smoothness)
    beyond = np.cumsum((np.maximum(smooth, 0.0) * held[:end])[::-1])[::-1]
    shown = np.cumsum(counts[:end][::-1])[::-1]
    variance = np.diag(np.cumsum(np.cumsum(covariance[:end, :end][::-1, ::-1], 0), 1))[::-1]
    possible = np.flatnonzero((beyond < THIN * beyond[0]) & (shown <= np.sqrt(variance)))
    possible = possible[holding[possible - 1] >= FEWEST]
    chosen = np.linspace(0, len(possible) - 1, min(ENDS, len(possible))).round().astype(int)
    found = {end: evidence}
    for one in possible[chosen].tolist():
        found[one] = likeliest(known[:one, :one], information[:one], smoothness)[0]
    best = max(found.values())
    return max(one for one, likely in found.items() if likely >= best - CLEARLY)


def _together(reached: Sequence[tuple[int, int]]) -> tuple[int, int]:
    """From the first to the last of all; 0, 0 of none."""
    return min((a for a, _ in reached), default=0), max((b for _, b in reached), default=0)


def _beside(held: Sequence[tuple[int, int]], low: int, high: int) -> list[tuple[int, int]]:
    """Those that adjoin fine cells from … to."""
    return [(a, b) for a, b in held if low < high and a <= high + 1 and b >= low - 1]


def _seen_by_cells(counts: Floats, cells: NDArray[np.int64], noise: float) -> tuple[int, int]:
    size = np.bincount(cells)
    if len(size) < 2:
        return 0, len(counts)
    mass = np.maximum(np.bincount(cells, counts), 0.0)
    further_in = slice(1, 3), slice(-3, -1) if len(size) > 2 else slice(0, 1)
    low, high = (float(mass[two].sum() / size[two].sum()) for two in further_in)
    above = _unseen(counts[: len(counts) - size[-1] - 1 : -1], high, noise)
    return _unseen(counts[: size[0]], low, noise), len(counts) - above


def _unseen(counts: Floats, beside: float, noise: float) -> int:
    """How many of the fine cells from a bound inwards hold next to nothing, by their counts.

    The most likely end of a run of cells of less than `EMPTY` of the density further in, or of less
    than noise lets one see: where a density rises at once, that is where most has been lacking of
    half of it. What is left is long enough for the records: `TAPER` times as long as they would be
    at the density further in, so that cutting piles up none.
    """
    least = min(0.5 * beside, max(EMPTY * beside, 0.5 * noise))
    lacking = np.cumsum(counts[:-1] - least)
    end = int(np.argmin(lacking)) + 1 if len(lacking) else 0
    if beside <= 0.0 or not end or lacking[end - 1] >= 0.0:
        return 0
    needed = max(1, math.ceil(TAPER * max(0.0, float(counts.sum())) / beside))
    return min(end, max(0, len(counts) - needed))
