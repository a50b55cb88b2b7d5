"""Bins: every modelled column as a short list of intervals a cell may lie in.

A listed column has one bin a state. A numeric column has one bin for each value of a short step
grid, or equal-width cells of its scale where the grid is long, and then one bin each for its
spikes and "missing". A distribution over bins is what a generator emits; drawing a bin, and a
uniform position inside it where it has a width, gives back codes. Histogram counts have bins too.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from core.encoding.codec import Block, Codec, Codes

LONGEST_GRID = 128  # values of a step grid that get a bin each
CELLS = 64  # equal-width cells otherwise
BELOW_ONE = 1.0 - 2.0**-23  # a uniform float32 times this, times a total, is below the total


@dataclass(frozen=True)
class ColumnBins:
    """The bins of one modelled column.

    Attributes:
      centres: float64 [cells], ascending middles of the cells in [0, 1]; empty for a listed column.
      width: width of a cell in [0, 1]; 0 where each cell is one value of the step grid.
    """

    block: Block
    centres: NDArray[np.float64]
    width: float

    @classmethod
    def of(cls, block: Block, short: Callable[[float], bool], cells: int) -> ColumnBins:
        """The bins of a block, from its declared domain alone.

        Args:
          short: of a step grid's number of steps, whether each value gets a bin.
        """
        if block.number is None:
            return cls(block, np.zeros(0), 0.0)
        line = block.line
        if line.high == line.low:
            return cls(block, np.zeros(1), 0.0)
        steps = (line.high - line.low) / line.step if line.step > 0 else math.inf
        if short(steps):
            count = math.floor(steps + 0.5) + 1
            grid = line.snap(np.arange(count, dtype=np.float64) * line.step + line.low)
            return cls(block, np.unique(line.position(grid)), 0.0)
        return cls(block, (np.arange(cells) + 0.5) / cells, 1.0 / cells)

    @cached_property
    def cells(self) -> int:
        """How many bins lie on the line; 0 for a listed column."""
        return len(self.centres)

    @cached_property
    def atoms(self) -> int:
        """How many bins are states of their own: categories, spikes, missing."""
        return len(self.block.states) - (1 if self.block.number is not None else 0)

    @property
    def count(self) -> int:
        """All bins of the column."""
        return self.cells + self.atoms

    @cached_property
    def held(self) -> NDArray[np.float64]:
        """Values of the step grid in each bin of the line, over how many there were if even.

        Without spikes, which are not on the line; 1 where there is no grid or each value has a bin.
        Where a log scale is finer than the grid most bins have none.
        """
        if not self.width or not self.block.line.step:
            return np.ones(self.cells)
        line, edges = self.block.line, np.arange(self.cells + 1) / self.cells
        values = np.diff(np.floor(line.steps(edges) + 1e-9))
        values[0] += 1.0  # the low bound itself
        spikes = line.position(line.snap(np.array(self.block.column.spikes, dtype=np.float64)))
        np.subtract.at(values, (np.searchsorted(edges, spikes) - 1).clip(0), 1.0)
        return np.maximum(values, 0.0) / np.diff(line.steps(edges))

    @cached_property
    def cut_cells(self) -> frozenset[int]:
        """The bins that begin where a rule cuts the column."""
        if self.block.number is None or not self.block.column.cuts:
            return frozenset()
        cuts = self.block.line.position(np.array(self.block.column.cuts))
        first = np.searchsorted(self.centres - self.width / 2.0, cuts - 1e-9)
        return frozenset(int(one) for one in first if 0 < one < self.cells)

    def index(self, codes: Codes) -> Tensor:
        """Codes as tensors, b records → int64 [b], the bin of each; atoms come last."""
        state: Tensor = codes.states[:, self.block.index]
        if self.block.number is None:
            return state
        value = codes.values[:, self.block.number].contiguous()
        middles = torch.as_tensor((self.centres[1:] + self.centres[:-1]) / 2.0)
        return torch.where(
            state == 0, torch.bucketize(value, middles.to(value)), self.cells + state - 1
        )


def column_bins(codec: Codec, *, without: str | None = None) -> tuple[ColumnBins, ...]:
    """The bins of all modelled columns, in file order, but for the column called `without`."""
    blocks = [block for block in codec.blocks if block.column.name != without]
    return tuple(ColumnBins.of(b, lambda steps: steps < LONGEST_GRID, CELLS) for b in blocks)


def draw_codes(
    codec: Codec,
    bins: tuple[ColumnBins, ...],
    logits: Tensor,
    *,
    generator: torch.Generator,
    fixed: dict[int, Tensor] | None = None,
) -> Codes:
    """Draw one record from each row of bin logits, as NumPy codes.

    Args:
      bins: one a column that has logits, in the order of the logits.
      logits: float [b, Σ count].
      fixed: block index → int64 [b] states of columns that are given, not drawn.
    """
    b = len(logits)
    states = np.zeros((b, len(codec.blocks)), dtype=np.int32)
    values = np.zeros((b, codec.numbers), dtype=np.float64)
    for i, state in (fixed or {}).items():
        states[:, i] = state.cpu().numpy()
    parts = torch.split(logits.float().cpu(), [column.count for column in bins], dim=1)
    for column, part in zip(bins, parts, strict=True):
        p = torch.softmax(part, dim=1)  # [b, count]
        index = one_of_each(p, generator).numpy()
        block = column.block
        if block.number is None:
            states[:, block.index] = index
            continue
        on_line = index < column.cells
        states[:, block.index] = np.where(on_line, 0, index - column.cells + 1)
        jitter = torch.rand(b, generator=generator).numpy() - 0.5
        position = column.centres[np.minimum(index, column.cells - 1)] + column.width * jitter
        values[:, block.number] = np.where(on_line, np.clip(position, 0.0, 1.0), 0.0)
    return Codes(states, values)


def one_of_each(shares: Tensor, generator: torch.Generator) -> Tensor:
    """An index for each row, drawn by its shares: int64 [b].

    By inversion, with one random number a row; torch.multinomial draws one for each share. An index
    whose share is 0 never comes up.

    Args:
      shares: float32 [b, k], not negative, some positive in each row.
    """
    cumulative = shares.cumsum(dim=1)
    uniform = torch.rand((len(shares), 1), generator=generator) * BELOW_ONE
    goal = uniform * cumulative[:, -1:]
    return torch.searchsorted(cumulative, goal, right=True)[:, 0]
