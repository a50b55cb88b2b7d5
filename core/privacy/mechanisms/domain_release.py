"""What bounds and lists are learned from: counts of raw rows, in public cells and under labels.

A unit's rows lie in one cell of each histogram and their weights sum to at most one, so leaving a
unit out moves each histogram by at most one in the L2 norm, and h of them by √h; one whose counts
are multiplied by s, by s. One Gaussian
covers all that are released together. That a label occurs at all is known from the rows, so the
noisy counts of labels stay inside until `core.privacy.discovery.thresholds` lets them pass.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from core.privacy.discovery.grids import CalendarGrid, Grid
from core.privacy.mechanisms.additive import Mechanism
from core.schema.calendar import cells_of


@dataclass(frozen=True)
class CellCounts(Mechanism):
    """Counts of the cells of numeric columns, one grid each.

    Attributes:
      scales: what the counts of each grid are multiplied by, > 0: less than one makes them noisier,
        to the good of the others.
      columns: which of `RawRows.numbers` each is; all in their order when empty.
    """

    grids: tuple[Grid, ...]
    scales: tuple[float, ...]
    columns: tuple[int, ...] = ()
    noise: Literal["gaussian"] = "gaussian"

    @property
    def sensitivity(self) -> float:
        """Δ₂ under zero-out: the root of the sum of squared scales."""
        return math.hypot(*self.scales)

    def statistic(self, rows: Any, mask: Tensor) -> Tensor:
        """Float64 [sum of sizes]: weights by cell of the first column, then of the second."""
        numbers = torch.as_tensor(rows.numbers)
        weights = mask.to(torch.float64)
        columns = self.columns or range(len(self.grids))
        return torch.cat(
            [
                torch.bincount(_cell(grid, numbers[:, i]), scale * weights, minlength=grid.size)
                for i, grid, scale in zip(columns, self.grids, self.scales, strict=True)
            ]
        )

    def split(self, release: NDArray[np.float64]) -> list[NDArray[np.float64]]:
        """A release → counts by grid, each in records."""
        parts = np.split(release, np.cumsum([grid.size for grid in self.grids])[:-1])
        return [part / scale for part, scale in zip(parts, self.scales, strict=True)]


def _cell(grid: Grid, x: Tensor) -> Tensor:
    if isinstance(grid, CalendarGrid):
        cells: Tensor = cells_of(grid.field, x)
        return cells.nan_to_num(nan=grid.size - 1).to(torch.int64)
    edges = torch.tensor(grid.edges, dtype=torch.float64, device=x.device)
    cell = torch.bucketize(x.contiguous(), edges, right=True)
    for i, atom in enumerate(grid.atoms):
        cell[x == atom] = len(grid.edges) + 1 + i
    cell[x.isnan()] = grid.size - 1
    return cell


@dataclass(frozen=True)
class LabelCounts(Mechanism):
    """Counts of all keys that occur, by list; the last of each list counts missing cells.

    Attributes:
      lengths: keys of each list.
      most: a public bound on the keys of one list, such as the number of rows.
      lists: which of `RawRows.key_indices` each is; all in their order when empty.
      scales: what the counts of each list are multiplied by, > 0; one when empty.
    """

    lengths: tuple[int, ...]
    most: int
    lists: tuple[int, ...] = ()
    scales: tuple[float, ...] = ()
    noise: Literal["gaussian"] = "gaussian"

    @property
    def factors(self) -> tuple[float, ...]:
        """The scale of each list."""
        return self.scales or (1.0,) * len(self.lengths)

    @property
    def sensitivity(self) -> float:
        """Δ₂ under zero-out: the root of the sum of squared scales, √L for L lists alike."""
        return math.hypot(*self.factors)

    @property
    def entries(self) -> int:
        """A public bound on the length of the statistic, which itself depends on the rows."""
        return len(self.lengths) * (self.most + 1)

    def statistic(self, rows: Any, mask: Tensor) -> Tensor:
        """Float64 [sum of lengths + L]: weights by key of the first list, then of the second."""
        key_indices = torch.as_tensor(rows.key_indices)
        weights = mask.to(torch.float64)
        columns = self.lists or range(len(self.lengths))
        return torch.cat(
            [
                torch.bincount(key_indices[:, i], scale * weights, minlength=length + 1)
                for i, length, scale in zip(columns, self.lengths, self.factors, strict=True)
            ]
        )

    def split(self, release: NDArray[np.float64]) -> list[NDArray[np.float64]]:
        """A release → counts by list, each in records."""
        parts = np.split(release, np.cumsum([length + 1 for length in self.lengths])[:-1])
        return [part / scale for part, scale in zip(parts, self.factors, strict=True)]
