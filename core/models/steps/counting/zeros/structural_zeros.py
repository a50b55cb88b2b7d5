"""Structural zeros: cells of pairs of columns that no record lies in, found privately.

Counts of pairs say where records are lacking, and one release tells of all those places whether any
record lies there after all. A record that lies in several adds a little to each, so that a thousand
places cost no more than one. Sought are single labels that exclude each other or of which one
implies the other, and half-lines: all values below one, or from it on, that exclude or imply a
label. Where that value lies is told by the same release, or by the pair's counts where it lies
inside a cell: as many of the cell's records have the label as lie before that value.

Source: Bishop, Fienberg and Holland, "Discrete Multivariate Analysis", 1975, chapter 5 (tables with
structural zeros).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from core.encoding.codec import Codes
from core.models.steps.counting.counts import PairTarget
from core.models.steps.counting.scales import ColumnScale
from core.privacy.mechanisms.additive import Mechanism

Floats = NDArray[np.float64]
ROUNDS = 10  # of proportional fitting
LEAST_SHARE = 1e-12  # of a margin while it is fitted


@dataclass(frozen=True)
class StructuralZero:
    """Bins of one column and cells of another that go together in no record.

    Attributes:
      left: bool [bins] of the first column, its fine cells and atoms.
      right: bool [cells] of the second.
      mends_left: whether it is the first column of rows that is drawn again, whatever the other is.
    """

    columns: tuple[int, int]
    left: Tensor
    right: Tensor
    mends_left: bool = False

    def whole_cells(self, scale: ColumnScale) -> Tensor:
        """Bool [cells] of the first column, those of which all bins are meant."""
        return torch.from_numpy(np.bincount(scale.cell_of, ~self.left.numpy()) == 0)

    def ends(self, scale: ColumnScale) -> Iterator[tuple[int, int]]:
        """Fine cells from … to, of the first column's cells that are meant in part."""
        fine = np.flatnonzero(self.left.numpy()[: scale.grid.cells])
        cell_of, whole = scale.cell_of[fine], self.whole_cells(scale).numpy()
        for cell in np.unique(cell_of[~whole[cell_of]]):
            inside = fine[cell_of == cell]
            yield int(inside[0]), int(inside[-1]) + 1


@dataclass(frozen=True)
class BrokenZeros(Mechanism):
    """How many records lie in each of some places that seem empty.

    One that lies in k of them adds 1/√k to each, a vector of length one: Δ₂ = 1.
    """

    scales: tuple[ColumnScale, ...]
    zeros: tuple[StructuralZero, ...]
    noise: Literal["gaussian"] = "gaussian"

    @property
    def sensitivity(self) -> float:
        """Δ₂ under zero-out."""
        return 1.0

    def statistic(self, rows: Codes, mask: Tensor) -> Tensor:
        """Float64 [zeros]: Σᵢ mᵢ of what record i adds to each."""
        rows, weights = rows.to(str(mask.device)), mask.to(torch.float64)
        bins = {c: self.scales[c].grid.index(rows) for c in {z.columns[0] for z in self.zeros}}
        cells = {c: self.scales[c].index(rows) for c in {z.columns[1] for z in self.zeros}}
        places, lies_in = dict[tuple[int, int], Tensor](), torch.zeros_like(weights)
        for (a, b), own in self._by_columns.items():
            left, right = self._masks(own, mask.device)
            places[a, b] = bins[a] * right.shape[1] + cells[b]
            lies_in += (left.t() @ right).flatten()[places[a, b]]
        total = weights.new_zeros(len(self.zeros))
        each = weights * self._shared(lies_in)
        for columns, own in self._by_columns.items():
            left, right = self._masks(own, mask.device)
            shape = left.shape[1], right.shape[1]
            table = torch.bincount(places[columns], each, minlength=math.prod(shape))
            total[own] = ((left @ table.reshape(shape)) * right).sum(dim=1)
        return total

    def _masks(self, own: Sequence[int], device: torch.device) -> tuple[Tensor, Tensor]:
        """Of some zeros of the same columns, float64 [zeros, bins] and [zeros, cells]."""
        sides = ([self.zeros[i].left for i in own], [self.zeros[i].right for i in own])
        left, right = (torch.stack(side).to(device, torch.float64) for side in sides)
        return left, right

    @cached_property
    def _by_columns(self) -> dict[tuple[int, int], list[int]]:
        """Indices of the zeros of each two columns."""
        found: dict[tuple[int, int], list[int]] = {}
        for i, zero in enumerate(self.zeros):
            found.setdefault(zero.columns, []).append(i)
        return found

    def _shared(self, lies_in: Tensor) -> Tensor:
        """What records add to each of so many places, [rows]."""
        return lies_in.clamp_min(1.0).rsqrt()


def everywhere(columns: tuple[int, int], scales: Sequence[ColumnScale]) -> StructuralZero:
    """All of two columns, where every record lies."""
    bins, cells = len(scales[columns[0]].cell_of), scales[columns[1]].size
    every = torch.ones(bins, dtype=torch.bool), torch.ones(cells, dtype=torch.bool)
    return StructuralZero(columns, *every)


def emptied(
    pairs: Sequence[PairTarget],
    zeros: Sequence[StructuralZero],
    scales: Sequence[ColumnScale],
    *,
    clean: bool = True,
) -> tuple[PairTarget, ...]:
    """Targets with nothing where whole cells are zeros.

    Args:
      clean: of denoised shares, of which columns keep their own counts; else other cells stay as
        they are, below zero too.
    """
    empty: dict[tuple[int, int], Tensor] = {}
    for zero in zeros:
        first, second = zero.columns
        cells = zero.whole_cells(scales[first])[:, None] & zero.right
        for columns, mask in (((first, second), cells), ((second, first), cells.t())):
            empty[columns] = empty.get(columns, torch.zeros_like(mask)) | mask

    def left(pair: PairTarget) -> Tensor:
        cells = empty[pair.columns]
        return without_cells(pair.shares, cells) if clean else pair.shares * ~cells

    return tuple(
        replace(pair, shares=left(pair)) if pair.columns in empty else pair for pair in pairs
    )


def without_cells(shares: Tensor, empty: Tensor) -> Tensor:
    """Of [classes, a, b], by iterative proportional fitting to the margins of each class.

    Args:
      empty: bool [a, b], cells that then hold nothing.
    """
    shares = shares.clamp_min(0.0)
    margins = [(axis, shares.sum(dim=axis, keepdim=True)) for axis in (2, 1)]
    shares = shares * ~empty
    for _ in range(ROUNDS):
        for axis, margin in margins:
            whole = shares.sum(dim=axis, keepdim=True).clamp_min(LEAST_SHARE)
            shares = shares * (margin / whole)
    return shares
