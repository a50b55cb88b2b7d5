"""How wide intervals are, and the benchmark that measures whether they hold."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import t as student

from benchmarks.coverage import Measured, judged
from benchmarks.coverage_shapes import SHAPES, answers, logistic
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
