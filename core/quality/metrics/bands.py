"""How far a mean distance of columns or pairs would move with other rows of the same tables.

Source: Efron and Tibshirani, "An introduction to the bootstrap", 1993 (standard error); rows are
drawn anew, fewer than there are, and the error is scaled to the tables' size (Bickel, Götze and van
Zwet, 1997, m-out-of-n). Distances are never negative, so intervals are somewhat too wide where the
tables hardly differ.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from core.quality.aligned_tables import Cells

__all__ = ["half_width"]

RESAMPLES = 16
ROWS = 5_000


def half_width(
    measure: Callable[[Cells, Cells], float], real: Cells, synthetic: Cells, *, seed: int = 0
) -> float:
    """Half the width of a 95 % interval of a measure of two tables, in the measure's unit.

    Args:
      measure: of two tables; its error must shrink with the root of the number of rows.
      real, synthetic: ≥ 1 row each.
      seed: of the draws.
    """
    rng = np.random.default_rng(seed)
    sizes = [min(cells.n, ROWS) for cells in (real, synthetic)]
    found = [
        measure(
            real.take(rng.integers(real.n, size=sizes[0])),
            synthetic.take(rng.integers(synthetic.n, size=sizes[1])),
        )
        for _ in range(RESAMPLES)
    ]
    scale = np.sqrt(
        min(size / cells.n for size, cells in zip(sizes, (real, synthetic), strict=True))
    )
    return float(1.96 * np.std(found, ddof=1) * scale)
