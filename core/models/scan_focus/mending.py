"""Rows that lie in structural zeros are mended: a cell of each is drawn again, within what is left.

A mixture of soft components comes near such zeros and leaves some rows in them. Of the cells that
put a row there, the one is drawn again that its component gives the least, and so most likely did
not mean. Rows are mended part by part, each with odds for what the parts before took away, so that
columns keep their counts.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from core.models.steps.counting.scales import ColumnScale
from core.models.steps.counting.zeros.structural_zeros import StructuralZero

PARTS = 16
COPIED = 0.25  # power of the product of a row's odds by which it is likelier to be copied
DRIFT, MOST_ODDS = 0.01, 3.0  # share of a cell's rows that odds e make up for; most log odds
LEAST_LIKELY = 50.0  # log odds below the likeliest row that all others have at least
ROUNDS = 8  # most rows need one; one that needs more goes round in circles


def stored_zeros(zeros: Sequence[StructuralZero], scales: Sequence[ColumnScale]) -> Tensor:
    """Bool [3, zeros, cells of all columns], the whole cells of either column of each.

    And all cells of the columns that may be drawn again.
    """
    sizes = [scale.size for scale in scales]
    masks = torch.zeros((3, len(zeros), sum(sizes)), dtype=torch.bool)
    for i, zero in enumerate(zeros):
        whole = zero.whole_cells(scales[zero.columns[0]])
        for side, cells in enumerate((whole, zero.right)):
            torch.split(masks[side, i], sizes)[zero.columns[side]][:] = cells
            if side == 0 or not zero.mends_left:
                torch.split(masks[2, i], sizes)[zero.columns[side]][:] = True
    return masks


def mended(
    cells: Tensor,
    component: Tensor,
    shares: Sequence[Tensor],
    zeros: Tensor,
    random: torch.Generator,
) -> Tensor:
    """Rows outside all zeros, as far as there are any.

    Args:
      cells: int64 [columns, rows], drawn.
      component: int64 [rows], which each row was drawn from.
      shares: [components, cells] of each column.
    """
    if not zeros.shape[1]:
        return cells
    places = _Places(zeros, [share.shape[1] for share in shares])
    wrong, now = places.holding(cells), cells.clone()
    right = torch.nonzero(~wrong)[:, 0]
    for rows in torch.tensor_split(torch.nonzero(wrong)[:, 0], PARTS):
        if not len(rows):
            break
        odds = [_odds(*each) for each in zip(now, cells, shares, strict=True)]
        steered = [share * one for share, one in zip(shares, odds, strict=True)]
        for _ in range(ROUNDS):
            sides = places.sides(now[:, rows])
            wrong = sides.all(dim=0).any(dim=0)
            rows, sides = rows[wrong], sides[:, :, wrong]
            if not len(rows):
                break
            now[:, rows] = _redrawn(now[:, rows], component[rows], steered, places, sides, random)
        rows = rows[places.holding(now[:, rows])]
        if len(rows) and len(right):  # others take what another row of the same table has
            each = [one.double().log()[own[right]] for one, own in zip(odds, now, strict=True)]
            likely = torch.stack(each).sum(dim=0) * COPIED
            likely = torch.exp((likely - likely.max()).clamp_min(-LEAST_LIKELY))
            again = len(rows) > len(right)
            taken = torch.multinomial(likely, len(rows), replacement=again, generator=random)
            now[:, rows] = now[:, right[taken]]
    return now


def _odds(now: Tensor, before: Tensor, share: Tensor) -> Tensor:
    """How much likelier each cell of a column is drawn to have as many rows as before, [cells]."""
    had, has = (torch.bincount(one, minlength=share.shape[1]).float() for one in (before, now))
    return torch.exp(((had - has) / (DRIFT * had + 1.0)).clamp(-MOST_ODDS, MOST_ODDS))


class _Places:
    """Zeros by their columns.

    Attributes:
      masks: of each column, bool [3, zeros, cells], see `stored_zeros`.
      named, mends: bool [2, zeros] of each column, whether it is named on either side; bool
        [zeros], whether it may be drawn again.
    """

    def __init__(self, zeros: Tensor, sizes: Sequence[int]):
        self.masks = torch.split(zeros, list(sizes), dim=2)
        self.named = [mask[:2].any(dim=2) for mask in self.masks]
        self.mends = [mask[2].any(dim=1) for mask in self.masks]

    def holding(self, cells: Tensor) -> Tensor:
        """Bool [rows], whether each row lies in a zero."""
        return self.sides(cells).all(dim=0).any(dim=0)

    def sides(self, cells: Tensor) -> Tensor:
        """Bool [2, zeros, rows], whether each row has either column's cells."""
        found = torch.zeros((2, self.masks[0].shape[1], cells.shape[1]), dtype=torch.bool)
        for mask, named, cell in zip(self.masks, self.named, cells, strict=True):
            for side in (0, 1):
                found[side, named[side]] = mask[side, named[side]][:, cell]
        return found

    def forbidden(self, column: int, sides: Tensor) -> Tensor:
        """Bool [rows, cells], what the rest of each row leaves no room for in a column."""
        blocked = torch.zeros((), dtype=torch.float32)
        for side in (0, 1):
            named = self.named[column][side]
            own = self.masks[column][side, named].float()
            blocked = blocked + sides[1 - side, named].float().t() @ own
        return blocked > 0.0


def _redrawn(
    cells: Tensor,
    component: Tensor,
    shares: Sequence[Tensor],
    places: _Places,
    sides: Tensor,
    random: torch.Generator,
) -> Tensor:
    """One cell of each row drawn again, that of which its component gives the others most."""
    hit = sides.all(dim=0)
    most = torch.zeros(len(component))
    chosen = cells.clone()
    for column, share in enumerate(shares):
        rows = hit[places.mends[column]].any(dim=0)
        left = share[component] * ~places.forbidden(column, sides) if rows.any() else most[:, None]
        mass = left.sum(dim=1)
        better = rows & (mass > most)
        if better.any():
            most[better] = mass[better]
            chosen[:, better] = cells[:, better]
            drawn = torch.multinomial(left[better], 1, generator=random)[:, 0]
            chosen[column, better] = drawn
    return chosen
