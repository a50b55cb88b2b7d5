"""Stein and two-sample tests: right values, right size, and power where there is a difference."""

import pytest
import torch
from scipy import stats

from core.lmdp.discrepancy import (
    critical_value,
    linear_statistic,
    median_bandwidth,
    rbf,
    stein_pairs,
    two_sample_test,
)
from tests.lmdp.stein_tests import linear_test, quadratic_test, stein_matrix
from tests.lmdp.worlds import MEANS, mixture, score, seeded

pytestmark = pytest.mark.slow

BANDWIDTH = 2.6  # about the median distance of the mixture's draws
N = 128  # the paper's sample size


def by_autograd(x, y, s, t, h):
    """u(x, y) from its definition, with all derivatives by autograd."""
    a, b = x.clone().requires_grad_(True), y.clone().requires_grad_(True)

    def k(a, b):
        return (-(a - b).square().sum() / (2 * h**2)).exp()

    value = k(a, b)
    by_a, by_b = torch.autograd.grad(value, (a, b), create_graph=True)
    trace = sum(torch.autograd.grad(by_a[i], b, retain_graph=True)[0][i] for i in range(len(x)))
    return s @ t * value + s @ by_b + by_a @ t + trace


def test_stein_kernel_is_its_definition():
    random = seeded(1)
    x, s = (torch.randn((6, 3), generator=random, dtype=torch.float64) for _ in range(2))
    pairs, matrix = stein_pairs(x, s, bandwidth=1.3), stein_matrix(x, s, bandwidth=1.3)
    for i in range(3):
        want = by_autograd(x[2 * i], x[2 * i + 1], s[2 * i], s[2 * i + 1], 1.3).detach()
        assert pairs[i] == pytest.approx(float(want), abs=1e-12)
        assert matrix[2 * i, 2 * i + 1] == pytest.approx(float(want), abs=1e-12)
    assert torch.allclose(matrix, matrix.T)


def test_an_odd_row_is_left_out_and_two_pairs_are_needed():
    x = torch.randn((7, 1), generator=seeded(2))
    assert len(stein_pairs(x, -x, bandwidth=1.0)) == 3
    assert float(linear_statistic(torch.ones(1))) == 0.0
    assert float(linear_statistic(torch.zeros(5))) == 0.0


def test_statistic_by_hand():
    # N = 3, Σu = 6, Σu² = 14: (2/3) · 36/14
    assert float(linear_statistic(torch.tensor([1.0, 2.0, 3.0]))) == pytest.approx(2 / 3 * 36 / 14)
    # all equal: the largest value there is, N - 1
    assert float(linear_statistic(torch.full((9,), 0.2))) == pytest.approx(8.0)


def test_critical_value_is_the_square_of_the_normal_quantile():
    assert critical_value(0.05) == pytest.approx(stats.norm.ppf(0.975) ** 2)
    with pytest.raises(ValueError, match="α"):
        critical_value(1.0)


def test_stein_kernel_has_mean_zero_under_its_density():
    x = mixture(200_000, seeded(3))
    u = stein_pairs(x, score(x), bandwidth=BANDWIDTH)
    assert abs(float(u.mean())) < 4 * float(u.std()) / len(u) ** 0.5


@pytest.mark.parametrize("seed", [1, 2])
def test_size_of_the_linear_test_on_the_papers_mixture(seed):
    random = seeded(seed)
    rejected = 0
    for _ in range(5000):
        x = mixture(N, random)
        rejected += linear_test(x, score(x), bandwidth=BANDWIDTH).p_value <= 0.05
    assert 0.025 <= rejected / 5000 <= 0.055


def test_size_of_the_quadratic_test_on_the_papers_mixture():
    random, rejected = seeded(4), 0
    for trial in range(2000):
        x = mixture(N, random)
        test = quadratic_test(x, score(x), bandwidth=BANDWIDTH, draws=99, seed=trial)
        rejected += test.p_value <= 0.05
    assert 0.025 <= rejected / 2000 <= 0.065  # ± 3 standard errors beyond the aim of .055


def test_size_of_the_two_sample_test_on_the_papers_mixture():
    random, rejected = seeded(5), 0
    for trial in range(1500):
        test = two_sample_test(mixture(N, random), mixture(N, random), permutations=99, seed=trial)
        rejected += test.p_value <= 0.05
    assert 0.025 <= rejected / 1500 <= 0.067


def test_power_against_another_mixture():
    other = MEANS + torch.tensor([0.8, -0.6, 1.0, -0.9, 0.7], dtype=torch.float64)
    random, found = seeded(6), {"linear": 0, "quadratic": 0, "two-sample": 0}
    for trial in range(200):
        x = mixture(N, random, other)
        found["linear"] += linear_test(x, score(x), bandwidth=BANDWIDTH).p_value <= 0.05
        quadratic = quadratic_test(x, score(x), bandwidth=BANDWIDTH, draws=99, seed=trial)
        found["quadratic"] += quadratic.p_value <= 0.05
        two = two_sample_test(x, mixture(N, random), permutations=99, seed=trial)
        found["two-sample"] += two.p_value <= 0.05
    assert found["quadratic"] > 180
    assert found["two-sample"] > 60
    assert found["linear"] > 20  # twice its level
    assert found["quadratic"] > found["linear"]  # what reading all pairs is for


def test_an_unnormalised_linear_statistic_would_be_caught():
    """The broken twin: (Σu)² / N without its scale does not have the χ² null."""
    random, rejected = seeded(7), 0
    for _ in range(2000):
        x = mixture(N, random)
        u = stein_pairs(x, score(x), bandwidth=BANDWIDTH)
        rejected += float(u.sum() ** 2 / len(u)) > critical_value(0.05)
    assert not 0.025 <= rejected / 2000 <= 0.055


def test_a_score_of_the_wrong_sign_is_told_apart():
    x = mixture(512, seeded(8))
    assert quadratic_test(x, -score(x), bandwidth=BANDWIDTH, draws=199).p_value <= 0.01


def test_mmd_by_brute_force():
    x = torch.tensor([[0.0], [1.0]], dtype=torch.float64)
    y = torch.tensor([[0.0], [3.0], [4.0]], dtype=torch.float64)
    # nine pairs lie apart, by 1, 1, 1, 2, 3, 3, 3, 4 and 4
    k = lambda a, b: float(rbf(a, b, bandwidth=3.0).mean())  # noqa: E731 - three uses below
    want = k(x, x) + k(y, y) - 2 * k(x, y)
    assert two_sample_test(x, y, permutations=9).statistic == pytest.approx(want)


def test_equal_samples_are_never_told_apart():
    x = mixture(100, seeded(9))
    assert two_sample_test(x, x.clone(), permutations=99).p_value == 1.0


def test_bandwidth_is_the_median_distance_and_never_zero():
    assert median_bandwidth(torch.tensor([[0.0], [1.0], [5.0]])) == pytest.approx(4.0)
    assert median_bandwidth(torch.zeros((5, 2))) == 1.0
