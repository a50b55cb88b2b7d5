"""Where numbers that go together lie within their cells; post-processing.

A mixture knows of numbers in which cells they lie. Within its cell each would lie anywhere, and
numbers that nearly determine one another come apart, most in the widest cells, which hold the
largest amounts. How strongly two numbers go together from cell to cell says how they go on within
them, as if they had a Gaussian copula: its correlation follows from the mixture's own cells. Along
a tree of the strongest pairs each number is drawn given its neighbours (Gibbs sampling), and each
column keeps its density.

Source: Olsson, "Maximum likelihood estimation of the polychoric correlation coefficient",
Psychometrika 1979 (a correlation from cells); Chow and Liu 1968 (a tree of pairs).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri
from torch import Tensor

Floats = NDArray[np.float64]
LEAST, MOST = 0.3, 0.98  # |correlation| of a pair: below the first, cells say all there is to say
NARROWEST = 1e-9  # share of records of a cell
FAR = 8.0  # standard deviations, beyond which no normal lies
SWEEPS = 4  # of drawing each number given the others; cells leave little room, so few are enough


class Dependence(NamedTuple):
    """Two numbers that go together, by their columns."""

    first: int
    second: int
    correlation: float


def dependences(
    weights: Tensor,
    parts: Sequence[Tensor],
    lines: Sequence[int],
    pairs: Iterable[tuple[int, int]],
) -> tuple[Dependence, ...]:
    """The strongest correlations that make no circle.

    Args:
      weights, parts: of the mixture, [components] and of each column [components, cells].
      lines: of each column, how many cells lie on a line.
      pairs: of columns that were counted together.
    """
    share = weights / weights.sum()
    found = [
        (_correlation((parts[a][:, : lines[a]] * share[:, None]).T @ parts[b][:, : lines[b]]), a, b)
        for a, b in pairs
        if min(lines[a], lines[b]) > 1
    ]
    tree = {column: column for _, *pair in found for column in pair}  # of each, by one of its own
    known = []
    for correlation, a, b in sorted(found, key=lambda one: -abs(one[0])):
        if abs(correlation) >= LEAST and tree[a] != tree[b]:
            known.append(Dependence(a, b, max(-MOST, min(MOST, correlation))))
            joined = tree[b]
            tree = {column: tree[a] if own == joined else own for column, own in tree.items()}
    return tuple(known)


def _correlation(table: Tensor) -> float:
    """Of two normals that are cut into these cells."""
    joint = table.double().numpy()
    joint = joint / max(float(joint.sum()), NARROWEST)
    scores, kept = [], 1.0
    for axis in (1, 0):
        shares = joint.sum(axis=axis)
        ends = ndtri(np.clip(np.append(0.0, shares.cumsum()), 0.0, 1.0))
        heights = np.exp(-0.5 * np.square(ends)) / np.sqrt(2.0 * np.pi)
        scores.append((heights[:-1] - heights[1:]) / np.maximum(shares, NARROWEST))
        kept *= float(shares @ np.square(scores[-1]))
    return float(scores[0] @ joint @ scores[1]) / max(kept, NARROWEST)


def places(
    known: Sequence[Dependence],
    cells: Sequence[NDArray[np.int64]],
    lines: Sequence[int],
    random: torch.Generator,
) -> Mapping[int, Floats]:
    """Of numbers that go together, the rank of each record within its cell, float64 [n] in [0, 1].

    Ranks are even within each cell, so a column's density stays what it is. Whoever has no number
    in one of two columns lies anywhere in the other.
    """
    columns = sorted({column for one in known for column in one[:2]})
    beside = {
        column: [_other(one, column) for one in known if column in one[:2]] for column in columns
    }
    bounds = {column: _bounds(cells[column], lines[column]) for column in columns}
    ends = {column: ndtri(both).clip(-FAR, FAR) for column, both in bounds.items()}
    there = {column: cells[column] < lines[column] for column in columns}
    normals = {
        column: ndtri(low + (high - low) * _uniform(cells[column], random)).clip(-FAR, FAR)
        for column, (low, high) in bounds.items()
    }
    for column in columns * SWEEPS:
        centre, precision = np.zeros(len(cells[column])), np.ones(len(cells[column]))
        for other, correlation in beside[column]:
            rest = there[other] / (1.0 - correlation**2)
            centre += rest * correlation * normals[other]
            precision += rest * correlation**2
        centre, spread = centre / precision, 1.0 / np.sqrt(precision)
        first, last = ndtr((ends[column] - centre) / spread)
        drawn = ndtri(first + (last - first) * _uniform(cells[column], random))
        normals[column] = (centre + spread * drawn).clip(*ends[column])
    return {column: _even(normals[column], cells[column], random) for column in columns}


def _other(known: Dependence, column: int) -> tuple[int, float]:
    """The other column of a pair, and their correlation."""
    return known.second if known.first == column else known.first, known.correlation


def _uniform(cells: NDArray[np.int64], random: torch.Generator) -> Floats:
    drawn: Floats = torch.rand(len(cells), generator=random, dtype=torch.float64).numpy()
    return drawn


def _bounds(cells: NDArray[np.int64], line: int) -> Floats:
    """The shares of numbers before each record's cell and with it, float64 [2, n]."""
    counts = np.bincount(cells[cells < line], minlength=line)
    up_to = np.append(0.0, counts.cumsum()) / max(1, counts.sum())
    at = np.minimum(cells, line - 1)
    return np.stack([up_to[at], up_to[at + 1]])


def _even(values: Floats, cells: NDArray[np.int64], random: torch.Generator) -> Floats:
    """The rank of each value among those of its cell, evenly in [0, 1]."""
    order = np.lexsort((values, cells))
    counts = np.bincount(cells)
    rank = np.empty(len(cells))
    rank[order] = np.arange(len(cells)) - np.repeat(counts.cumsum() - counts, counts)
    return (rank + _uniform(cells, random)) / counts[cells]
