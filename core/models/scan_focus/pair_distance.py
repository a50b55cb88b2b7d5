"""How far mixtures lie from the counts of pairs, with its gradient, in a few large products.

A pair's shares are a product of two matrices, the cells of either column by components. Where most
pairs of a table were counted, one product of all cells with all cells is several times faster than
one for each pair, though it also computes what nobody counted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np
import torch
from torch import Tensor

from core.models.steps.counting.counts import LEAST_NOISE, PairTarget

CELLS_A_STEP = 200_000  # counted cells of pairs compared in one step
GROUPS = 4  # of first columns, each by all that follow: less is computed twice
ALONE = 3000  # cells that are computed in the time which a product by itself takes


@dataclass(frozen=True)
class PairBlock:
    """Counts of pairs side by side, of each class, or of all.

    Attributes:
      first: the cells of all first columns; `second`, of all second ones.
      precision: float32 [cells of first, of second], one over the standard deviation of each share,
        0 where it was not counted.
      goals: float32 [classes or 1, cells of first, of second], shares.
      counted: how many cells were counted, of all classes.
    """

    first: slice
    second: slice | Tensor
    precision: Tensor
    goals: Tensor
    counted: int


def blocks_of(
    pairs: Sequence[PairTarget], sizes: Sequence[int], n: int, device: str
) -> list[PairBlock]:
    """All pairs, in a few blocks of all cells if that is sooner computed; or one a first column.

    Args:
      pairs: of ascending columns.
      sizes: how many cells each column has.
      n: records, of which shares are.
    """
    ends = np.cumsum([0, *sizes]).tolist()
    blocks = []
    for classes in sorted({len(pair.shares) for pair in pairs}):
        some = [pair for pair in pairs if len(pair.shares) == classes]
        counted = sum(pair.shares.numel() for pair in some)
        apart = classes * len({pair.columns[0] for pair in some})  # products
        at_once = classes * ends[-1] ** 2 <= 2 * min(counted, CELLS_A_STEP) + ALONE * apart
        for own in _side_by_side(some, ends, GROUPS if at_once else ends[-1]):
            one, last = own[0].columns[0], own[-1].columns[0]
            first = slice(ends[one], ends[last + 1])
            second: slice | Tensor = slice(ends[one], ends[-1])
            if not at_once:
                partners = sorted(pair.columns[1] for pair in own)
                second = torch.cat([torch.arange(ends[i], ends[i + 1]) for i in partners])
            blocks.append(_block(first, second, own, ends, n, device))
    return blocks


def _side_by_side(
    pairs: Sequence[PairTarget], ends: Sequence[int], parts: int
) -> Iterator[list[PairTarget]]:
    """Pairs whose first columns lie in the same part of all cells."""
    ascending = sorted(pairs, key=lambda pair: pair.columns)
    for _, own in groupby(ascending, lambda pair: ends[pair.columns[0]] * parts // ends[-1]):
        yield list(own)


def _block(
    first: slice,
    second: slice | Tensor,
    pairs: Sequence[PairTarget],
    ends: Sequence[int],
    n: int,
    device: str,
) -> PairBlock:
    columns = torch.arange(ends[-1])[second]
    goals = torch.zeros((len(pairs[0].shares), first.stop - first.start, len(columns)))
    precision = torch.zeros(goals.shape[1:])
    for pair in pairs:
        rows = slice(*(ends[pair.columns[0] + i] - first.start for i in (0, 1)))
        begin = int(torch.searchsorted(columns, ends[pair.columns[1]]))
        others = slice(begin, begin + pair.shares.shape[2])
        goals[:, rows, others] = pair.shares.float()
        precision[rows, others] = 1.0 / max(pair.noise, LEAST_NOISE / n)
    counted = sum(pair.shares.numel() for pair in pairs)
    place = second.to(device) if isinstance(second, Tensor) else second
    return PairBlock(first, place, precision.to(device), goals.to(device), counted)


def squared_distance(shares: Tensor, within: Tensor, blocks: Sequence[PairBlock]) -> Tensor:
    """Of all mixtures to the counts of all blocks, summed, in units of their noise.

    Args:
      shares: [mixtures, cells, components] of all columns.
      within: [mixtures, classes, components], weights within each class.
    """
    total: Tensor = _SquaredDistance.apply(shares, within, blocks)  # type: ignore[no-untyped-call]
    return total


class _SquaredDistance(torch.autograd.Function):
    """The gradient comes with the value: both need the same products, and none is kept."""

    @staticmethod
    def forward(ctx: Any, shares: Tensor, within: Tensor, blocks: Sequence[PairBlock]) -> Tensor:
        """The distance."""
        of_shares, of_within = torch.zeros_like(shares), torch.zeros_like(within)
        total = shares.new_zeros(())
        for block in blocks:
            first, second = shares[:, block.first], shares[:, block.second]
            apart = len(block.goals) > 1
            weights = within if apart else within.sum(dim=1, keepdim=True)
            for i, goal in enumerate(block.goals):
                own = weights[:, i, None]
                weighted = first * own
                gap = torch.baddbmm(goal, weighted, second.transpose(1, 2), beta=-1.0)
                gap *= block.precision
                total += torch.linalg.vecdot(gap.flatten(), gap.flatten())
                slope = gap.mul_(2.0 * block.precision)
                towards = slope @ second
                of_shares[:, block.second] += slope.transpose(1, 2) @ weighted
                classes = slice(i, i + 1) if apart else slice(None)
                of_within[:, classes] += (towards * first).sum(dim=1, keepdim=True)
                of_shares[:, block.first] += towards.mul_(own)
        ctx.of_shares, ctx.of_within = of_shares, of_within
        return total

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, None]:
        """Of shares and of weights."""
        return gradients[0] * ctx.of_shares, gradients[0] * ctx.of_within, None
