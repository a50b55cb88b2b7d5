"""Distances between 3-way marginals, and the NIST challenge's score of them.

Three columns at a time see what pairs cannot: an interaction that every pair of its columns hides.
Of many columns a fixed number of triples stands for all, chosen without looking at any row.

Source: NIST Differential Privacy Synthetic Data Challenge, 2019: a score of 1000 · (1 - ½ L1),
averaged over 3-way marginals; P3GM (ICDE 2021) §VI uses the same distance.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from core.quality.aligned_tables import Cells, Features
from core.quality.metrics.marginals import cell_distance

__all__ = ["TRIPLES", "nist_score", "three_way", "triples"]

Ints = NDArray[np.int64]

TRIPLES = 200  # of all triples of columns
DENSE_CELLS = 200_000  # beyond this only the cells in use are counted


def triples(m: int, *, most: int = TRIPLES, seed: int = 0) -> list[tuple[int, int, int]]:
    """Triples of m columns: all of them, or `most` drawn without replacement.

    >>> triples(3), len(triples(40))
    ([(0, 1, 2)], 200)
    """
    found = list(combinations(range(m), 3))
    if len(found) <= most:
        return found
    chosen = np.random.default_rng(seed).choice(len(found), size=most, replace=False)
    return [found[i] for i in sorted(chosen)]


def three_way(features: Features, real: Cells, synthetic: Cells, *, seed: int = 0) -> float | None:
    """Mean TVD of 3-way marginals, in [0, 1]; None for fewer than three columns."""
    chosen = triples(len(features), seed=seed)
    if not chosen:
        return None
    a, sizes = features.bins(real)
    b, _ = features.bins(synthetic)
    return float(np.mean([_distance(a, b, sizes, places) for places in chosen]))


def nist_score(distance: float) -> float:
    """The challenge's score of a mean 3-way TVD: 1000 is the same, 0 nothing in common.

    >>> nist_score(0.25)
    750.0
    """
    return 1000.0 * (1.0 - distance)


def _distance(a: Ints, b: Ints, sizes: Ints, places: tuple[int, int, int]) -> float:
    first, second, third = places
    joint = [
        (side[:, first] * sizes[second] + side[:, second]) * sizes[third] + side[:, third]
        for side in (a, b)
    ]
    cells = int(sizes[first] * sizes[second] * sizes[third])
    return cell_distance(joint[0], joint[1], cells, dense=DENSE_CELLS)
