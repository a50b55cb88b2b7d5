"""Distances between 1-way and 2-way marginals, and dimension-wise probability.

Total variation distance (TVD) of two distributions on the same cells is ½ Σ|p − q|, in [0, 1]:
the largest difference in probability that any event can show. Numbers are cut in equal-width bins
over the real range, values outside it and missing values have cells of their own.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from core.quality.aligned_tables import HOT_LABELS, Cells, Features
from core.quality.report.types import ProbabilityPoint

__all__ = ["cell_distance", "dimension_probability", "one_way", "pair_mean", "tvd", "two_way"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

DENSE_CELLS = 4_000_000  # a joint table larger than this is compared through the cells in use


def tvd(real: Floats, synthetic: Floats) -> float:
    """½ Σ|p − q| of two vectors of counts or shares on the same cells, in [0, 1].

    Two empty tables are at distance 0; an empty and a non-empty one at distance 1.

    >>> tvd(np.array([2.0, 1.0]), np.array([1.0, 2.0]))  # ½(⅓ + ⅓)
    0.3333333333333333
    """
    a, b = float(real.sum()), float(synthetic.sum())
    if a == 0.0 or b == 0.0:
        return 0.0 if a == b else 1.0
    return 0.5 * float(np.abs(real / a - synthetic / b).sum())


def one_way(features: Features, real: Cells, synthetic: Cells) -> dict[str, float]:
    """1-way TVD of every column."""
    a, sizes = features.bins(real)
    b, _ = features.bins(synthetic)
    return {
        name: cell_distance(a[:, i], b[:, i], int(sizes[i]))
        for i, name in enumerate(features.names)
    }


def two_way(features: Features, real: Cells, synthetic: Cells) -> Floats:
    """2-way TVD of every pair of columns.

    Returns:
      [m, m], symmetric; the diagonal holds the 1-way distances.
    """
    a, sizes = features.bins(real)
    b, _ = features.bins(synthetic)
    out = np.zeros((len(features), len(features)))
    for i in range(len(features)):
        out[i, i] = cell_distance(a[:, i], b[:, i], int(sizes[i]))
    for i, j in combinations(range(len(features)), 2):
        width = int(sizes[j])
        joint_real, joint_synthetic = a[:, i] * width + a[:, j], b[:, i] * width + b[:, j]
        out[i, j] = out[j, i] = cell_distance(joint_real, joint_synthetic, int(sizes[i]) * width)
    return out


def pair_mean(matrix: Floats) -> float:
    """Mean over all pairs of different columns; the only column's own value when there is one."""
    m = len(matrix)
    if m < 2:
        return float(matrix[0, 0]) if m else 0.0
    return float(matrix[np.triu_indices(m, 1)].mean())


def dimension_probability(
    features: Features, real: Cells, synthetic: Cells
) -> list[ProbabilityPoint]:
    """Share of every label of listed columns, and of "missing" anywhere, in both tables.

    For a binary table this is the published dimension-wise probability plot; labels of other listed
    columns are the one-hot coordinates of the same plot, at most the 60 most frequent per column.
    Source: Choi et al. 2017; DP-auto-GAN (ICLR 2020 submission) §4.
    """
    points = []
    for feature in features.items:
        gaps = real.missing(feature.name).mean() if real.n else 0.0
        gaps_synthetic = synthetic.missing(feature.name).mean() if synthetic.n else 0.0
        if not feature.numeric:
            p = _shares(real.values[feature.name].astype(np.int64), len(feature.labels))
            q = _shares(synthetic.values[feature.name].astype(np.int64), len(feature.labels))
            points += [
                ProbabilityPoint(column=feature.name, label=label, real=a, synthetic=b)
                for label, a, b in zip(feature.labels[:HOT_LABELS], p, q, strict=False)
            ]
        if feature.missing:
            points.append(
                ProbabilityPoint(
                    column=feature.name,
                    label="(missing)",
                    real=float(gaps),
                    synthetic=float(gaps_synthetic),
                )
            )
    return points


def _shares(codes: Ints, labels: int) -> list[float]:
    counts = np.bincount(codes[codes >= 0], minlength=labels)
    return list((counts / max(len(codes), 1)).tolist())


def cell_distance(a: Ints, b: Ints, cells: int, *, dense: int = DENSE_CELLS) -> float:
    """TVD of two samples of cell numbers in 0 … cells - 1, in [0, 1].

    Args:
      a, b: one cell number a row.
      cells: how many cells there are.
      dense: beyond this many only the cells in use are counted.
    """
    if cells > dense:
        # Only cells in use matter: renumber them, so that memory follows rows, not labels².
        used, joint = np.unique(np.concatenate([a, b]), return_inverse=True)
        a, b, cells = joint[: len(a)], joint[len(a) :], len(used)
    p, q = np.bincount(a, minlength=cells), np.bincount(b, minlength=cells)
    return tvd(p.astype(np.float64), q.astype(np.float64))
