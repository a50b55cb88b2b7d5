"""Noise: its law, its grid, its secrecy."""

from __future__ import annotations

import math
import multiprocessing

import numpy as np
import pytest
from scipy import stats

from core.privacy.mechanisms import noise
from tests.privacy.deterministic_noise import DeterministicNoise
from tests.privacy.harness import Caught, check_gaussian


@pytest.mark.parametrize("std", [1e-9, 0.3, 7.0, 1e12])
def test_gaussian_noise_has_its_law(std: float) -> None:
    check_gaussian(noise.gaussian((20_000, 8), std), std)


@pytest.mark.parametrize("scale", [1e-6, 2.5, 1e9])
def test_laplace_noise_has_its_law(scale: float) -> None:
    draws = noise.laplace((100_000, 2), scale)
    assert stats.kstest(draws.ravel(), "laplace", args=(0.0, scale)).pvalue > 1e-8
    # |x|/scale is exponential, so twice its sum is χ² with two degrees of freedom for each draw
    total = 2 * np.abs(draws / scale).sum()
    assert 1e-9 < stats.chi2.cdf(total, 2 * draws.size) < 1 - 1e-9
    assert abs(np.corrcoef(draws.T)[0, 1]) * math.sqrt(100_000) < 6


def test_too_little_noise_is_caught() -> None:
    with pytest.raises(Caught, match="standard deviation"):
        check_gaussian(noise.gaussian((20_000, 2), 0.95), 1.0)


@pytest.mark.parametrize("bad", [0.0, -1.0, math.inf, math.nan])
def test_a_bad_scale_is_refused(bad: float) -> None:
    with pytest.raises(ValueError, match="positive and finite"):
        noise.gaussian(3, bad)
    with pytest.raises(ValueError, match="positive and finite"):
        noise.add(np.zeros(3), kind="gaussian", noise_multiplier=bad, sensitivity=1.0, records=1)


def test_secure_draws_never_repeat() -> None:
    np.random.seed(0)
    first = noise.gaussian(4, 1.0)
    np.random.seed(0)
    assert not np.isin(first, noise.gaussian(4, 1.0)).any()
    assert noise.SecureNoise.private
    assert "key" not in repr(vars(noise.SecureNoise()))


def _draw(_: int) -> float:
    return float(noise.gaussian(1, 1.0)[0])


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_forked_processes_draw_different_noise() -> None:
    noise.gaussian(1, 1.0)  # a generator that survived the fork would repeat from here
    context = multiprocessing.get_context("fork")
    with context.Pool(2, maxtasksperchild=1) as pool:
        drawn = pool.map(_draw, range(4), chunksize=1)
    assert len(set(drawn)) == 4


def test_deterministic_noise_repeats_and_says_so() -> None:
    again = [noise.gaussian(5, 1.0, DeterministicNoise(3)).tolist() for _ in range(2)]
    assert again[0] == again[1]
    assert not DeterministicNoise.private


@pytest.mark.parametrize("kind", ["gaussian", "laplace"])
@pytest.mark.parametrize("offset", [0.0, 1 / 3, 1e5 + 0.1])
def test_outputs_lie_on_one_grid_whatever_the_data(kind: noise.NoiseKind, offset: float) -> None:
    statistic = np.full(2000, offset)
    noisy = noise.add(statistic, kind=kind, noise_multiplier=2.0, sensitivity=1.5, records=10**6)
    units = noisy / noise.grid_step(3.0)
    assert np.array_equal(units, np.rint(units))
    # and the grid is fine: two of 2,000 draws meet about once in a thousand tests, six pairs never
    assert len(np.unique(noisy)) >= 1995


@pytest.mark.parametrize("kind", ["gaussian", "laplace"])
def test_low_bits_carry_nothing_of_the_statistic(kind: noise.NoiseKind) -> None:
    # parity of the grid units is uniform whether or not a record is in
    for shift in (0.0, 1.0):
        noisy = noise.add(
            np.full(40_000, shift), kind=kind, noise_multiplier=1.0, sensitivity=1.0, records=2
        )
        odd = int((np.rint(noisy / noise.grid_step(1.0)) % 2).sum())
        assert stats.binomtest(odd, 40_000).pvalue > 1e-8


def test_plain_addition_would_fail_the_grid_test() -> None:
    noisy = 1 / 3 + noise.gaussian(100, 3.0)
    units = noisy / noise.grid_step(3.0)
    assert not np.array_equal(units, np.rint(units))


def test_noise_grows_for_the_rounding_it_causes() -> None:
    # rounding d coordinates to a grid of g moves neighbours apart by up to g√d
    d, multiplier = 250_000, 1.0
    noisy = noise.add(
        np.zeros(d), kind="gaussian", noise_multiplier=multiplier, sensitivity=1e-3, records=1
    )
    due = multiplier * (1e-3 * (1 + noise.FLOAT_MARGIN) + noise.grid_step(1e-3) * math.sqrt(d))
    check_gaussian(noisy[:, None], due)


@pytest.mark.parametrize("kind", ["gaussian", "laplace"])
def test_noise_covers_neighbours_that_the_grid_moves_apart(kind: noise.NoiseKind) -> None:
    # every entry just below the middle of two grid points, and its neighbour's just above
    d, multiplier = 1000, 1e6
    order = 2 if kind == "gaussian" else 1
    step, scale = noise.grid_and_scale(
        kind, noise_multiplier=multiplier, sensitivity=1.0, records=1, entries=d
    )
    apart = 1.0 / (math.sqrt(d) if kind == "gaussian" else d)  # of each entry: Δ = 1 together
    whole = math.floor(apart / step)
    one = np.full(d, (0.5 - (apart / step - whole) / 2.0) * step * (1.0 - 1e-9))
    moved = (noise._on_grid(one + apart, step) - noise._on_grid(one, step)) * step
    distance = float(np.linalg.norm(moved, order))
    assert distance > 1.0 + 1e-4
    assert distance <= scale / multiplier


def test_noise_covers_the_rounding_of_sums() -> None:
    most = 0.1  # Δ, which no sum in float64 can take up exactly
    values = np.random.default_rng(2).random(1_000_000) * most
    shares = [1, 1000, 100_000, 500_000]
    values[shares] = most
    whole = np.cumsum(values)[-1]
    moved = max(float(whole - np.cumsum(np.delete(values, index))[-1]) for index in shares)
    # little noise, so that its grid adds less than sums do
    _, scale = noise.grid_and_scale(
        "gaussian", noise_multiplier=1e-6, sensitivity=most, records=len(values), entries=1
    )
    assert most * (1.0 + 1e-11) < moved <= scale / 1e-6


def test_enormous_statistics_are_clamped_not_wrapped() -> None:
    noisy = noise.add(
        np.array([1e40, -1e40]), kind="gaussian", noise_multiplier=1.0, sensitivity=1.0, records=10
    )
    assert noisy[0] > 1e9 and noisy[1] < -1e9


def test_tiny_noise_leaves_every_possible_statistic_whole() -> None:
    statistic = np.array([-1e7, 1e7, 12345.0])
    noisy = noise.add(
        statistic, kind="gaussian", noise_multiplier=1e-12, sensitivity=1.0, records=10**7
    )
    assert noisy == pytest.approx(statistic, abs=1e-9)
