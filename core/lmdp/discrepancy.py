"""Kernel Stein discrepancy: does a sample follow a density of which only the score is known?

For a density p with score s = ∇ log p and an RBF kernel k of bandwidth h, the Stein kernel is

    u(x, y) = k(x, y) · ( s(x)·s(y) + (s(x) - s(y))·(x - y)/h² + d/h² - |x - y|²/h⁴ ),

with mean zero in either argument when it is drawn from p. The linear-time statistic reads each
record once, in disjoint pairs; the quadratic one reads all pairs and has more power.

Everything is torch and differentiable in the scores, so that training can push on it.

Sources: Liu, Lee and Jordan, "A kernelized Stein discrepancy for goodness-of-fit tests", 2016;
Chwialkowski, Strathmann and Gretton, "A kernel test of goodness of fit", 2016 (wild bootstrap);
Tillman, Balch and Veloso, "Privacy-preserving energy-based generative models for marginal
distribution protection", 2023, equation 17 (the normalised linear statistic).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from scipy import stats
from torch import Tensor

__all__ = [
    "TestResult",
    "critical_value",
    "linear_statistic",
    "linear_test",
    "median_bandwidth",
    "quadratic_test",
    "stein_matrix",
    "stein_pairs",
]

MEDIAN_OF = 500  # points whose distances the bandwidth is taken from


@dataclass(frozen=True)
class TestResult:
    """What a test found.

    Attributes:
      statistic: its value; larger means further apart.
      p_value: chance of at least this value if both were the same, in (0, 1].
    """

    __test__ = False  # not a test class, whatever its name looks like

    statistic: float
    p_value: float


def median_bandwidth(x: Tensor) -> float:
    """Median distance between distinct points of the first 500 rows; 1 where all are equal.

    Costs nothing when `x` is generated or already released; never call it on real rows of a
    private fit.

    Args:
      x: float [n, d], n ≥ 2.

    Source: Garreau, Jitkrittum and Kanagawa, "Large sample analysis of the median heuristic", 2018.
    """
    distances = torch.pdist(x[:MEDIAN_OF].detach().to(torch.float64))
    apart = distances[distances > 0]
    return float(apart.median()) if len(apart) else 1.0


def _stein(k: Tensor, dot: Tensor, along: Tensor, square: Tensor, d: int, h: float) -> Tensor:
    return k * (dot + along / h**2 + d / h**2 - square / h**4)


def stein_pairs(x: Tensor, scores: Tensor, *, bandwidth: float) -> Tensor:
    """u(x₁, x₂), u(x₃, x₄), … over disjoint consecutive pairs, float [⌊n/2⌋].

    Args:
      x: float [n, d]; an odd last row is left out.
      scores: float [n, d], ∇ log p at x; gradients flow through them.
      bandwidth: h > 0.
    """
    pairs = len(x) // 2
    a, b = x[: 2 * pairs : 2], x[1 : 2 * pairs : 2]
    s, t = scores[: 2 * pairs : 2], scores[1 : 2 * pairs : 2]
    apart = a - b
    square = apart.square().sum(dim=1)
    k = (-square / (2.0 * bandwidth**2)).exp()
    return _stein(
        k, (s * t).sum(dim=1), ((s - t) * apart).sum(dim=1), square, x.shape[1], bandwidth
    )


def stein_matrix(x: Tensor, scores: Tensor, *, bandwidth: float) -> Tensor:
    """u(xᵢ, xⱼ) for all i, j, float [n, n]; arguments as `stein_pairs`."""
    square = torch.cdist(x, x).square()
    k = (-square / (2.0 * bandwidth**2)).exp()
    own = (scores * x).sum(dim=1)
    cross = scores @ x.t()  # s(xᵢ)·xⱼ
    along = own.unsqueeze(1) - cross + own.unsqueeze(0) - cross.t()
    return _stein(k, scores @ scores.t(), along, square, x.shape[1], bandwidth)


def linear_statistic(u: Tensor) -> Tensor:
    """Ŝ = (N - 1)(Σu)² / (N Σu²) of N Stein kernels of disjoint pairs, a scalar in [0, N - 1].

    Asymptotically χ² with one degree of freedom when the sample follows the density. Zero for
    fewer than two pairs, or where every u is zero.
    """
    n = len(u)
    if n < 2:
        return u.sum() * 0.0
    total = u.sum()
    return (n - 1) / n * total.square() / u.square().sum().clamp_min(1e-30)


def critical_value(alpha: float) -> float:
    """What Ŝ exceeds with probability α under the null: the χ²₁ quantile at 1 - α.

    >>> round(critical_value(0.05), 2)
    3.84
    """
    if not 0.0 < alpha < 1.0:
        raise ValueError(f"α must lie strictly between 0 and 1, got {alpha}.")
    return float(stats.chi2.ppf(1.0 - alpha, df=1))


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
