"""Kernel tests: does a sample follow a density of which only the score is known, or another sample?

For a density p with score s = ∇ log p and an RBF kernel k of bandwidth h, the Stein kernel is

    u(x, y) = k(x, y) · ( s(x)·s(y) + (s(x) - s(y))·(x - y)/h² + d/h² - |x - y|²/h⁴ ),

with mean zero in either argument when it is drawn from p. The linear-time statistic reads each
record once, in disjoint pairs.

Everything is torch and differentiable in the scores, so that training can push on it.

The two-sample test's null distribution comes from permutations: under the null the labels "real"
and "synthetic" could be swapped, so the level holds exactly at any sample size and for any kernel
chosen without the labels.

Sources: Liu, Lee and Jordan, "A kernelized Stein discrepancy for goodness-of-fit tests", 2016;
Tillman, Balch and Veloso, "Privacy-preserving energy-based generative models for marginal
distribution protection", 2023, equation 17 (the normalised linear statistic); Gretton et al., "A
kernel two-sample test", 2012.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from scipy import stats
from torch import Tensor

from core.encoding.codec import Codec, Codes

MEDIAN_OF = 500  # points whose distances the bandwidth is taken from
AT_ONCE = 1000  # permutations whose weights are in memory together


@dataclass(frozen=True)
class TestResult:
    """The outcome of a test.

    Attributes:
      p_value: chance of at least this value if both were the same, in (0, 1].
    """

    __test__ = False  # not a test class, whatever its name looks like

    statistic: float
    p_value: float


def median_bandwidth(x: Tensor) -> float:
    """Median distance between distinct points of the first 500 rows; 1 where all are equal.

    Costs nothing when `x` is generated or already released; never call it on real rows of a
    private fit.

    Source: Garreau, Jitkrittum and Kanagawa, "Large sample analysis of the median heuristic", 2018.
    """
    distances = torch.pdist(x[:MEDIAN_OF].detach().to(torch.float64))
    apart = distances[distances > 0]
    return float(apart.median()) if len(apart) else 1.0


def stein_pairs(x: Tensor, scores: Tensor, *, bandwidth: float) -> Tensor:
    """u(x₁, x₂), u(x₃, x₄), … over disjoint consecutive pairs, float [⌊n/2⌋].

    Args:
      x: float [n, d]; an odd last row is left out.
      scores: float [n, d], ∇ log p at x; gradients flow through them.
    """
    pairs = len(x) // 2
    a, b = x[: 2 * pairs : 2], x[1 : 2 * pairs : 2]
    s, t = scores[: 2 * pairs : 2], scores[1 : 2 * pairs : 2]
    apart, h = a - b, bandwidth
    square = apart.square().sum(dim=1)
    k = (-square / (2.0 * h**2)).exp()
    dot, cross = (s * t).sum(dim=1), ((s - t) * apart).sum(dim=1)
    return k * (dot + cross / h**2 + x.shape[1] / h**2 - square / h**4)


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


def rbf(x: Tensor, y: Tensor, *, bandwidth: float) -> Tensor:
    """exp(-|x - y|²/2h²) for all pairs, float [n, m]."""
    return torch.cdist(x, y).square_().div_(-2.0 * bandwidth**2).exp_()


def two_sample_test(x: Tensor, y: Tensor, *, permutations: int = 999, seed: int = 0) -> TestResult:
    """Whether the rows of x and y follow one distribution, by their maximum mean discrepancy.

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


class KernelPoints:
    """Tagged columns of records → points that kernels can compare.

    A number is its position, centred and scaled by what synthetic records show; a category or a
    special state is some ones among zeros. So two numbers 1.4 standard deviations apart are as far
    from each other as two categories.
    """

    def __init__(self, codec: Codec, names: Sequence[str], scaling: Sequence[tuple[float, float]]):
        self.names = tuple(names)
        self.scaling = tuple((float(mean), float(spread)) for mean, spread in scaling)
        self._blocks = tuple(codec.block(name) for name in names)
        self._codec = Codec(codec.domain.project(names))

    @classmethod
    def of(cls, codec: Codec, names: Sequence[str], synthetic: Codes) -> KernelPoints:
        """With the scaling that synthetic records give; never call it on real ones."""
        scaling = []
        for block in (codec.block(name) for name in names):
            if block.number is not None:
                position = synthetic.values[:, block.number][synthetic.states[:, block.index] == 0]
                spread = float(position.std()) if len(position) else 0.0
                scaling.append((float(position.mean()) if len(position) else 0.5, spread or 1.0))
        return cls(codec, names, scaling)

    def __call__(self, codes: Codes) -> Tensor:
        """Codes of whole records → float64 [n, d] on their device (the CPU for NumPy codes)."""
        tagged = codes.project(self._blocks)
        if not isinstance(tagged.states, Tensor):
            tagged = tagged.to("cpu")
        points = self._codec.expand(tagged).double()
        numeric = (block for block in self._codec.blocks if block.number is not None)
        for block, (mean, spread) in zip(numeric, self.scaling, strict=True):
            on_line = tagged.states[:, block.index] == 0
            points[:, block.start] = (points[:, block.start] - mean) / spread * on_line
        return points
