"""Kernel two-sample test: do two samples come from one distribution?

The statistic is the squared maximum mean discrepancy with an RBF kernel. Its null distribution
comes from permutations: under the null the labels "real" and "synthetic" could be swapped, so the
level holds exactly at any sample size and for any kernel chosen without the labels.

Source: Gretton, Borgwardt, Rasch, Schölkopf and Smola, "A kernel two-sample test", 2012.
"""

from __future__ import annotations

import torch
from torch import Tensor

from core.lmdp.discrepancy import TestResult, median_bandwidth

AT_ONCE = 1000  # permutations whose weights are in memory together


def rbf(x: Tensor, y: Tensor, *, bandwidth: float) -> Tensor:
    """exp(-|x - y|²/2h²) for all pairs, float [n, m]."""
    return torch.cdist(x, y).square_().div_(-2.0 * bandwidth**2).exp_()


def two_sample_test(x: Tensor, y: Tensor, *, permutations: int = 999, seed: int = 0) -> TestResult:
    """Test whether the rows of x and y follow one distribution.

    The bandwidth is the median distance of the pooled rows, which does not depend on the labels.

    Args:
      x, y: float [n, d] and [m, d].
      permutations: ≥ 1; the least p-value is 1/(permutations + 1).

    Returns:
      MMD² (biased, ≥ 0) and its p-value.
    """
    n, m = len(x), len(y)
    random = torch.Generator().manual_seed(seed)
    pooled = torch.cat([x, y])
    bandwidth = median_bandwidth(pooled[torch.randperm(n + m, generator=random)])
    k = rbf(pooled, pooled, bandwidth=bandwidth)
    weights = torch.cat([torch.full((n,), 1.0 / n), torch.full((m,), -1.0 / m)]).to(k)
    above, found = 0, 0.0
    for start in range(0, permutations, AT_ONCE):
        count = min(AT_ONCE, permutations - start)
        orders = torch.stack([torch.randperm(n + m, generator=random) for _ in range(count)])
        shuffled = torch.cat([weights.unsqueeze(0), weights[orders]]).t()  # [n + m, 1 + count]
        mmd = (shuffled * (k @ shuffled)).sum(dim=0)  # MMD², of the samples first
        above += int((mmd[1:] >= mmd[0] * (1.0 - 1e-12)).sum())
        found = float(mmd[0])
    return TestResult(found, (1 + above) / (permutations + 1))
