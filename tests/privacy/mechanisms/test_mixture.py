"""DP-EM: bounded sums, whatever the parameters; updates that survive pure noise."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from core.privacy.guarded import PrivateTable
from core.privacy.mechanisms.mixture import Mixture, MixtureStep, update
from tests.privacy import toys
from tests.privacy.harness import (
    check_additive,
    check_isolation,
    check_sensitivity,
    check_tight,
    check_zero_out,
)

D, R = toys.WIDTH, 3.0


def random_mixture(seed, components=4):
    rng = np.random.default_rng(seed)
    weights = torch.as_tensor(rng.dirichlet(np.ones(components)))
    means = torch.as_tensor(rng.normal(scale=2.0, size=(components, D)))
    return Mixture(weights, means, torch.as_tensor(rng.uniform(1e-3, 2.0, (components, D))))


def step(mixture=None, radius=R, scales=None):
    mixture = random_mixture(0) if mixture is None else mixture
    if scales is None:
        return MixtureStep.balanced(toys.values_of, mixture, radius)
    return MixtureStep(view=toys.values_of, current=mixture, radius=radius, scales=scales)


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    spread=st.floats(0.01, 30.0),
    radius=st.floats(0.1, 5.0),
    scales=st.tuples(*[st.floats(0.05, 5.0)] * 3),
)
def test_no_record_moves_it_further_than_stated(seed, spread, radius, scales):
    values = np.random.default_rng(seed).normal(scale=spread, size=(5, D))
    mechanism = step(random_mixture(seed), radius, scales)
    check_sensitivity(mechanism, toys.table(values))


@pytest.mark.parametrize("scales", [(1.0, 1.0, 1.0), (3.0, 0.2, 0.5), (0.1, 0.1, 2.0)])
def test_the_bound_is_reached(scales):
    """A record far out along one axis that one component has for itself."""
    values = np.zeros((3, D))
    values[0, 0] = 99.0
    one = Mixture(torch.ones(1), torch.zeros(1, D), torch.ones(1, D))
    check_tight(step(one, scales=scales), toys.table(values), least=0.9999)
    a, b, c = scales
    due = math.sqrt(a**2 + b**2 * R**2 + c**2 * R**4)
    assert step(one, scales=scales).sensitivity == pytest.approx(due)


def test_promises():
    rows, other = toys.random_table(6, 1), toys.random_table(6, 2)
    check_zero_out(step(), rows, other)
    check_isolation(step(), rows, other)
    check_additive(step(), rows, other)


def fit(codes, noise, steps=15, components=3):
    made = toys.plan(len(codes), [toys.phase("em", noise, count=steps)])
    table = PrivateTable(codes, toys.domain(), made)
    mixture = Mixture.start(components, D, R)
    for _ in range(steps):
        mechanism = step(mixture)
        mixture = update(table.release("em", mechanism), mechanism, len(codes))
    return mixture


def test_groups_are_found():
    rng = np.random.default_rng(0)
    centres = np.array([[1.2, 0.0, 0.3], [-1.2, 0.4, 0.0], [0.0, 1.5, -0.6]])
    group = rng.choice(3, 30_000, p=[0.5, 0.3, 0.2])
    x = centres[group] + 0.25 * rng.normal(size=(30_000, D))
    found = fit(toys.table(x), 1.0)
    order = [int(np.argmin(np.linalg.norm(found.means.numpy() - c, axis=1))) for c in centres]
    assert sorted(order) == [0, 1, 2]
    np.testing.assert_allclose(found.means.numpy()[order], centres, atol=0.08)
    np.testing.assert_allclose(found.weights.numpy()[order], [0.5, 0.3, 0.2], atol=0.03)
    np.testing.assert_allclose(found.variances.numpy()[order], 0.0625, atol=0.05)


@pytest.mark.parametrize("noise", [50.0, 1e4])
def test_pure_noise_leaves_a_mixture(noise):
    found = fit(toys.random_table(40, 0), noise, components=5)
    assert float(found.weights.sum()) == pytest.approx(1.0) and (found.weights > 0).all()
    assert (found.means.norm(dim=1) <= R * (1 + 1e-9)).all()
    assert (found.variances > 0).all()
    z = found.sample(100, torch.Generator().manual_seed(0))
    assert torch.isfinite(z).all() and torch.isfinite(found.log_joint(z).logsumexp(dim=1)).all()


def test_start_is_public_and_separates_groups():
    start = Mixture.start(7, D, R)
    assert float(start.weights.sum()) == pytest.approx(1.0)
    assert len(torch.unique(start.means, dim=0)) == 7
    torch.testing.assert_close(start.means, Mixture.start(7, D, R).means)


def test_density_is_that_of_torch():
    mixture = random_mixture(3)
    z = torch.randn(9, D, dtype=torch.float64)
    each = torch.distributions.Independent(
        torch.distributions.Normal(mixture.means, mixture.variances.sqrt()), 1
    )
    due = torch.distributions.MixtureSameFamily(
        torch.distributions.Categorical(mixture.weights), each
    ).log_prob(z)
    torch.testing.assert_close(mixture.log_joint(z).logsumexp(dim=1), due)
    torch.testing.assert_close(mixture.responsibilities(z).sum(1), torch.ones(9).double())
