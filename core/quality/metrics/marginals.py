"""Distances between k-way marginals.

Total variation distance (TVD) of two distributions on the same cells is ½ Σ|p − q|, in [0, 1].
Numbers are cut in equal-width bins over the real range; values outside it and missing ones have
cells of their own. Of many columns a fixed number of triples stands for all, chosen without looking
at any row.

Source: P3GM (ICDE 2021) §VI.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from core.quality.aligned_tables import AlignedTable
from core.quality.comparison import Comparison
from core.quality.metrics.family import Measured, Metric, Step, family
from core.quality.report.types import PairTable

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

DENSE_CELLS = 200_000  # a joint table larger than this is compared through the cells in use
MANY_SETS = 1_000_000  # of columns
TRIPLES = 200  # of all triples of columns
PAIR_WORK = 100_000_000  # rows × pairs: a few seconds of counting
PAIR_ROWS_AT_LEAST = 20_000
TRIPLE_ROWS = 60_000  # rows a side

TVD_2WAY = Metric(
    key="tvd_2way",
    title="Pairs of columns: distance",
    goal="lower",
    meaning="Average total variation distance between the joint distributions of two columns: "
    "shows whether relationships between columns were preserved.",
    source="2-way marginals, as in P3GM (ICDE 2021); numbers in 16 equal-width bins",
)
TVD_3WAY = Metric(
    key="tvd_3way",
    title="Three columns at a time: distance",
    goal="lower",
    meaning="Average total variation distance between the joint distributions of three columns: "
    "shows what pairs cannot.",
    source="3-way marginals, at most 200 of them; numbers in 16 equal-width bins",
)


def tvd(real: Floats | Ints, synthetic: Floats | Ints) -> float:
    """½ Σ|p − q| of two vectors of counts or shares on the same cells, in [0, 1]; 1 if one is 0.

    >>> tvd(np.array([2, 1]), np.array([1, 2]))  # ½(⅓ + ⅓)
    0.3333333333333333
    """
    a, b = float(real.sum()), float(synthetic.sum())
    if a == 0.0 or b == 0.0:
        return 0.0 if a == b else 1.0
    return 0.5 * float(np.abs(real / a - synthetic / b).sum())


def marginal_distance(a: Ints, b: Ints, sizes: Ints, columns: Sequence[int]) -> float:
    """TVD of two tables' marginals on some columns, in [0, 1]; codes [n, m] below sizes [m]."""
    shape = tuple(int(sizes[j]) for j in columns)
    p, q = (np.ravel_multi_index(tuple(side[:, j] for j in columns), shape) for side in (a, b))
    cells = int(np.prod(shape))
    if cells > DENSE_CELLS:
        # Only cells in use matter: renumber them, so that memory follows rows, not labels².
        used, joint = np.unique(np.concatenate([p, q]), return_inverse=True)
        p, q, cells = joint[: len(p)], joint[len(p) :], len(used)
    return tvd(np.bincount(p, minlength=cells), np.bincount(q, minlength=cells))


def one_way(real: AlignedTable, synthetic: AlignedTable) -> dict[str, float]:
    """1-way TVD of every column; n ≥ 1 on both sides."""
    (a, sizes), (b, _) = real.bins(), synthetic.bins()
    names = real.features.names
    return {name: marginal_distance(a, b, sizes, [j]) for j, name in enumerate(names)}


def two_way(real: AlignedTable, synthetic: AlignedTable) -> Floats:
    """2-way TVD of every pair, [m, m], and the 1-way ones on the diagonal; n ≥ 1 a side."""
    (a, sizes), (b, _) = real.bins(), synthetic.bins()
    m = len(sizes)
    matrix = np.diag([marginal_distance(a, b, sizes, [j]) for j in range(m)])
    for i, j in combinations(range(m), 2):
        matrix[i, j] = matrix[j, i] = marginal_distance(a, b, sizes, [i, j])
    return matrix


def pair_mean(matrix: Floats) -> float:
    """Mean over all pairs of different columns; the only column's own value when there is one."""
    m = len(matrix)
    if m < 2:
        return float(matrix[0, 0]) if m else 0.0
    return float(matrix[np.triu_indices(m, 1)].mean())


def column_sets(m: int, k: int, most: int, *, seed: int = 0) -> list[tuple[int, ...]]:
    """Sets of k of m columns: all of them, or `most` drawn without replacement.

    >>> column_sets(3, 2, 9), column_sets(1, 2, 9), len(column_sets(40, 3, 200))
    ([(0, 1), (0, 2), (1, 2)], [(0,)], 200)
    """
    k, rng = min(k, m), np.random.default_rng(seed)
    if math.comb(m, k) > MANY_SETS:  # too many to list; that two draws are the same is rare
        return sorted({tuple(np.sort(rng.permutation(m)[:k]).tolist()) for _ in range(most)})
    every = list(combinations(range(m), k))
    if len(every) <= most:
        return every
    return [every[i] for i in sorted(rng.choice(len(every), size=most, replace=False))]


def three_way(real: AlignedTable, synthetic: AlignedTable, *, seed: int = 0) -> float:
    """Mean TVD of 3-way marginals, in [0, 1]; of fewer columns, all together."""
    (a, sizes), (b, _) = real.bins(), synthetic.bins()
    chosen = column_sets(len(sizes), 3, TRIPLES, seed=seed)
    return float(np.mean([marginal_distance(a, b, sizes, columns) for columns in chosen]))


@family(TVD_2WAY, text="Comparing pairs of columns", order=30, cost=0.1)
def pairs(tables: Comparison, _: Step) -> Measured:
    """Every pair of columns, as a matrix of distances."""
    features, m = tables.features, len(tables.features)
    rows = max(PAIR_ROWS_AT_LEAST, PAIR_WORK // max(1, m * (m - 1) // 2))
    real, synthetic, resampled = tables.samples(rows, 2)
    matrix = two_way(real, synthetic)
    before = None
    if tables.before is not None:
        before = pair_mean(two_way(tables.beside_before, tables.before))
    score = TVD_2WAY.score(
        pair_mean(matrix),
        ceiling=pair_mean(two_way(real, resampled)),
        before=before,
        note="" if m > 1 else "There is only one column: this is its own distance.",
    )
    table = PairTable(columns=list(features.names), tvd=np.round(matrix, 6).tolist())
    return Measured([score], {"pairs": table})


@family(
    TVD_3WAY,
    text="Comparing three columns at a time",
    order=40,
    cost=0.2,
    applies=lambda tables: len(tables.features) > 2,
)
def three_columns(tables: Comparison, _: Step) -> Measured:
    """Three columns at a time."""
    real, synthetic, resampled = tables.samples(TRIPLE_ROWS, 7)
    distance = three_way(real, synthetic, seed=tables.seed)
    ceiling = three_way(real, resampled, seed=tables.seed)
    return Measured([TVD_3WAY.score(distance, ceiling=ceiling)])
