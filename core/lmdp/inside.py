"""The inside check: do released records reveal the real marginal of tagged columns?

Two tests on the very records that are released, each exact in level at any sample size:

  two-sample: MMD between real and released records, by permutations;
  goodness of fit: the Stein discrepancy of real records under a score fitted to released ones. The
    records are blurred a little, so that a density exists, and its score is that of a kernel
    density estimate. The score may be crude: p-values come from released records that the score has
    not seen, put through the same statistic.

Rejection by both is what α-LMDP asks for. The p-values depend on real records without noise: they
may be shown to the steward, and must neither leave the house nor decide anything in a run that
claims differential privacy (`core.lmdp.certificate` does that).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from core.encoding.codec import Codec, Codes
from core.encoding.stored_codes import StoredCodes
from core.lmdp.discrepancy import KernelPoints, TestResult, median_bandwidth, two_sample_test

RECORDS = 1024  # real records the tests look at, fewer where a table is short
RELEASED = 4  # times as many released ones stand against them
BLUR = 0.5  # of the median distance: spread of the noise that makes a density of records
BLURS = 8  # blurred copies that a record's features are averaged over
FEATURES = 128
CENTRES, NULL = 1024, 8000  # released records that make the score and the null distribution
DRAWS, PERMUTATIONS = 199, 999  # of the two tests' null distributions, or what the level needs


@dataclass(frozen=True)
class InsideCheck:
    """The outcome for one group."""

    two_sample: TestResult
    goodness: TestResult
    records: int

    def rejects(self, alpha: float) -> bool:
        """Whether both tests reject at level α: α-LMDP holds for the group, in this attempt."""
        return max(self.two_sample.p_value, self.goodness.p_value) <= alpha


def inside_check(
    codec: Codec,
    names: Sequence[str],
    *,
    real: Codes | StoredCodes,
    released: Codes,
    level: float = 0.05,
    seed: int = 0,
    permutations: int = PERMUTATIONS,
) -> InsideCheck:
    """Test one group.

    Args:
      real, released: codes of whole records, NumPy ones or on disk, at least 8 each.
    """
    # a p-value is 1/(draws + 1) at least: at half the level or below, so that a test can reject
    needed = math.ceil(2.0 / level) - 1
    random = torch.Generator().manual_seed(seed)
    m = min(RECORDS, len(real), len(released) // 2)
    cut = min(RELEASED * m, len(released) // 2)
    points = KernelPoints.of(codec, names, released)
    x = points(real.take(torch.randperm(len(real), generator=random)[:m].numpy()))
    order = torch.randperm(len(released), generator=random).numpy()
    first, second = (points(released.take(part)) for part in (order[:cut], order[cut:][: 40 * m]))
    return InsideCheck(
        two_sample=two_sample_test(x, first, permutations=max(permutations, needed), seed=seed),
        goodness=fitted_stein_test(x, second, generator=random, draws=max(DRAWS, needed)),
        records=m,
    )


def fitted_stein_test(
    x: Tensor, released: Tensor, *, generator: torch.Generator, draws: int = DRAWS
) -> TestResult:
    """Test whether the rows of x follow the distribution that released rows came from.

    Each record is blurred several times and its Stein features averaged, which takes out most of
    the noise that the blur brings; the features' kernel is an RBF at the median distance.

    Args:
      x: float64 [m, d].
      released: float64 [r, d], r ≥ 4: a third of them, at most 1,024, make the score, the others
        the null distribution.
      draws: of the null distribution; the least p-value is 1/(draws + 1).

    Returns:
      The squared discrepancy (biased, ≥ 0), and its p-value.

    Source: Huggins and Mackey, "Random feature Stein discrepancies", 2018.
    """
    cut = max(1, min(CENTRES, len(released) // 3))
    centres, rest = released[:cut], released[cut : cut + NULL]
    size = max(1, min(len(x), len(rest) // 2))
    features = _SteinFeatures.draw(centres, median_bandwidth(released), generator)
    statistic = float(features(x[:size], generator).mean(dim=0).square().mean())
    others = features(rest, generator)
    null = [
        float(others[torch.randperm(len(rest), generator=generator)[:size]].mean(0).square().mean())
        for _ in range(draws)
    ]
    return TestResult(statistic, (1 + sum(value >= statistic for value in null)) / (draws + 1))


@dataclass(frozen=True)
class _SteinFeatures:
    """Random Fourier features put through the Stein operator of a kernel density estimate.

    Attributes:
      centres: float64 [c, d], of the estimate.
      frequencies, directions: float64 [J, d]; phases: float64 [J].
    """

    centres: Tensor
    blur: float
    frequencies: Tensor
    directions: Tensor
    phases: Tensor

    @classmethod
    def draw(cls, centres: Tensor, bandwidth: float, random: torch.Generator) -> _SteinFeatures:
        shape, kind = (FEATURES, centres.shape[1]), centres.dtype
        directions = torch.randn(shape, generator=random, dtype=kind)
        return cls(
            centres,
            BLUR * bandwidth * min(1.0, 2.0 / math.sqrt(centres.shape[1])),  # noise grows with √d
            torch.randn(shape, generator=random, dtype=kind) / bandwidth,
            directions / torch.linalg.vector_norm(directions, dim=1, keepdim=True),
            torch.rand(FEATURES, generator=random, dtype=kind) * 2.0 * math.pi,
        )

    def __call__(self, x: Tensor, random: torch.Generator) -> Tensor:
        """v·(s(y) f(y) + ∇f(y)) for f(y) = cos(ω·y + b), averaged over blurred y, [n, J]."""
        total = torch.zeros((len(x), FEATURES), dtype=x.dtype)
        turn = (self.frequencies * self.directions).sum(dim=1)
        for _ in range(BLURS):
            y = x + self.blur * torch.randn(x.shape, generator=random, dtype=x.dtype)
            angle = y @ self.frequencies.t() + self.phases
            score = _score(y, self.centres, self.blur)
            total += (score @ self.directions.t()) * angle.cos() - turn * angle.sin()
        return total / BLURS


def _score(x: Tensor, centres: Tensor, blur: float) -> Tensor:
    """∇ log of the Gaussian kernel density estimate on `centres`, float64 [n, d]."""
    weights = torch.softmax(torch.cdist(x, centres).square().div_(-2.0 * blur**2), dim=1)
    score: Tensor = (weights @ centres - x) / blur**2
    return score
