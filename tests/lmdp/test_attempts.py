"""Several attempts share α: what is granted where nothing differs, and twins that break it."""

import math
from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from scipy import stats

from core.lmdp import level
from core.lmdp.discrepancy import TestResult
from core.lmdp.inside import InsideCheck, inside_check
from core.privacy.plan import Budget, Guarantee, Plan, Protection
from core.runs.execution import lmdp_certificate
from core.runs.execution.paid_release import Certify
from core.schema.person import Person
from core.services.plan_advice import certificate_offers
from tests.lmdp.worlds import CODEC, coded

pytestmark = pytest.mark.slow

ALPHA, RUNS, N = 0.05, 2000, 254 * level.GROUP


def planned(attempts, *, private):
    protection = Protection(
        groups={"g": ("age",)}, alpha=ALPHA, certificate=0.25 if private else None
    )
    epsilon = 1.0 if private else math.inf
    budget = Budget(epsilon=epsilon, delta=1e-6)
    return Plan(
        model="pearl",
        n=N,
        budget=budget,
        phases=Certify(protection, budget).phases(CODEC.domain, N, 1.0),
        guarantee=Guarantee(epsilon=epsilon, epsilon_replace=epsilon, delta=1e-6),
        protection=protection,
        attempts=attempts,
    )


@pytest.fixture(autouse=True)
def nothing_to_compute(monkeypatch):
    """Tests are calibrated on nothing, and thresholds found once."""
    monkeypatch.setattr(lmdp_certificate, "Codec", lambda _: SimpleNamespace(encode=lambda _: None))
    monkeypatch.setattr(lmdp_certificate, "RejectionCount", lambda _: None)
    monkeypatch.setattr(lmdp_certificate.GroupTest, "calibrate", lambda *_: None)
    monkeypatch.setattr(lmdp_certificate, "threshold", cache(level.threshold))
    monkeypatch.setattr(lmdp_certificate, "inside_check", None)  # `checked` sets it


def certified(plan, rng, rate=level.GROUP_LEVEL):
    """Whether one attempt's certificate is granted when groups reject at that rate."""
    (phase,) = plan.phases

    def release(name, mechanism):
        assert name == phase.name
        groups = level.groups_of(N, people=plan.unit is not None)
        count = rng.binomial(groups, rate) + rng.laplace(0, phase.noise_multiplier)
        return torch.tensor([count], dtype=torch.float64)

    table = SimpleNamespace(n=N, meter=SimpleNamespace(runs=lambda _: 0), release=release)
    fitted = SimpleNamespace(domain=CODEC.domain, sample=lambda n: None)
    (result,) = lmdp_certificate.certify(table, fitted, plan, on_event=lambda _: None)
    return result["granted"]


def checked(plan, rng):
    """Whether one attempt's inside check passes when nothing differs and both tests agree."""
    test = TestResult(0.0, float(rng.uniform()))
    lmdp_certificate.inside_check = lambda *_, **__: InsideCheck(test, test, 1)
    (result,) = lmdp_certificate.check_inside(CODEC, plan, real=None, released=None)
    return result["granted"]


def granted(plan):
    """How many of `RUNS` runs end with an attempt that passed, though nothing differs."""
    rng, passes = np.random.default_rng(5), certified if plan.budget.private else checked
    return sum(any(passes(plan, rng) for _ in range(plan.attempts)) for _ in range(RUNS))


def lower_bound(count):
    """Of the chance of a grant, at 99.9 % (Clopper and Pearson)."""
    return float(stats.beta.ppf(0.001, count, RUNS - count + 1))


@pytest.mark.parametrize("private", [True, False])
@pytest.mark.parametrize("attempts", [1, 5, 20])
def test_attempts_together_keep_their_level(attempts, private):
    count = granted(planned(attempts, private=private))
    assert lower_bound(count) <= ALPHA
    assert count / RUNS > 0.6 * ALPHA  # and are not tested at less than their part


@pytest.mark.parametrize("private", [True, False])
@pytest.mark.parametrize(("attempts", "rate"), [(5, 0.226), (10, 0.40)])
def test_an_undivided_level_is_caught(attempts, rate, private, monkeypatch):
    """The broken twin: each attempt is tested at α."""
    monkeypatch.setattr(Plan, "attempt_alpha", property(lambda plan: plan.protection.alpha))
    count = granted(planned(attempts, private=private))
    assert lower_bound(count) > ALPHA
    assert count / RUNS == pytest.approx(rate, abs=0.04)


def test_the_forecast_is_of_one_attempt_at_its_level():
    for attempts in (1, 5):
        plan, rng = planned(attempts, private=True), np.random.default_rng(6)
        offers = certificate_offers(
            N, groups=1, epsilon=10.0, shift=0.13, alpha=ALPHA, attempts=attempts
        )
        likely = {offer.epsilon: offer.likely for offer in offers}[0.25]
        share = sum(certified(plan, rng, rate=0.13) for _ in range(RUNS)) / RUNS
        assert share == pytest.approx(likely, abs=4 * math.sqrt(0.25 / RUNS))
    # what attempts pay for together stays below the budget
    paid = certificate_offers(N, groups=1, epsilon=1.0, shift=0.5, attempts=5)
    assert max(offer.epsilon for offer in paid) * 5 < 1.0


def test_people_in_groups_that_are_not_full_are_forecast_too():
    """Groups of people are fewer and some cannot reject: the certificate is granted less often."""
    unit, rng = Person(columns=("who",), rows=1), np.random.default_rng(7)
    plan = planned(1, private=True).model_copy(update={"unit": unit})
    asked = {"groups": 1, "epsilon": 10.0, "shift": 0.13, "alpha": ALPHA}
    rows, people = (
        {offer.epsilon: offer.likely for offer in certificate_offers(N, unit=who, **asked)}[0.25]
        for who in (None, unit)
    )
    rate = 0.13 * level.full_groups(N, people=True)
    share = sum(certified(plan, rng, rate=rate) for _ in range(RUNS)) / RUNS
    assert share == pytest.approx(people, abs=4 * math.sqrt(0.25 / RUNS))
    assert people < rows - 0.05


def test_the_certificate_says_both_levels():
    plan = planned(5, private=True)
    assert plan.attempt_alpha == pytest.approx(0.01)
    lost = lmdp_certificate._lost("g", ("age",), plan)
    assert (lost["alpha"], lost["alpha_each_attempt"]) == (0.05, pytest.approx(0.01))


def test_a_check_can_pass_at_the_lowest_level():
    lowest = ALPHA / 20
    real, released = coded(2000, 1), coded(6000, 2, older=30.0)
    check = inside_check(CODEC, ("age", "ward"), real=real, released=released, level=lowest)
    assert check.rejects(lowest)
