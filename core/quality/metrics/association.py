"""Association: how strongly each pair of columns belongs together, for columns of any kind.

Numbers with numbers: |Pearson's r|. A list with a number: the correlation ratio η. Lists with
lists: Cramér's V. All lie in [0, 1], 0 for no association. Rows that lack either value are left out
of a pair. Pearson's sign is kept apart, so that a turned sign counts as a difference of both.

Sources: Cramér, "Mathematical methods of statistics", 1946; Fisher, "Statistical methods for
research workers", 1925 (correlation ratio).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from core.quality.aligned_tables import HOT_LABELS, Cells, Feature, Features

__all__ = ["associations", "mean_difference"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class _Side:
    """One column, ready for every pair it is in.

    Attributes:
      numeric: whether values lie on a line.
      values: float64 [n], or label codes with rare labels counted as one.
      there: bool [n], which rows have a value; None when all have.
    """

    numeric: bool
    values: NDArray[np.generic]
    there: NDArray[np.bool_] | None


def associations(features: Features, cells: Cells) -> Floats:
    """[m, m], symmetric with ones on the diagonal; in [-1, 1] for two numbers, else in [0, 1].

    A column without two different values is associated with nothing.
    """
    m = len(features)
    sides = [_side(feature, cells) for feature in features.items]
    out = np.eye(m)
    for i, j in combinations(range(m), 2):
        out[i, j] = out[j, i] = _pair(sides[i], sides[j])
    return out


def mean_difference(real: Floats, synthetic: Floats) -> float:
    """Mean absolute difference over all pairs of different columns, in [0, 2]; 0 for one column."""
    m = len(real)
    if m < 2:
        return 0.0
    return float(np.abs(real - synthetic)[np.triu_indices(m, 1)].mean())


def _side(feature: Feature, cells: Cells) -> _Side:
    there = ~cells.missing(feature.name)
    column = cells.values[feature.name]
    values: NDArray[np.generic] = column.astype(np.float64) if feature.numeric else _capped(column)
    return _Side(feature.numeric, values, None if there.all() else there)


def _pair(a: _Side, b: _Side) -> float:
    x, y = a.values, b.values
    if a.there is not None or b.there is not None:
        there = np.ones(len(x), dtype=np.bool_)
        for side in (a, b):
            there &= True if side.there is None else side.there
        x, y = x[there], y[there]
    if len(x) < 2:
        return 0.0
    if a.numeric and b.numeric:
        return _pearson(x.astype(np.float64), y.astype(np.float64))
    if a.numeric:
        return _ratio(y.astype(np.int64), x.astype(np.float64))
    if b.numeric:
        return _ratio(x.astype(np.int64), y.astype(np.float64))
    return _cramer(x.astype(np.int64), y.astype(np.int64))


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
    """V = √(χ² / (n · (min(rows, columns) - 1))), χ²/n = Σ p²/(pq) - 1 over the cells."""
    width = int(b.max()) + 1
    table = np.bincount(a * width + b, minlength=(int(a.max()) + 1) * width).reshape(-1, width)
    rows, columns = table.sum(axis=1), table.sum(axis=0)
    least = min(int((rows > 0).sum()), int((columns > 0).sum()))
    if least < 2:
        return 0.0
    expected = np.outer(rows, columns)
    used = expected > 0
    excess = float((table[used].astype(np.float64) ** 2 / expected[used]).sum()) - 1.0
    return float(np.sqrt(np.clip(excess / (least - 1), 0.0, 1.0)))
