"""Goodness-of-fit tests by Stein discrepancies, which show what the linear statistic can tell.

Source: Chwialkowski, Strathmann and Gretton, "A kernel test of goodness of fit", 2016 (wild
bootstrap).
"""

from __future__ import annotations

import math

import torch
from scipy import stats
from torch import Tensor

from core.lmdp.discrepancy import TestResult, linear_statistic, stein_pairs


def stein_matrix(x: Tensor, scores: Tensor, *, bandwidth: float) -> Tensor:
    """u(xᵢ, xⱼ) for all i, j, float [n, n]; arguments as `stein_pairs`."""
    h = bandwidth
    square = torch.cdist(x, x).square()
    own = (scores * x).sum(dim=1)
    cross = scores @ x.t()  # s(xᵢ)·xⱼ
    along = own.unsqueeze(1) - cross + own.unsqueeze(0) - cross.t()
    k = (-square / (2.0 * h**2)).exp()
    return k * (scores @ scores.t() + along / h**2 + x.shape[1] / h**2 - square / h**4)


def linear_test(x: Tensor, scores: Tensor, *, bandwidth: float) -> TestResult:
    """The linear-time test; its level is asymptotic (3 to 4 % at nominal 5 % and n = 128)."""
    statistic = float(linear_statistic(stein_pairs(x, scores, bandwidth=bandwidth)))
    return TestResult(statistic, float(stats.chi2.sf(statistic, df=1)))


def quadratic_test(
    x: Tensor, scores: Tensor, *, bandwidth: float, draws: int = 999, seed: int = 0
) -> TestResult:
    """The all-pairs test with a wild bootstrap: signs of records are flipped at random.

    Args:
      x, scores, bandwidth: see `stein_pairs`.
      draws: of the bootstrap, ≥ 1; the least p-value is 1/(draws + 1).
      seed: of the signs.

    Returns:
      n times the mean of u over pairs i ≠ j, and its p-value.
    """
    n = len(x)
    u = stein_matrix(x, scores, bandwidth=bandwidth)
    u = u - torch.diag(torch.diagonal(u))
    random = torch.Generator().manual_seed(seed)
    signs = torch.randint(0, 2, (n, draws), generator=random).to(u) * 2.0 - 1.0
    null = (signs * (u @ signs)).sum(dim=0) / (n - 1)
    statistic = float(u.sum() / (n - 1))
    above = int((null >= statistic - 1e-12 * math.fabs(statistic)).sum())
    return TestResult(statistic, (1 + above) / (draws + 1))
