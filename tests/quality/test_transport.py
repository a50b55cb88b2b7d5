"""Wasserstein scores against exact matchings computed independently."""

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import linear_sum_assignment
from sklearn.decomposition import PCA

from core.quality.aligned_tables import Features
from core.quality.metrics.principal_axes import principal_axes
from core.quality.metrics.transport import _score, wasserstein_scores
from core.schema.column import Column, Kind
from core.schema.schema import Schema


def test_score_on_a_line_by_hand():
    # 0→1 and 2→5, both sorted: W₂² = (1 + 9) / 2, scale 5.
    x, y = np.array([[0.0], [2.0]]), np.array([[5.0], [1.0]])
    assert _score(x, y, 5.0) == pytest.approx(1 - np.sqrt(5) / 5)
    assert _score(x, x, 5.0) == 1
    assert _score(x, y, 0.1) == 0  # never below 0
    assert _score(x * 0, x * 0, 0.0) == 1


def test_score_equals_the_best_matching():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(60, 3)), rng.normal(1, 2, size=(60, 3))
    cost = ((x[:, None] - y[None]) ** 2).sum(axis=2)
    rows, columns = linear_sum_assignment(cost)  # equal weights: transport is a matching
    expected = 1 - np.sqrt(cost[rows, columns].mean()) / 20
    assert _score(x, y, 20.0) == pytest.approx(expected)


def test_axes_are_those_of_scikit_learn_up_to_sign():
    x = np.random.default_rng(0).normal(size=(200, 4)) * [5, 3, 1, 0.1]
    axes, reference = principal_axes(x), PCA(2).fit(x)
    assert np.abs((axes.directions.T * reference.components_).sum(axis=1)) == pytest.approx([1, 1])
    assert axes.explained == pytest.approx(reference.explained_variance_ratio_)
    assert np.abs(axes.project(x)) == pytest.approx(np.abs(reference.transform(x)), abs=1e-9)


def test_axes_of_a_thin_or_constant_table_are_padded():
    axes = principal_axes(np.ones((5, 1)))
    assert axes.directions.shape == (1, 2)
    assert axes.explained.tolist() == [0, 0]


def scores(schema, a, b):
    _, (real, synthetic) = Features.fit(schema, a, b)
    return wasserstein_scores(real, synthetic, rows=300, repeats=2)


def test_tables_are_ranked_as_they_should(schema, tables):
    real = tables["real"].head(300)
    same = scores(schema, real, real)
    assert same.whole == pytest.approx(1) and same.plane == pytest.approx(1)
    fresh, shuffle, collapse = (
        scores(schema, tables["real"], tables[name]) for name in ("fresh", "shuffled", "collapsed")
    )
    assert fresh.whole > shuffle.whole > collapse.whole
    assert fresh.plane > shuffle.plane > collapse.plane
    assert 0 <= collapse.plane and fresh.plane_spread >= 0


def test_a_constant_real_table_has_one_score():
    schema = Schema(columns=(Column(name="x", kind=Kind.CATEGORY),))
    real, other = (pd.DataFrame({"x": [label] * 3}) for label in "ab")
    apart = scores(schema, real, other)
    # Every row moves the whole diameter √2.
    assert apart.whole == apart.plane == pytest.approx(0)
    assert scores(schema, real, real).plane == 1


def test_empty_tables_are_refused(schema, tables):
    with pytest.raises(ValueError, match="need rows"):
        scores(schema, tables["real"], tables["real"].head(0))
