"""The library's privacy losses of Gaussian noise, with all points of a grid looked at together.

The library inverts the loss point by point in Python, which is most of the time that a plan takes.
Where no record is sampled its inverse is a straight line, which takes an array as well: the same
numbers pass through the library's functions, and its distribution comes out to the last bit.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from dp_accounting.pld import pld_pmf
from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution
from dp_accounting.pld.privacy_loss_mechanism import GaussianPrivacyLoss
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def gaussian_pld(sigma: float, *, interval: float) -> Any:
    """The distribution of one Gaussian, that of the library's `from_gaussian_mechanism`."""
    loss = _GridLosses(sigma)
    bounds = loss.connect_dots_bounds()
    upper = math.ceil(bounds.epsilon_upper / interval)
    lower = math.floor(bounds.epsilon_lower / interval)
    deltas = loss.get_delta_for_epsilon(np.arange(lower, upper + 1) * interval)
    masses = pld_pmf.create_pmf_pessimistic_connect_dots_fixed_gap(interval, lower, upper, deltas)
    return PrivacyLossDistribution(masses)


class _GridLosses(GaussianPrivacyLoss):  # type: ignore[misc]  # the library has no types
    """The library's losses; deltas come for whole arrays of ε."""

    def get_delta_for_epsilon(self, epsilon: Floats) -> Floats:
        """The hockey-stick divergence at each ε, float64 [m]."""
        noise_values = self.inverse_privacy_loss(epsilon)
        below = np.exp(epsilon + self.mu_lower_log_cdf(noise_values))
        return np.asarray((self.mu_upper_cdf(noise_values) - below).clip(0.0, 1.0))
