"""Maximum mean discrepancy: one number for any difference between two tables' distributions.

MMD² with an RBF kernel whose bandwidth is the median distance of the pooled rows; the p-value comes
from permutations. Rows are encoded as for the Wasserstein scores.

Source: Gretton et al., "A kernel two-sample test", 2012; PEARL (ICLR 2022) appendix.
"""

from __future__ import annotations

import numpy as np

from core.quality.aligned_tables import Cells, Features, sample_rows

__all__ = ["ROWS", "discrepancy"]

ROWS = 1_000  # rows a side
PERMUTATIONS = 199


def discrepancy(
    features: Features, real: Cells, synthetic: Cells, *, rows: int = ROWS, seed: int = 0
) -> tuple[float, float]:
    """MMD² in [0, 2] and its permutation p-value, on at most `rows` rows a side."""
    import torch

    from core.lmdp.two_sample import two_sample_test

    rng = np.random.default_rng(seed)
    x, y = (
        torch.from_numpy(features.encode(cells.take(sample_rows(cells.n, rows, rng))))
        for cells in (real, synthetic)
    )
    found = two_sample_test(x, y, permutations=PERMUTATIONS, seed=seed)
    return float(found.statistic), float(found.p_value)
