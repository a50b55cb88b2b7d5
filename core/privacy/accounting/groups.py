"""What several records of one person cost, where nobody can tell whose rows are whose.

Every mechanism is stated for one record. A person with at most m of them moves a sum by m Δ, so
Gaussian and Laplace noise count for 1/m of their size, and ρ-zCDP becomes m²ρ. On Poisson batches
each of the m records comes with probability q by itself. K ~ Bin(m, q) of them move the sum by at
most K Δ, and no pair of outputs is told apart better than Σ_k P(K = k) N(k, σ²) from N(0, σ²): a
mixture of Gaussians, which is far less than m Δ with the probability that any record comes at all.

Sources: Dwork and Roth, "The algorithmic foundations of differential privacy", 2014, theorem 2.2;
Bun and Steinke, "Concentrated differential privacy", 2016, proposition 27; Ganesh, "Tight
group-level DP guarantees for DP-SGD with sampling via mixture of Gaussians mechanisms", 2024.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from dp_accounting.pld import privacy_loss_distribution as plds
from numpy.typing import NDArray
from scipy import stats
from scipy.special import logsumexp

from core.privacy.plan import Phase


class AccountedPhase(NamedTuple):
    """A phase, hashable.

    Attributes:
      noise: noise multiplier, or ρ of zCDP; of a group's batches that of one record, else of all.
      rate: Poisson rate of one record; 1 when all take part.
      rows: records that may come into a batch for one; 1 where all take part.
    """

    kind: str
    noise: float
    rate: float
    runs: int
    rows: int = 1

    @property
    def grouped(self) -> bool:
        """Whether a batch may hold any number of a group's records."""
        return self.rows > 1


def accounted_phase(phase: Phase, rows: int = 1) -> AccountedPhase:
    """A phase as it counts for `rows` ≥ 1 records that are one person's."""
    if phase.mechanism == "zcdp":
        assert phase.rho is not None
        return AccountedPhase("zcdp", phase.rho * rows**2, 1.0, phase.count)
    if phase.mechanism == "laplace" and phase.sampling_rate is not None:
        raise ValueError(f"Phase '{phase.name}': sampled Laplace noise is not accounted for.")
    rate = 1.0 if phase.sampling_rate is None else phase.sampling_rate
    if rate < 1.0:
        return AccountedPhase(phase.mechanism, phase.noise_multiplier, rate, phase.count, rows)
    return AccountedPhase(phase.mechanism, phase.noise_multiplier / rows, rate, phase.count)


def accounted_phases(phases: Sequence[Phase], rows: int) -> tuple[AccountedPhase, ...]:
    """See `accounted_phase`."""
    return tuple(accounted_phase(phase, rows) for phase in phases)


Floats = NDArray[np.float64]
_FINE = 5.0  # grid points a standard deviation, and a sensitivity; see `mixture_renyi`
_REACH = 12.0  # standard deviations beyond the outermost peak; what lies there weighs e^-72
_WIDEST = 2_000.0  # an order whose peak lies further off, in standard deviations, counts as inf
# far above the error of the sums: a share of each divergence, and of the sum that it is the log of
_CERTAIN, _LEAST = 1.0 + 1e-9, 1e-13
_NEVER = 1e-40  # more of the records come so seldom that they are counted as all of them


@functools.lru_cache(maxsize=64)
def _shifts(rate: float, rows: int) -> tuple[Floats, Floats]:
    """By how much the sum moves, in Δ, and with which probability; what is too rare joins m."""
    count = np.arange(rows + 1)
    chance = stats.binom.pmf(count, rows, rate)
    often = chance > _NEVER
    often[[0, -1]] = True
    chance[-1] += chance[~often].sum()
    return count[often].astype(np.float64), chance[often]


def mixture_pld(sigma: float, rate: float, rows: int, *, interval: float) -> Any:
    """The privacy loss distribution of one batch, for a person with `rows` rows."""
    shifts, chance = _shifts(rate, rows)
    return plds.from_mixture_gaussian_mechanism(
        sigma, shifts.tolist(), chance.tolist(), value_discretization_interval=interval
    )


def mixture_renyi(orders: Sequence[float], sigma: float, rate: float, rows: int) -> Floats:
    """Rényi divergences of one batch, the greater of both directions; float64 [orders].

    With P the mixture and Q = N(0, σ²), ln ∫ P^α Q^(1-α) / (α - 1) and the same with P and Q
    exchanged, by the trapezoid rule. The integrand is analytic where |Im x| < π Δ, so a step of Δ/5
    errs by a share of about e^(-10π²). An order that needs too wide a grid counts as infinite.
    """
    shifts, chance = _shifts(rate, rows)
    far = rows / sigma  # of the outermost Gaussian, in standard deviations
    usable = [order for order in orders if order * far <= _WIDEST]
    divergences = np.full(len(orders), np.inf)
    if not usable:
        return divergences
    width = max(usable) * far + 2.0 * _REACH
    points = math.ceil(width * _FINE * max(1.0, 1.0 / sigma))
    x = np.linspace(-_REACH, width - _REACH, points + 1)
    with np.errstate(divide="ignore"):  # the last weight may be too small to be written
        terms = np.log(chance) + x[:, None] * (shifts / sigma) - 0.5 * (shifts / sigma) ** 2
    log_ratio = logsumexp(terms, axis=1)  # ln P/Q, [grid]
    log_base = -0.5 * x**2 - 0.5 * math.log(2.0 * math.pi) + math.log(x[1] - x[0])  # Q · step
    for i, order in enumerate(orders):
        if order * far <= _WIDEST:
            both = [_log_sum(log_base + a * log_ratio) for a in (order, 1.0 - order)]
            divergences[i] = (max(0.0, *both) * _CERTAIN + _LEAST) / (order - 1.0)
    return divergences


def replaced_renyi(orders: Sequence[float], sigma: float, rate: float, rows: int) -> Floats:
    """The same when the person's rows are swapped for any others; float64 [orders].

    By way of nobody: D_α(P‖P') ≤ (α - ½)/(α - 1) · D_2α(P‖Q) + D_(2α-1)(Q‖P').

    Source: Mironov, "Rényi differential privacy", 2017, proposition 11 with p = q = 2.
    """
    alpha = np.asarray(orders, dtype=np.float64)
    there = mixture_renyi((2.0 * alpha).tolist(), sigma, rate, rows)
    back = mixture_renyi((2.0 * alpha - 1.0).tolist(), sigma, rate, rows)
    return np.asarray((alpha - 0.5) / (alpha - 1.0) * there + back)


def _log_sum(x: Floats) -> float:
    """Without the checks of the library's, which cost more than the sum."""
    top = float(x.max())
    return top + math.log(float(np.exp(x - top).sum()))
