"""The private certificate: its sensitivity, its level and power, and twins that break them."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from core.encoding.key_groups import positions_by_key
from core.lmdp.certificate import GroupTest, RejectionCount
from core.lmdp.discrepancy import rbf
from core.lmdp.level import GROUP, GROUP_LEVEL, chance, full_groups, groups_of, threshold
from tests.lmdp.worlds import CODEC, coded

pytestmark = pytest.mark.slow

TAGGED = ("age", "ward")


@pytest.fixture(scope="module")
def test_of_groups():
    return GroupTest.calibrate(CODEC, TAGGED, coded(12_000, 7))


@pytest.fixture(scope="module")
def count(test_of_groups):
    return RejectionCount(test_of_groups)


def value(mechanism, codes, mask):
    return float(mechanism.statistic(codes.to("cpu"), mask)[0])


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10_000), lost=st.integers(0, 3 * GROUP - 1))
def test_no_record_moves_the_count_by_more_than_one(count, seed, lost):
    codes, mask = coded(3 * GROUP, seed, older=3.0), torch.ones(3 * GROUP)
    before = value(count, codes, mask)
    mask[lost] = 0.0
    assert abs(value(count, codes, mask) - before) <= count.sensitivity


def test_some_record_moves_it_by_one(count):
    """A group that is told apart, and then lacks a record: Δ = 1 is reached."""
    codes, mask = coded(GROUP, 3, older=30.0), torch.ones(GROUP)
    assert value(count, codes, mask) == count.sensitivity
    mask[5] = 0.0
    assert value(count, codes, mask) == 0.0


def test_the_statistic_of_one_test_on_all_rows_would_be_caught(test_of_groups):
    """The broken twin: releasing n · MMD² of all rows with Δ = 1."""
    n = 4 * GROUP
    points = test_of_groups.points(coded(n, 5, older=10.0).to("cpu"))
    near = rbf(points, test_of_groups.reference, bandwidth=test_of_groups.bandwidth).mean(1)
    whole = n * float(test_of_groups._distance(points, near))
    worst = 0.0
    for lost in range(0, n, 16):
        here = torch.arange(n) != lost
        rest = float(test_of_groups._distance(points[here], near[here]))
        worst = max(worst, abs((n - 1) * rest - whole))
    assert _fails_sensitivity(worst, 0.1)  # it moves by far more than a normalised test would


def _fails_sensitivity(moved, claimed):
    return moved > claimed * (1 + 1e-6)


def test_records_beyond_the_last_full_group_are_left_out(count):
    codes = coded(GROUP + 60, 9, older=30.0)
    whole = value(count, codes, torch.ones(GROUP + 60))
    assert whole == value(count, codes.slice(0, GROUP), torch.ones(GROUP))


def test_an_absent_group_counts_for_nothing(count):
    codes = coded(GROUP, 9, older=30.0)
    assert value(count, codes, torch.ones(GROUP)) == 1.0
    assert value(count, codes, torch.zeros(GROUP)) == 0.0


def test_groups_that_are_not_full_keep_the_level():
    """People fall into groups by their keys: some groups are not full, and all of them count."""
    rng = np.random.default_rng(2)
    for n in (200, 2000, 32_561):
        groups, filled = groups_of(n, people=True), 0
        for _ in range(50):
            hashes = np.sort(rng.integers(0, 2**64, n, dtype=np.uint64))
            members = positions_by_key(hashes, GROUP, groups).reshape(groups, GROUP)
            filled += (members >= 0).all(axis=1).sum() / groups / 50
        assert filled == pytest.approx(full_groups(n, people=True), abs=0.03)
        assert filled > 0.9
    assert groups_of(GROUP - 1, people=True) == 0 and full_groups(GROUP - 1, people=True) == 0.0


def test_equal_marginals_reject_no_more_groups_than_allowed(count):
    codes = coded(400 * GROUP, 11)
    share = value(count, codes, torch.ones(len(codes))) / 400
    assert share <= GROUP_LEVEL + 2 * math.sqrt(0.05 * 0.95 / 400)
    assert share > 0.01


def test_threshold_holds_its_level_by_simulation():
    rng = np.random.default_rng(0)
    for groups, epsilon in ((254, 0.25), (39, 0.5), (8, 1.0)):
        level = threshold(groups, epsilon=epsilon, alpha=0.05)
        draws = rng.binomial(groups, GROUP_LEVEL, 200_000) + rng.laplace(0, 1 / epsilon, 200_000)
        assert np.mean(draws > level) == pytest.approx(0.05, abs=0.002)
        likely = rng.binomial(groups, 0.6, 200_000) + rng.laplace(0, 1 / epsilon, 200_000)
        wanted = chance(groups, epsilon=epsilon, alpha=0.05, rate=0.6)
        assert np.mean(likely > level) == pytest.approx(wanted, abs=0.004)


def test_without_noise_in_the_threshold_the_level_would_break():
    """The broken twin: the binomial quantile alone, as if the count came without noise."""
    from scipy import stats

    naive = stats.binom.ppf(0.95, 254, GROUP_LEVEL)
    rng = np.random.default_rng(1)
    draws = rng.binomial(254, GROUP_LEVEL, 100_000) + rng.laplace(0, 1 / 0.1, 100_000)
    assert np.mean(draws > naive) > 0.2


def test_golden_numbers_of_the_privacy_page():
    assert threshold(254, epsilon=0.25, alpha=0.05) == pytest.approx(26.4, abs=0.06)
    assert chance(254, epsilon=0.25, alpha=0.05, rate=0.2) == pytest.approx(0.996, abs=5e-4)
    assert groups_of(32_561) == 254
    assert chance(0, epsilon=0.25, alpha=0.05, rate=0.9) == 0.0


def test_a_calibration_needs_released_records():
    with pytest.raises(ValueError, match="512"):
        GroupTest.calibrate(CODEC, TAGGED, coded(100, 1))
