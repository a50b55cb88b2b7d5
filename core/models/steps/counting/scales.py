"""Scales: the cells of every column, made from one noisy histogram of fine and coarse cells.

Numbers are cut so that each cell holds a like number of records and stands above the noise; a
value that many records share gets a cell of its own. Inside a cell a drawn record takes a place by
the noisy density of the neighbourhood.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import brentq
from torch import Tensor

from core.encoding.codec import Codec, Codes
from core.models.steps.counting.design import CELLS
from core.models.steps.training.column_bins import ColumnBins
from core.privacy.mechanisms.additive import Mechanism

Floats = NDArray[np.float64]
FEWEST_CELLS, MOST_CELLS = 16, 1024  # of a long or continuous scale
SHORT_GRID = 128  # values of a step grid that get a fine cell each, whatever the noise
KEPT_GRID = 40  # fine cells that keep a cell each, but for empty ones at the ends
COARSE = 16  # fine cells in a coarse one
CELLS_WIDE, WIDE = 16, 300  # cells of a column in tables of more columns than WIDE
FEWEST_WITH_TAILS = 4  # cells a column has at least where the outermost count as tails
TAIL = 1.01  # times its mean density that a cell has at its inner edge to count as a tail
FLOOR = 1e-6  # of the edge's density that a tail keeps: running sums must tell its cells apart
EMPTY = 0.125  # of the density beside it, below which a run of fine cells at a bound is empty
TAPER = 3.0  # a density that falls exponentially has 95 % within three times its mean length
STEEPEST = 1.5  # most that density changes from the middle of a cell to its edge
CELL_SNR_THRESHOLD = 3.0  # standard deviations that a cell stands above the noise
SPIKE_SNR_THRESHOLD = 4.5  # … that a single value must, to be kept apart among up to `MOST_CELLS`


def fine_grids(codec: Codec, noise: float, n: int) -> tuple[ColumnBins, ...]:
    """The grids of all columns, no finer than the noise lets one see.

    Args:
      noise: standard deviation of a count, from the plan.
    """
    clear = round(math.log2(max(1.0, n / (2.0 * max(noise, 1e-9)))))
    most = min(MOST_CELLS, max(FEWEST_CELLS, 2 ** min(clear, 20)))
    short = max(SHORT_GRID, most)
    return tuple(
        ColumnBins.of(block, lambda steps: steps + 1 <= short, most) for block in codec.blocks
    )


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

        Least squares: a coarse cell's total is the mean of both, by their variances, and what is
        lacking goes to its fine cells in equal parts. Post-processing.
        """
        parts = [part.numpy() for part in torch.split(release, self.sizes)]
        columns = []
        columns_parts = zip(self.grids, self._weights, parts[0::2], parts[1::2], strict=True)
        for grid, own, fine, coarse in columns_parts:
            counts, coarse = fine / own, coarse / own
            for c in range(len(coarse)):
                cells = slice(c * COARSE, min((c + 1) * COARSE, grid.cells))
                size = cells.stop - cells.start
                lacking = (coarse[c] - counts[cells].sum()) * size / (size + 1.0)
                counts[cells] += lacking / size
            columns.append(counts)
        return columns


@dataclass(frozen=True)
class ColumnScale:
    """The cells of one column, and where in them a drawn record lies.

    Attributes:
      cell_of: int64 [fine cells + atoms], the cell each belongs to; cells of the line come first.
      line: how many cells lie on the line.
      variance: float64 [cells], of a cell's sum of histogram counts, in units of one count's.
      counts: float64 [cells], released counts, any sign.
      keys: float64 [fine cells], ascending: cell plus the share of its records up to that fine one.
    """

    grid: ColumnBins
    cell_of: NDArray[np.int64]
    line: int
    variance: Floats
    counts: Floats
    keys: Floats

    @classmethod
    def of(cls, grid: ColumnBins, counts: Floats, noise: float, most: int) -> ColumnScale:
        """Merge fine cells.

        Args:
          counts: float64 [fine cells + atoms], released.
        """
        on_line = _merged(counts[: grid.cells], noise, most, grid.cut_cells)
        if grid.cells <= KEPT_GRID:
            first, end = _seen(counts[: grid.cells], on_line, noise)
            on_line = np.arange(grid.cells)
            if grid.width:
                on_line = np.clip(on_line, first, end - 1) - first
            else:  # each cell is a value
                counts = counts.copy()
                counts[:first] = counts[end : grid.cells] = 0.0
        line = int(on_line[-1]) + 1 if grid.cells else 0
        cell_of = np.concatenate([on_line, line + np.arange(grid.atoms)])
        variance = np.bincount(cell_of).astype(np.float64)
        keys = _keys(counts[: grid.cells], on_line, noise)
        return cls(
            grid, cell_of, line, variance, np.bincount(cell_of, counts).astype(np.float64), keys
        )

    @property
    def size(self) -> int:
        """How many cells the column has, atoms included."""
        return len(self.variance)

    @property
    def exact(self) -> bool:
        """Whether each cell is one value, so that a cell of another column can determine it."""
        return not self.grid.width and bool((self.variance == 1.0).all())

    def index(self, rows: Codes) -> Tensor:
        """Codes as tensors, b records → int64 [b], the cell of each."""
        fine = self.grid.index(rows)
        return torch.as_tensor(self.cell_of, device=fine.device)[fine]

    def shares(self, counts: Floats) -> Floats:
        """Counts of the cells → shares ≥ 0 that sum to one."""
        positive = np.maximum(counts, 0.0)
        total = positive.sum()
        return positive / total if total > 0 else np.full(len(counts), 1.0 / len(counts))

    def ranks(self, shares: Floats) -> Floats:
        """Float64 [line], the middle rank in [0, 1] of each cell of the line."""
        mass = shares[: self.line] + 1e-9
        return np.asarray((np.cumsum(mass) - mass / 2.0) / mass.sum())


def scales_of(
    grids: Sequence[ColumnBins], counts: Sequence[Floats], noise: float | Sequence[float]
) -> tuple[ColumnScale, ...]:
    """The scale of every column from its fine histogram; post-processing.

    Args:
      counts: of each grid's cells and atoms, released.
      noise: standard deviation of a count of a cell, of all columns or of each.
    """
    short, long = (SHORT_GRID, CELLS) if len(grids) <= WIDE else (CELLS_WIDE, CELLS_WIDE)
    each = [noise] * len(grids) if isinstance(noise, float) else noise
    return tuple(
        ColumnScale.of(grid, count, std, long if grid.width or grid.cut_cells else short)
        for grid, count, std in zip(grids, counts, each, strict=True)
    )


def _merged(
    counts: Floats, noise: float, most: int, cuts: frozenset[int] = frozenset()
) -> NDArray[np.int64]:
    """Ascending cells of counts: each of a fair share and clear of noise, spikes alone.

    No cell reaches across the fine cells `cuts`, each of which begins one.
    """
    fine = len(counts)
    fair = max(counts.sum(), 1.0) / most
    around = np.array([np.median(counts[max(0, i - 3) : i + 4]) for i in range(fine)])
    above = counts - np.maximum(around, 0.0)
    spike = (above > SPIKE_SNR_THRESHOLD * noise) & (counts > 3.0 * around) & (counts > 0.3 * fair)
    cells = np.zeros(fine, dtype=np.int64)
    cell, held, size = 0, 0.0, 0
    for i in range(fine):
        if size and (spike[i] or i in cuts):
            cell, held, size = cell + 1, 0.0, 0
        cells[i] = cell
        held, size = held + counts[i], size + 1
        if spike[i] or held >= max(fair, CELL_SNR_THRESHOLD * noise * math.sqrt(_counted(size))):
            cell, held, size = cell + 1, 0.0, 0
    if (
        size and cell and held < 0.5 * fair and fine - size not in cuts
    ):  # what is left over joins its neighbour
        cells[cells == cell] = cell - 1
    return cells


def _keys(counts: Floats, cells: NDArray[np.int64], noise: float) -> Floats:
    """Cell + share of its records up to each fine cell.

    Densities fall between the neighbours', and off towards the bounds, unless counts say otherwise
    beyond their noise.
    """
    if not len(counts):
        return np.zeros(0)
    size = np.bincount(cells)
    mass = np.maximum(np.bincount(cells, counts), 0.0) + 1e-9
    density = mass / size
    edges = (density[1:] + density[:-1]) / 2.0
    first = max(0.0, 2.0 * density[0] - edges[0]) if len(edges) else density[0]
    last = max(0.0, 2.0 * density[-1] - edges[-1]) if len(edges) else density[-1]
    edges = np.concatenate([[first], edges, [last]])
    start = np.concatenate([[0], np.cumsum(size)]).tolist()
    along = (np.arange(len(counts)) - np.array(start)[cells] + 0.5) / size[cells]
    line = edges[cells] * (1.0 - along) + edges[cells + 1] * along + 1e-9
    first, end = _seen(counts, cells, noise)
    if len(size) >= FEWEST_WITH_TAILS:
        held = mass[[0, -1]] / (size[0] - first, end - start[-2])  # densities without empty cells
        low, high = slice(first, size[0]), slice(start[-2], end)
        line[low] = _tail([held[0], *density[1:3]], line[low][::-1])[::-1]
        line[high] = _tail([held[1], *density[-2:-4:-1]], line[high])
    before, seen = (np.concatenate([[0.0], np.cumsum(x)]) for x in (line, counts))
    weight = np.zeros(len(counts))
    for cell in range(len(size)):
        inside = max(start[cell], first), min(start[cell + 1], end)
        _spread(weight, before, seen, *inside, mass[cell], noise)
    within = np.cumsum(weight)
    within -= np.concatenate([[0.0], within])[np.array(start[:-1])][cells]
    return np.asarray(cells + within / mass[cells])


def _seen(counts: Floats, cells: NDArray[np.int64], noise: float) -> tuple[int, int]:
    """The fine cells first … end - 1 without those at the bounds that seem to hold nothing.

    Bounds are round, and where they reach too far the table has no values: none are made up there.
    """
    size = np.bincount(cells)
    if len(size) < 2:
        return 0, len(counts)
    mass = np.maximum(np.bincount(cells, counts), 0.0)
    further_in = slice(1, 3), slice(-3, -1) if len(size) > 2 else slice(0, 1)
    low, high = (float(mass[two].sum() / size[two].sum()) for two in further_in)
    above = _unseen(counts[: len(counts) - size[-1] - 1 : -1], high, noise)
    return _unseen(counts[: size[0]], low, noise), len(counts) - above


def _unseen(counts: Floats, density: float, noise: float) -> int:
    """How many of the fine cells from a bound inwards hold next to nothing, by their counts.

    The most likely end of a run of cells of less than `EMPTY` of the density further in, or of less
    than noise lets one see: where a density rises at once, that is where most has been lacking of
    half of it. What is left is long enough for the records: `TAPER` times as long as they would be
    at the density further in, so that cutting piles up none.
    """
    least = min(0.5 * density, max(EMPTY * density, 0.5 * noise))
    lacking = np.cumsum(counts[:-1] - least)
    end = int(np.argmin(lacking)) + 1 if len(lacking) else 0
    if density <= 0.0 or not end or lacking[end - 1] >= 0.0:
        return 0
    needed = max(1, math.ceil(TAPER * max(0.0, float(counts.sum())) / density))
    return min(end, max(0, len(counts) - needed))


def _tail(density: Sequence[float], line: Floats) -> Floats:
    """Densities of an outermost cell's fine cells, from the inside out.

    Quantile cells make the last one wide where a column thins out. The density of most entropy with
    the cell's mass and the density at its inner edge, which its neighbours say, is an exponential
    cut off at the bound; `line` where that would not fall.

    Args:
      density: of the cell and of the next two inwards.
      line: float64 [size], what is returned where the cell is no tail.
    """
    own, near, far = density
    edge = near * min(STEEPEST, max(1.0 / STEEPEST, math.sqrt(near / far)))
    if edge <= TAIL * own:
        return line
    # mean density is own = edge (1 - exp(-r)) / r, over a cell of length 1
    rate = brentq(lambda r: edge * -math.expm1(-r) - own * r, 1e-9, edge / own + 1.0)
    fall = np.exp(-rate * (np.arange(len(line)) + 0.5) / len(line))
    return np.asarray(edge * (fall + FLOOR))


def _spread(
    weight: Floats, before: Floats, seen: Floats, low: int, high: int, mass: float, noise: float
) -> None:
    """Share a mass out among fine cells low … high - 1, halving at the roundest place between.

    Each half gets what the line says, corrected by what was counted as far as that exceeds
    its noise (positive-part shrinkage, as of wavelet coefficients).

    Args:
      weight: float64 [fine cells], written.
      before, seen: float64 [fine cells + 1], running sums of the line and of the counts.
      mass: ≥ 0, to be shared out.
    """
    if high - low == 1 or mass <= 0.0:
        weight[low:high] = mass / (high - low)
        return
    step = 1 << ((high - 1).bit_length() - 1)
    while (middle := (high - 1) // step * step) <= low:
        step //= 2
    share = (before[middle] - before[low]) / (before[high] - before[low])
    left, right = seen[middle] - seen[low], seen[high] - seen[middle]
    gap = left - share * (left + right)
    variance = noise**2 * (
        _counted(middle - low) * (1.0 - share) ** 2 + _counted(high - middle) * share**2
    )
    trust = max(0.0, 1.0 - 2.0 * variance / gap**2) if gap else 0.0
    part = min(mass, max(0.0, share * mass + trust * gap))
    _spread(weight, before, seen, low, middle, part, noise)
    _spread(weight, before, seen, middle, high, mass - part, noise)


def _counted(size: int) -> float:
    """Variance of the count of a run of fine cells, in units of one's: coarse cells help."""
    return min(float(size), size / COARSE + COARSE - 1.0)
