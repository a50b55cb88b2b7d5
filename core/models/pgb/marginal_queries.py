"""Marginal queries: public yes-or-no questions about one or two columns of a record.

They stand beside learned critics in boosting (`pgb.multiplicative_weights`). Critics see what
training was about when it ended, and may be blind to how often things occur; a fixed family of
conditions "this column lies in that set (and that column in another)" is not. Which queries there
are depends on the declared domain and data-free randomness alone.

Source: the query class of Hardt, Ligett and McSherry, "A simple and practical algorithm for
differentially private data release", 2012.
"""

from __future__ import annotations

import torch
from torch import Tensor

from core.encoding.codec import Block, Codec

INTERVALS = 100  # of a number
WIDTHS = (0.1, 0.5)  # of an interval, as shares of the declared scale
ALONE = 0.25  # share of queries about one column
ABOUT_TARGET = 0.5  # of the pairs, where there is a target


class MarginalQueries:
    """A fixed list of queries."""

    def __init__(self, codec: Codec, count: int, *, seed: int = 0):
        self._count = count
        random = torch.Generator().manual_seed(seed)
        sets = [(block.index, *one) for block in codec.blocks for one in _sets(block, random)]
        columns, *bounds = (torch.tensor(part) for part in zip(*sets, strict=True))
        target = None if codec.domain.target is None else codec.block(codec.domain.target).index
        left, right = _pairs(columns, count, target, random)
        both = torch.cat([left, right])
        used = torch.unique(both[both < len(columns)])  # no other set is ever looked at
        self._pairs = torch.searchsorted(used, left), torch.searchsorted(used, right)
        self._columns, self._lows, self._highs, self._guards = (part[used] for part in bounds)

    def __len__(self) -> int:
        return self._count

    @torch.no_grad()
    def __call__(self, records: Tensor) -> Tensor:
        """Records as critics see them, float32 [b, w] → 1 for yes and 0 for no, [b, count]."""
        device = records.device
        x = records[:, self._columns.to(device)]
        inside = (x >= self._lows.to(device)) & (x < self._highs.to(device))
        on = records[:, self._guards.clamp_min(0).to(device)] > 0.5
        inside &= on | (self._guards < 0).to(device)
        always = torch.ones((len(records), 1), dtype=torch.bool, device=device)
        sets = torch.cat([inside, always], dim=1)
        left, right = (side.to(device) for side in self._pairs)
        return (sets[:, left] & sets[:, right]).float()


def _sets(block: Block, random: torch.Generator) -> list[tuple[int, float, float, int]]:
    """Sets of one column: coordinate, bounds on it, and a coordinate that must be one (-1: none).

    Each category, spike and "missing" is a set; a number has intervals besides.
    """
    if block.number is None:
        first = block.start
        return [(first + i, 0.5, 2.0, -1) for i in range(len(block.states))]
    many = len(block.states) > 1
    widths = WIDTHS[0] + (WIDTHS[1] - WIDTHS[0]) * torch.rand(INTERVALS, generator=random)
    starts = torch.rand(INTERVALS, generator=random) * (1.0 - widths)
    starts[:2], widths[0] = 0.0, 0.5  # the lower half is always there
    intervals = [
        (block.start, float(a), float(a + w), block.start + 1 if many else -1)
        for a, w in zip(starts, widths, strict=True)
    ]
    states = range(1, len(block.states)) if many else ()
    return [*intervals, *((block.start + 1 + i, 0.5, 2.0, -1) for i in states)]


def _pairs(
    columns: Tensor, count: int, target: int | None, random: torch.Generator
) -> tuple[Tensor, Tensor]:
    """Two sets a query; the second is "always" (one past the last) where it is about one."""
    always = len(columns)
    known = torch.unique(columns)

    def draw(column: Tensor) -> int:
        own = (columns == column).nonzero()[:, 0]
        return int(own[torch.randint(len(own), (1,), generator=random)])

    def chance() -> float:
        return float(torch.rand(1, generator=random))

    left, right = [], []
    for _ in range(count):
        order = known[torch.randperm(len(known), generator=random)]
        alone = len(known) < 2 or chance() < ALONE
        if not alone and target is not None and target in known and chance() < ABOUT_TARGET:
            others = order[order != target]
            order = torch.stack([others[0], torch.tensor(target)])
        left.append(draw(order[0]))
        right.append(always if alone else draw(order[1]))
    return torch.tensor(left, dtype=torch.int64), torch.tensor(right, dtype=torch.int64)
