"""The joint test of attacks: exact whatever is compared, and one level for all attacks together."""

from itertools import combinations

import numpy as np
import pytest
from scipy.stats import binom, hypergeom

from core.quality.metrics.attacks.membership_test import LEVEL, leads


def simulated(rng, n=80, members=60):
    """Successes without a leak: rare, tied, heavy-tailed and correlated ones."""
    member = rng.permutation(n) < members
    base = rng.random(n)
    successes = [
        (base < 0.03).astype(float),
        (base < 0.4).astype(float),
        np.exp(3.0 * rng.normal(size=n)),
        np.round(base * 4),
    ]
    return member, rng.integers(0, 3, n), successes


def test_the_level_holds_for_all_attacks_together():
    rng = np.random.default_rng(1)
    runs, level = 600, 0.1
    together = each_alone = 0
    for _ in range(runs):
        member, classes, successes = simulated(rng)
        found = leads(member, classes, successes, rng, draws=199)
        together += any(one.p <= level for one in found)
        alone = (leads(member, classes, [one], rng, draws=199)[0].p for one in successes)
        each_alone += any(p <= level for p in alone)
    assert together <= binom.ppf(0.999, runs, level)
    assert together >= binom.ppf(0.001, runs, level / 3)  # and it is no empty promise
    assert each_alone > binom.ppf(0.999, runs, level)  # every attack by itself: cries wolf


def test_one_attack_is_fishers_exact_test():
    member = np.arange(40) < 25
    success = np.isin(np.arange(40), [0, 3, 5, 6, 9, 12, 18, 30]).astype(float)
    classes, rng = np.zeros(40, dtype=int), np.random.default_rng(0)
    (one,) = leads(member, classes, [success], rng, draws=20_000)
    assert one.p == pytest.approx(hypergeom.sf(6, 40, 8, 25), abs=0.01)
    assert (one.members, one.strangers) == pytest.approx((7 / 25, 1 / 15))
    assert (one.records, one.others) == (25, 15)


def test_within_classes_it_is_the_sum_over_all_draws():
    member = np.array([1, 1, 0, 0, 1, 1, 1, 0, 0], dtype=bool)
    classes = np.array([0, 0, 0, 0, 1, 1, 1, 1, 2])  # the last has no member
    success = np.array([1.0, 0.4, 0.3, 0.2, 0.9, 0.1, 0.8, 0.0, 5.0])
    sums = [
        success[list(a)].sum() + success[list(b)].sum()
        for a in combinations(range(4), 2)
        for b in combinations(range(4, 8), 3)
    ]
    observed = success[member].sum()
    exact = np.mean([total >= observed - 1e-9 for total in sums])
    (one,) = leads(member, classes, [success], np.random.default_rng(0), draws=20_000)
    assert one.p == pytest.approx(exact, abs=0.01)
    # weights m h / n: 1 and 3/4
    assert one.members == pytest.approx((0.7 * 1 + 0.6 * 0.75) / 1.75)
    assert one.strangers == pytest.approx((0.25 * 1 + 0.0 * 0.75) / 1.75)
    assert (one.records, one.others) == (5, 3)


def test_success_that_the_class_explains_is_no_lead():
    rng = np.random.default_rng(2)
    classes = np.r_[np.zeros(100, dtype=int), np.ones(100, dtype=int)]
    member = np.r_[np.arange(100) < 90, np.arange(100) < 30]
    (one,) = leads(member, classes, [1.0 - classes], rng)
    assert one.p == 1.0 and one.members == one.strangers and one.at_level is None
    (pooled,) = leads(member, np.zeros(200, dtype=int), [1.0 - classes], rng)
    assert pooled.p <= LEVEL  # the same without classes


def test_the_lead_needed_is_where_the_alarm_begins():
    rng = np.random.default_rng(3)
    n = 400
    member = np.arange(n) < 300
    noise = rng.normal(size=n)
    for shift in (0.2, 0.3, 0.4, 0.5, 0.6):
        one, other = leads(
            member, np.zeros(n, dtype=int), [noise + shift * member, rng.random(n)], rng
        )
        assert one.at_level is not None
        needed = one.at_level[0] - one.at_level[1]
        assert (one.p <= LEVEL) == (one.members - one.strangers >= needed)
        assert other.p > LEVEL


def test_values_that_an_attack_does_not_try_are_left_out():
    rng = np.random.default_rng(4)
    member = rng.permutation(90) < 60
    classes = np.arange(90) % 3
    success = np.where(classes == 2, np.nan, rng.random(90))
    some, none = leads(member, classes, [success, np.full(90, np.nan)], rng)
    rows = classes < 2
    assert (some.records, some.others) == ((member & rows).sum(), (~member & rows).sum())
    assert (none.records, none.p) == (0, 1.0)
