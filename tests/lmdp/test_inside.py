"""The inside check: exact in level, able to see a shift, honest on short tables."""

import numpy as np
import pytest
import torch

from core.lmdp.discrepancy import KernelPoints
from core.lmdp.inside import fitted_stein_test, inside_check
from tests.lmdp.worlds import CODEC, coded, mixture, seeded

pytestmark = pytest.mark.slow

TAGGED = ("age", "ward")


def test_level_of_the_fitted_stein_test():
    random, rejected = seeded(1), 0
    for _ in range(400):
        x, released = mixture(32, random), mixture(300, random)
        rejected += fitted_stein_test(x, released, generator=random, draws=39).p_value <= 0.05
    assert rejected / 400 < 0.05 + 3 * 0.011  # a crude score costs power, never level


def test_a_shift_is_seen_by_both_tests_and_no_shift_by_neither():
    same = inside_check(CODEC, TAGGED, real=coded(2000, 1), released=coded(6000, 2))
    assert same.two_sample.p_value > 0.05
    assert same.goodness.p_value > 0.05
    assert not same.rejects(0.05)
    moved = inside_check(CODEC, TAGGED, real=coded(2000, 1), released=coded(6000, 2, older=8.0))
    assert moved.two_sample.p_value <= 0.01
    assert moved.goodness.p_value <= 0.01
    assert moved.rejects(0.05)


def test_one_test_alone_does_not_pass():
    from core.lmdp.discrepancy import TestResult
    from core.lmdp.inside import InsideCheck

    one = InsideCheck(TestResult(1.0, 0.001), TestResult(1.0, 0.2), 512)
    assert not one.rejects(0.05)


def test_columns_that_are_not_tagged_do_not_matter():
    real = coded(2000, 1)
    shuffled = coded(6000, 2)
    rng = np.random.default_rng(0)
    shuffled.values[:, 1] = rng.random(6000)  # "pay", which is not in the group
    assert not inside_check(CODEC, TAGGED, real=real, released=shuffled).rejects(0.05)


@pytest.mark.parametrize("rows", [16, 40])
def test_short_tables_are_tested_on_what_there_is(rows):
    check = inside_check(CODEC, TAGGED, real=coded(rows, 1), released=coded(rows, 2))
    assert check.records == rows // 2
    assert 0.0 < check.goodness.p_value <= 1.0


def test_view_needs_no_real_rows_and_puts_special_states_apart():
    view = KernelPoints.of(CODEC, ("debt",), coded(4000, 1))
    points = view(coded(1000, 2))
    assert points.dtype == torch.float64
    codes = coded(1000, 2).to("cpu")
    off = codes.states[:, 3] != 0
    assert (points[off, 0] == 0).all()  # a spike has no place on the line
    assert abs(float(points[~off, 0].std()) - 1.0) < 0.1
