"""A population that a mixture's releases leave possible, as the truth of a replica.

Synthetic tables are drawn evenly, and as smoothly as the mixture says. A truth that is as smooth as
that has nothing a mechanism could lose, so replicas of it would err too little. Here each row is
drawn by itself. Inside a cell, where the mixture takes columns to be independent, a component's
density goes on from cell to cell, and each column's is one of those that its noisy histogram leaves
possible. Columns depend on each other as far as noise may have hidden it (`unseen.py`). Shares of a
column's cells stay those of the mixture.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from core.encoding.codec import Codec, Codes
from core.models.scan_focus.mending import mended
from core.models.scan_focus.unseen import with_unseen
from core.models.steps.counting.placing import Placing
from core.models.steps.training.column_bins import one_of_each

LEAST_SHARE = 1e-9


def draw_population(
    codec: Codec,
    weights: Mapping[str, Tensor],
    constants: Mapping[str, Any],
    rows: int,
    random: torch.Generator,
) -> Codes:
    """Records of it.

    Args:
      weights, constants: as a fitted mixture stores them.
    """
    share, sizes, lines = weights["weights"], constants["sizes"], constants["lines"]
    component = torch.multinomial(share, rows, replacement=True, generator=random)
    parts = torch.split(weights["shares"], sizes, dim=1)
    drawn = torch.stack([one_of_each(part[component], random) for part in parts])
    drawn = with_unseen(drawn, component, parts, weights, random)
    cells = mended(drawn, component, parts, weights["zeros"], random)
    whole = [share @ part for part in parts]
    slopes = {
        i: _slopes(parts[i][:, :line], whole[i][:line], component, cells[i])
        for i, line in enumerate(lines)
        if line > 1
    }
    placing = Placing.stored(weights, constants).drawn(random)
    return placing.codes(codec, list(cells.numpy()), random, slopes)


def _slopes(shares: Tensor, whole: Tensor, component: Tensor, cells: Tensor) -> NDArray[np.float64]:
    """How steeply each record's component grows along its cell, beside the column; in [-1, 1].

    The density beside the column's is taken to be linear between the middles of neighbouring cells.
    Weighed by the components' shares, slopes sum to zero in each cell: the column stays as it is.

    Args:
      shares: [components, cells of the line].
      whole: [cells of the line], of the column.
    """
    beside = shares / whole.clamp_min(LEAST_SHARE)
    padded = torch.cat([beside[:, :1], beside, beside[:, -1:]], dim=1)
    reach = torch.full((shares.shape[1],), 4.0)
    reach[0] = reach[-1] = 2.0
    steep = (padded[:, 2:] - padded[:, :-2]) / (reach * beside.clamp_min(LEAST_SHARE))
    on_line = cells < shares.shape[1]
    own = steep.clamp(-1.0, 1.0)[component, cells.clamp_max(shares.shape[1] - 1)]
    return torch.where(on_line, own, 0.0).double().numpy()
