"""Families of metrics, each checked by hand, by brute force or against a second library."""

from itertools import product

import numpy as np
import ot
import pandas as pd
import pytest
from sklearn.metrics.pairwise import rbf_kernel

from core.quality.aligned_tables import AlignedTable, Features
from core.quality.comparison import table_half_width
from core.quality.metrics import ranges
from core.quality.metrics.kernel import discrepancy
from core.quality.metrics.marginals import column_sets, one_way, three_way, two_way
from core.quality.metrics.principal_axes import AXIS_BINS, density, pca_marginals
from core.quality.metrics.propensity import propensity, tree_auroc
from core.quality.metrics.transport import sliced_score
from core.schema.column import Column, Kind
from core.schema.schema import Schema
from tests.quality.conftest import collapsed, make, shuffled

pytestmark = pytest.mark.slow

TINY = Schema(
    columns=(
        Column(name="a", kind=Kind.CATEGORY, categories=("x", "y")),
        Column(name="b", kind=Kind.CATEGORY, categories=("x", "y")),
        Column(name="c", kind=Kind.CATEGORY, categories=("x", "y")),
    )
)


def opened(schema, *frames):
    features, cells = Features.fit(schema, *frames)
    return features, *cells


@pytest.fixture(scope="module")
def world(schema, tables):
    names = ("real", "fresh", "shuffled", "collapsed")
    features, found = Features.fit(schema, *(tables[name] for name in names))
    return features, dict(zip(names, found, strict=True))


# -- three columns ------------------------------------------------------------------------------


def parity(n, seed, *, even):
    """Three fair coins of which any two are independent; with `even` their sum is even."""
    rng = np.random.default_rng(seed)
    a, b = rng.integers(0, 2, (2, n))
    c = (a + b) % 2 if even else rng.integers(0, 2, n)
    return pd.DataFrame({k: np.where(v, "x", "y") for k, v in zip("abc", (a, b, c), strict=True)})


def test_three_columns_see_what_every_pair_hides():
    _, real, fake = opened(TINY, parity(4000, 0, even=True), parity(4000, 1, even=False))
    off = ~np.eye(3, dtype=bool)
    assert two_way(real, fake)[off].max() < 0.04
    assert three_way(real, fake) == pytest.approx(0.5, abs=0.03)  # half of all cells


def test_three_way_distance_by_brute_force():
    a, b = parity(40, 2, even=True), parity(30, 3, even=False)
    _, real, fake = opened(TINY, a, b)
    cells = list(product("xy", repeat=3))
    p, q = (
        np.array([(frame.to_numpy() == cell).all(axis=1).mean() for cell in cells])
        for frame in (a, b)
    )
    expected = 0.5 * np.abs(p - q).sum()
    assert three_way(real, fake) == pytest.approx(expected)


def test_sets_of_many_columns_are_a_fixed_few():
    for m in (40, 500):
        few = column_sets(m, 3, 200)
        assert few == column_sets(m, 3, 200) and 195 < len(set(few)) <= 200
        assert all(a < b < c < m for a, b, c in few)
    assert column_sets(4, 2, 9) == [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]
    assert column_sets(2, 3, 9) == [(0, 1)]


def test_wide_lists_are_counted_through_the_cells_in_use(monkeypatch):
    _, real, fake = opened(TINY, parity(90, 4, even=True), parity(70, 5, even=False))
    dense = three_way(real, fake)
    monkeypatch.setattr("core.quality.metrics.marginals.DENSE_CELLS", 1)
    assert three_way(real, fake) == pytest.approx(dense)


# -- boxes --------------------------------------------------------------------------------------


def test_shares_of_boxes_against_pandas(schema, tables):
    real = tables["real"]
    features, cells = opened(schema, real)
    code = {label: i for i, label in enumerate(features["job"].labels)}
    query = {"age": (30.0, 50.0), "job": frozenset({code["a"], code["c"]})}
    expected = (real["age"].between(30, 50) & real["job"].isin(["a", "c"])).mean()
    assert ranges.shares(cells, [query])[0] == pytest.approx(expected)
    gaps = {"pay": (-1.0, 1e9)}
    assert ranges.shares(cells, [gaps])[0] == pytest.approx(real["pay"].notna().mean())


def test_range_queries_ask_three_columns_the_same_of_everyone(world):
    features, found = world
    queries = ranges.draw_queries(features)
    assert queries == ranges.draw_queries(features)
    assert all(len(query) == 3 for query in queries)
    assert ranges.range_error(found["real"], found["real"]) == 0
    errors = [
        ranges.range_error(found["real"], found[name])
        for name in ("fresh", "shuffled", "collapsed")
    ]
    assert errors == sorted(errors) and errors[0] < 0.02 < errors[2]


# -- components ---------------------------------------------------------------------------------


def test_component_marginals_grow_with_axes_and_find_bad_tables(world):
    _, found = world
    same = pca_marginals(found["real"], found["real"])
    assert same == [0, 0, 0]
    for name in ("fresh", "shuffled", "collapsed"):
        one, two, three = pca_marginals(found["real"], found[name])
        assert 0 <= one <= two <= three <= 1
    assert pca_marginals(found["real"], found["collapsed"])[0] > 0.5
    far = pca_marginals(found["real"], found["shuffled"])[-1]
    assert far > 1.3 * pca_marginals(found["real"], found["fresh"])[-1]


def test_one_component_by_hand():
    schema = Schema(columns=(Column(name="x", kind=Kind.NUMBER, low=0, high=1),))
    grid = (np.arange(AXIS_BINS) + 0.5) / AXIS_BINS  # one value a cell
    a = pd.DataFrame({"x": np.repeat(np.concatenate([[0.0], grid, [1.0]]), 2)})
    b = pd.DataFrame({"x": np.where(a["x"] < 0.5, 0.0, a["x"])})
    _, real, fake = opened(schema, a, b)
    # All of the lower half moved into the first cell, which held 4 of 24 rows already.
    lower = float((a["x"] < 0.5).mean())
    assert pca_marginals(real, fake)[0] == pytest.approx(lower - 4 / 24)


def test_density_holds_all_real_rows(world):
    _, found = world
    picture = density(found["real"], found["fresh"])
    assert np.sum(picture.real) == pytest.approx(1, abs=1e-3)
    assert 0.95 < np.sum(picture.synthetic) <= 1.001
    assert np.shape(picture.real) == (len(picture.y) - 1, len(picture.x) - 1)


# -- slices and kernels -------------------------------------------------------------------------


def test_slices_of_a_shifted_cloud_and_a_second_library():
    schema = Schema(
        columns=tuple(Column(name=k, kind=Kind.NUMBER, low=0, high=1) for k in ("a", "b", "c"))
    )
    rng = np.random.default_rng(0)
    x = rng.random((400, 3)) * 0.5
    x[0], x[1] = 0.0, 1.0  # the range is the unit cube
    y = np.clip(x + [0.2, 0.0, 0.0], 0, 1)
    frames = [pd.DataFrame(side, columns=list("abc")) for side in (x, y)]
    _, real, fake = opened(schema, *frames)
    score, error = sliced_score(real, fake, directions=2000)
    # √d · SW₂ of a shift is its length.
    assert score == pytest.approx(1 - 0.2 / np.sqrt(3), abs=0.01)
    assert 0 < error < 0.01
    other = ot.sliced_wasserstein_distance(x, y, n_projections=2000, seed=1)
    assert score == pytest.approx(1 - np.sqrt(3) * other / np.sqrt(3), abs=0.01)


def test_slices_rank_tables_and_take_chunks(world, monkeypatch):
    _, found = world
    scores = {name: sliced_score(found["real"], cells)[0] for name, cells in found.items()}
    assert scores["real"] == pytest.approx(1)
    assert scores["fresh"] > scores["shuffled"] > scores["collapsed"]
    monkeypatch.setattr("core.quality.metrics.transport.CHUNK", 100)
    assert sliced_score(found["real"], found["fresh"])[0] == pytest.approx(scores["fresh"])
    empty = AlignedTable(found["real"].features, 0, {})
    with pytest.raises(ValueError, match="need rows"):
        sliced_score(found["real"], empty)


def test_mmd_against_a_second_library(world):
    _, found = world
    first = np.arange(300)
    pair = found["real"].take(first), found["shuffled"].take(first)
    value, p = discrepancy(*pair)
    pooled = np.concatenate([cells.encode() for cells in pair])
    gaps = np.sqrt(((pooled[:, None] - pooled[None]) ** 2).sum(axis=2))
    h = np.median(gaps[np.triu_indices(len(pooled), 1)])
    k = rbf_kernel(pooled, gamma=1 / (2 * h**2))
    expected = k[:300, :300].mean() + k[300:, 300:].mean() - 2 * k[:300, 300:].mean()
    assert value == pytest.approx(expected, rel=0.1)  # the median here is of some of the pairs
    assert p < 0.01
    assert discrepancy(found["real"], found["fresh"])[1] > 0.02


# -- telling apart ------------------------------------------------------------------------------


def test_pmse_finds_shifted_rows_and_not_shuffled_ones(world):
    _, found = world
    same = propensity(found["real"], found["real"])
    assert same == pytest.approx((0.0, 0.0), abs=1e-9)
    assert propensity(found["real"], found["shuffled"])[0] < 1e-6
    assert propensity(found["real"], found["collapsed"])[0] > 0.1


def test_pmse_ratio_is_1_if_resampled_and_2_for_a_second_sample(schema):
    pool = make(8000, 77)
    _, cells = opened(schema, pool)
    rng, found = np.random.default_rng(0), {"again": [], "other": []}
    for _ in range(12):
        order = rng.permutation(8000)
        real, other = cells.take(order[:2000]), cells.take(order[2000:4000])
        again = real.take(rng.integers(2000, size=2000))
        found["again"].append(propensity(real, again)[1])
        found["other"].append(propensity(real, other)[1])
    # A χ² of k degrees of freedom over k: mean 1, standard deviation √(2/k), k about 8 here. Two
    # fresh samples of equal size differ by twice the variance.
    assert np.mean(found["again"]) == pytest.approx(1, abs=4 * np.sqrt(2 / 8 / 12))
    assert np.mean(found["other"]) == pytest.approx(2, abs=8 * np.sqrt(2 / 8 / 12))


def test_trees_see_a_shuffle_that_a_line_cannot(world):
    _, found = world
    assert abs(tree_auroc(found["real"], found["fresh"]) - 0.5) < 0.05
    assert tree_auroc(found["real"], found["shuffled"]) > 0.75
    assert tree_auroc(found["real"], found["collapsed"]) > 0.99


# -- bands --------------------------------------------------------------------------------------


def test_a_band_knows_from_two_tables_what_many_would_show(schema):
    pool, other = make(20_000, 5), shuffled(make(20_000, 6))
    other["age"] = np.clip(other["age"] + 15, 18, 90)
    _, a, b = opened(schema, pool, other)

    def measure(x, y):
        return float(np.mean(list(one_way(x, y).values())))

    parts = [np.arange(i, 20_000, 20) for i in range(20)]
    spread = np.std([measure(a.take(rows), b.take(rows)) for rows in parts], ddof=1)
    band = table_half_width(measure, a.take(parts[0]), b.take(parts[0]))
    # Too wide where columns hardly differ (a distance is never negative), never much too narrow.
    assert 0.7 < band / (1.96 * spread) < 2.5


def test_long_real_table_does_not_narrow_a_short_ones_interval(schema):
    _, real, short = opened(schema, make(100_000, 1), make(200, 2))

    def share(_, made):
        return float((made.values["age"] < 50).mean())

    assert table_half_width(share, real, short) > 0.6 * 1.96 * (0.25 / 200) ** 0.5


def test_a_collapsed_table_is_bad_for_every_family(schema):
    real, fresh = make(800, 8), make(800, 9)
    features, a, good, bad = opened(schema, real, fresh, collapsed(real))
    for measure in (
        three_way,
        ranges.range_error,
        lambda x, y: pca_marginals(x, y)[-1],
        lambda x, y: 1 - sliced_score(x, y)[0],
        lambda x, y: discrepancy(x, y)[0],
        tree_auroc,
    ):
        assert measure(a, bad) > 1.5 * measure(a, good)
