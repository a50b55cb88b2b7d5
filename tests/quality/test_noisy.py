"""Noisy scores: centred where they should be, with errors that cover what the noise does."""

from __future__ import annotations

import math

import numpy as np
import pytest

from core.quality.metrics.marginals import tvd
from core.quality.metrics.noisy import (
    NoisyCells,
    NoisyScore,
    SyntheticCells,
    combined,
    difference,
    ranked,
    score,
    words,
)

pytestmark = pytest.mark.slow

N = 10_000
SIZES = (12, 25, 25, 30)
RNG = np.random.default_rng(3)
REAL = np.concatenate([RNG.dirichlet(np.full(k, 2.0)) for k in SIZES])


def near(strength: float, seed: int) -> SyntheticCells:
    """A table whose shares are mixed with others by a strength in [0, 1]."""
    rng = np.random.default_rng(seed)
    other = np.concatenate([rng.dirichlet(np.full(k, 2.0)) for k in SIZES])
    return SyntheticCells(
        key="k", rows=N, counts=tuple(N * ((1 - strength) * REAL + strength * other))
    )


def releases(share_std: float, draws: int, seed: int = 0) -> list[NoisyCells]:
    rng = np.random.default_rng(seed)
    std = share_std * N
    noisy = N * REAL + rng.normal(0.0, std, (draws, len(REAL)))
    return [
        NoisyCells(key="k", n=N, noise_std=std, sizes=SIZES, counts=tuple(one)) for one in noisy
    ]


def exact(made: SyntheticCells) -> float:
    """Mean total variation distance over the marginals, without noise."""
    cuts = np.cumsum(SIZES)[:-1]
    pairs = zip(np.split(REAL, cuts), np.split(made.shares, cuts), strict=True)
    return float(np.mean([tvd(a, b) for a, b in pairs]))


def seen_through(made: SyntheticCells, s: float) -> float:
    """What the score is in expectation: the folded normal's mean in every cell, less its floor."""
    d = np.abs(REAL - made.shares)
    erf = np.array([math.erf(x) for x in d / s / math.sqrt(2)])
    mean = s * math.sqrt(2 / math.pi) * np.exp(-(d**2) / (2 * s**2)) + d * erf
    return 0.5 * float((mean - s * math.sqrt(2 / math.pi)).sum()) / len(SIZES)


def test_with_little_noise_it_is_the_total_variation_distance():
    (released,) = releases(1e-9, 1)
    for strength in (0.0, 0.1, 1.0):
        made = near(strength, 5)
        assert score(released, made).value == pytest.approx(exact(made), abs=1e-6)


@pytest.mark.parametrize("s", [0.002, 0.01, 0.05])
def test_equal_tables_score_0_and_others_beyond_noise(s):
    for made in (near(0.0, 1), near(0.2, 5), near(1.0, 6)):
        found = np.array([score(one, made).value for one in releases(s, 2000)])
        error = found.std() / math.sqrt(len(found))
        assert found.mean() == pytest.approx(seen_through(made, s), abs=5 * error)
        assert -1e-12 <= seen_through(made, s) <= exact(made) + 1e-12
    assert seen_through(near(0.0, 1), s) == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("s", [0.002, 0.01, 0.05])
def test_standard_errors_are_never_too_small(s):
    """Var ≤ s² E‖∇‖²: the spread over many releases stays below what each of them states."""
    drawn = releases(s, 1500)
    pairs = [(near(0.1, 5), near(0.1, 6)), (near(0.05, 5), near(0.4, 6)), (near(0, 1), near(1, 2))]
    for a, b in pairs:
        alone = [score(one, a) for one in drawn]
        spread = np.std([one.value for one in alone])
        assert spread <= 1.06 * alone[0].standard_error  # 1,500 draws tell a spread to 2 %
        apart = [difference(one, a, b) for one in drawn]
        claimed = np.sqrt(np.mean([one.standard_error**2 for one in apart]))
        assert np.std([one.value for one in apart]) <= 1.06 * claimed
        truth = seen_through(a, s) - seen_through(b, s)
        covered = np.mean([abs(one.value - truth) <= one.half_width for one in apart])
        assert covered >= 0.93


def test_standard_error_of_single_marginals_would_be_caught():
    """The check above has teeth: an error smaller by the root of two fails it for equal tables."""
    drawn = releases(0.05, 1500)
    made = near(0.0, 1)
    spread = np.std([score(one, made).value for one in drawn])
    least = score(drawn[0], made).standard_error * math.sqrt(1 - 2 / math.pi)  # |N| has that spread
    assert spread == pytest.approx(least, rel=0.1)
    assert not spread <= 1.06 * least / math.sqrt(2)


def test_far_apart_tables_are_told_apart_and_equal_ones_are_not():
    (released,) = releases(0.005, 1)
    gap = difference(released, near(0.9, 5), near(0.05, 6))
    assert gap.value > gap.half_width and "larger than the noise" in words(gap)
    same = difference(released, near(0.3, 5), near(0.3, 5))
    assert (same.value, same.standard_error) == (0.0, 0.0)
    close = difference(released, near(0.011, 5), near(0.010, 5))
    assert "cannot be told apart" in words(close)
    order = ranked(released, {"far": near(0.9, 5), "near": near(0.0, 6), "mid": near(0.3, 7)})
    assert list(order) == ["near", "mid", "far"]


def test_two_releases_are_averaged_by_their_precision():
    a, b = releases(0.01, 1, seed=1)[0], releases(0.02, 1, seed=2)[0]
    both = combined([a, b])
    assert both.noise_std == pytest.approx(1 / math.sqrt(a.noise_std**-2 + b.noise_std**-2))
    expected = (4 * np.array(a.counts) + np.array(b.counts)) / 5
    assert np.allclose(both.counts, expected)
    assert combined([a]) == a


def test_counts_of_other_cells_are_refused():
    (released,) = releases(0.01, 1)
    other = near(0.1, 1).model_copy(update={"key": "other"})
    with pytest.raises(ValueError, match="different cells"):
        score(released, other)
    with pytest.raises(ValueError, match="different cells"):
        difference(released, near(0.1, 1), other)
    with pytest.raises(ValueError, match="cannot be combined"):
        combined([released, released.model_copy(update={"key": "other"})])
    with pytest.raises(ValueError, match="cannot be combined"):
        combined([])


def test_a_score_says_its_interval():
    assert NoisyScore(0.0, 0.5).half_width == pytest.approx(0.98)


# -- where records count by their weight under a shift, what they add up to is estimated ----------

LIGHT = 0.4  # mean weight of a record


def shifted_releases(share_std: float, draws: int) -> list[NoisyCells]:
    """Releases of counts that add up to a total nobody is told."""
    rng = np.random.default_rng(1)
    std = share_std * N * LIGHT
    noisy = N * LIGHT * REAL + rng.normal(0.0, std, (draws, len(REAL)))
    return [
        NoisyCells(key="k", n=N, noise_std=std, sizes=SIZES, counts=tuple(one), shifted=True)
        for one in noisy
    ]


def test_the_total_of_weighted_counts_is_estimated_without_bias():
    totals = [one.total for one in shifted_releases(0.01, 2000)]
    values = np.array([total.value for total in totals])
    std = 0.01 * N * LIGHT * math.sqrt(totals[0].variance)
    assert values.mean() == pytest.approx(N * LIGHT, abs=5 * std / math.sqrt(2000))
    assert values.std() == pytest.approx(std, rel=0.06)
    (public,) = releases(0.01, 1)
    assert public.total.value == N and public.total.variance == 0.0


def test_a_total_that_noise_drowns_is_no_less_than_its_noise():
    (one,) = shifted_releases(0.01, 1)
    drowned = one.model_copy(update={"counts": tuple(-abs(count) for count in one.counts)})
    assert drowned.total.value == pytest.approx(one.noise_std * math.sqrt(one.total.variance))


@pytest.mark.parametrize("s", [0.002, 0.01])
def test_noise_of_a_share_of_an_estimated_total_is_as_said(s):
    found = np.array([np.array(r.counts) / r.total.value for r in shifted_releases(s, 4000)])
    one = shifted_releases(s, 1)[0]
    said = s * one.total.inflation(REAL)
    spread = found.std(axis=0)
    assert (spread <= said * 1.06).all()
    assert spread.sum() >= 0.75 * said.sum()  # and it is no idle bound


@pytest.mark.parametrize("s", [0.002, 0.01])
def test_errors_against_weighted_counts_are_large_enough(s):
    made, other = near(0.0, 1), near(0.2, 5)
    found = shifted_releases(s, 2000)
    scores = [score(one, made) for one in found]
    values = np.array([one.value for one in scores])
    assert values.std() <= np.mean([one.standard_error for one in scores]) * 1.05
    assert abs(values.mean()) <= scores[0].standard_error
    gaps = [difference(one, other, made) for one in found]
    assert np.std([g.value for g in gaps]) <= np.mean([g.standard_error for g in gaps]) * 1.05
