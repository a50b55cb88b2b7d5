"""The library's privacy losses of Gaussian noise, with all points of a grid looked at together.

The library inverts the loss point by point in Python, a hundred thousand times a distribution,
which is most of the time that a plan takes. Here the same numbers pass through the same functions
as arrays; what comes out is the library's distribution to the last bit.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from dp_accounting.pld import pld_pmf
from dp_accounting.pld.common import log_a_times_exp_b_plus_c
from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution
from dp_accounting.pld.privacy_loss_mechanism import AdjacencyType, GaussianPrivacyLoss
from numpy.typing import NDArray

__all__ = ["gaussian_pld"]

Floats = NDArray[np.float64]
_SAME = 1e-9  # of either loss: what the library takes for equal


def gaussian_pld(sigma: float, rate: float, *, interval: float) -> Any:
    """The distribution of one Gaussian, that of the library's `from_gaussian_mechanism`.

    Args:
      sigma: noise over sensitivity, > 0.
      rate: Poisson rate of each record, in (0, 1].
      interval: step of the grid of losses.
    """
    directions = (AdjacencyType.REMOVE, AdjacencyType.ADD)[: 1 if rate == 1.0 else 2]
    losses = [_GridLosses(sigma, sampling_prob=rate, adjacency_type=one) for one in directions]
    return PrivacyLossDistribution(*(_connected(loss, interval) for loss in losses))


def _connected(loss: _GridLosses, interval: float) -> Any:
    bounds = loss.connect_dots_bounds()
    upper = math.ceil(bounds.epsilon_upper / interval)
    lower = math.floor(bounds.epsilon_lower / interval)
    deltas = loss.get_delta_for_epsilon(np.arange(lower, upper + 1) * interval)
    return pld_pmf.create_pmf_pessimistic_connect_dots_fixed_gap(interval, lower, upper, deltas)


class _GridLosses(GaussianPrivacyLoss):  # type: ignore[misc]  # the library has no types
    """The library's losses of one direction; deltas come for whole arrays of ε."""

    def get_delta_for_epsilon(self, epsilon: Floats) -> Floats:
        """The hockey-stick divergence at each ε, float64 [m]."""
        if self.sampling_prob == 1.0:  # the inverse is a straight line, also of an array
            return self._divergence(epsilon, self.inverse_privacy_loss(epsilon))
        adding = self.adjacency_type == AdjacencyType.ADD
        sign = -1.0 if adding else 1.0
        limit = math.log1p(-self.sampling_prob)  # no loss lies beyond it
        inside = sign * epsilon > limit
        deltas = np.zeros_like(epsilon) if adding else -np.expm1(epsilon)
        deltas[inside] = self._divergence(
            epsilon[inside], self._places(sign * epsilon[inside], sign)
        )
        return deltas.clip(0.0, 1.0)

    def _places(self, signed: Floats, sign: float) -> Floats:
        """Where the loss of the sampled noise is so large, by way of what it is unsampled."""
        rate = self.sampling_prob
        limit = math.log(1.0 - rate)
        factor, rest = 1.0 / rate, 1.0 - 1.0 / rate
        with np.errstate(divide="ignore", invalid="ignore"):
            shifted = signed + np.log(factor)
            unsampled = shifted + np.log1p(-np.exp(np.log(-rest) - shifted))
        unsampled[signed == 0.0] = log_a_times_exp_b_plus_c(factor, 0.0, rest)
        at_limit = np.abs(signed - limit) <= _SAME * np.maximum(np.abs(signed), abs(limit))
        unsampled[at_limit] = -math.inf
        if sign < 0.0:
            return np.asarray(self._inverse_privacy_loss_without_subsampling_add(-unsampled))
        return np.asarray(self._inverse_privacy_loss_without_subsampling_remove(unsampled))

    def _divergence(self, epsilon: Floats, places: Floats) -> Floats:
        below = np.exp(epsilon + self.mu_lower_log_cdf(places))
        return np.asarray((self.mu_upper_cdf(places) - below).clip(0.0, 1.0))
