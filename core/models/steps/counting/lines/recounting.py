"""A second count of a column's cells: which spikes are there, and which values clear ones hold.

A spike among the fine cells of a histogram is mostly one value that many records share: a top code,
a fee, a legal limit. Cells are disjoint, so to count the values of a spike apart costs no more than
to count it whole. One that is not clear is counted whole, and stays a cell of its own if both
counts together make it clear.

Source: Li, Hay, Miklau and Wang, "A data- and workload-aware algorithm for range queries under
differential privacy", 2014 (cells that are made of a first count, and counted again).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from core.encoding.codec import Codes
from core.models.steps.counting.lines.merging import (
    SPIKE_SNR_THRESHOLD,
    fair_share,
    spikes,
    without_candidates,
)
from core.models.steps.counting.scales import ColumnScale, FineCounts
from core.models.steps.training.column_bins import ColumnBins
from core.privacy.discovery.lists import ListCounts

Floats = NDArray[np.float64]
MOST_VALUES = 4096  # of a spike: among so many, noise shows a clear one in one of seventy


class Spike(NamedTuple):
    """A fine cell whose values are counted apart.

    Attributes:
      cell: of the grid; `first`, the step of its first value.
      counts: where those of its values are among all.
    """

    cell: int
    first: int
    counts: slice


@dataclass(frozen=True)
class Recount:
    """Cells of a column with the values of its clear spikes apart, and what their counts say.

    Attributes:
      known: what the scale was made of.
    """

    scale: ColumnScale
    known: FineCounts

    @classmethod
    def of(cls, grid: ColumnBins, known: FineCounts) -> Recount:
        """That of a column's fine cells, merged as far as one count tells."""
        return cls(ColumnScale.of(grid, known), known)

    @cached_property
    def spikes(self) -> tuple[Spike, ...]:
        """The clear ones of two values or more."""
        grid, found, start = self.scale.grid, list[Spike](), self.scale.size
        if not grid.width or not grid.block.line.step:
            return ()
        edges = np.linspace(0.0, 1.0, grid.cells + 1)
        steps = zip(*grid.block.line.steps_between(edges[:-1], edges[1:]), strict=True)
        alone = self.scale.variance[self.scale.cell_of[: grid.cells]] == 1.0
        for at, (first, end) in enumerate(steps):
            if self.scale.clear[at] and alone[at] and 2 <= end - first <= MOST_VALUES:
                found.append(Spike(at, int(first), slice(start, start + int(end - first))))
                start = found[-1].counts.stop
        return tuple(found)

    @property
    def size(self) -> int:
        """How many counts there are: of cells, then of each spike's values."""
        return self.spikes[-1].counts.stop if self.spikes else self.scale.size

    def index(self, rows: Codes) -> Tensor:
        """Codes as tensors, b records → int64 [b], the count each belongs to."""
        fine = self.scale.grid.index(rows)
        index = torch.as_tensor(self.scale.cell_of, device=fine.device)[fine]
        for spike in self.spikes:
            inside = fine == spike.cell
            places = rows.values[inside, self.scale.grid.block.number].cpu().numpy()
            step = np.round(self.scale.grid.block.line.steps(places)).astype(np.int64)
            own = spike.counts.start + step - spike.first
            own = np.clip(own, spike.counts.start, spike.counts.stop - 1)
            index[inside] = torch.as_tensor(own, device=index.device)
        return index

    def settled(self, counts: Floats, std: float) -> tuple[ColumnScale, ListCounts]:
        """The scale once its cells were counted again, and what is known of them then.

        Args:
          counts: float64 [size], released; `std`, standard deviation of each, positive.
        """
        scale, noise = self.scale, self.known.noise
        own, variance = counts[: scale.size].copy(), np.full(scale.size, std**2)
        for spike in self.spikes:
            cell, values = scale.cell_of[spike.cell], counts[spike.counts]
            own[cell], variance[cell] = values.sum(), std**2 * len(values)
        both = scale.together(own, variance, noise)
        scale = replace(scale, values=self._values(counts, std, both.counts))
        return self._without_candidates(scale, both) if scale.candidates.any() else (scale, both)

    def _values(self, counts: Floats, std: float, of_cells: Floats) -> Floats:
        """Which values of clear spikes hold many records, see `ColumnScale.values`."""
        found = list[tuple[float, ...]]()
        for spike in self.spikes:
            line, values = self.scale.grid.block.line, counts[spike.counts]
            clear = np.flatnonzero(values > SPIKE_SNR_THRESHOLD * std)
            total = max(of_cells[self.scale.cell_of[spike.cell]], values[clear].sum())
            places = line.position(line.low + line.step * (spike.first + clear).astype(np.float64))
            shares = np.cumsum(values[clear]) / max(total, 1e-9)
            found += [(spike.cell, *both) for both in zip(places, shares, strict=True)]
        return np.array(found, dtype=np.float64).reshape(-1, 3)

    def _without_candidates(
        self, scale: ColumnScale, both: ListCounts
    ) -> tuple[ColumnScale, ListCounts]:
        """The scale where candidates that are no spikes belong to neighbours, and its counts."""
        grid, most = scale.grid, self.known.most
        counts, noise = self.known.counts.copy(), np.full(grid.cells, self.known.noise)
        candidates = np.flatnonzero(scale.candidates)
        of = scale.cell_of[candidates]
        counts[candidates], noise[candidates] = both.counts[of], both.std[of]
        line = counts[: grid.cells]
        clear = spikes(line, noise, most, grid.held) & scale.candidates
        along = scale.cell_of[: grid.cells]
        fair = fair_share(line[grid.held > 0.0], most)
        cells = without_candidates(
            along, scale.candidates & ~clear, both.counts, fair, grid.cut_cells
        )
        known = replace(self.known, counts=counts)
        new = ColumnScale.of(grid, known, (cells, clear | scale.clear))
        to = new.cell_of[scale.starts[:-1]]
        sums, variance = np.zeros(new.size), np.zeros(new.size)
        np.add.at(sums, to, both.counts)
        np.add.at(variance, to, both.std**2)
        return replace(new, values=scale.values), ListCounts(sums, np.sqrt(variance))
