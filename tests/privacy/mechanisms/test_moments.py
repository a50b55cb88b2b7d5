"""DP-PCA: one joint release whose sensitivity is reached and never exceeded."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from core.privacy.guarded import PrivateTable
from core.privacy.mechanisms.moments import Moments, principal, smat, svec
from tests.privacy import toys
from tests.privacy.harness import (
    check_additive,
    check_gaussian,
    check_isolation,
    check_sensitivity,
    check_tight,
    check_zero_out,
)

D = toys.WIDTH
FAR = toys.table(np.full((4, D), 9.0))


def moments(radius=1.5, weight=None):
    made = Moments.of(toys.values_of, width=D, radius=radius)
    if weight is None:
        return made
    return Moments(view=toys.values_of, width=D, radius=radius, mean_weight=weight)


@settings(deadline=None)
@given(x=st.lists(st.floats(-50, 50), min_size=4, max_size=4))
def test_svec_keeps_norms_and_comes_back(x):
    x = torch.tensor(x, dtype=torch.float64)
    matrix = torch.outer(x, x)
    assert float(svec(matrix).norm()) == pytest.approx(float(x @ x), rel=1e-12, abs=1e-12)
    torch.testing.assert_close(smat(svec(matrix), 4), matrix)


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    scale=st.floats(0.01, 30.0),
    radius=st.floats(0.1, 5.0),
    weight=st.floats(0.05, 5.0),
)
def test_no_record_moves_it_further_than_stated(seed, scale, radius, weight):
    values = np.random.default_rng(seed).normal(scale=scale, size=(5, D))
    mechanism = moments(radius, weight)
    check_sensitivity(mechanism, toys.table(values))
    check_tight(mechanism, toys.table(values * 1e4))


def test_promises():
    rows, other = toys.random_table(6, 1), toys.random_table(6, 2)
    check_tight(moments(), FAR, least=0.999)
    check_zero_out(moments(), rows, other)
    check_isolation(moments(), rows, other)
    check_additive(moments(), rows, other)
    assert moments(2.0, 3.0).sensitivity == pytest.approx(math.sqrt(9 * 4 + 16))  # √(w²R² + R⁴)


def private_table(codes, noise, count=1):
    made = toys.plan(len(codes), [toys.phase("pca", noise, count=count)])
    return PrivateTable(codes, toys.domain(), made)


def test_noise_in_svec_coordinates_is_independent():
    table = private_table(toys.table(np.zeros((4, D))), 1.1, count=1000)
    draws = np.stack([table.release("pca", moments()).numpy() for _ in range(1000)])
    check_gaussian(draws, 1.1 * moments().sensitivity)


def test_directions_are_found():
    rng = np.random.default_rng(0)
    turn, _ = np.linalg.qr(rng.normal(size=(D, D)))
    x = rng.normal(size=(20_000, D)) * np.array([0.9, 0.3, 0.05]) @ turn.T + [0.2, -0.1, 0.3]
    mechanism = moments(8.0)
    release = private_table(toys.table(x), 0.5).release("pca", mechanism)
    found = principal(release, len(x), mechanism, 2)
    overlap = np.abs(found.components.numpy().T @ turn[:, :2])
    np.testing.assert_allclose(overlap, np.eye(2), atol=0.06)
    np.testing.assert_allclose(found.variances, [0.81, 0.09], atol=0.02)
    np.testing.assert_allclose(found.mean, [0.2, -0.1, 0.3], atol=0.03)
    points = found.project(torch.as_tensor(x))
    np.testing.assert_allclose(points.mean(0), 0.0, atol=0.05)


def test_pure_noise_gives_orthonormal_directions_all_the_same():
    mechanism = moments()
    release = private_table(toys.random_table(4, 0), 1e4).release("pca", mechanism)
    found = principal(release, 4, mechanism, D)
    torch.testing.assert_close(found.components.T @ found.components, torch.eye(D).double())
    assert (found.variances >= 0).all() and torch.isfinite(found.mean).all()
    with pytest.raises(ValueError, match="7 components"):
        principal(release, 4, mechanism, 7)
