"""Balanced draws: rows whose counts of pairs lie nearer to the mixture's own than by chance.

Counts of drawn rows scatter about the mixture as those of any sample do, which adds to the noise
that was paid for. Within a component columns are independent, so two of its rows may exchange their
cells of a column: each row is as likely as before, and all columns keep their counts. Exchanges
that bring counts of pairs nearer are made.

Source: balanced sampling, Deville and Tillé, Biometrika 2004 (totals of a sample equal known ones).
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

FEWEST_ROWS = 500  # fewer are a preview
SWEEPS = 3  # over all columns; more bring little
MOST_LOOKUPS = 400_000_000  # of counts, in all sweeps; where a sweep needs more, chance has its way
PARTS = 4  # of a column's exchanges, made in turn, since each changes the counts of others
MOST_COUNTS = 20_000_000  # of all pairs together


def balanced(
    cells: Tensor, component: Tensor, weights: Tensor, shares: Sequence[Tensor],
    group: int | None, random: torch.Generator,
) -> Tensor:  # fmt: skip
    """The same rows with cells exchanged between those of one component.

    Args:
      cells: int64 [columns, rows], drawn.
      component: int64 [rows], which each row was drawn from.
      weights: [components].
      shares: [components, cells] of each column.
      group: a column within whose labels pairs are to be near too; None without one.
    """
    columns, rows = cells.shape
    sweeps = min(SWEEPS, MOST_LOOKUPS // max(1, 2 * rows * columns**2))
    if rows < FEWEST_ROWS or not sweeps or columns < 2:
        return cells
    counts = torch.tensor([share.shape[1] for share in shares])
    pairs = int((counts.sum() ** 2 - counts.square().sum()) // 2)
    if group is not None and (columns == 2 or pairs * int(counts[group]) > MOST_COUNTS):
        group = None  # of two columns none is left to pair within it
    if pairs > MOST_COUNTS:
        return cells
    gaps = _Gaps(cells, weights, shares, group)
    for _ in range(sweeps):
        for column in gaps.columns:
            order = torch.randperm(rows, generator=random)
            order = order[torch.sort(component[order], stable=True).indices]
            left, right = order[: rows - 1 : 2], order[1::2]
            alike = component[left] == component[right]
            for part in range(PARTS):
                gaps.exchange(column, left[alike][part::PARTS], right[alike][part::PARTS])
    return gaps.cells


def even_totals(
    cells: Tensor, component: Tensor, weights: Tensor, parts: Sequence[Tensor],
    random: torch.Generator,
) -> Tensor:  # fmt: skip
    """The same rows with as many in each cell of a column as the mixture says, to one row.

    Draws that are even within components are hardly so in all where these have few rows each. Rows
    move from cells with too many to those with too few, with odds as their components have between
    the two: given the totals, rows are distributed as before.

    Args:
      cells, component, weights: see `balanced`.
      parts: [components, cells] of each column.
    """
    moved, rows, share = cells.clone(), cells.shape[1], weights.double() / weights.double().sum()
    for own, part in zip(moved, parts, strict=True):
        expected = rows * (share @ part.double()) / (share @ part.double()).sum()
        ends = (expected.cumsum(0) + torch.rand(1, generator=random).double()).floor().long()
        ends[-1] = rows
        surplus = torch.bincount(own, minlength=len(ends)) - ends.diff(prepend=ends.new_zeros(1))
        few = [cell for cell, gap in enumerate(surplus.tolist()) for _ in range(-gap)]
        for cell in (surplus > 0).nonzero()[:, 0].tolist():
            taken, few = few[: surplus[cell]], few[surplus[cell] :]
            for goal in dict.fromkeys(taken):
                here = (own == cell).nonzero()[:, 0]
                odds = part[component[here], goal] / part[component[here], cell]
                count = min(taken.count(goal), int((odds > 0).sum()))
                if count:
                    own[here[torch.multinomial(odds, count, generator=random)]] = goal
    return moved


class _Gaps:
    """How far counts of pairs within each group lie from what is expected of them.

    Attributes:
      cells: int64 [columns, rows]; `exchange` changes them.
      columns: those that are paired with each other, all but the group's.
    """

    def __init__(self, cells: Tensor, weights: Tensor, shares: Sequence[Tensor], group: int | None):
        self.cells = cells.clone()
        self.columns = [column for column in range(len(shares)) if column != group]
        self._sizes = torch.tensor([share.shape[1] for share in shares])
        self._first = torch.zeros((len(shares), len(shares)), dtype=torch.int64)
        none = torch.zeros(cells.shape[1], dtype=torch.int64)
        self._group = none if group is None else cells[group]
        within = weights[:, None] if group is None else weights[:, None] * shares[group]
        tables, start = [torch.zeros(0)], 0
        for i, a in enumerate(self.columns):
            side = (within[:, :, None] * shares[a][:, None, :]).flatten(1)  # [.., groups · a]
            for b in self.columns[i + 1 :]:
                self._first[a, b] = self._first[b, a] = start
                expected = (side.t() @ shares[b]).flatten() * cells.shape[1]
                index = (self._group * self._sizes[a] + cells[a]) * self._sizes[b] + cells[b]
                tables.append(torch.bincount(index, minlength=len(expected)) - expected)
                start += len(expected)
        self._gaps = torch.cat(tables)

    def exchange(self, column: int, left: Tensor, right: Tensor) -> None:
        """Exchange a column's cells of two rows, of each pair of rows [k], where that is nearer.

        An exchange adds a row to one count and takes one from another, twice for each other column:
        a gap of g becomes g ± 1, so its square changes by 1 ± 2g.
        """
        others = torch.tensor([one for one in self.columns if one != column])
        front = others > column
        step = torch.where(front, self._sizes[others], 1)  # to the count of this column's next cell
        places = [self._places(column, others, front, rows) for rows in (left, right)]
        own = [self.cells[column, rows][:, None] * step for rows in (left, right)]
        index = torch.stack(
            [places[0] + own[0], places[1] + own[1], places[0] + own[1], places[1] + own[0]]
        )
        signs = torch.tensor([-1.0, -1.0, 1.0, 1.0])[:, None, None]
        differ = (places[0] != places[1]).float()  # else both rows lie in one line: nothing changes
        change = ((1.0 + 2.0 * signs * self._gaps[index]).sum(dim=0) * differ).sum(dim=1)
        nearer = change < 0.0
        moved = (signs * differ)[:, nearer]
        self._gaps.index_add_(0, index[:, nearer].flatten(), moved.flatten())
        left, right = left[nearer], right[nearer]
        taken = self.cells[column, left]
        self.cells[column, left] = self.cells[column, right]
        self.cells[column, right] = taken

    def _places(self, column: int, others: Tensor, front: Tensor, rows: Tensor) -> Tensor:
        """Where each row's counts with the others begin, int64 [rows, others]."""
        cells, size = self.cells[others][:, rows].t(), self._sizes[column]
        start = self._group[rows][:, None] * (size * self._sizes[others])
        return self._first[column, others] + start + torch.where(front, cells, cells * size)
