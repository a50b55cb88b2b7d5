"""How far a number would move with other rows of the same tables: 95 % intervals by bootstrap.

Rows are drawn anew, fewer than there are, and the error is scaled to the tables' size (m out of n).
Distances are never negative, so their intervals are somewhat too wide where tables hardly differ.

Source: Efron and Tibshirani, "An introduction to the bootstrap", 1993 (standard error); Bickel,
Götze and van Zwet, 1997 (m out of n).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from core.quality.aligned_tables import AlignedTable

RESAMPLES = 16
ROWS = 5_000


def half_width_of(draws: Sequence[float], share: float) -> float:
    """Half a 95 % interval, from draws that took a share of the rows; 0 for fewer than two."""
    if len(draws) < 2:
        return 0.0
    return float(1.96 * np.std(draws, ddof=1) * np.sqrt(share))


def table_half_width(
    measure: Callable[[AlignedTable, AlignedTable], float],
    real: AlignedTable,
    synthetic: AlignedTable,
    *,
    seed: int = 0,
) -> float:
    """Half a 95 % interval of a measure whose error shrinks with the root of rows."""
    rng = np.random.default_rng(seed)
    sizes = [min(table.n, ROWS) for table in (real, synthetic)]
    draws = [
        measure(
            real.take(rng.integers(real.n, size=sizes[0])),
            synthetic.take(rng.integers(synthetic.n, size=sizes[1])),
        )
        for _ in range(RESAMPLES)
    ]
    # The larger share: a table that was drawn whole brings all of its error, whatever the other.
    return half_width_of(draws, max(sizes[0] / real.n, sizes[1] / synthetic.n))
