"""Where in its cell a drawn record lies, and the relations that drawn rows are made to keep."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from core.models.shared.counting.design import SumCandidate
from core.table.codec import Codec, Codes

__all__ = ["add_up", "placed"]

Floats = NDArray[np.float64]


def placed(
    cell: NDArray[np.int64],
    *,
    line: int,
    keys: Floats,
    places: Floats,
    width: float,
    random: torch.Generator,
) -> tuple[NDArray[np.int64], Floats]:
    """States and positions of a numeric column whose cells are given.

    Args:
      cell: int64 [n], see `ColumnScale`.
      line: how many cells lie on the line; the others are spikes and missing.
      keys: float64 [fine cells], see `ColumnScale`.
      places: float64 [fine cells], their middles in [0, 1].
      width: of a fine cell; 0 where each is one value.
      random: data-free.

    Returns:
      States [n], and positions [n] in [0, 1], 0 where there is none.
    """
    jitter = torch.rand((2, len(cell)), generator=random, dtype=torch.float64).numpy()
    fine = np.searchsorted(keys, cell + jitter[0]).clip(0, len(keys) - 1)
    place = places[fine] + width * (jitter[1] - 0.5)
    on_line = cell < line
    return np.where(on_line, 0, cell - line + 1), np.where(on_line, np.clip(place, 0.0, 1.0), 0.0)


def add_up(codec: Codec, codes: Codes, one: SumCandidate) -> None:
    """Write the total of each row where all three are there, within its bounds.

    Args:
      codec: of the table.
      codes: of rows, changed in place.
      one: the columns of the sum.
    """
    block = codec.blocks[one.total]
    total, left, right = (codes.numbers(codec.blocks[i]) for i in (one.total, one.left, one.right))
    present = ~np.isnan(total) & ~np.isnan(left + right)
    state, place = block.snapped(np.nan_to_num(left + one.unit * right))
    codes.states[:, one.total] = np.where(present, state, codes.states[:, one.total])
    codes.values[:, block.number] = np.where(present, place, codes.values[:, block.number])
