"""From phases to ε: one accountant for plans, certificates and calibration.

All phases are composed as one event. Gaussians on all rows alone have an exact ε. Everything else
gets the lesser of a Rényi (RDP) and a privacy-loss-distribution (PLD) bound: the phases are fixed
before data is touched, and each bound holds by itself. Blocks known only to be ρ-zCDP enter the PLD
through a dominating curve (`core.privacy.accounting.curves`).

Two neighbouring relations:
  zero-out: one record becomes ⊥ and contributes nothing; n is public. This is the claim.
  replace-one: one record becomes any other, and n and the positions of all others stay: a row
    keeps its own, a person stands where their own key puts them, trained on as whom they replace.
    It is two zero-outs with ⊥ in the middle, so every sensitivity at most doubles: σ → σ/2,
    Laplace scale → scale/2, ρ → 4ρ (zCDP for groups of two). A sampled Gaussian takes the bound of
    `curves.replaced_sampled_profile`; it has no RDP bound here, so plans that hold one use the PLD
    alone, and those with batches of groups the RDP alone.

Where a person may have `rows` = m > 1 records that nobody can put together, "one record" is m of
them throughout (`core.privacy.accounting.groups`).

A phase that fails with some probability (a threshold lets through what one person alone holds) is a
Gaussian without the failure: ε is taken at what is left of δ when all failures are subtracted,
under replace-one twice each, since both persons may hold such a thing.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np
from dp_accounting.gaussian_mechanism import get_epsilon_gaussian
from dp_accounting.pld import privacy_loss_distribution as plds

from core.message import Message, ReportedError, joined
from core.privacy.accounting import curves
from core.privacy.accounting.curves import Floats, gaussian_pld
from core.privacy.accounting.groups import AccountedPhase, accounted_phases, mixture_pld
from core.privacy.accounting.rdp import rdp_divergences, rdp_epsilon
from core.privacy.accounting.scale_search import smallest_scale
from core.privacy.plan import LARGEST_EPSILON, Budget, Guarantee, Phase

Relation = Literal["zero-out", "replace-one"]
NOT_PRIVATE = "no differential privacy"
INTERVAL = 1e-4  # finest privacy-loss grid
COARSER = 32.0  # at most so many times as coarse
_GRID_ERROR = 1e-5  # of ε: what the grid may add to it
_GROUPED_INTERVAL = 5e-4  # of plans with sampled groups, whose distributions take ten times longer
_TAIL = 1e-22  # profiles are followed down to here; the rest counts as certain loss
_TOP = 600.0  # losses beyond this are not gridded: e^ε nears the end of float64
EXACT = "exact Gaussian"  # how ε is found of Gaussians on all rows
_ROUND_UP = 1e-9  # added to exact Gaussian ε, far above its root-finder's error


def epsilon(
    phases: Sequence[Phase],
    delta: float,
    relation: Relation = "zero-out",
    *,
    rows: int = 1,
    quick: bool = False,
) -> tuple[float, str]:
    """ε ≥ 0 at δ in (0, 1) of all phases together, inf when one has no noise; and how it was found.

    `quick` lets it come out larger by about one part in 10⁵, for a search.
    """
    if not 0.0 < delta < 1.0:
        raise ValueError(f"δ must lie strictly between 0 and 1, got {delta}.")
    failures = math.fsum(phase.failure * phase.count for phase in phases)
    left = delta - failures * (2.0 if relation == "replace-one" else 1.0)
    if left <= 0.0:
        return math.inf, "δ does not cover the failures"
    return _epsilon(accounted_phases(phases, rows), left, relation, quick)


@functools.lru_cache(maxsize=256)
def _epsilon(
    parts: tuple[AccountedPhase, ...], delta: float, relation: Relation, quick: bool
) -> tuple[float, str]:
    if not parts:
        return 0.0, "nothing was released"
    if any(part.noise == 0.0 for part in parts):
        return math.inf, NOT_PRIVATE
    if relation == "replace-one":
        parts = tuple(_doubled(part) for part in parts)
    if all(part.kind == "gaussian" and part.rate == 1.0 for part in parts):
        return _exact_gaussian(parts, delta), EXACT
    two_sided = relation == "replace-one" and any(part.rate < 1.0 for part in parts)
    grouped, bounds = any(part.grouped for part in parts), {}
    if grouped or not two_sided:
        bounds["RDP"] = rdp_epsilon(parts, delta, two_sided=two_sided)
    if not (grouped and two_sided):
        near = bounds.get("RDP", 0.0) if quick else 0.0
        bounds["PLD"] = _pld_epsilon(parts, delta, near=near, two_sided=two_sided)
    method = min(bounds, key=lambda name: bounds[name])
    return bounds[method], method if math.isfinite(bounds[method]) else "no finite ε was found"


def _doubled(part: AccountedPhase) -> AccountedPhase:
    """The same mechanism at twice the sensitivity; sampled Gaussians are handled by their curve."""
    if part.kind == "zcdp":
        return part._replace(noise=4.0 * part.noise)
    return part if part.rate < 1.0 else part._replace(noise=part.noise / 2.0)


def _exact_gaussian(parts: tuple[AccountedPhase, ...], delta: float) -> float:
    """Gaussians σ₁, σ₂, … on all rows are one with 1/σ² = Σ 1/σᵢ², and its ε is known exactly."""
    precision = sum(part.runs / part.noise**2 for part in parts)
    return float(get_epsilon_gaussian(1.0 / math.sqrt(precision), delta)) + _ROUND_UP


def renyi(phases: Sequence[Phase], order: float, *, rows: int = 1) -> float:
    """The phases' Rényi divergence bound at one order > 1, under zero-out; inf without noise.

    The next whole order may stand in where a fractional one cannot be computed.
    """
    parts = accounted_phases(phases, rows)
    if any(part.noise == 0.0 for part in parts):
        return math.inf
    return float(rdp_divergences(parts, [order, float(math.ceil(order))]).min())


def _pld_epsilon(
    parts: tuple[AccountedPhase, ...], delta: float, *, near: float, two_sided: bool
) -> float:
    """ε by composing privacy loss distributions; inf where the losses are too large to grid."""
    total = _composed(parts, near=near, two_sided=two_sided)
    return math.inf if total is None else float(total.get_epsilon_for_delta(delta))


def privacy_profile(phases: Sequence[Phase], eps: Floats, *, rows: int = 1) -> Floats | None:
    """Bounds on δ at each ε ≥ 0 [k] of all phases together, under zero-out; None where none is had.

    They are exact for Gaussians on all rows, and else those of the PLD.
    """
    parts = accounted_phases(phases, rows)
    failures = math.fsum(phase.failure * phase.count for phase in phases)
    if any(part.noise == 0.0 for part in parts):
        return np.ones_like(eps)
    if all(part.kind == "gaussian" and part.rate == 1.0 for part in parts):
        precision = sum(part.runs / part.noise**2 for part in parts)
        exact = curves.gaussian_profile(eps, math.sqrt(precision)) if parts else np.zeros_like(eps)
        return np.asarray(exact + failures)
    total = _composed(parts, near=0.0, two_sided=False)
    return None if total is None else np.asarray(total.get_delta_for_epsilon(eps)) + failures


@functools.lru_cache(maxsize=8)
def _composed(parts: tuple[AccountedPhase, ...], *, near: float, two_sided: bool) -> Any:
    """The privacy loss distribution of all phases; None where losses are too large to grid."""
    interval = _interval(parts, near)
    if not math.isfinite(interval):
        return None
    total: Any = plds.identity(interval)
    try:
        rho = sum(part.noise * part.runs for part in parts if part.kind == "zcdp")
        if rho:
            total = total.compose(_zcdp_pld(rho, interval))
        with np.errstate(over="ignore"):  # a tail bound that overflows is infinite, hence not used
            for part in parts:
                if part.kind != "zcdp":
                    total = total.compose(_noise_pld(part, interval, two_sided))
    except _TooLargeError:
        return None
    return total


def _interval(parts: tuple[AccountedPhase, ...], near: float) -> float:
    """A grid step that keeps the distributions below about a million points; inf for none.

    The grid i adds about T i²/ε to the ε of T compositions (measured), so few of them at a large ε
    need no fine one. Steps double, so that neighbouring noise scales share one.
    """
    spread = sum(part.runs * part.noise for part in parts if part.kind == "zcdp")
    for kind, noise, rate, count, rows in parts:
        if kind == "gaussian" and rate == 1.0:
            spread += count / (2.0 * noise**2)
        elif kind == "gaussian":
            spread += rows**2 / (2.0 * noise**2)
        elif kind == "laplace":
            spread += 1.0 / noise
    reach = spread + 2.0 * math.sqrt(50.0 * spread)  # loss exceeded with probability e^-50
    if reach >= 5e4:
        return math.inf
    finest = _GROUPED_INTERVAL if any(part.grouped for part in parts) else INTERVAL
    composed = 1 + sum(part.runs for part in parts if part.rate < 1.0)
    enough = min(near, 1e3) * math.sqrt(_GRID_ERROR / composed) / finest
    coarser = 2.0 ** math.floor(math.log2(min(max(enough, 1.0), COARSER)))
    return finest * max(coarser, reach / 50.0)


def grid_error(phases: Sequence[Phase], value: float, *, rows: int = 1) -> float:
    """By how much the grid of privacy losses may have raised an ε of Gaussians.

    It is twice what `_interval` says that the grid adds.
    """
    if value == 0.0:
        return 0.0  # δ covers all there is, and no grid raised that
    parts = accounted_phases(phases, rows)
    composed = 1 + sum(part.runs for part in parts if part.rate < 1.0)
    return 2.0 * composed * _interval(parts, 0.0) ** 2 / value


def _noise_pld(part: AccountedPhase, interval: float, two_sided: bool) -> Any:
    kind, noise, rate, count, rows = part
    if kind == "laplace":
        single = plds.from_laplace_mechanism(noise, value_discretization_interval=interval)
        return single.self_compose(count)
    if rate == 1.0:
        sigma = noise / math.sqrt(count)
        return gaussian_pld(sigma, interval=interval)
    if two_sided:
        return _replaced_pld(noise, rate, interval).self_compose(count)
    if part.grouped:
        return mixture_pld(noise, rate, rows, interval=interval).self_compose(count)
    return gaussian_pld(noise, rate=rate, interval=interval).self_compose(count)


class _TooLargeError(ArithmeticError):
    """A profile reaches losses whose exponential overflows."""


def _curve_pld(profile: Callable[[Any], Any], interval: float) -> Any:
    top = 1.0
    while float(profile(np.array([top]))[0]) > _TAIL:
        top *= 1.5
        if top > _TOP:
            raise _TooLargeError
    eps = np.arange(math.ceil(top / interval) + 1, dtype=np.float64) * np.float64(interval)
    return curves.dominating_pld(eps, profile(eps), interval)


@functools.lru_cache(maxsize=32)
def _zcdp_pld(rho: float, interval: float) -> Any:
    return _curve_pld(lambda eps: curves.zcdp_profile(eps, rho), interval)


@functools.lru_cache(maxsize=32)
def _replaced_pld(sigma: float, rate: float, interval: float) -> Any:
    return _curve_pld(lambda eps: curves.replaced_sampled_profile(eps, sigma, rate), interval)


def guarantee(
    executed: Sequence[Phase], delta: float, conditions: Sequence[str] = (), *, rows: int = 1
) -> Guarantee:
    """What may be claimed after these phases ran."""
    value, method = epsilon(executed, delta, rows=rows)
    replaced, replaced_method = epsilon(executed, delta, "replace-one", rows=rows)
    if method != replaced_method:
        both = {"method": joined([method]), "other": joined([replaced_method])}
        method = Message("{method} (replace-one: {other})", **both)
    return Guarantee(
        epsilon=value,
        epsilon_replace=replaced,
        delta=delta,
        method=joined([method]),
        conditions=tuple(conditions),
    )


def check_budget(budget: Budget, n: int) -> None:
    """Refuse a δ that would permit publishing whole records, and an ε that promises nothing."""
    if budget.private and budget.epsilon > LARGEST_EPSILON:
        raise ReportedError(
            "ε = {epsilon:g} protects nobody: above {largest:g} hardly any noise is added. "
            "Choose a smaller ε, or ε = ∞ to say so openly.",
            epsilon=budget.epsilon,
            largest=LARGEST_EPSILON,
        )
    if budget.private and budget.delta * n >= 1.0:
        raise ReportedError(
            "δ = {delta:g} is too large for {n} records: it must be below 1/n = {limit:g}, or "
            "publishing one randomly chosen record would count as private. Choose a smaller δ.",
            delta=budget.delta,
            n=n,
            limit=1 / n,
        )


def calibrate(
    budget: Budget, make_phases: Callable[[float], tuple[Phase, ...]], *, rows: int = 1
) -> float:
    """The smallest noise scale s ≥ 0 whose phases meet the budget; 0 when no privacy is claimed.

    Args:
      make_phases: phases for a scale s > 0; their ε must not rise with s. Multiply every noise
        multiplier by s and divide every ρ by s².

    Returns:
      s such that `epsilon(make_phases(s), δ)` ≤ ε, quick or not; the smallest to about one part in
        10⁹ for Gaussians on all rows and 10⁵ otherwise.

    Raises:
      ValueError: no amount of noise meets the budget.
    """
    if not budget.private:
        return 0.0

    def excess(scale: float) -> float:
        """ln(ε(s)/ε) ≤ 0 when the budget is met."""
        value, _ = epsilon(make_phases(scale), budget.delta, rows=rows, quick=True)
        return math.log(max(value, 1e-300) / budget.epsilon)

    def cheap(scale: float) -> float:
        """The same by the Rényi bound alone, which takes milliseconds."""
        parts = accounted_phases(make_phases(scale), rows)
        value = rdp_epsilon(parts, budget.delta, roughly=True)
        return math.log(max(value, 1e-300) / budget.epsilon)

    first = accounted_phases(make_phases(1.0), rows)
    if all(part.kind == "gaussian" and part.rate == 1.0 for part in first):
        return smallest_scale(excess, 1e-9)
    try:
        near = smallest_scale(cheap, 1e-2)
    except ValueError:  # the better bound may still find one
        near = 1.0
    return smallest_scale(excess, 1e-5, near=near)
