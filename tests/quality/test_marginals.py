"""Marginal distances against a brute-force count."""

from collections import Counter
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.quality.aligned_tables import Features
from core.quality.metrics import marginals
from core.quality.metrics.columns import dimension_probability
from core.quality.metrics.marginals import one_way, pair_mean, tvd, two_way
from core.schema.column import Column, Kind
from core.schema.schema import Schema

counts = st.lists(st.integers(0, 50), min_size=1, max_size=6)


@given(counts, st.integers(1, 9))
def test_tvd_is_a_distance_of_shares_not_of_counts(values, times):
    a = np.array(values, dtype=float)
    assert tvd(a, a * times) == pytest.approx(0)
    b = a[::-1]
    assert tvd(a, b) == pytest.approx(tvd(b, a))
    assert 0 <= tvd(a, b) <= 1


def test_tvd_by_hand():
    assert tvd(np.array([2.0, 1, 0]), np.array([1.0, 1, 1])) == pytest.approx(1 / 3)  # ½(⅓+0+⅓)
    assert tvd(np.array([1.0, 0]), np.array([0.0, 1])) == 1
    assert tvd(np.zeros(2), np.zeros(2)) == 0
    assert tvd(np.zeros(2), np.ones(2)) == 1


def _brute(real, synthetic, columns):
    a = Counter(map(tuple, real[list(columns)].astype(str).to_numpy()))
    b = Counter(map(tuple, synthetic[list(columns)].astype(str).to_numpy()))
    return 0.5 * sum(abs(a[k] / len(real) - b[k] / len(synthetic)) for k in {*a, *b})


def test_one_and_two_way_match_brute_force():
    rng = np.random.default_rng(0)
    names = ["a", "b", "c"]
    draw = {n: {c: rng.choice(["x", "y", "z", None], n) for c in names} for n in (40, 70)}
    real, synthetic = (pd.DataFrame(draw[n]) for n in (40, 70))
    schema = Schema(columns=tuple(Column(name=c, kind=Kind.CATEGORY) for c in names))
    _, (p, q) = Features.fit(schema, real, synthetic)
    single = one_way(p, q)
    matrix = two_way(p, q)
    for c in names:
        assert single[c] == pytest.approx(_brute(real, synthetic, [c]))
    for i, j in combinations(range(3), 2):
        expected = _brute(real, synthetic, [names[i], names[j]])
        assert matrix[i, j] == matrix[j, i] == pytest.approx(expected)
    assert np.diag(matrix).tolist() == pytest.approx(list(single.values()))


def test_large_joint_tables_are_counted_by_cells_in_use(monkeypatch, schema, tables):
    _, (a, b) = Features.fit(schema, tables["real"], tables["fresh"])
    dense = two_way(a, b)
    monkeypatch.setattr(marginals, "DENSE_CELLS", 1)
    assert two_way(a, b) == pytest.approx(dense)


def test_a_shuffle_is_seen_in_pairs_only(schema, tables):
    features, (a, b) = Features.fit(schema, tables["real"], tables["shuffled"])
    assert max(one_way(a, b).values()) == pytest.approx(0)
    matrix = two_way(a, b)
    # age decides job: under independence most of the joint mass moves.
    i, j = features.names.index("age"), features.names.index("job")
    assert matrix[i, j] > 0.4
    assert pair_mean(matrix) > 0.1


def test_pair_mean_of_one_column_is_its_own_distance():
    assert pair_mean(np.array([[0.25]])) == 0.25
    assert pair_mean(np.zeros((0, 0))) == 0
    # Mean of the upper triangle, the diagonal left out: (1 + 2 + 3) / 3.
    assert pair_mean(np.array([[9.0, 1, 2], [1, 9, 3], [2, 3, 9]])) == 2


def test_dimension_probability_lists_labels_and_missing():
    real = pd.DataFrame({"x": ["a", "a", "b", None]})
    synthetic = pd.DataFrame({"x": ["a", "c", "c", "c"]})
    schema = Schema(columns=(Column(name="x", kind=Kind.CATEGORY),))
    _, (p, q) = Features.fit(schema, real, synthetic)
    found = {point.label: (point.real, point.synthetic) for point in dimension_probability(p, q)}
    assert found == {"a": (0.5, 0.25), "b": (0.25, 0), "c": (0, 0.75), "(missing)": (0.25, 0)}
