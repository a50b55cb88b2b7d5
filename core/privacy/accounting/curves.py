"""Dominating curves: upper bounds on a mechanism's privacy profile, turned into PLDs.

A profile is h(ε) = sup over neighbours of H_{e^ε}(P‖Q) = sup_S P(S) - e^ε Q(S), for every real ε.
Any b ≥ h may stand in for h. As a function of t = e^ε, h is convex, so the lower convex hull of b
is still ≥ h and is itself the profile of some pair of distributions; connecting its corners by
straight lines in t only raises it. That pair dominates the mechanism, hence may be composed with
other PLDs (Zhu, Dong & Wang, "Optimal accounting of differential privacy", 2022, Theorem 10;
Doroshenko et al., "Connect the dots", 2022).

All bounds here hold with P and Q exchanged, so negative ε follow from
h(-ε) = 1 - e^-ε + e^-ε h(ε), and one distribution serves both directions.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from dp_accounting.pld import pld_pmf
from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution
from dp_accounting.pld.privacy_loss_mechanism import AdjacencyType, GaussianPrivacyLoss
from numpy.typing import NDArray
from scipy import optimize
from scipy.special import log_ndtr

Floats = NDArray[np.float64]


def gaussian_profile(eps: Floats, distance: float) -> Floats:
    """h(ε) of two unit normals `distance` > 0 apart, for any real ε.

    Source: Balle & Wang, "Improving the Gaussian mechanism", 2018, equation 6.
    """
    first = log_ndtr(distance / 2.0 - eps / distance)
    second = eps + log_ndtr(-distance / 2.0 - eps / distance)
    return np.asarray(-np.exp(first) * np.expm1(np.minimum(second - first, 0.0)))


def zcdp_profile(eps: Floats, rho: float) -> Floats:
    """A bound on h(ε) at ε ≥ 0 for anything that is ρ-zCDP: the least over Rényi orders.

    Source: Canonne, Kamath & Steinke, "The discrete Gaussian", 2020, Proposition 12, and
    h ≤ total variation ≤ min(√(KL/2), √(1 - e^-KL)) with KL ≤ ρ (Pinsker; Bretagnolle & Huber).
    """
    widest = 3.0 * math.sqrt(60.0 / rho) + 10.0  # beyond the best order for δ = e^-60
    orders = 1.0 + np.geomspace(0.02, widest, 160)[:, None]  # [160, 1]
    log_bound = (orders - 1.0) * (rho * orders - eps + np.log1p(-1.0 / orders)) - np.log(orders)
    total_variation = math.sqrt(min(-math.expm1(-rho), rho / 2.0))
    return np.asarray(np.minimum(np.exp(log_bound.min(axis=0).clip(max=0.0)), total_variation))


def zcdp_rho(epsilon: float, delta: float) -> float:
    """The largest ρ whose zCDP bound meets (ε, δ), to one part in 10⁹; ε > 0, δ in (0, 1)."""
    eps = np.array([epsilon])

    def excess(log_rho: float) -> float:
        bound = float(zcdp_profile(eps, math.exp(log_rho))[0])
        return math.log(max(bound, 1e-300)) - math.log(delta)

    return math.exp(float(optimize.brentq(excess, -40.0, 10.0, xtol=1e-9)) - 1e-8)


def replaced_sampled_profile(eps: Floats, sigma: float, rate: float) -> Floats:
    """A bound on h(ε) at ε ≥ 0 for a Poisson-sampled Gaussian (rate q) when one record is replaced.

    With M₀ the output without the record and M₁, M₁' the outputs with either version, the two
    outputs are (1-q)M₀ + qM₁ and (1-q)M₀ + qM₁'. Balle, Barthe & Gaboardi (2018, Theorem 2) give h
    = q · H_γ(M₁ ‖ (1-β)M₀ + βM₁') with γ = 1 + (e^ε - 1)/q and β = e^ε/γ. Splitting M₁ into parts λ
    and 1-λ and using (a + b)₊ ≤ a₊ + b₊,

      H_γ(M₁ ‖ …) ≤ λ H_{γ(1-β)/λ}(M₁‖M₀) + (1-λ) H_{γβ/(1-λ)}(M₁‖M₁'),

    where M₁ and M₀ are at most Δ apart and M₁ and M₁' at most 2Δ. Every λ in [0, 1] is sound; the
    least over a grid is taken. At q = 1 this is the exact profile at distance 2Δ.
    """
    other = gaussian_profile(eps, 2.0 / sigma)  # λ = 0: γβ = e^ε
    best = other
    if rate < 1.0:
        log_far = eps  # ln γβ
        with np.errstate(divide="ignore"):
            # γ(1-β) = γ - e^ε = (1-q)(e^ε - 1)/q, zero at ε = 0
            log_near = np.log(np.expm1(eps)) + math.log1p(-rate) - math.log(rate)
        near = np.maximum(log_near, -700.0)
        best = np.minimum(best, gaussian_profile(near, 1.0 / sigma))  # λ = 1
        for share in _SPLITS:
            right = (1 - share) * gaussian_profile(log_far - math.log1p(-share), 2.0 / sigma)
            less = np.flatnonzero(right < best)  # the other part is never negative
            left = share * gaussian_profile(near[less] - math.log(share), 1.0 / sigma)
            best[less] = np.minimum(best[less], left + right[less])
    return np.asarray(rate * best)


_SPLITS = tuple(1.0 / (1.0 + math.exp(-x)) for x in np.linspace(-9.0, 9.0, 37))


def dominating_pld(eps: Floats, bound: Floats, interval: float) -> PrivacyLossDistribution:
    """The PLD of a pair that dominates everything with profile ≤ `bound`, in [0, 1], at `eps`.

    `eps` are 0, interval, 2·interval, …; the bound holds in both directions.
    """
    steps = np.arange(len(eps))
    mirrored = -np.expm1(-eps[1:]) + np.exp(-eps[1:]) * bound[1:]  # h(-ε)
    grid = np.concatenate([-steps[:0:-1], steps])
    delta = np.concatenate([mirrored[::-1], np.minimum.accumulate(bound)]).clip(0.0, 1.0)
    corners = _lower_hull(np.exp(grid * interval), delta)
    pmf: Any = pld_pmf.create_pmf_pessimistic_connect_dots(
        interval, grid[corners], np.minimum.accumulate(delta[corners])
    )
    return PrivacyLossDistribution(pmf)


def _lower_hull(x: Floats, y: Floats) -> NDArray[np.int64]:
    hull: list[int] = []
    xs, ys = x.tolist(), y.tolist()
    for i in range(len(xs)):
        while len(hull) > 1:
            a, b = hull[-2], hull[-1]
            if (ys[b] - ys[a]) * (xs[i] - xs[a]) < (ys[i] - ys[a]) * (xs[b] - xs[a]):
                break
            hull.pop()
        hull.append(i)
    return np.array(hull)


_NEAR = 1e-6  # of the least or largest loss: where the library rounds to it, point by point


def gaussian_pld(sigma: float, *, interval: float, rate: float = 1.0) -> Any:
    """The distribution of one Gaussian, that of the library's `from_gaussian_mechanism`.

    Args:
      sigma: noise over sensitivity, > 0.
      rate: of Poisson sampling, in (0, 1].
    """
    directions = (AdjacencyType.REMOVE, AdjacencyType.ADD)[: 1 if rate == 1.0 else 2]
    return PrivacyLossDistribution(*(_masses(sigma, rate, way, interval) for way in directions))


def _masses(sigma: float, rate: float, direction: AdjacencyType, interval: float) -> Any:
    loss = _GridLosses(sigma, sampling_prob=rate, adjacency_type=direction)
    bounds = loss.connect_dots_bounds()
    upper = math.ceil(bounds.epsilon_upper / interval)
    lower = math.floor(bounds.epsilon_lower / interval)
    deltas = loss.get_delta_for_epsilon(np.arange(lower, upper + 1) * interval)
    return pld_pmf.create_pmf_pessimistic_connect_dots_fixed_gap(interval, lower, upper, deltas)


class _GridLosses(GaussianPrivacyLoss):  # type: ignore[misc]  # the library has no types
    """The library's losses; deltas come for whole arrays of ε."""

    def get_delta_for_epsilon(self, epsilon: Floats) -> Floats:
        """The hockey-stick divergence at each ε, float64 [m]."""
        deltas, inside = np.zeros(len(epsilon)), np.full(len(epsilon), True)
        if self.sampling_prob < 1.0 and self.adjacency_type == AdjacencyType.ADD:
            inside = epsilon < -math.log1p(-self.sampling_prob)  # no loss is larger
        elif self.sampling_prob < 1.0:
            inside = epsilon > math.log1p(-self.sampling_prob)  # no loss is smaller
            deltas[~inside] = -np.expm1(epsilon[~inside])
        noise_values = self._noise_values(epsilon[inside])
        below = np.exp(epsilon[inside] + self.mu_lower_log_cdf(noise_values))
        deltas[inside] = self.mu_upper_cdf(noise_values) - below
        return deltas.clip(0.0, 1.0)

    def _noise_values(self, losses: Floats) -> Floats:
        """The library's `inverse_privacy_loss` of each loss, float64 [m]."""
        if self.sampling_prob == 1.0:
            return np.asarray(self.inverse_privacy_loss(losses))
        ratio = 1.0 / self.sampling_prob
        end = math.log(1.0 - self.sampling_prob)
        sign, unsampled = 1.0, self._inverse_privacy_loss_without_subsampling_remove
        if self.adjacency_type == AdjacencyType.ADD:
            sign, unsampled = -1.0, self._inverse_privacy_loss_without_subsampling_add
        special = (np.abs(losses - sign * end) <= -_NEAR * end) | (losses == 0.0)
        above = sign * losses[~special] + np.log(ratio)
        difference = above + np.log1p(-np.exp(np.log(ratio - 1.0) - above))
        values = np.empty(len(losses))
        values[special] = [self.inverse_privacy_loss(loss) for loss in losses[special]]
        values[~special] = unsampled(sign * difference)  # of ln(1 + (e^±loss - 1) / rate)
        return values
