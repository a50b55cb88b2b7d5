"""Maximum mean discrepancy: one number for any difference between two tables' distributions.

MMD² with an RBF kernel whose bandwidth is the median distance of the pooled rows; the p-value comes
from permutations. Rows are encoded as for the Wasserstein scores.

Source: Gretton et al., "A kernel two-sample test", 2012; PEARL (ICLR 2022) appendix.
"""

from __future__ import annotations

import numpy as np
import torch

from core.lmdp.discrepancy import two_sample_test
from core.message import Message
from core.quality.aligned_tables import AlignedTable
from core.quality.comparison import Comparison
from core.quality.metrics.family import Measured, Metric, Step, family

ROWS = 1_000  # rows a side
PERMUTATIONS = 199

MMD = Metric(
    key="mmd",
    title="Any difference (MMD)",
    goal="lower",
    high=2.0,
    meaning="Squared kernel distance between the two tables: 0 only if all distributions agree.",
    source="Gretton et al. 2012, as in PEARL (ICLR 2022); 1,000 rows a side, median bandwidth",
)


def discrepancy(
    real: AlignedTable, synthetic: AlignedTable, *, seed: int = 0
) -> tuple[float, float]:
    """MMD² in [0, 2] and its permutation p-value, on at most 1,000 rows a side."""
    rng = np.random.default_rng(seed)
    x, y = (torch.from_numpy(table.sample(ROWS, rng).encode()) for table in (real, synthetic))
    test = two_sample_test(x, y, permutations=PERMUTATIONS, seed=seed)
    return float(test.statistic), float(test.p_value)


@family(MMD, text="Measuring kernel distance", order=100, cost=0.6)
def kernel_distance(tables: Comparison, _: Step) -> Measured:
    """Any difference at all, by kernels."""
    real, seed = tables.real, tables.seed
    squared, p = discrepancy(real, tables.synthetic, seed=seed)
    score = MMD.score(
        squared,
        ceiling=discrepancy(real, tables.resampled, seed=seed)[0],
        note=Message(
            "Two samples of the same table would differ this much with probability {p:.3f}.", p=p
        ),
    )
    return Measured([score])
