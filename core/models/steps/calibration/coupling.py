"""Couplings: the cells of generated rows carried to released shares of each column.

Numbers go to the number of the same rank, so what goes together by rank still does. Labels, spikes
and missing cells stay wherever the goal has room for them; what is too much of one goes to those
that lack, by what they lack. Weights that are fitted afterwards need not repair single columns,
which leaves more rows to carry a table's pairs.

Source: the monotone coupling is the optimal one on a line (Villani, "Topics in Optimal
Transportation", 2003, §2.2); keeping the common mass in place is the maximal coupling.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Cells = NDArray[np.int64]


def goal_of(pool: Floats, released: Floats, noise: Floats, trust: float) -> Floats:
    """Shares between a pool's and the released ones, by the released ones' noise; they sum to one.

    Args:
      pool, released: float64 [cells], not negative, summing to one.
      noise: float64 [cells], standard deviations of the released shares.
      trust: κ, see `core.models.steps.calibration.row_weights`.
    """
    size = np.square(pool + released) / 4.0
    goal = pool + (released - pool) * size / np.maximum(size + trust * noise**2, 1e-300)
    return np.asarray(goal / goal.sum())


def coupling(pool: Floats, goal: Floats, line: int) -> Floats:
    """Where the rows of each cell go: float64 [cells, cells], each row summing to one.

    Args:
      pool, goal: float64 [cells], not negative, summing to one.
      line: so many cells lie on a line, in ascending order; they come first.

    >>> coupling(np.array([0.5, 0.5]), np.array([0.25, 0.75]), 2).tolist()
    [[0.5, 0.5], [0.0, 1.0]]
    >>> coupling(np.array([0.5, 0.5, 0.0]), np.array([0.25, 0.5, 0.25]), 0).tolist()
    [[0.5, 0.0, 0.5], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """
    have, want = (max(float(one[:line].sum()), 0.0) for one in (pool, goal))
    stay = np.minimum(pool, goal)
    if line:
        common = min(have, want)
        stay[:line] = pool[:line] * (common / have if have else 0.0)
        arrive = goal[:line] * (common / want if want else 0.0)
    moves = np.diag(stay)
    if line:
        ends, goals = np.cumsum(stay[:line]), np.cumsum(arrive)
        low = np.maximum.outer(ends - stay[:line], goals - arrive)
        moves[:line, :line] = np.maximum(np.minimum.outer(ends, goals) - low, 0.0)
    arrived = np.concatenate([arrive, stay[line:]]) if line else stay
    surplus, lacking = pool - stay, goal - arrived
    if lacking.sum() > 0.0:
        moves += np.outer(surplus, lacking) / lacking.sum()
    whole = moves.sum(axis=1)
    empty = whole <= 0.0
    moves[empty], whole[empty] = np.eye(len(pool))[empty], 1.0
    return np.asarray(moves / whole[:, None])


def carried(cell: Cells, moves: Floats, random: torch.Generator) -> Cells:
    """The cell that each row is carried to, int64 [n]."""
    line = np.cumsum(moves, axis=1) / moves.sum(axis=1)[:, None]
    line[:, -1] = 1.0
    keys = (np.arange(len(moves))[:, None] + line).ravel()
    uniform = torch.rand(len(cell), generator=random, dtype=torch.float64).numpy()
    goal_cell = np.searchsorted(keys, cell + uniform, side="right") - cell * len(moves)
    return np.asarray(goal_cell.clip(0, len(moves) - 1), dtype=np.int64)
