"""Losses of a whole grid at once are the library's own, to the last bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as plds

from core.privacy.accounting.curves import gaussian_pld

pytestmark = pytest.mark.slow


def losses(pld: Any) -> list[tuple[int, float, list[float]]]:
    """Least loss, mass at infinity and masses of each direction."""
    dense = [pmf.to_dense_pmf() for pmf in (pld._pmf_remove, pld._pmf_add)]
    return [(pmf._lower_loss, pmf._infinity_mass, np.asarray(pmf._probs).tolist()) for pmf in dense]


@pytest.mark.parametrize("sigma", [0.05, 0.35, 1.1, 6.0, 40.0, 1000.0])
@pytest.mark.parametrize("interval", [1e-3, 3.2e-3])
def test_every_mass_is_the_librarys_to_the_last_bit(sigma: float, interval: float) -> None:
    ours = gaussian_pld(sigma, interval=interval)
    theirs = plds.from_gaussian_mechanism(sigma, value_discretization_interval=interval)
    assert losses(ours) == losses(theirs)
    assert ours._symmetric and theirs._symmetric
    twice = [pld.self_compose(2).get_epsilon_for_delta(1e-6) for pld in (ours, theirs)]
    assert twice[0] == twice[1]


@pytest.mark.parametrize("sigma", [0.35, 1.1, 6.0, 1000.0])
@pytest.mark.parametrize("rate", [1e-6, 0.01, 0.3, 0.9, 1.0 - 1e-3])
def test_sampled_masses_are_the_librarys_to_the_last_bit(sigma: float, rate: float) -> None:
    ours = gaussian_pld(sigma, rate=rate, interval=1e-3)
    theirs = plds.from_gaussian_mechanism(
        sigma, sampling_prob=rate, value_discretization_interval=1e-3
    )
    assert losses(ours) == losses(theirs)
    assert not ours._symmetric and not theirs._symmetric


@pytest.mark.parametrize("off", [1.0 - 1e-9, 1.0 + 1e-9])
def test_a_little_less_noise_is_seen(off: float) -> None:
    theirs = plds.from_gaussian_mechanism(1.1, value_discretization_interval=1e-3)
    assert losses(gaussian_pld(1.1 * off, interval=1e-3)) != losses(theirs)
