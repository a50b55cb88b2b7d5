"""How densely records lie along a line of fine cells, from their noisy histogram.

A density is smooth, plus values that many records share. What neighbouring cells say of one another
follows from the histogram itself: the smoothness under which its counts are most likely is taken
(empirical Bayes), so that little noise leaves every cell as it was counted. Post-processing.

Source: Whittaker, "On a new method of graduation", 1923 (penalties on differences); MacKay,
"Bayesian interpolation", Neural Computation 1992 (their weight by evidence).
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_solve_banded, cholesky_banded, solve_banded

Floats = NDArray[np.float64]
COARSE = 16  # fine cells in a coarse one, which is counted too where there are four or more
DIFFERENCES = 2  # of neighbouring densities that are taken to be small: none bends of itself
SMOOTHNESS = np.exp(np.arange(-8.0, 19.0, 1.5))  # weights of these, from none to a straight line
ROUNDING = 1e-12  # of a weight, which keeps what is just positive so in floating point
FEWEST = 6  # fine cells that have a shape
SHARED = 4.0  # standard deviations that a value stands above its neighbourhood, if many share it
UNCERTAIN = 3.0  # of the noise, by which what a single cell shows beyond the rest is shrunk
TAPER = 3.0  # a density that falls exponentially has 95 % within three times its mean length
ROUNDS = 4  # of finding shared values, each of which shows others


@dataclass(frozen=True)
class RangeCount:
    """A count of records over several fine cells that was released beside them.

    Attributes:
      cells: float64 [fine cells], the part of each that lies in the range.
    """

    cells: Floats
    count: float
    std: float


def agreeing(
    counts: Floats, noise: float, ranges: Sequence[RangeCount]
) -> tuple[Floats, Floats | None]:
    """Counts of fine cells that agree with those of ranges, and their precision if there are any.

    Least squares, by the variances of all: far out, where a fine cell drowns in noise, ranges tell
    how many records there are.

    Args:
      noise: standard deviation of a fine or coarse count; the precision is in units of it.
    """
    if not ranges or noise <= 1e-6:
        return counts, None
    precision = precision_of(len(counts))
    information = precision @ counts
    for one in ranges:
        weight = (noise / one.std) ** 2
        precision += weight * np.outer(one.cells, one.cells)
        information += weight * one.count * one.cells
    return np.asarray(np.linalg.solve(precision, information)), precision


def with_coarse(counts: Floats, coarse: Floats) -> Floats:
    """Counts of fine cells that agree with those of coarse ones.

    Least squares: a coarse cell's total is the mean of both, by their variances, and what is
    lacking goes to its fine cells in equal parts.

    Args:
      coarse: float64 [⌈fine cells / COARSE⌉], released beside them with the same noise; may be
        empty.
    """
    counts = counts.copy()
    for c, count in enumerate(coarse):
        cells = slice(c * COARSE, (c + 1) * COARSE)
        size = len(counts[cells])
        counts[cells] += (count - counts[cells].sum()) / (size + 1.0)
    return counts


def densities(
    counts: Floats,
    noise: float,
    ends: tuple[int, int],
    draws: int,
    ranges: Sequence[RangeCount] = (),
    precision: Floats | None = None,
    held: Floats | None = None,
) -> Floats:
    """Float64 [1 + draws, fine cells], ≥ 0: records that each cell is expected to hold.

    All rows but the first are drawn from what the counts leave possible (the posterior), tails that
    are too thin to be seen among it.

    Args:
      counts: of fine cells, as released and made to agree with coarse ones.
      noise: standard deviation of a fine or coarse count.
      ends: first and behind the last cell that may hold records, see `seen`.
      ranges, precision: where the counts agree with those of ranges too, see `agreeing`.
      held: float64 [fine cells], ≥ 0, see `ColumnBins.held`: what is smooth is records over these.
    """
    if len(counts) < FEWEST or noise <= 1e-6:
        return np.tile(np.maximum(counts, 0.0), (1 + draws, 1))
    precision = precision_of(len(counts)) if precision is None else precision
    seen_by_counts = precision @ (counts / noise)
    held = np.ones(len(counts)) if held is None else held
    shared = np.zeros(len(counts), dtype=bool)
    for _ in range(ROUNDS):
        known, information = _without(precision, seen_by_counts, shared)
        _, _, density, factor = likeliest(known * np.outer(held, held), information * held)
        smooth = density * held
        left = np.where(held > 0.0, counts / noise - smooth, 0.0)
        peak = left >= np.maximum(np.append(-np.inf, left[:-1]), np.append(left[1:], -np.inf))
        more = shared | (peak & (left > SHARED))
        if (more == shared).all():
            break
        shared = more
    own = left * np.maximum(0.0, 1.0 - (UNCERTAIN / np.maximum(np.abs(left), 1e-9)) ** 2)
    own = np.where(shared, np.maximum(left, 0.0), own)
    covariance = cho_solve_banded((factor, True), np.eye(len(counts)))
    sure = _sure(density, covariance)  # nothing is made up
    expected = np.maximum(0.0, np.maximum(smooth, 0.0) * sure + own)  # where there may be none
    expected[: ends[0]] = expected[ends[1] :] = 0.0
    for one in ranges:
        inside = held * one.cells
        variance = float(inside @ covariance @ inside)
        expected = _keep_range(expected, one, smooth + own, variance)
    drawn = (density + _drawn(factor, draws, counts)) * held
    possible = np.maximum(0.0, np.maximum(drawn, 0.0) + own)
    return np.asarray(noise * np.vstack([expected, possible * _taper(len(counts), ends)]))


def _sure(smooth: Floats, covariance: Floats) -> Floats:
    """How much of each cell's density is believed, in [0, 1], where there may be none at all.

    By the cell itself, or by it and two neighbours on either side: a low count between sides that
    surely hold records is no hole.
    """
    variance = np.maximum(0.0, np.diag(covariance))
    alone = np.maximum(0.0, 1.0 - variance / np.maximum(smooth, 1e-9) ** 2)
    at = np.arange(len(smooth))
    sides = []
    for step in (at[:, None] - at, at - at[:, None]):
        beside = ((step >= 0) & (step <= 2)).astype(np.float64)
        variance = (beside @ covariance * beside).sum(axis=1)
        total = np.maximum(beside @ smooth, 1e-9)
        sides.append(np.maximum(0.0, 1.0 - variance / total**2))
    return np.asarray(np.maximum(alone, np.minimum(*sides)))


def _keep_range(records: Floats, one: RangeCount, before: Floats, variance: float) -> Floats:
    """Records with as many in a range as all counts say, however little each of its cells shows.

    Args:
      before: float64 [fine cells], the same before anything was shrunk; `variance` of it in the
        range.
    """
    inside, total = float(records @ one.cells), max(0.0, float(before @ one.cells))
    wanted = total * max(0.0, 1.0 - variance / max(total**2, 1e-9))
    scale = wanted / inside if inside > 0.0 else 1.0
    return np.asarray(records * (1.0 + (scale - 1.0) * one.cells))


def _taper(cells: int, ends: tuple[int, int]) -> Floats:
    """What is left of a possible density beyond both ends: tails fall towards the bounds."""
    at = np.arange(cells)
    low = np.maximum(0, ends[0] - at) / max(1, ends[0])
    high = np.maximum(0, at - ends[1] + 1) / max(1, cells - ends[1])
    return np.asarray(np.exp(-TAPER * (low + high)))


def _drawn(factor: Floats, draws: int, counts: Floats) -> Floats:
    """Deviations with the covariance whose inverse was factorised: [draws, cells]."""
    random = np.random.default_rng(zlib.crc32(counts.tobytes()))  # other columns, other draws
    upper = np.zeros_like(factor)
    for i, diagonal in enumerate(factor):
        upper[-1 - i, i:] = diagonal[: len(diagonal) - i]
    normal = random.standard_normal((len(counts), draws))
    return np.asarray(solve_banded((0, len(factor) - 1), upper, normal)).T


def precision_of(cells: int) -> Floats:
    """Of histogram counts that agree with coarse ones, in units of one count's: [cells, cells]."""
    precision = np.eye(cells)
    if cells >= 4 * COARSE:
        for start in range(0, cells, COARSE):
            precision[start : start + COARSE, start : start + COARSE] += 1.0
    return precision


def _without(
    precision: Floats, information: Floats, shared: NDArray[np.bool_]
) -> tuple[Floats, Floats]:
    """What counts say of the rest where some cells hold values of their own besides."""
    for cell in np.flatnonzero(shared):
        along = precision[:, cell] / precision[cell, cell]
        information = information - along * information[cell]
        precision = precision - np.outer(along, precision[cell])
    return precision, information


def likeliest(
    precision: Floats, information: Floats, weights: Floats = SMOOTHNESS
) -> tuple[float, float, Floats, Floats]:
    """Logarithmic evidence of the best of some weights, it, its density and factor."""
    cells = len(information)
    band = 1 + int(np.abs(np.subtract(*np.nonzero(precision))).max())
    band = max(min(cells, DIFFERENCES + 1), band)
    known, penalty = _banded(precision, band), _roughness(cells, band)
    found = []
    for weight in weights:
        whole = known + weight * penalty
        whole[0] += ROUNDING * weight
        factor = cholesky_banded(whole, lower=True)
        mean = cho_solve_banded((factor, True), information)
        evidence = 0.5 * ((cells - DIFFERENCES) * math.log(weight) + float(information @ mean))
        found.append((evidence - float(np.log(factor[0]).sum()), weight, mean, factor))
    return max(found, key=lambda one: one[0])


def _roughness(cells: int, band: int) -> Floats:
    """Lower diagonals of the matrix whose form is the sum of squared differences."""
    one = np.diff(np.eye(DIFFERENCES + 1), DIFFERENCES, axis=0)[0]
    rows = np.zeros((max(band, len(one)), cells))
    for column, own in enumerate(one):
        for row in range(column, len(one)):
            rows[row - column, column : column + cells - DIFFERENCES] += own * one[row]
    return rows[:band]


def _banded(matrix: Floats, band: int) -> Floats:
    """The lower diagonals of a symmetric matrix, one a row."""
    rows = [np.append(np.diagonal(matrix, -i), np.zeros(i)) for i in range(band)]
    return np.array(rows)


def keys(records: Floats, cells: Sequence[int] | NDArray[np.int64]) -> Floats:
    """Cell + share of its records up to each fine cell, ascending: float64 [fine cells].

    Args:
      records: float64 [fine cells], ≥ 0; a cell without any is even.
    """
    cells = np.asarray(cells)
    mass = np.bincount(cells, records)
    even = mass[cells] <= 0.0
    records = np.where(even, 1.0, records)
    within = np.cumsum(records) if len(records) else records
    start = np.searchsorted(cells, np.arange(len(mass)))
    before = np.append(0.0, within)[start]
    return np.asarray(cells + (within - before[cells]) / np.bincount(cells, records)[cells])
