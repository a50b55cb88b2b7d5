"""Releases of a real `PrivateTable` cannot be told apart beyond the claim; weaker ones can."""

from __future__ import annotations

import numpy as np
import pytest
from dp_accounting.gaussian_mechanism import get_epsilon_gaussian

from core.privacy.guarded import PrivateTable
from core.privacy.mechanisms.noise import NoiseSource
from core.privacy.plan import Phase
from tests.mutants.broken_privacy import Quieter
from tests.privacy import toys
from tests.privacy.harness import Caught, check_distinguishing

DRAWS = 200_000
DELTA = 0.05  # large, so that 2·10⁵ draws have the power to see a broken claim


def outputs(
    first: float, released: Phase, *, declared: float, source: NoiseSource | None
) -> np.ndarray:
    """2·10⁵ noisy sums over two records whose first number is `first` and 0.5."""
    values = np.zeros((2, toys.WIDTH))
    values[:, 0] = (first, 0.5)
    private_table = PrivateTable(
        toys.table(values), toys.domain(), toys.plan(2, [released]), noise_source=source
    )
    mechanism = toys.Repeated(DRAWS, declared, released.mechanism)  # type: ignore[arg-type]
    return private_table.release("sum", mechanism).numpy()


def play(
    released: Phase,
    *,
    epsilon: float,
    delta: float,
    declared: float = 1.0,
    source: NoiseSource | None = None,
) -> float:
    inside = outputs(1.0, released, declared=declared, source=source)
    outside = outputs(0.0, released, declared=declared, source=source)
    return check_distinguishing(inside, outside, epsilon=epsilon, delta=delta)


@pytest.mark.parametrize("multiplier", [0.8, 1.5])
def test_honest_gaussian_noise_passes_at_its_exact_claim_only(multiplier: float) -> None:
    released = toys.phase(noise_multiplier=multiplier)
    epsilon = get_epsilon_gaussian(multiplier, DELTA)
    play(released, epsilon=epsilon, delta=DELTA)
    with pytest.raises(Caught):  # and the claim has no room to spare that the test could miss
        play(released, epsilon=0.6 * epsilon, delta=DELTA)


@pytest.mark.parametrize("multiplier", [0.8, 1.5])
def test_a_fifth_less_gaussian_noise_is_caught(multiplier: float) -> None:
    released = toys.phase(noise_multiplier=multiplier)
    epsilon = get_epsilon_gaussian(multiplier, DELTA)
    with pytest.raises(Caught):
        play(released, epsilon=epsilon, delta=DELTA, source=Quieter(0.8))


@pytest.mark.parametrize("multiplier", [0.8, 1.5])
def test_a_sensitivity_stated_at_half_is_caught(multiplier: float) -> None:
    released = toys.phase(noise_multiplier=multiplier)
    epsilon = get_epsilon_gaussian(multiplier, DELTA)
    with pytest.raises(Caught):
        play(released, epsilon=epsilon, delta=DELTA, declared=0.5)


def test_laplace_noise_passes_and_less_of_it_is_caught() -> None:
    # h(ε) = 1 - e^((ε - 1/b)/2) for Laplace noise of scale b over Δ; at ε = 1/b nothing remains
    b = 1.25
    released = toys.phase(noise_multiplier=b, mechanism="laplace")
    epsilon = 0.5 / b
    delta = 1 - np.exp((epsilon - 1 / b) / 2)
    play(released, epsilon=epsilon, delta=delta)
    with pytest.raises(Caught):
        play(released, epsilon=epsilon, delta=delta, declared=0.8)
