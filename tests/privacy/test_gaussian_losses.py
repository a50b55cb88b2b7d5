"""Losses of a whole grid at once are the library's own, to the last bit."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as plds

from core.privacy.accounting.gaussian_losses import gaussian_pld

# ln(1 - q), beyond which no loss lies, on a point of the grid, and too near to one to tell
ON_THE_GRID = (1.0 - math.exp(-0.007), 1.0 - math.exp(-0.448 * (1.0 + 5e-10)))


def losses(pld: Any) -> list[tuple[int, float, list[float]]]:
    """Least loss, mass at infinity and masses of each direction."""
    dense = [pmf.to_dense_pmf() for pmf in (pld._pmf_remove, pld._pmf_add)]
    return [(pmf._lower_loss, pmf._infinity_mass, np.asarray(pmf._probs).tolist()) for pmf in dense]


@pytest.mark.parametrize("sigma", [0.35, 1.1, 6.0, 40.0])
@pytest.mark.parametrize("rate", [1.0, 0.002, 0.16, 0.5, 0.97, *ON_THE_GRID])
@pytest.mark.parametrize("interval", [1e-3, 3.2e-3])
def test_every_mass_is_the_librarys_to_the_last_bit(
    sigma: float, rate: float, interval: float
) -> None:
    ours = gaussian_pld(sigma, rate, interval=interval)
    theirs = plds.from_gaussian_mechanism(
        sigma, value_discretization_interval=interval, sampling_prob=rate
    )
    assert losses(ours) == losses(theirs)
    assert ours._symmetric == theirs._symmetric == (rate == 1.0)
    twice = [pld.self_compose(2).get_epsilon_for_delta(1e-6) for pld in (ours, theirs)]
    assert twice[0] == twice[1]
