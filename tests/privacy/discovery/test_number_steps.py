"""Which steps numbers are multiples of, by released counts."""

from __future__ import annotations

import numpy as np
import pytest

from core.privacy.discovery.grids import STEPS, coarsest_steps
from core.privacy.discovery.number_steps import coarsest, likely, unrounded
from core.privacy.discovery.ranges import written_step
from core.schema.labels import from_numbers
from tests.privacy.discovery.test_learned_domains import N, column_of

OWN = np.random.default_rng(6)


def test_a_number_is_of_the_coarsest_step_that_divides_it() -> None:
    """A quarter is no multiple of a tenth, and a half is one of both."""
    numbers = np.array([0.75, 0.3, 0.35, 1.5, 7.0, 15.0, 0.01, 1 / 3, 0.0, 99.0, np.nan])
    classes = coarsest_steps(numbers)
    assert [STEPS[int(i) - 1] for i in classes[:7]] == [0.25, 0.1, 0.05, 0.5, 1, 5, 0.01]
    assert classes[7] == 0.0 and np.isnan(classes[8:]).all()
    assert unrounded(1.0)[7:11] == pytest.approx([0.8, 0.1, 0.08, 0.01], abs=1e-3)
    assert unrounded(0.05)[3:7] == pytest.approx([0.4, 0.4, 0.1, 0.05], abs=1e-3)


@pytest.mark.parametrize(
    ("values", "step"),
    [
        (OWN.integers(1, 60, N) * 10_000, 10_000.0),
        (np.where(OWN.random(N) < 0.97, OWN.integers(1, 500, N) * 100, 1234), 100.0),
        (OWN.integers(0, 200, N), 1.0),
        (np.where(OWN.random(N) < 0.5, 0, OWN.integers(1, 90, N) * 50), 50.0),
        (OWN.integers(100, 9900, N) / 100.0, 0.01),
        (OWN.integers(400, 2400, N) / 20.0, 0.05),
        (np.where(OWN.random(N) < 0.97, OWN.integers(2, 90, N) / 4.0, 2.13), 0.25),
        (OWN.integers(2, 80, N) / 2.0, 0.5),
        (np.where(OWN.random(N) < 0.97, OWN.integers(10, 900, N) / 10.0, 2.13), 0.1),
        (
            OWN.choice([1.0, 1.75, 2.25, 2.5, 3.5, 3.75], N, p=[0.2, 0.2, 0.2, 0.2, 0.17, 0.03]),
            0.25,
        ),
        (np.where(OWN.random(N) < 0.9, 45.0, OWN.integers(1000, 4500, N) / 100.0), 0.01),
        (np.zeros(N), 0.0),
    ],
)
def test_steps_are_those_that_nearly_all_numbers_keep(values: np.ndarray, step: float) -> None:
    _, column = column_of(values)
    assert column.step == step
    made = from_numbers(OWN.uniform(column.low, column.high, 500), column).to_numpy(float)
    if step:
        assert np.allclose(made / step, np.rint(made / step), atol=1e-6)


@pytest.mark.parametrize("spread", [0.003, 1.0, 40_000.0])
def test_numbers_without_a_step_have_few_digits(spread: float) -> None:
    _, column = column_of(OWN.normal(0, spread, N))
    assert column.step == written_step(column.low, column.high)
    steps = (column.high - column.low) / column.step
    assert steps >= 1e4 and (steps < 1e5 or column.step == 1.0)
    assert column.learned is not None and column.learned.heaps == ()
    made = from_numbers(OWN.uniform(column.low, column.high, 500), column).to_numpy(float)
    assert np.allclose(made / column.step, np.rint(made / column.step), atol=1e-6)


@pytest.mark.parametrize(
    ("values", "step"),
    [
        (OWN.normal(171, 9, 1200).round(), 1.0),
        (OWN.normal(80, 14, 1200).round(1), 0.1),
        (np.exp(OWN.normal(4, 1, 1200)).round(2), 0.01),
        (OWN.normal(-122.4, 0.1, 1200).round(4), 1e-4),
        (OWN.normal(0, 1, 1200), 0.0),
    ],
)
def test_decimals_are_told_though_noise_hides_which_are_sure(values, step: float) -> None:
    steps = coarsest_steps(values)
    classes = np.bincount(steps[~np.isnan(steps)].astype(int), minlength=len(STEPS) + 1)
    noisy = [classes + OWN.normal(0, 70, len(classes)) for _ in range(300)]
    assert np.mean([likely(one, 70.0) == step for one in noisy]) >= 0.9
    assert np.mean([coarsest(one, STEPS, 70.0) == step for one in noisy]) <= (0.1 if step else 1)


def test_decimals_of_a_third_are_kept_where_they_show() -> None:
    values = np.where(OWN.random(20_000) < 0.7, OWN.integers(10, 90, 20_000), 12.5)
    steps = coarsest_steps(values)
    classes = np.bincount(steps[~np.isnan(steps)].astype(int), minlength=len(STEPS) + 1)
    noisy = [classes + OWN.normal(0, 70, len(classes)) for _ in range(300)]
    assert {likely(one, 70.0) for one in noisy} == {0.1}
