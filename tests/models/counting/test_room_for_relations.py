"""What columns by themselves leave room for: which relations are worth asking about."""

from __future__ import annotations

import numpy as np
import pytest

from core.encoding.codec import Codec
from core.models.steps.counting.comparisons import Marginal, most_to_show, unrelated
from core.models.steps.counting.relation_candidates import RelationCandidates, TotalCandidate
from core.models.steps.counting.relations import moments_fit, telling
from core.schema.column import Column, Kind
from core.schema.schema import Schema

N = 8000
RANDOM = np.random.default_rng(0)
FEE, PRICE = RANDOM.gamma(2.0, 20.0, N).round(), RANDOM.normal(300.0, 60.0, N).round()
COUNT, NONE = RANDOM.integers(1, 9, N) * 1.0, np.where(RANDOM.random(N) < 0.5, 0.0, FEE)


def marginal(numbers: np.ndarray, present: float = 1.0) -> Marginal:
    """Of these numbers, each by itself."""
    distinct, counts = np.unique(numbers, return_counts=True)
    return Marginal(distinct, counts / counts.sum(), present)


def fits(total: np.ndarray, left: np.ndarray, right: np.ndarray, unit: float) -> bool:
    columns = [marginal(one) for one in (total, left, right)]
    return moments_fit(columns, TotalCandidate(0, 1, 2, unit))


def test_a_total_fits_its_own_parts_and_no_others() -> None:
    assert fits(FEE + PRICE, FEE, PRICE, 1.0) and fits(PRICE + NONE, PRICE, NONE, 1.0)
    assert not fits(FEE + PRICE, PRICE, COUNT, 1.0)  # whose mean is too low
    assert not fits(2.0 * PRICE, PRICE, np.full(N, 300.0), 1.0)  # which spreads too little
    assert fits(COUNT * PRICE, COUNT, PRICE, 0.0)
    assert not fits(COUNT * PRICE, COUNT, FEE + 1.0, 0.0)
    assert not fits(PRICE, -COUNT, PRICE, 0.0)  # nothing is below zero
    assert not fits(PRICE, NONE, PRICE, 0.0) and not fits(NONE, COUNT, PRICE, 0.0)  # or zero
    assert fits(COUNT * NONE, COUNT, NONE, 0.0)


@pytest.mark.parametrize("bounds", [(150.0, 400.0), (400.0, 150.0), (250.0, 250.0)])
def test_tails_that_bounds_cut_off_leave_a_total_its_room(bounds) -> None:
    amount, post = RANDOM.gamma(0.8, 80.0, N).round(2), RANDOM.choice((0.0, 2.5, 4.9), N)
    whole, own = (
        np.minimum(one, most) for one, most in zip((amount + post, amount), bounds, strict=True)
    )
    assert fits(whole, own, post, 1.0)
    assert not fits(own, whole + 60.0, post, 1.0) and not fits(whole + 60.0, own, post, 1.0)


def test_tails_that_noise_hides_leave_a_total_its_room() -> None:
    amount = np.exp(RANDOM.normal(3.5, 1.2, N)).round(2)
    post = RANDOM.choice((0.0, 2.5, 4.9), N)
    whole = amount + post
    seen = marginal(whole[whole < np.quantile(whole, 0.97)])
    total = Marginal(np.append(seen.numbers, whole.max()), np.append(seen.shares, 0.0), 1.0)
    own, dearer, fee = (marginal(one) for one in (amount, 2.0 * amount, post))
    assert moments_fit([total, own, fee], TotalCandidate(0, 1, 2, 1.0))
    assert not moments_fit([total, dearer, fee], TotalCandidate(0, 1, 2, 1.0))


def test_means_of_columns_with_many_missing_cells_say_nothing() -> None:
    columns = [marginal(COUNT), marginal(FEE), marginal(PRICE, 0.5)]
    assert moments_fit(columns, TotalCandidate(0, 1, 2, 1.0))


def test_what_ranges_settle_has_nothing_to_show() -> None:
    ages, years = RANDOM.integers(18, 90, N) * 1.0, RANDOM.integers(1990, 2024, N) * 1.0
    assert most_to_show(marginal(ages), marginal(years)) == pytest.approx(0.0)
    assert most_to_show(marginal(ages), marginal(ages)) == pytest.approx(1.0, abs=0.02)
    later = np.maximum(ages, RANDOM.integers(18, 90, N))
    below, above = unrelated(marginal(ages), marginal(later))
    assert above <= most_to_show(marginal(ages), marginal(later)) <= above + below
    nobody = Marginal(np.zeros(0), np.zeros(0), 0.0)
    assert most_to_show(nobody, nobody) == 0.0 and most_to_show(nobody, marginal(ages)) == 0.0
    rarely = np.where(RANDOM.random(N) < 0.01, 5.0, 0.0)  # nearly always equal, by chance
    assert most_to_show(marginal(rarely), marginal(rarely)) < 0.03


def test_what_cannot_show_above_the_noise_is_not_asked() -> None:
    whole = {"kind": Kind.INTEGER, "step": 1.0, "low": 0.0, "high": 2000.0}
    blocks = Codec(Schema(columns=[Column(name=x, **whole) for x in "abcd"]).domain()).blocks
    columns = [marginal(one) for one in (PRICE, PRICE + FEE, COUNT, FEE + 10.0)]
    pairs = ((0, 1), (0, 2), (1, 2), (2, 3))
    sums = TotalCandidate(1, 0, 3, 1.0), TotalCandidate(0, 2, 3, 1.0)
    asked = telling(RelationCandidates(sums, pairs), blocks, (), columns, N, 20.0)
    assert asked.compared == ((0, 1),) and asked.totals == sums[:1]
    loud = telling(RelationCandidates(sums, pairs), blocks, (), columns, N, 1e6)
    assert len(loud.compared) + len(loud.totals) == 1  # a release of nothing is refused
    quiet = telling(RelationCandidates(sums, pairs), blocks, (), columns, N, 0.0)
    assert quiet.compared == pairs and quiet.totals == sums
