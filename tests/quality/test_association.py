"""Associations against other libraries and against what is known."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.stats.contingency import association
from sklearn.feature_selection import f_classif

from core.quality.aligned_tables import Features
from core.quality.metrics.association import associations, independence_threshold, mean_difference
from core.schema.column import Column, Kind
from core.schema.schema import Schema
from tests.quality.conftest import make, shuffled

pytestmark = pytest.mark.slow


def matrix(schema, frame):
    features, (cells,) = Features.fit(schema, frame)
    return features, associations(cells)


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


def test_lists_of_several_labels_agree_with_scipy():
    rng = np.random.default_rng(0)
    a = rng.integers(0, 4, 800)
    b = (a + rng.integers(0, 3, 800)) % 5
    frame = pd.DataFrame({"a": a.astype(str), "b": b.astype(str)})
    columns = [
        Column(name=name, kind=Kind.CATEGORY, categories=tuple(sorted(set(frame[name]))))
        for name in frame
    ]
    _, found = matrix(Schema(columns=tuple(columns)), frame)
    expected = association(pd.crosstab(frame["a"], frame["b"]).to_numpy(), method="cramer")
    assert found[0, 1] == pytest.approx(expected, abs=1e-12)


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


def test_a_list_missing_by_another_column_is_related_to_it():
    died = np.arange(600) % 3 == 0
    cause = pd.Series(np.where(np.arange(600) % 2, "heart", "lung")).where(died, None)
    frame = pd.DataFrame({"died": np.where(died, "yes", "no"), "cause": cause.astype("str")})
    lists = (("no", "yes"), ("heart", "lung"))
    columns = [
        Column(name=name, kind=Kind.CATEGORY, categories=labels, missing=name == "cause")
        for name, labels in zip(frame, lists, strict=True)
    ]
    assert matrix(Schema(columns=tuple(columns)), frame)[1][0, 1] == pytest.approx(1.0)


def test_constants_whose_mean_rounds_are_associated_with_nothing():
    columns = (
        Column(name="tenth", kind=Kind.NUMBER, low=0, high=1),
        Column(name="third", kind=Kind.NUMBER, low=0, high=1),
        Column(name="group", kind=Kind.CATEGORY, categories=("a", "b")),
    )
    frame = pd.DataFrame({"tenth": 0.1, "third": 0.3, "group": ["a", "b", "a"] * 111})
    assert frame["tenth"].mean() != 0.1
    assert np.array_equal(matrix(Schema(columns=columns), frame)[1], np.eye(3))


def unrelated(rows, seed):
    """Columns that have nothing to do with one another, as tables of real offices have them."""
    rng = np.random.default_rng(seed)
    labels, frame, columns = list("abcdefghijkl"), {}, []
    for i in range(5):
        missing = rng.random(rows) < 0.8
        long = np.exp(rng.normal(size=rows)).clip(0, 50)
        many = rng.choice(labels, rows, p=[0.78] + [0.02] * 11)
        frame |= {
            f"lab {i}": pd.Series(rng.normal(50, 10, rows).clip(0, 100)).mask(missing),
            f"long {i}": long,
            f"rare {i}": np.where(rng.random(rows) < 2 / rows, "1", "0"),
            f"many {i}": many,
            f"half {i}": rng.choice(["0", "1"], rows),
        }
        number, listed = {"kind": Kind.NUMBER, "low": 0.0}, {"kind": Kind.CATEGORY}
        columns += [
            Column(name=f"lab {i}", high=100.0, missing=True, **number),
            Column(name=f"long {i}", high=50.0, **number),
            Column(name=f"rare {i}", categories=("0", "1"), **listed),
            Column(name=f"many {i}", categories=tuple(labels), **listed),
            Column(name=f"half {i}", categories=("0", "1"), **listed),
        ]
    return Schema(columns=tuple(columns)), pd.DataFrame(frame)


@pytest.mark.parametrize("rows", [60, 200, 1000])
def test_unrelated_columns_are_within_luck(rows):
    """300 pairs each: of 40 tables .4 are to have a pair beyond it, without it all have several."""
    beyond, strong = 0, 0
    for seed in range(40):
        schema, frame = unrelated(rows, seed)
        features, (cells,) = Features.fit(schema, frame)
        strengths = np.triu(np.abs(associations(cells)), 1)
        beyond += bool((strengths > independence_threshold(cells)).any())
        strong += bool((strengths > 0.2).any())
    assert beyond <= 4 and strong == 40


def test_luck_of_two_numbers_is_that_of_pearsons_r():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({name: rng.normal(size=400).clip(-9, 9) for name in "ab"})
    columns = tuple(Column(name=name, kind=Kind.NUMBER, low=-9.0, high=9.0) for name in "ab")
    features, (cells,) = Features.fit(Schema(columns=columns), frame)
    t = stats.t.isf(0.005, 398)
    assert independence_threshold(cells, 0.01)[0, 1] == pytest.approx(
        t / np.sqrt(398 + t**2), rel=0.03
    )
    related = frame.assign(b=frame["a"] + 3 * frame["b"])
    features, (cells,) = Features.fit(Schema(columns=columns), related)
    assert associations(cells)[0, 1] > independence_threshold(cells, 1e-6)[0, 1]
