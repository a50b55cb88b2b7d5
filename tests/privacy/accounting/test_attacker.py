"""The best attack: exact for Gaussians, no less than a real one, no more than the claim allows."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import norm

from core.privacy.accounting.accountant import epsilon
from core.privacy.accounting.attacker import best_attack
from core.privacy.plan import Phase
from core.services.evidence.documents import best_attack_words

DELTA = 1e-5


def phase(noise, **more):
    return Phase(
        name=more.pop("name", "p"), title="t", what="w", share=1.0, noise_multiplier=noise, **more
    )


def bound(*phases, whole=True):
    value, _ = epsilon(phases, DELTA)
    return best_attack(phases if whole else None, value, DELTA), value


@pytest.mark.parametrize("share", [0.01, 0.1, 0.5])
def test_gaussians_on_all_rows_are_exact(share):
    """Two Gaussians at distance μ: f(α) = Φ(Φ⁻¹(α) + μ), 1/μ² the sum of σ² in parallel."""
    found, _ = bound(phase(4.0), phase(3.0, name="q", count=2))
    mu = math.sqrt(1 / 16 + 2 / 9)
    assert found.found(share) == pytest.approx(norm.cdf(norm.ppf(share) + mu), abs=1e-5)
    assert found.right == pytest.approx(norm.cdf(mu / 2.0), abs=1e-9)


def test_no_attack_on_sampled_batches_finds_more():
    rate, noise, steps, n = 0.3, 1.0, 3, 400_000
    found, _ = bound(phase(noise, sampling_rate=rate, count=steps))
    rng = np.random.default_rng(0)

    def losses(inside):
        taken = inside * (rng.random((n, steps)) < rate)
        seen = taken + noise * rng.standard_normal((n, steps))
        return np.log1p(rate * np.expm1((2 * seen - 1) / (2 * noise**2))).sum(axis=1)

    out = np.sort(losses(0))
    for share in (0.01, 0.1, 0.4):
        real = (losses(1) > out[int((1 - share) * n)]).mean()
        assert real - 0.005 < found.found(share) < real + 0.02, share


def test_what_is_only_claimed_bounds_what_is_composed():
    composed, value = bound(phase(1.1, count=500, sampling_rate=0.02), phase(6.0, name="q"))
    claimed, _ = bound(phase(1.1, count=500, sampling_rate=0.02), phase(6.0, name="q"), whole=False)
    guess = DELTA + (1.0 - DELTA) / (1.0 + math.exp(-value))  # the truth with odds e^ε : 1
    assert claimed.right == pytest.approx(guess)
    for share in (0.0, 0.001, 0.01, 0.1, 0.5, 1.0):
        assert share <= composed.found(share) <= claimed.found(share) <= 1.0
        assert claimed.found(share) <= math.exp(value + 0.01) * share + DELTA + 1e-9  # its grid


def test_posterior_is_of_those_accused():
    found, _ = bound(phase(4.0))
    told = best_attack_words(found)
    share = found.found(0.01) / (found.found(0.01) + 0.01)
    assert share <= told["posterior_at_1_percent"] < share + 0.001  # rounded up
    assert told["right"] >= found.right


def test_failures_are_found_for_certain():
    found, _ = bound(phase(4.0, failure=2e-6))
    assert found.found(0.0) >= 2e-6
