"""Associations against other libraries and against what is known."""

import numpy as np
import pandas as pd
import pytest
from sklearn.feature_selection import f_classif

from core.quality.association import associations, mean_difference
from core.quality.prepare import Features
from tests.quality.conftest import make, shuffled


def matrix(schema, frame):
    features, (cells,) = Features.fit(schema, frame)
    return features, associations(features, cells)


def test_numbers_agree_with_pandas(schema):
    frame = make(500, 1)
    features, found = matrix(schema, frame)
    i, j = features.names.index("age"), features.names.index("pay")
    assert found[i, j] == pytest.approx(frame["age"].corr(frame["pay"]), abs=1e-9)


def test_the_correlation_ratio_agrees_with_the_f_statistic(schema):
    frame = make(500, 1).dropna(subset=["job"])
    features, found = matrix(schema, frame)
    i, j = features.names.index("age"), features.names.index("job")
    f = f_classif(frame[["age"]], frame["job"])[0][0]
    k, n = frame["job"].nunique(), len(frame)
    eta = np.sqrt(f * (k - 1) / (f * (k - 1) + n - k))
    assert found[i, j] == pytest.approx(eta, abs=1e-9)


def test_lists_agree_with_the_chi_square_by_hand(schema):
    frame = make(500, 1).dropna(subset=["job"])
    features, found = matrix(schema, frame)
    i, j = features.names.index("rich"), features.names.index("job")
    table = pd.crosstab(frame["rich"], frame["job"]).to_numpy(dtype=float)
    expected = table.sum(1, keepdims=True) * table.sum(0, keepdims=True) / table.sum()
    v = np.sqrt(((table - expected) ** 2 / expected).sum() / table.sum())  # min(r, c) - 1 = 1
    assert found[i, j] == pytest.approx(v, abs=1e-9)


def test_constant_columns_are_associated_with_nothing(schema):
    features, found = matrix(schema, make(200, 1))
    i = features.names.index("same")
    assert np.count_nonzero(np.delete(found[i], i)) == 0


def test_shuffled_columns_are_told_apart(schema):
    frame = make(2000, 1)
    _, real = matrix(schema, frame)
    _, same = matrix(schema, make(2000, 2))
    _, mixed = matrix(schema, shuffled(frame))
    assert mean_difference(real, real) == 0.0
    assert mean_difference(real, same) < 0.03 < 0.1 < mean_difference(real, mixed)
