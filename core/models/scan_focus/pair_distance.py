"""How far mixtures lie from the counts of pairs, with its gradient, in a few large products.

A pair's shares are a product of two matrices, the cells of either column by components. Where most
pairs of a table were counted, one product of all cells with all cells is several times faster than
one for each pair, though it also computes what nobody counted, and each pair twice.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np
import torch
from torch import Tensor

from core.models.steps.counting.counts import LEAST_NOISE, PairTarget

CELLS_A_STEP = 200_000  # counted cells of pairs compared in one step
ALONE = 3000  # cells that are computed in the time which a product by itself takes


@dataclass(frozen=True)
class PairBlock:
    """Counts of pairs side by side, of each class, or of all.

    Attributes:
      first: the cells of all first columns.
      second: those of all second ones; None if every cell stands on both sides.
      precision: float32 [cells of first, of second], one over the standard deviation of each share,
        0 where it was not counted; over √2 of it where each pair stands twice.
      goals: float32 [classes or 1, cells of first, of second], shares.
      counted: how many cells were counted, of all classes.
    """

    first: slice
    second: Tensor | None
    precision: Tensor
    goals: Tensor
    counted: int


def blocks_of(
    pairs: Sequence[PairTarget], sizes: Sequence[int], n: int, device: str
) -> list[PairBlock]:
    """All pairs, in one block of all cells if that is sooner computed; or one a first column.

    Args:
      pairs: of ascending columns.
      sizes: how many cells each column has.
      n: records, of which shares are.
    """
    ends = np.cumsum([0, *sizes]).tolist()
    blocks = []
    for classes in sorted({len(pair.shares) for pair in pairs}):
        some = sorted((x for x in pairs if len(x.shares) == classes), key=lambda x: x.columns)
        counted = sum(pair.shares.numel() for pair in some)
        apart = classes * len({pair.columns[0] for pair in some})  # products
        if classes * ends[-1] ** 2 <= 2 * min(counted, CELLS_A_STEP) + ALONE * apart:
            blocks.append(_square(some, ends, n, device))
        else:
            by_first = groupby(some, lambda pair: pair.columns[0])
            blocks += [_side_by_side(first, list(own), ends, n, device) for first, own in by_first]
    return blocks


def _square(pairs: Sequence[PairTarget], ends: Sequence[int], n: int, device: str) -> PairBlock:
    goals = torch.zeros((len(pairs[0].shares), ends[-1], ends[-1]))
    precision = torch.zeros(goals.shape[1:])
    for pair in pairs:
        rows, others = (slice(ends[column], ends[column + 1]) for column in pair.columns)
        goals[:, rows, others] = pair.shares.float()
        precision[rows, others] = math.sqrt(0.5) / max(pair.noise, LEAST_NOISE / n)
    goals, precision = goals + goals.transpose(1, 2), precision + precision.t()
    counted = sum(pair.shares.numel() for pair in pairs)
    return PairBlock(slice(None), None, precision.to(device), goals.to(device), counted)


def _side_by_side(
    first: int, pairs: Sequence[PairTarget], ends: Sequence[int], n: int, device: str
) -> PairBlock:
    cells = [torch.arange(*ends[pair.columns[1] :][:2]) for pair in pairs]
    goals = torch.cat([pair.shares.float() for pair in pairs], dim=2)
    weights = [1.0 / max(pair.noise, LEAST_NOISE / n) for pair in pairs]
    sizes = torch.tensor([len(own) for own in cells])
    precision = torch.tensor(weights).repeat_interleave(sizes).expand(goals.shape[1:])
    rows, counted = slice(*ends[first:][:2]), goals.numel()
    return PairBlock(
        rows, torch.cat(cells).to(device), precision.to(device), goals.to(device), counted
    )


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
            first, others = shares[:, block.first], block.second
            second = first if others is None else shares[:, others]
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
                classes = slice(i, i + 1) if apart else slice(None)
                of_within[:, classes] += torch.linalg.vecdot(towards, first, dim=1)[:, None]
                if others is None:  # both sides move alike
                    of_shares.addcmul_(towards, own, value=2.0)
                else:
                    of_shares[:, block.first].addcmul_(towards, own)
                    of_shares[:, others] += slope.transpose(1, 2) @ weighted
        ctx.of_shares, ctx.of_within = of_shares, of_within
        return total

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, None]:
        """Of shares and of weights."""
        return gradients[0] * ctx.of_shares, gradients[0] * ctx.of_within, None
