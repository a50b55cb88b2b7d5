"""ε from phases: golden numbers, exactness, soundness, calibration."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from contextlib import nullcontext

import numpy as np
import pytest
from dp_accounting import NeighboringRelation, dp_event
from dp_accounting.gaussian_mechanism import get_epsilon_gaussian, get_sigma_gaussian
from dp_accounting.pld import PLDAccountant
from dp_accounting.rdp import RdpAccountant
from scipy import integrate, stats

from core.privacy.accounting import curves
from core.privacy.accounting.accountant import (
    Relation,
    calibrate,
    check_budget,
    epsilon,
    guarantee,
    renyi,
)
from core.privacy.accounting.attacker import best_attack
from core.privacy.accounting.groups import accounted_phase
from core.privacy.accounting.rdp import event_of
from core.privacy.plan import Budget, Phase, Plan
from tests.privacy.toys import phase

pytestmark = pytest.mark.slow

DELTA = 1e-5
RATE = 64 / 32561  # batches of 64 out of 32,561 records


def example(scale: float = 1.0) -> tuple[Phase, Phase, Phase]:
    """DP-SGD, one Gaussian, 400 exponential mechanisms; noise multiplied by `scale`."""
    return (
        phase("sgd", 1.1 * scale, sampling_rate=RATE, count=7635),
        phase("embedding", 5.0 * scale),
        phase("boost", 0.0, mechanism="zcdp", rho=0.02**2 / 8 / scale**2, count=400),
    )


def named(phase: Phase) -> dp_event.DpEvent:
    """A phase in the library's own words, written apart from the product's."""
    single: dp_event.DpEvent
    if phase.mechanism == "zcdp":
        single = dp_event.ZCDpEvent(phase.rho)
    elif phase.mechanism == "laplace":
        single = dp_event.LaplaceDpEvent(phase.noise_multiplier)
    else:
        single = dp_event.GaussianDpEvent(phase.noise_multiplier)
        if phase.sampling_rate is not None:
            single = dp_event.PoissonSampledDpEvent(phase.sampling_rate, single)
    return dp_event.SelfComposedDpEvent(single, phase.count)


def library(accountant: type, phases: tuple[Phase, ...]) -> float:
    """ε by the library alone."""
    made = accountant(neighboring_relation=NeighboringRelation.REPLACE_SPECIAL)
    made.compose(dp_event.ComposedDpEvent([named(p) for p in phases]))
    return float(made.get_epsilon(DELTA))


# -- golden numbers -------------------------------------------------------------------------------


def test_golden_example() -> None:
    sgd, embedding, boost = example()
    assert library(RdpAccountant, example()) == pytest.approx(1.4426, abs=1e-4)
    assert epsilon(example(), DELTA) == (pytest.approx(1.3997, abs=1e-4), "PLD")
    assert library(RdpAccountant, (sgd,)) == pytest.approx(0.8905, abs=1e-4)
    assert epsilon((sgd,), DELTA) == (pytest.approx(0.7295, abs=1e-4), "PLD")
    assert epsilon((embedding,), DELTA) == (pytest.approx(0.7255, abs=1e-4), "exact Gaussian")
    assert epsilon((boost,), DELTA) == (pytest.approx(0.794, abs=1e-3), "RDP")


def test_golden_example_when_a_record_is_replaced() -> None:
    assert epsilon(example(), DELTA, "replace-one")[0] == pytest.approx(2.86, abs=5e-3)


def test_golden_calibration() -> None:
    scale = calibrate(Budget(epsilon=1.0, delta=DELTA), example)
    assert scale == pytest.approx(1.3185, abs=1e-3)
    assert epsilon(example(scale), DELTA)[0] <= 1.0


def test_the_boosting_bound_beats_plain_composition() -> None:
    # bounded range: 400 × ε₀²/8; plain ρ = ε₀²/2 of a pure mechanism would cost much more
    bounded = phase("boost", 0.0, mechanism="zcdp", rho=0.02**2 / 8, count=400)
    plain = phase("boost", 0.0, mechanism="zcdp", rho=0.02**2 / 2, count=400)
    assert epsilon((bounded,), DELTA)[0] < 0.5 * epsilon((plain,), DELTA)[0]


# -- exact cases ----------------------------------------------------------------------------------


def test_nothing_costs_nothing() -> None:
    assert epsilon((), DELTA) == (0.0, "nothing was released")


def test_a_phase_without_noise_has_no_guarantee() -> None:
    for relation in ("zero-out", "replace-one"):
        found = epsilon((phase(), phase("bare", 0.0)), DELTA, relation)
        assert found == (math.inf, "no differential privacy")
    claim = guarantee((phase("bare", 0.0),), DELTA)
    assert not claim.private and claim.epsilon_replace == math.inf


@pytest.mark.parametrize("sigma", [0.5, 1.0, 4.0, 30.0])
def test_gaussians_on_all_rows_are_exact(sigma: float) -> None:
    one = epsilon((phase("a", sigma),), 1e-6)[0]
    assert get_sigma_gaussian(one, 1e-6) == pytest.approx(sigma, rel=1e-7)
    # nine with three times the noise are the same as one
    assert epsilon((phase("a", 3 * sigma, count=9),), 1e-6)[0] == pytest.approx(one, abs=1e-8)
    split = (phase("a", 2 * sigma, count=3), phase("b", 2 * sigma))
    assert epsilon(split, 1e-6)[0] == pytest.approx(one, abs=1e-8)
    # replacing a record moves the sum twice as far
    doubled = get_epsilon_gaussian(sigma / 2, 1e-6)
    assert epsilon((phase("a", sigma),), 1e-6, "replace-one")[0] == pytest.approx(doubled, abs=1e-8)


def test_claims_are_rounded_up_never_down() -> None:
    for sigma in np.geomspace(0.2, 300, 40):
        claim, _ = epsilon((phase("a", float(sigma)),), 1e-6)
        exact = get_epsilon_gaussian(float(sigma), 1e-6)
        assert exact < claim < exact + 1e-8
        # the privacy profile itself, by integration over the region where it is positive
        due = curves.gaussian_profile(np.array([claim]), 1.0 / float(sigma))[0]
        assert due <= 1e-6


def test_laplace_costs_its_pure_epsilon_at_most() -> None:
    value, _ = epsilon((phase("a", 2.0, mechanism="laplace"),), 1e-6)
    assert value <= 0.5 + 1e-4  # the grid rounds losses up to 1e-4
    assert value > 0.49
    assert epsilon((phase("a", 2.0, mechanism="laplace"),), 1e-6, "replace-one")[0] <= 1.0 + 1e-4


def test_the_gaussian_profile_is_the_integral_it_stands_for() -> None:
    for distance, eps in itertools.product((0.2, 1.0, 3.0), (-1.0, 0.0, 0.7, 2.0)):
        integral, _ = integrate.quad(
            lambda x, d=distance, e=eps: max(
                0.0, stats.norm.pdf(x, d) - math.exp(e) * stats.norm.pdf(x)
            ),
            -12,
            15,
            limit=400,
            points=[distance / 2 + eps / distance],
        )
        found = curves.gaussian_profile(np.array([eps]), distance)[0]
        assert found == pytest.approx(integral, abs=1e-7)


# -- soundness ------------------------------------------------------------------------------------


@pytest.mark.parametrize("sigma", [0.7, 1.1, 4.0])
@pytest.mark.parametrize("rate", [0.002, 0.05])
@pytest.mark.parametrize("count", [10, 2000])
def test_pld_beats_rdp_on_sampled_gaussians(sigma: float, rate: float, count: int) -> None:
    sgd = (phase("sgd", sigma, sampling_rate=rate, count=count),)
    assert epsilon(sgd, DELTA)[0] == library(PLDAccountant, sgd) <= library(RdpAccountant, sgd)


@pytest.mark.parametrize("rho", [1e-4, 0.02, 0.5])
def test_zcdp_is_bounded_above_the_gaussian_of_that_rho(rho: float) -> None:
    # a Gaussian with σ² = 1/(2ρ) is exactly ρ-zCDP, so a sound bound for all cannot be below it
    sigma = 1 / math.sqrt(2 * rho)
    zcdp = phase("z", 0.0, mechanism="zcdp", rho=rho)
    for relation in ("zero-out", "replace-one"):
        exact = epsilon((phase("g", sigma),), DELTA, relation)[0]
        bound = epsilon((zcdp,), DELTA, relation)[0]
        assert exact <= bound <= 1.25 * exact
    mixed = epsilon((zcdp, phase("g", 5.0)), DELTA)[0]
    assert mixed >= epsilon((phase("h", sigma), phase("g", 5.0)), DELTA)[0]


@pytest.mark.parametrize("rho", [1e-3, 0.02, 1.0])
def test_the_zcdp_curve_lies_above_the_gaussian_profile(rho: float) -> None:
    eps = np.linspace(0.0, 8.0, 200)
    gap = curves.zcdp_profile(eps, rho) - curves.gaussian_profile(eps, math.sqrt(2 * rho))
    assert (gap >= -1e-15).all()


@pytest.mark.parametrize("rho", [1e-3, 0.02, 1.0])
def test_dominating_pld_lies_between_hull_and_bound(rho: float) -> None:
    interval = 1e-3
    eps = np.arange(9000) * interval
    bound = curves.zcdp_profile(eps, rho)
    pld = curves.dominating_pld(eps, bound, interval)
    profile = np.array([pld.get_delta_for_epsilon(e) for e in eps[::500]])
    assert (profile <= bound[::500] + 1e-12).all()
    assert (profile >= curves.gaussian_profile(eps[::500], math.sqrt(2 * rho)) - 1e-12).all()


def _mixtures(x: float, y: float, sigma: float, rate: float, eps: float) -> float:
    """H_{e^ε} of a sampled Gaussian whose record contributes (cos x, sin x) or (cos y, sin y)."""
    side = np.linspace(-9 * sigma, 9 * sigma, 700)
    u, v = np.meshgrid(side, side)

    def density(angle: float) -> np.ndarray:
        at = stats.norm.pdf(u, math.cos(angle), sigma) * stats.norm.pdf(v, math.sin(angle), sigma)
        none = stats.norm.pdf(u, 0, sigma) * stats.norm.pdf(v, 0, sigma)
        return (1 - rate) * none + rate * at

    positive = np.maximum(density(x) - math.exp(eps) * density(y), 0.0)
    return float(positive.sum() * (side[1] - side[0]) ** 2)


@pytest.mark.parametrize("sigma", [0.8, 2.0])
@pytest.mark.parametrize("rate", [0.1, 0.6])
@pytest.mark.parametrize("eps", [0.05, 0.4])
def test_replacing_is_bounded_for_records_at_any_angle(
    sigma: float, rate: float, eps: float
) -> None:
    # not only for opposite records, which need not be the worst pair
    bound = curves.replaced_sampled_profile(np.array([eps]), sigma, rate)[0]
    found = [_mixtures(0.0, angle, sigma, rate, eps) for angle in np.linspace(0.3, math.pi, 7)]
    assert max(found) <= bound + 1e-6
    assert bound <= 2.0 * max(found) + 1e-6  # and the bound is not idle


@pytest.mark.parametrize(
    ("sigma", "rate", "count"), [(1.1, RATE, 7635), (0.7, 0.01, 500), (3.0, 0.2, 200)]
)
def test_replacing_costs_between_opposite_records_and_two_steps(
    sigma: float, rate: float, count: int
) -> None:
    sgd = (phase("sgd", sigma, sampling_rate=rate, count=count),)
    opposite = PLDAccountant(neighboring_relation=NeighboringRelation.REPLACE_ONE)
    opposite.compose(named(sgd[0]))
    bound = epsilon(sgd, DELTA, "replace-one")[0]
    assert opposite.get_epsilon(DELTA) * (1 - 1e-6) <= bound <= 1.1 * opposite.get_epsilon(DELTA)
    # replace = take out, put in: (2ε, (1 + e^ε)δ) always holds
    small = epsilon(sgd, DELTA / 1000)[0]
    assert (1 + math.exp(small)) / 1000 <= 1
    assert bound <= 2 * small


@pytest.mark.parametrize(("sigma", "rate"), [(0.9, 0.02), (1.1, 0.16), (4.4, 0.6)])
def test_the_replaced_profile_is_the_least_of_all_splits(sigma: float, rate: float) -> None:
    eps = np.arange(1, 4000) * 2e-3
    near = np.log(np.expm1(eps)) + math.log1p(-rate) - math.log(rate)
    sums = [curves.gaussian_profile(eps, 2.0 / sigma), curves.gaussian_profile(near, 1.0 / sigma)]
    for share in curves._SPLITS:
        left = share * curves.gaussian_profile(near - math.log(share), 1.0 / sigma)
        far = eps - math.log1p(-share)
        sums.append(left + (1 - share) * curves.gaussian_profile(far, 2.0 / sigma))
    least = rate * np.min(sums, axis=0)
    assert (curves.replaced_sampled_profile(eps, sigma, rate) == least).all()


@pytest.mark.parametrize("rate", [1.0 - 1e-12, 1.0])
def test_sampling_everybody_is_no_sampling(rate: float) -> None:
    eps = np.array([0.0, 0.5, 2.0])
    exact = curves.gaussian_profile(eps, 2.0 / 1.5)
    assert curves.replaced_sampled_profile(eps, 1.5, rate) == pytest.approx(exact, rel=1e-6)


@pytest.mark.parametrize("relation", ["zero-out", "replace-one"])
def test_epsilon_falls_with_noise_and_rises_with_more_phases(relation: Relation) -> None:
    quiet, loud = epsilon(example(2.0), DELTA, relation)[0], epsilon(example(), DELTA, relation)[0]
    assert quiet < loud
    for left_out in range(3):
        fewer = tuple(p for i, p in enumerate(example()) if i != left_out)
        assert epsilon(fewer, DELTA, relation)[0] < loud
    assert epsilon(example(), 1e-7, relation)[0] > loud


def test_sampled_laplace_noise_is_refused_not_guessed() -> None:
    with pytest.raises(ValueError, match="not accounted for"):
        epsilon((phase("a", 1.0, mechanism="laplace", sampling_rate=0.1),), DELTA)


def test_too_large_losses_are_infinite_not_wrong() -> None:
    value, method = epsilon((phase("a", 1e-3, sampling_rate=0.5),), DELTA, "replace-one")
    assert value == math.inf and method != "PLD"


def test_failures_of_every_run_come_out_of_delta() -> None:
    failing, sound = ((phase("lists", 9.0, count=3, failure=f),) for f in (1e-6, 0.0))
    for how, rest in (("zero-out", 7e-6), ("replace-one", 4e-6)):  # either may be shown
        assert epsilon(failing, DELTA, how)[0] == pytest.approx(epsilon(sound, rest, how)[0])
    assert epsilon(failing, 2.9e-6)[0] == math.inf


@pytest.mark.parametrize("delta", [0.0, 1.0, -1e-6])
def test_delta_must_be_a_probability_inside(delta: float) -> None:
    with pytest.raises(ValueError, match="δ must lie"):
        epsilon((phase(),), delta)


# -- Rényi divergences ----------------------------------------------------------------------------


def test_renyi_divergences_of_known_mechanisms() -> None:
    assert renyi((phase("a", 2.0, count=3),), 5.5) == pytest.approx(3 * 5.5 / (2 * 2.0**2))
    assert renyi((phase("z", 0.0, mechanism="zcdp", rho=0.1),), 8.0) == pytest.approx(0.8)
    assert renyi((phase("a", 0.0),), 3.0) == math.inf
    assert renyi((), 3.0) == 0.0


def test_renyi_uses_the_next_whole_order_where_a_fraction_fails() -> None:
    hard = (phase("sgd", 0.5, sampling_rate=0.1),)  # order 1.1 does not converge
    assert renyi(hard, 1.1) == pytest.approx(renyi(hard, 2.0))


# -- calibration ----------------------------------------------------------------------------------


@pytest.mark.parametrize("wanted", [0.01, 0.3, 1.0, 8.0, 100.0])
def test_calibrating_one_gaussian_is_exact_in_few_steps(wanted: float) -> None:
    tried = []

    def make(scale: float) -> tuple[Phase, ...]:
        tried.append(scale)
        return (phase("a", scale),)

    scale = calibrate(Budget(epsilon=wanted, delta=1e-6), make)
    assert len(tried) < 25
    assert epsilon((phase("a", scale),), 1e-6)[0] <= wanted
    assert scale == pytest.approx(get_sigma_gaussian(wanted, 1e-6), rel=1e-6)


@pytest.mark.parametrize(
    "make",
    [
        lambda s: (phase("a", 2 * s, mechanism="laplace"), phase("b", s)),
        lambda s: (phase("sgd", s, sampling_rate=0.05, count=1000),),
        lambda s: (phase("z", 0.0, mechanism="zcdp", rho=1 / s**2), phase("b", 3 * s)),
        lambda s: (phase("fixed", 20.0), phase("b", s)),
    ],
    ids=["laplace", "sampled", "zcdp", "with a fixed part"],
)
@pytest.mark.parametrize("wanted", [0.5, 3.0])
def test_calibration_meets_the_budget_and_wastes_little(
    make: Callable[[float], tuple[Phase, ...]], wanted: float
) -> None:
    budget = Budget(epsilon=wanted, delta=1e-6)
    scale = calibrate(budget, make)
    assert epsilon(make(scale), 1e-6)[0] <= wanted
    assert epsilon(make(scale * (1 - 1e-4)), 1e-6)[0] > wanted


def test_no_claim_needs_no_noise() -> None:
    assert calibrate(Budget(epsilon=math.inf, delta=1e-6), example) == 0.0


def test_a_budget_that_no_noise_can_meet_is_refused() -> None:
    with pytest.raises(ValueError, match="No amount of noise"):
        calibrate(Budget(epsilon=0.1, delta=1e-6), lambda s: (phase("fixed", 1.0), phase("a", s)))


# -- claims ---------------------------------------------------------------------------------------


def test_a_guarantee_quotes_both_relations_and_its_conditions() -> None:
    claim = guarantee(example(), DELTA, ("bounds are public",))
    assert claim.epsilon == epsilon(example(), DELTA)[0]
    assert claim.epsilon_replace == epsilon(example(), DELTA, "replace-one")[0]
    assert claim.epsilon < claim.epsilon_replace
    assert claim.conditions == ("bounds are public",)
    assert claim.method == "PLD"
    assert guarantee((example()[2],), DELTA).method == "RDP (replace-one: PLD)"


def test_a_plan_composes_to_the_event_its_phases_are() -> None:
    budget, claim = Budget(epsilon=2.0, delta=DELTA), guarantee(example(), DELTA)
    made = Plan(model="toy", n=100, budget=budget, phases=example(), guarantee=claim)
    rdp = RdpAccountant(neighboring_relation=NeighboringRelation.REPLACE_SPECIAL)
    for charged in made.charged:
        rdp.compose(event_of(accounted_phase(charged)))
    assert rdp.get_epsilon(DELTA) == library(RdpAccountant, example())


@pytest.mark.parametrize(("delta", "fine"), [(1e-3, False), (1.1e-3, False), (9.9e-4, True)])
def test_delta_must_stay_below_one_over_n(delta: float, fine: bool) -> None:
    budget = Budget(epsilon=1.0, delta=delta)
    refused = pytest.raises(ValueError, match=r"too large for 1000 records.*0\.001")
    with nullcontext() if fine else refused:
        check_budget(budget, 1000)
    check_budget(Budget(epsilon=math.inf, delta=delta), 1000)  # nothing is claimed


def test_best_guess_is_that_of_the_most_revealing_mechanism() -> None:
    def best_guess(epsilon: float, delta: float) -> float:
        return best_attack(None, epsilon, delta).right

    assert best_guess(0.0, 0.0) == 0.5
    assert best_guess(0.0, 1.0) == 1.0
    assert best_guess(math.log(3), 0.0) == pytest.approx(0.75)  # odds 3 : 1
    for sigma, delta in itertools.product((0.7, 2.0, 9.0), (1e-6, 0.01)):
        # ½ + ½·total variation is what an attacker on one Gaussian reaches
        reached = stats.norm.cdf(1 / (2 * sigma))
        assert reached <= best_guess(get_epsilon_gaussian(sigma, delta), delta) + 1e-12
