"""Private selection: bounded range, the right law, and twins that break it."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from core.privacy.accounting.accountant import epsilon
from core.privacy.accounting.curves import zcdp_rho
from core.privacy.guarded import PrivateTable
from core.privacy.mechanisms.selection import Selection, range_of
from core.privacy.meter import UnplannedReleaseError
from core.privacy.plan import Phase
from tests.privacy import toys
from tests.privacy.deterministic_noise import DeterministicNoise

N, OPTIONS, EPSILON0 = 6, 4, 0.3


def phase(count=400, epsilon0=0.02, **more):
    return Phase(
        name="choose", title="t", what="w", mechanism="zcdp", share=1.0, noise_multiplier=0.0,
        rho=epsilon0**2 / 8, count=count, **more,
    )  # fmt: skip


class Scores:
    """Option j likes records near its own place."""

    options = OPTIONS

    def scores(self, rows):
        x = toys.values_of(rows)[:, :1]
        return torch.exp(-((x - torch.arange(OPTIONS)) ** 2))


class Unbounded(Scores):
    """Scores beyond 1, as if critics needed no sigmoid."""

    def scores(self, rows):
        return 3.0 * toys.values_of(rows)[:, :1].abs() * torch.arange(OPTIONS)


def private_table(codes, *, count=400, private=True, epsilon0=0.02):
    plan = toys.plan(len(codes), [phase(count, epsilon0)], private=private)
    return PrivateTable(codes, toys.domain(), plan, shuffle=False)


def logs(total, offsets, epsilon0, n):
    """Log-probabilities of the mechanism, by hand."""
    w = epsilon0 * (total + n * offsets)
    return w - np.log(np.exp(w - w.max()).sum()) - w.max()


def range_when_lost(mechanism, codes, lost, epsilon0=1.0):
    """How far apart the log-probability ratios of two options move when a record goes."""
    mask = torch.ones(len(codes))
    full = mechanism.statistic(codes.to("cpu"), mask).numpy()
    mask[lost] = 0.0
    less = mechanism.statistic(codes.to("cpu"), mask).numpy()
    moved = logs(full, np.zeros(OPTIONS), epsilon0, N) - logs(less, np.zeros(OPTIONS), epsilon0, N)
    return float(moved.max() - moved.min())


def summed(scores):
    from core.privacy.guarded import _Summed

    return _Summed(scores)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10_000), lost=st.integers(0, N - 1))
def test_one_record_has_bounded_range(seed, lost):
    assert range_when_lost(summed(Scores()), toys.random_table(N, seed), lost) <= 1.0 + 1e-9


def test_some_record_reaches_it():
    codes = toys.table(np.full((N, toys.WIDTH), 0.0))  # at option 0's place, far from option 3's
    assert range_when_lost(summed(Scores()), codes, 0) > 0.95


def test_scores_beyond_one_are_cut_and_would_break_it():
    codes = toys.table(np.full((N, toys.WIDTH), 5.0))
    assert range_when_lost(summed(Unbounded()), codes, 0) <= 1.0 + 1e-9

    class Trusting:
        def statistic(self, rows, mask):
            return mask.double() @ Unbounded().scores(rows).double()

    assert range_when_lost(Trusting(), codes, 0) > 5.0


def test_what_is_not_finite_counts_for_nothing():
    class Broken(Scores):
        def scores(self, rows):
            return torch.full((len(rows), OPTIONS), math.nan)

    total = summed(Broken()).statistic(toys.random_table(N, 1).to("cpu"), torch.ones(N))
    assert torch.equal(total, torch.zeros(OPTIONS, dtype=torch.float64))


@pytest.mark.parametrize("strength", [1.0, 4.0])
def test_draws_follow_the_law(strength):
    total, offsets = np.array([3.0, 2.0, 0.0, 1.0]), np.array([0.0, 0.1, 0.3, 0.0])
    selection = Selection(
        lambda: total,
        options=OPTIONS,
        n=N,
        epsilon0=EPSILON0 * strength,
        charge=lambda: None,
        source=DeterministicNoise(1),
    )
    draws = np.bincount([selection.select(offsets) for _ in range(20_000)], minlength=OPTIONS)
    want = np.exp(logs(total, offsets, EPSILON0 * strength, N)) * 20_000
    assert float(((draws - want) ** 2 / want).sum()) < 21.1  # χ²₃ at 1e-4


def test_half_the_noise_is_told_apart_by_the_same_check():
    total = np.array([3.0, 2.0, 0.0, 1.0])
    selection = Selection(
        lambda: total,
        options=OPTIONS,
        n=N,
        epsilon0=2 * EPSILON0,
        charge=lambda: None,
        source=DeterministicNoise(1),
    )
    zero = np.zeros(OPTIONS)
    draws = np.bincount([selection.select(zero) for _ in range(20_000)], minlength=OPTIONS)
    want = np.exp(logs(total, zero, EPSILON0, N)) * 20_000
    assert float(((draws - want) ** 2 / want).sum()) > 100


def test_each_selection_is_charged_and_none_is_free():
    table = private_table(toys.random_table(N, 1), count=3)
    selection = table.selection("choose", Scores())
    assert table.meter.runs("choose") == 0
    for _ in range(3):
        assert 0 <= selection.select(np.zeros(OPTIONS)) < OPTIONS
    assert table.meter.runs("choose") == 3
    with pytest.raises(UnplannedReleaseError):
        selection.select(np.zeros(OPTIONS))


def test_without_privacy_the_best_option_is_chosen():
    codes = toys.table(np.full((N, toys.WIDTH), 2.0))
    plan = toys.plan(
        N,
        [Phase(name="choose", title="t", what="w", share=1.0, noise_multiplier=0.0, count=2)],
        private=False,
    )
    selection = PrivateTable(codes, toys.domain(), plan).selection("choose", Scores())
    assert selection.select(np.zeros(OPTIONS)) == 2
    assert selection.select(np.array([2.0, 0, 0, 0])) == 0  # offsets count


def test_unplanned_selections_are_refused():
    table = private_table(toys.random_table(N, 1))
    with pytest.raises(UnplannedReleaseError):
        table.selection("other", Scores())
    sums = toys.plan(N, [toys.phase("choose")])
    with pytest.raises(UnplannedReleaseError):
        PrivateTable(toys.random_table(N, 1), toys.domain(), sums).selection("choose", Scores())
    with pytest.raises(ValueError, match="finite offsets"):
        table.selection("choose", Scores()).select(np.array([0.0, math.nan, 0, 0]))


def test_sums_cannot_be_taken_out():
    selection = private_table(toys.random_table(N, 1)).selection("choose", Scores())
    assert not hasattr(selection, "__dict__")
    assert not any("total" in name and "Selection" not in name for name in dir(selection))


def test_golden_numbers():
    assert range_of(phase()) == pytest.approx(0.02)
    assert epsilon((phase(),), 1e-5)[0] == pytest.approx(0.794, abs=2e-3)
    assert math.isinf(range_of(toys.phase("x", 0.0)))


@pytest.mark.parametrize("wanted", [0.05, 0.5, 3.0])
def test_rho_meets_its_share(wanted):
    rho = zcdp_rho(wanted, 1e-6)
    found, _ = epsilon((phase(1).model_copy(update={"rho": rho}),), 1e-6)
    assert found <= wanted * (1 + 1e-6)
    assert found > 0.9 * wanted


def test_nothing_is_summed_before_the_first_selection_is_charged():
    class Late(Scores):
        def scores(self, rows):
            assert table.meter.runs("choose") == 1
            looked.append(len(rows))
            return super().scores(rows)

    table, looked = private_table(toys.random_table(N, 1), count=3), []
    selection = table.selection("choose", Late())
    assert looked == []
    selection.select(np.zeros(OPTIONS))
    read = sum(looked)
    assert read >= N
    selection.select(np.zeros(OPTIONS))
    assert sum(looked) == read  # and only once
