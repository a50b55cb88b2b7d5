"""Scales: the cells of every column, made from one noisy histogram of fine and coarse cells.

Numbers are cut so that each cell holds a like number of records and stands above the noise; a
value that many records share gets a cell of its own. Inside a cell a drawn record takes a place by
the noisy density of the neighbourhood.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor

from core.encoding.codec import Codec, Codes
from core.models.steps.counting.design import CELLS
from core.models.steps.counting.lines.densities import (
    COARSE,
    RangeCount,
    agreeing,
    densities,
    keys,
    with_coarse,
)
from core.models.steps.counting.lines.ends import seen, supported, without_islands
from core.models.steps.counting.lines.merging import (
    CANDIDATE_SNR_THRESHOLD,
    FEWEST_CELLS_A_LINE,
    SPIKE_SNR_THRESHOLD,
    merged,
    spikes,
)
from core.models.steps.training.column_bins import ColumnBins
from core.privacy.discovery.lists import ListCounts
from core.privacy.mechanisms.additive import Mechanism
from core.schema.column import Kind
from core.schema.labels import to_numbers

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
FEWEST_CELLS, MOST_CELLS = 16, 1024  # of a long or continuous scale
# fine cells for each noise that all records make up: half a noise in each, if they were spread
# evenly; most are not, and what a cell does not show, its neighbours tell
FINENESS = 2.0
SHORT_GRID = 128  # values of a step grid that get a fine cell each, whatever the noise
KEPT_GRID = 12  # values of a step grid that keep a cell each, but for empty ones at the ends
CELLS_WIDE, WIDE = 16, 300  # cells of a column in tables of more columns than WIDE
DRAWS = 8  # densities that are kept beside the expected one


def fine_grids(codec: Codec, noise: float, n: int) -> tuple[ColumnBins, ...]:
    """The grids of all columns, hardly finer than the noise lets one see.

    Args:
      noise: standard deviation of a count, from the plan.
    """
    clear = round(math.log2(max(1.0, FINENESS * n / max(noise, 1e-9))))
    most = min(MOST_CELLS, max(FEWEST_CELLS, 2 ** min(clear, 20)))
    short = max(SHORT_GRID, most)
    return tuple(
        ColumnBins.of(block, lambda steps: steps + 1 <= short, most) for block in codec.blocks
    )


def most_cells(records: int, noise: float, columns: int = 1) -> int:
    """So many that a cell of two numbers holds as many records as its count has noise.

    What two numbers show together is mostly in few slow waves along both. Of a wave the noise stays
    the same when there are more cells, and what it shows falls with their number along each.

    Args:
      noise: standard deviation of a cell of a pair.
      columns: of the table.
    """
    most = CELLS if columns <= WIDE else CELLS_WIDE
    return max(FEWEST_CELLS_A_LINE, min(most, int(math.sqrt(records / max(noise, 1e-9)))))


def _coarse(grid: ColumnBins) -> int:
    """How many coarse cells are counted beside the fine ones; 0 where the line is short."""
    return math.ceil(grid.cells / COARSE) if grid.cells >= 4 * COARSE else 0


@dataclass(frozen=True)
class FineHistograms(Mechanism):
    """Counts of every column's fine cells, and of coarse cells where the line is long.

    A record lies in one fine cell of each column and one coarse cell of each long one, so zeroing
    it out moves as many counts by the column's weight: Δ₂ = √(Σ w² (2 if long else 1)).

    Attributes:
      weights: > 0, what each column's counts are multiplied by; 1 each where there are none.
    """

    grids: tuple[ColumnBins, ...]
    weights: tuple[float, ...] = ()
    noise: Literal["gaussian"] = "gaussian"

    @property
    def sensitivity(self) -> float:
        """Δ₂ under zero-out."""
        each = zip(self.grids, self._weights, strict=True)
        return math.sqrt(sum(w**2 * (1 + (_coarse(grid) > 0)) for grid, w in each))

    @property
    def _weights(self) -> tuple[float, ...]:
        return self.weights or (1.0,) * len(self.grids)

    @property
    def sizes(self) -> list[int]:
        """Lengths of the parts: histogram counts and coarse counts of each column in turn."""
        return [size for g in self.grids for size in (g.count, _coarse(g))]

    def statistic(self, rows: Codes, mask: Tensor) -> Tensor:
        """Float64 [Σ sizes]: Σᵢ mᵢ w of the indicators of record i's cells."""
        rows = rows.to(str(mask.device))
        counts = []
        for grid, own in zip(self.grids, self._weights, strict=True):
            cell, weights = grid.index(rows), mask.to(torch.float64) * own
            counts.append(torch.bincount(cell, weights, minlength=grid.count))
            if coarse := _coarse(grid):
                on_line = weights * (cell < grid.cells)
                block = cell.clamp_max(grid.cells - 1) // COARSE
                counts.append(torch.bincount(block, on_line, minlength=coarse))
        return torch.cat(counts)

    def split(self, release: Tensor) -> list[Floats]:
        """A release → per column, counts of its fine cells that agree with the coarse ones.

        Post-processing, see `with_coarse`.
        """
        parts = [part.numpy() for part in torch.split(release, self.sizes)]
        columns = []
        every = zip(self.grids, self._weights, parts[0::2], parts[1::2], strict=True)
        for grid, own, counts, coarse in every:
            line, atoms = counts[: grid.cells] / own, counts[grid.cells :] / own
            columns.append(np.append(with_coarse(line, coarse / own), atoms))
        return columns


@dataclass(frozen=True)
class FineCounts:
    """What is known of a column's fine cells.

    Attributes:
      counts: float64 [fine cells + atoms], released; `noise`, standard deviation of one.
      most: cells of a line, but for values that many records share and short grids.
      ranges: further counts of the column.
      sure: see `merged`; of windows, whose waits have the bounds of a calendar.
    """

    counts: Floats
    noise: float
    most: int = CELLS
    ranges: Sequence[RangeCount] = ()
    sure: bool = False


@dataclass(frozen=True)
class ColumnScale:
    """The cells of one column, and where in them a drawn record lies.

    Attributes:
      cell_of: int64 [fine cells + atoms], the cell each belongs to; cells of the line come first.
      line: how many cells lie on the line.
      variance: float64 [cells], of a cell's sum of histogram counts, in units of one count's.
      counts: float64 [cells], released counts, any sign.
      keys: float64 [fine cells], ascending: cell plus the share of its records up to that fine one.
      other_keys: float64 [draws, fine cells], of densities that the noise leaves possible too.
      clear: bool [fine cells], which are spikes by these counts alone.
      candidates: bool [fine cells], those kept apart that need a second count to be spikes.
      values: float64 [k, 3], values that hold many records: of each its fine cell, its place in
        [0, 1], and the share of the fine cell's records up to it; the rest lies anywhere.
    """

    grid: ColumnBins
    cell_of: NDArray[np.int64]
    line: int
    variance: Floats
    counts: Floats
    keys: Floats
    other_keys: Floats = field(default_factory=lambda: np.zeros((0, 0)))
    clear: Mask = field(default_factory=lambda: np.zeros(0, dtype=bool))
    candidates: Mask = field(default_factory=lambda: np.zeros(0, dtype=bool))
    values: Floats = field(default_factory=lambda: np.zeros((0, 3)))

    @classmethod
    def of(
        cls,
        grid: ColumnBins,
        known: FineCounts,
        again: tuple[NDArray[np.int64], Mask] | None = None,
    ) -> ColumnScale:
        """Merge fine cells.

        Args:
          again: once a second count has told, the cell of each fine cell and which are spikes.
        """
        counts, noise, most, ranges = known.counts, known.noise, known.most, known.ranges
        fine, precision = agreeing(counts[: grid.cells], noise, ranges)
        counts, cuts, held = np.append(fine, counts[grid.cells :]), grid.cut_cells, grid.held
        many = CELLS if grid.width else SHORT_GRID
        values = not grid.width and grid.cells <= KEPT_GRID  # each cell is one
        unsure = not values and grid.cells > most  # a second count will tell
        weak = CANDIDATE_SNR_THRESHOLD if unsure else SPIKE_SNR_THRESHOLD
        alone = again[1] if again else spikes(fine, noise, many, held, weak)
        runs = merged(fine, noise, many, cuts, held, sure=known.sure, alone=alone)
        ends = supported(fine, noise, seen(fine, runs, noise, ranges), precision, held)
        inner = without_islands(fine, noise, ends, precision, held)
        for spike in np.flatnonzero(alone).tolist():  # where each is there are records
            inner = min(inner[0], spike), max(inner[1], spike + 1)
        beyond = np.zeros(len(counts), dtype=bool)
        if values or inner != ends:
            beyond[: inner[0]] = beyond[inner[1] : grid.cells] = True
        ends, counts = inner, np.where(beyond, 0.0, counts)
        clear, candidates = spikes(fine, noise, most, held), np.zeros(len(fine), dtype=bool)
        if values:
            on_line = np.arange(grid.cells)
        elif grid.cells <= most:
            on_line = np.clip(np.arange(grid.cells), ends[0], ends[1] - 1) - ends[0]
        else:
            alone = spikes(fine, noise, most, held, weak)
            on_line = again[0] if again else merged(fine, noise, most, cuts, held, alone=alone)
            candidates = alone & ~clear
            first, last = on_line[~beyond[: grid.cells]][[0, -1]]
            on_line = np.clip(on_line, first, last) - first
        line = int(on_line[-1]) + 1 if grid.cells else 0
        cell_of = np.concatenate([on_line, line + np.arange(grid.atoms)])
        variance = np.bincount(cell_of, None if values else ~beyond).astype(np.float64)
        sums = np.bincount(cell_of, counts).astype(np.float64)
        own, *others = (
            keys(one, on_line)
            for one in densities(fine, noise, ends, DRAWS, ranges, precision, held)
        )
        return cls(grid, cell_of, line, variance, sums, own, np.array(others), clear, candidates)

    @property
    def size(self) -> int:
        """How many cells the column has, atoms included."""
        return len(self.variance)

    @property
    def missing_cell(self) -> int | None:
        """The cell of records without a value; None where the column has none."""
        block = self.grid.block
        if block.missing_state is None:
            return None
        return block.missing_state + (0 if block.number is None else self.line - 1)

    @property
    def exact(self) -> bool:
        """Whether each cell is one value, so that a cell of another column can determine it."""
        return not self.grid.width and bool((self.variance == 1.0).all())

    @cached_property
    def starts(self) -> NDArray[np.int64]:
        """Int64 [cells + 1], the first bin of each cell, and one beyond the last bin."""
        return np.searchsorted(self.cell_of, np.arange(self.size + 1))

    @cached_property
    def numbers(self) -> tuple[Floats, Floats]:
        """The least and most that bins stand for, float64 [bins]; NaN where it is no number."""
        column = self.grid.block.column
        if self.grid.block.number is None:
            labels = to_numbers(pd.Series(column.categories or (), dtype="str"), column)
            low = high = np.append(labels, np.full(len(self.cell_of) - len(labels), np.nan))
            return low, high
        atoms = np.full(self.grid.atoms, np.nan)
        atoms[: len(column.spikes)] = column.spikes
        half = self.grid.width / 2.0
        low, high = (
            np.append(self.grid.block.line.value(self.grid.centres + side), atoms)
            for side in (-half, half)
        )
        return low, high

    @cached_property
    def in_order(self) -> int:
        """How many cells, from the first, follow on one another: on the line, or ranked labels."""
        column = self.grid.block.column
        if self.line or column.kind is Kind.ORDERED:
            return self.line or len(column.categories or ())
        rising = np.diff(self.numbers[0], prepend=-np.inf) > 0.0
        return int(np.argmin(np.append(rising, False)))

    @property
    def inside(self) -> Floats:
        """Float64 [bins], which share of its cell's records each holds; an atom has all of them."""
        every = np.ones(len(self.cell_of))
        every[: self.grid.cells] = np.diff(self.keys, prepend=0.0)
        return every

    def in_bins(self, cells: Floats) -> Floats:
        """What cells hold, float64 [cells] → what each of their bins does, float64 [bins]."""
        return np.asarray(self.inside * cells[self.cell_of])

    def index(self, rows: Codes) -> Tensor:
        """Codes as tensors, b records → int64 [b], the cell of each."""
        fine = self.grid.index(rows)
        return torch.as_tensor(self.cell_of, device=fine.device)[fine]

    def together(self, counts: Floats, variance: Floats, noise: float) -> ListCounts:
        """Counts of the cells and what the histogram says of them, by their variances.

        Args:
          variance: float64 [cells], of the counts.
          noise: standard deviation of a count of the histogram.
        """
        before = np.maximum(self.variance * noise**2, 1e-12)
        total = 1.0 / (1.0 / variance + 1.0 / before)
        return ListCounts(total * (counts / variance + self.counts / before), np.sqrt(total))

    def shares(self, counts: Floats) -> Floats:
        """Counts of the cells → shares ≥ 0 that sum to one."""
        positive = np.maximum(counts, 0.0)
        total = positive.sum()
        return positive / total if total > 0 else np.full(len(counts), 1.0 / len(counts))

    def ranks(self, shares: Floats) -> Floats:
        """Float64 [line], the middle rank in [0, 1] of each cell of the line."""
        mass = shares[: self.line] + 1e-9
        return np.asarray((np.cumsum(mass) - mass / 2.0) / mass.sum())


def ranges_within(grid: ColumnBins, known: ListCounts | None) -> list[RangeCount]:
    """Counts of a number's ranges as counts over its fine cells; of those that span two or more.

    None of a column that is laid out otherwise than it was learned.
    """
    column = grid.block.column
    learned = getattr(column, "learned", None)
    if known is None or known.edges is None or not grid.cells or learned is None:
        return []
    if learned.domain != column.domain_digest:
        return []
    at, cells = grid.block.line.position(known.edges), np.arange(grid.cells)
    if grid.width:
        ends = at / grid.width
        parts = np.clip(
            np.minimum(cells + 1, ends[1:, None]) - np.maximum(cells, ends[:-1, None]), 0.0, 1.0
        )
    else:
        below = grid.centres < at[:, None] - 1e-9
        parts = (below[1:] & ~below[:-1]).astype(np.float64)
    each = zip(parts, known.counts.tolist(), known.std.tolist(), strict=True)
    return [RangeCount(part, count, std) for part, count, std in each if part.sum() >= 2.0]
