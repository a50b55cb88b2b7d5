"""A tilt: weights of generated rows under which they agree with released counts.

A row's weight is exp(Σ_t λ_t[the cell of table t it lies in]), so the weighted rows have the least
divergence from what the model generates among all that come as near to the counts. The factors λ
minimise the convex dual

    log mean exp(λ·a) - λ·c + (κ/2) Σ σ²/q λ²

over a pool of generated rows a, where c are released shares, σ their standard deviations and q the
cells' sizes, the mean of the pool's share and the released one. To first order
λ = (c - q) / (q + κσ²/q): what noise alone may explain is shrunk away, as the best linear guess
does when a model's shares are off by q/√κ. So κ needs no unit: it is the same for every number of
records and every ε. Nothing but generated rows and released numbers is read.

Sources: Dudík, Phillips and Schapire, "Maximum entropy density estimation with generalized
regularization and an application to species distribution modeling", JMLR 2007 (ℓ₂² regularisation);
Deville and Särndal, "Calibration estimators in survey sampling", JASA 1992 (exponential weights).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.sparse import csr_matrix

Floats = NDArray[np.float64]
Cells = NDArray[np.int64]
ITERATIONS = 150
LIKE_ENOUGH = 1e-7  # relative change of the dual at which fitting ends


@dataclass(frozen=True)
class CellTable:
    """Released shares of the joint cells of some columns.

    Attributes:
      columns: block indices, in the order of the axes; the last one runs fastest.
      shares: float64 [product of sizes].
      noise: float64, likewise, standard deviations of the shares, positive.
    """

    columns: tuple[int, ...]
    sizes: tuple[int, ...]
    shares: Floats
    noise: Floats


def cells_of(columns: Sequence[int], sizes: Sequence[int], cells: Sequence[Cells]) -> Cells:
    """The joint cell of each row: int64 [n].

    Args:
      columns: block indices, in the order of the axes.
      cells: int64 [n] of every column of the table.

    >>> cells_of((1, 0), (3, 2), [np.array([0, 1]), np.array([2, 1])]).tolist()
    [4, 3]
    """
    joint = np.zeros(len(cells[columns[0]]), dtype=np.int64)
    for column, size in zip(columns, sizes, strict=True):
        joint = joint * size + cells[column]
    return joint


def log_weights(
    factors: Sequence[Floats], tables: Sequence[tuple[Sequence[int], Sequence[int]]],
    cells: Sequence[Cells],
) -> Floats:  # fmt: skip
    """Logarithms of the rows' weights, float64 [n], up to a constant.

    Args:
      cells: int64 [n] of every column.
    """
    total = np.zeros(len(cells[0]))
    for factor, (columns, sizes) in zip(factors, tables, strict=True):
        total += factor[cells_of(columns, sizes, cells)]
    return total


def fit_row_weights(
    tables: Sequence[CellTable],
    cells: Sequence[Cells],
    *,
    trust: float,
    on_iteration: Callable[[int, list[Floats]], None] | None = None,
) -> list[Floats]:
    """The factors λ of each table's cells; 0 where the pool has no row, since nothing can be drawn.

    Args:
      tables: what was released; at least one.
      cells: int64 [pool] of every column, of rows that the model generated.
      trust: κ ≥ 0: the model's shares are taken to be off by their √κth part or so.
      on_iteration: called after each iteration with its number and the weighted pool's shares of
        each table's cells; may raise to stop.
    """
    dual = _Dual(tables, cells, trust)
    done = 0

    def tell(scaled: Floats) -> None:
        nonlocal done
        done += 1
        if on_iteration is not None:
            on_iteration(done, dual.split(dual.expected(dual.unit * scaled)[0]))

    best = minimize(
        dual,
        np.zeros(len(dual.unit)),
        jac=True,
        method="L-BFGS-B",
        callback=tell,
        options={"maxiter": ITERATIONS, "ftol": LIKE_ENOUGH, "maxcor": 20},
    )
    return dual.split(dual.unit * np.asarray(best.x))


class _Dual:
    """The function that is minimised, over factors in units of its curvature along each.

    Attributes:
      unit: float64 [all cells], what scaled factors are multiplied by.
    """

    def __init__(self, tables: Sequence[CellTable], cells: Sequence[Cells], trust: float):
        rows = len(cells[0])
        self._starts = np.cumsum([0, *(len(table.shares) for table in tables)])
        pairs = zip(self._starts, tables, strict=False)
        joint = [start + cells_of(table.columns, table.sizes, cells) for start, table in pairs]
        index = np.stack(joint, axis=1).ravel()
        ends = np.arange(rows + 1) * len(tables)
        shape = (rows, int(self._starts[-1]))
        self._lies_in = csr_matrix((np.ones(len(index)), index, ends), shape=shape)
        self._rows_of = self._lies_in.T.tocsr()
        self._shares = np.concatenate([table.shares for table in tables])
        pool = np.asarray(self._rows_of.sum(axis=1)).ravel() / rows
        self._seen = pool > 0.0
        size = np.maximum((pool + self._shares) / 2.0, 1.0 / rows)
        noise = np.concatenate([table.noise for table in tables])
        self._penalty = trust * noise**2 / size
        self.unit = 1.0 / np.sqrt(size + self._penalty)
        self._at: tuple[Floats, tuple[Floats, float]] = (np.zeros(0), (np.zeros(0), 0.0))

    def __call__(self, scaled: Floats) -> tuple[float, Floats]:
        factors = self.unit * scaled
        expected, value = self.expected(factors)
        value += float(0.5 * self._penalty @ factors**2 - factors @ self._shares)
        slope = expected - self._shares + self._penalty * factors
        return value, self.unit * np.where(self._seen, slope, 0.0)

    def expected(self, factors: Floats) -> tuple[Floats, float]:
        """The weighted pool's shares of all cells, and the logarithm of the mean weight.

        The last answer is kept: a step of the descent ends where it last looked.
        """
        if not np.array_equal(factors, self._at[0]):
            self._at = factors, self._expected(factors)
        return self._at[1]

    def _expected(self, factors: Floats) -> tuple[Floats, float]:
        log = self._lies_in @ factors
        top = log.max()
        weights = np.exp(log - top)
        whole = float(weights.sum())
        return self._rows_of @ (weights / whole), float(top) + math.log(whole / len(weights))

    def split(self, numbers: Floats) -> list[Floats]:
        """Numbers of all cells → those of each table."""
        return np.split(numbers, self._starts[1:-1])


def inclusion(weights: Floats, count: int) -> Floats:
    """How often `systematic` takes each place, divided by `count`: float64 [n], summing to one."""
    share = weights / weights.sum()
    certain = np.zeros(len(share), dtype=bool)
    while (over := (share * count > 1.0) & ~certain).any():  # ends: one more is certain each time
        certain |= over
        rest = np.where(certain, 0.0, weights)
        share = np.where(certain, 1.0 / count, rest * (1.0 - certain.sum() / count) / rest.sum())
    return np.asarray(share)


def systematic(weights: Floats, count: int, start: float) -> NDArray[np.intp]:
    """`count` places in ascending order, each as often as its weight says, and none twice.

    No weight counts for more than 1/count of all: what a larger one had goes to the others.

    Args:
      weights: float64 [n], not negative, at least `count` of them positive.
      start: uniform in [0, 1).

    >>> systematic(np.array([1.0, 0.0, 9.0, 1.0]), 2, 0.3).tolist()
    [0, 2]
    """
    share = inclusion(weights, count)
    line = np.cumsum(share)
    goals = (np.arange(count) + start) / count * line[-1]
    return np.asarray(np.searchsorted(line, goals, side="right").clip(0, len(share) - 1))
