"""How wide intervals are, and the benchmark that measures whether they hold."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import t as student

from benchmarks.coverage import Measured, judged
from benchmarks.coverage_shapes import SHAPES, answers, logistic
from core.inference import intervals
from core.inference.estimates import Estimates
from core.inference.intervals import chance_of_none, interval_ends
from core.inference.replicas import half_width

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("level", [0.9, 0.95])
def test_intervals_of_normal_errors_hold_as_often_as_they_say(level: float) -> None:
    random = np.random.default_rng(0)
    own, errors = random.normal(size=20_000), random.normal(size=(12, 20_000))
    held = np.abs(own) <= half_width(errors, level)
    assert held.mean() == pytest.approx(level, abs=0.01)  # four standard errors


def test_one_error_of_all_replicas_is_allowed_for() -> None:
    assert half_width(np.full((20, 1), 3.0), 0.95) == pytest.approx(3.0 * student.ppf(0.975, 20))


def test_chance_beside_the_errors_is_allowed_for() -> None:
    random = np.random.default_rng(0)
    own = random.normal(size=20_000) + 2.0 * random.normal(size=20_000)
    errors = random.normal(size=(12, 20_000))
    assert (np.abs(own) <= half_width(errors, 0.95, 4.0)).mean() == pytest.approx(0.96, abs=0.015)
    assert (np.abs(own) <= half_width(errors, 0.95)).mean() < 0.75


def held(slope: float, level: float = 0.95) -> tuple[float, float]:
    """Share of 4,000 values whose intervals hold those of the table and of the population."""
    random, k = np.random.default_rng(0), 4_000

    def mechanism(hidden: float, noise: float, count: int) -> tuple[np.ndarray, ...]:
        population = hidden * random.normal(size=(count, k))
        source = population + random.normal(size=(count, k))
        return population, source, slope * source + noise * random.normal(size=(count, k))

    (truth,), (real,), (own,) = mechanism(1.0, 0.5, 1)
    _, sources, drawn = mechanism(1.0, 0.5, 20)
    one = [Estimates(("x",) * k, row, np.ones(k), ("number",) * k, 1, 1)
           for row in (own, *sources, *drawn)]  # fmt: skip
    table, population = interval_ends(one[0], one[1:21], one[21:], level=level)
    return tuple(
        float(((low <= of) & (of <= high)).mean())
        for (low, high), of in ((table, real), (population, truth))
    )


def alarms(
    slope: float,
    *,
    noise: float = 0.5,
    chance: float = 1.0,
    there: float = 0.0,
    hidden: float = 0.0,
) -> float:
    """Share of 4,000 differences that a test at 5 % finds.

    Args:
      noise: that replicas know of; the mechanism adds .5.
      chance: the standard error that a sample is said to have; it has 1.
      there: how large the population's differences are; those of replicas are about as large as a
        sample's chance, as noise leaves open.
      hidden: of its source's difference, the deviation of what noise hides or makes up.
    """
    random, k = np.random.default_rng(1), 4_000

    def published(source: np.ndarray, noise: float) -> np.ndarray:
        return slope * source + np.hypot(noise, hidden * source) * random.normal(size=source.shape)

    own = published(there + random.normal(size=(1, k)), 0.5)
    sources = random.normal(size=(20, k)) + random.normal(size=(20, k))
    one = [Estimates(("x",) * k, row, np.full(k, chance), ("number",) * k, 1, 1)
           for row in (*own, *sources, *published(sources, noise))]  # fmt: skip
    return float((chance_of_none(one[0], one[1:21], one[21:]) < 0.05).mean())


@pytest.mark.parametrize("slope", [0.0, 0.1, 0.5, 1.0])
def test_a_difference_that_is_not_there_is_seldom_found(slope: float) -> None:
    assert 0.03 < alarms(slope) < 0.08
    assert alarms(slope, there=6.0) > (0.04 if slope == 0.0 else 0.12)


@pytest.mark.parametrize("slope", [0.1, 1.0])
def test_noise_that_hides_what_is_there_leaves_the_test_of_none(slope: float) -> None:
    assert 0.03 < alarms(slope, hidden=0.6) < 0.08


def test_a_test_that_forgets_noise_or_chance_finds_too_much() -> None:
    assert alarms(0.1, noise=0.0) > 0.5
    assert alarms(1.0, chance=0.0) > 0.15


@pytest.mark.parametrize("slope", [0.1, 0.5, 1.0])
def test_a_mechanism_that_shrinks_has_intervals_that_hold(slope: float) -> None:
    assert held(slope) == pytest.approx((0.95, 0.95), abs=0.02)


def test_chance_counted_twice_makes_intervals_too_wide(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A broken twin: the sample's variance is added whatever the mechanism made of it."""

    def added(errors: np.ndarray, level: float, chance: np.ndarray | float) -> np.ndarray:
        return half_width(errors, level, 1.0 if np.ndim(chance) else chance)

    monkeypatch.setattr(intervals, "half_width", added)
    assert held(0.1)[1] > 0.98 and held(1.0)[1] == pytest.approx(0.95, abs=0.02)


def test_every_question_has_an_answer() -> None:
    for shape in SHAPES.values():
        table = shape.table(1)
        assert len(table) == shape.rows and table.equals(shape.table(1))
        assert not table.equals(shape.table(2))
        found = answers(shape, table)
        assert np.isfinite(found).all() and (found[:, 1] >= 0).all()
    assert len(SHAPES) >= 6


def test_a_logistic_regression_finds_its_coefficient() -> None:
    random = np.random.default_rng(0)
    x = random.normal(size=20_000)
    y = random.random(20_000) < 1.0 / (1.0 + np.exp(0.5 - 0.8 * x))
    found, error = logistic(x[:, None], y, 0)
    assert found == pytest.approx(0.8, abs=4 * error) and 0.01 < error < 0.03


def test_intervals_that_hold_are_counted() -> None:
    shape = SHAPES["independent lists"]
    truth = answers(shape, shape.table(0))
    errors = np.random.default_rng(0).normal(0.0, 0.01, (12, len(truth)))
    sources = np.tile(truth, (12, 1, 1))
    drawn = sources + errors[:, :, None] * [1.0, 0.0]
    away = np.where(truth[:, 0] < 0.5, 0.9, 0.1)  # of what are shares
    for published, share in ((truth[:, 0], 1.0), (away, 0.0)):
        run = Measured(truth, np.column_stack([published, truth[:, 1]]), sources, drawn)
        rows = list(judged(shape, 1.0, [run], truth[:, 0]))
        assert all((part["coverage"] == share).all() for part in rows)
