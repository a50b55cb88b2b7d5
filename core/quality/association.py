"""Association: how strongly each pair of columns belongs together, for columns of any kind.

Numbers with numbers: |Pearson's r|. A list with a number: the correlation ratio η. Lists with
lists: Cramér's V. All lie in [0, 1], 0 for no association. Rows that lack either value are left out
of a pair. Pearson's sign is kept apart, so that a turned sign counts as a difference of both.

Sources: Cramér, "Mathematical methods of statistics", 1946; Fisher, "Statistical methods for
research workers", 1925 (correlation ratio).
"""

from __future__ import annotations

from itertools import combinations

import numpy as np
from numpy.typing import NDArray
from scipy.stats.contingency import association as contingency_association

from core.quality.prepare import HOT_LABELS, Cells, Feature, Features

__all__ = ["associations", "mean_difference"]

Floats = NDArray[np.float64]


def associations(features: Features, cells: Cells) -> Floats:
    """[m, m], symmetric with ones on the diagonal; in [-1, 1] for two numbers, else in [0, 1].

    A column without two different values is associated with nothing.
    """
    m = len(features)
    out = np.eye(m)
    for i, j in combinations(range(m), 2):
        out[i, j] = out[j, i] = _pair(features.items[i], features.items[j], cells)
    return out


def mean_difference(real: Floats, synthetic: Floats) -> float:
    """Mean absolute difference over all pairs of different columns, in [0, 2]; 0 for one column."""
    m = len(real)
    if m < 2:
        return 0.0
    return float(np.abs(real - synthetic)[np.triu_indices(m, 1)].mean())


def _pair(a: Feature, b: Feature, cells: Cells) -> float:
    there = ~cells.missing(a.name) & ~cells.missing(b.name)
    x, y = cells.values[a.name][there], cells.values[b.name][there]
    if len(x) < 2:
        return 0.0
    if a.numeric and b.numeric:
        return _pearson(x.astype(np.float64), y.astype(np.float64))
    if a.numeric:
        return _ratio(_capped(y), x.astype(np.float64))
    if b.numeric:
        return _ratio(_capped(x), y.astype(np.float64))
    return _cramer(_capped(x), _capped(y))


def _capped(codes: NDArray[np.generic]) -> NDArray[np.int64]:
    """Label codes; labels beyond the most frequent ones count as one."""
    return np.minimum(codes.astype(np.int64), HOT_LABELS)


def _pearson(x: Floats, y: Floats) -> float:
    x, y = x - x.mean(), y - y.mean()
    scale = float(np.sqrt((x @ x) * (y @ y)))
    return float(np.clip((x @ y) / scale, -1.0, 1.0)) if scale > 0.0 else 0.0


def _ratio(groups: NDArray[np.int64], values: Floats) -> float:
    """η: the root of the share of the values' variance that lies between groups."""
    values = values - values.mean()
    whole = float(values @ values)
    if whole <= 0.0:
        return 0.0
    counts, sums = np.bincount(groups), np.bincount(groups, weights=values)
    between = float((sums[counts > 0] ** 2 / counts[counts > 0]).sum())
    return float(np.sqrt(np.clip(between / whole, 0.0, 1.0)))


def _cramer(a: NDArray[np.int64], b: NDArray[np.int64]) -> float:
    width = int(b.max()) + 1
    table = np.bincount(a * width + b, minlength=(int(a.max()) + 1) * width).reshape(-1, width)
    table = table[table.sum(axis=1) > 0][:, table.sum(axis=0) > 0]
    if min(table.shape) < 2:
        return 0.0
    return float(contingency_association(table, method="cramer"))
