"""One reading of the tables for every metric."""

import numpy as np
import pandas as pd
import pytest

from core.encoding.bins import MAX_LABELS
from core.language.catalogue import language
from core.quality.aligned_tables import HOT_LABELS, Coded, Features, sample_rows
from core.quality.metrics.columns import column_pictures
from core.schema.column import Column, DomainSource, Kind
from core.schema.schema import Schema


def one(column, *frames):
    return Features.fit(Schema(columns=(column,)), *frames)


def numbers(*values):
    return pd.DataFrame({"x": np.array(values, dtype=float)})


X = Column(name="x", kind=Kind.NUMBER, dtype="float64")


def test_bins_cover_the_real_range_and_keep_outsiders_apart():
    _, (real, other) = one(X, numbers(0, 8, 16), numbers(-1, 0, 7.99, 16, 17, np.nan))
    codes, sizes = other.bins(2)
    # [0, 8), [8, 16] are 0 and 1; below, above and missing follow.
    assert codes[:, 0].tolist() == [2, 0, 0, 1, 3, 4]
    assert sizes.tolist() == [5]
    assert real.bins(2)[0][:, 0].tolist() == [0, 1, 1]


def test_a_constant_and_an_empty_column_have_bins_too():
    _, (real, other) = one(X, numbers(3, 3), numbers(2, 3, 4))
    assert real.bins()[0][:, 0].tolist() == [0, 0]
    assert other.bins()[0][:, 0].tolist() == [16, 0, 17]
    _, (real, other) = one(X, numbers(np.nan), numbers(1.0))
    assert real.bins()[0][0, 0] == 18
    assert other.bins()[0][0, 0] == 17  # a value where the real table has none


def test_labels_are_shared_and_ordered_by_real_share():
    column = Column(name="x", kind=Kind.CATEGORY)
    real = pd.DataFrame({"x": ["b", "a", "b", None]})
    other = pd.DataFrame({"x": ["z", "a"]})
    features, (a, b) = one(column, real, other)
    assert features["x"].labels == ("b", "a", "z")
    assert a.values["x"].tolist() == [0, 1, 0, -1]
    assert b.values["x"].tolist() == [2, 1]


def test_encoding_is_one_hot_and_min_max():
    frame = pd.DataFrame({"x": [0.0, 5.0, 10.0, np.nan], "c": ["u", "v", None, "u"]})
    schema = Schema(columns=(X, Column(name="c", kind=Kind.CATEGORY)))
    _, (cells,) = Features.fit(schema, frame)
    # position, missing flag | u, v, missing
    expected = [[0, 0, 1, 0, 0], [0.5, 0, 0, 1, 0], [1, 0, 0, 0, 1], [0.5, 1, 1, 0, 0]]
    assert cells.encode().tolist() == expected


def test_no_two_records_are_farther_apart_than_the_diameter():
    frame = pd.DataFrame({"x": [0.0, 1.0, np.nan], "c": ["u", "v", None]})
    schema = Schema(columns=(X, Column(name="c", kind=Kind.CATEGORY)))
    features, (cells,) = Features.fit(schema, frame)
    x = cells.encode()
    farthest = max(np.linalg.norm(a - b) for a in x for b in x)
    # From an end of the line to "missing" (¼ + 1), and between two one-hot vectors (2).
    assert features.diameter == pytest.approx(np.sqrt(1.25 + 2))
    assert farthest == pytest.approx(features.diameter)


def test_rare_labels_share_a_coordinate():
    labels = [f"l{i:03d}" for i in range(HOT_LABELS + 30)]
    _, (cells,) = one(Column(name="x", kind=Kind.CATEGORY), pd.DataFrame({"x": labels}))
    x = cells.encode()
    assert x.shape == (HOT_LABELS + 30, HOT_LABELS)
    assert (x.sum(axis=1) == 1).all()
    assert x[:, -1].sum() == 31  # the last own coordinate and the 30 beyond


def test_surrogates_and_dropped_columns_are_left_out():
    frame = pd.DataFrame({"k": [1, 2], "t": ["p", "q"], "d": [1, 2], "x": [1.0, 2.0]})
    schema = Schema(
        columns=(
            Column(name="k", kind=Kind.IDENTIFIER),
            Column(name="t", kind=Kind.TEXT),
            Column(name="d", kind=Kind.NUMBER, source=DomainSource.DROP),
            X,
        )
    )
    assert Features.fit(schema, frame)[0].names == ("x",)


def test_a_column_the_synthetic_table_lacks_is_missing_there():
    features, (_, other) = one(X, numbers(1, 2), pd.DataFrame({"y": [1, 2, 3]}))
    assert other.missing("x").all()
    assert other.n == 3
    assert features["x"].missing


def test_sample_rows_are_distinct_ascending_and_bounded():
    rng = np.random.default_rng(0)
    rows = sample_rows(100, 30, rng)
    assert len(set(rows.tolist())) == 30
    assert (np.diff(rows) > 0).all()
    assert sample_rows(5, 30, rng).tolist() == [0, 1, 2, 3, 4]


def test_pictures_add_up_to_all_rows(schema, tables):
    _, (real, other) = Features.fit(schema, tables["real"], tables["fresh"])
    pictures = column_pictures(real, other)
    assert list(pictures) == ["age", "pay", "job", "since", "rich", "same"]
    for picture in pictures.values():
        assert sum(picture.real) + picture.missing_real == pytest.approx(1)
        assert sum(picture.synthetic) + picture.missing_synthetic == pytest.approx(1)
        if picture.edges is not None:
            assert len(picture.edges) == len(picture.real) + 1
            assert picture.edges == sorted(picture.edges)


def test_a_log_column_shows_its_spike_and_its_tail(schema, tables):
    _, (real, other) = Features.fit(schema, tables["real"], tables["fresh"])
    picture = column_pictures(real, other)["pay"]
    assert picture.edges[:2] == [0.0, 0.0]  # the atom at zero
    zeros = (tables["real"]["pay"] == 0).mean()
    assert picture.real[0] == pytest.approx(zeros)
    # The tail is spread over several bins instead of sitting in the first.
    assert sum(share > 0.01 for share in picture.real[1:]) >= 5


def test_whole_numbers_are_never_cut_between():
    column = Column(name="x", kind=Kind.INTEGER, step=1, low=0, high=99)
    frame = pd.DataFrame({"x": np.arange(100)})
    _, (cells,) = one(column, frame)
    picture = column_pictures(cells, cells)["x"]
    widths = np.diff(picture.edges)
    assert (widths == widths[0]).all() and widths[0] == int(widths[0])
    # 100 values in bins of 4: every bin holds 4 of them.
    assert picture.real == pytest.approx([0.04] * 25)


def test_values_outside_the_real_range_are_counted():
    _, (real, other) = one(X, numbers(0, 1), numbers(0, 1, 5, -5))
    picture = column_pictures(real, other)["x"]
    assert picture.outside == 0.5
    assert sum(picture.synthetic) == 1


def test_many_labels_are_grouped_and_ordered_ones_keep_order():
    many = pd.DataFrame({"x": [f"l{i}" for i in range(50)]})
    _, (cells,) = one(Column(name="x", kind=Kind.CATEGORY), many)
    picture = column_pictures(cells, cells)["x"]
    assert len(picture.labels) == MAX_LABELS + 1
    assert picture.real[-1] == pytest.approx(30 / 50)
    column = Column(name="x", kind=Kind.ORDERED, categories=("low", "mid", "high"))
    _, (cells,) = one(column, pd.DataFrame({"x": ["high", "high", "low"]}))
    picture = column_pictures(cells, cells)["x"]
    assert picture.labels == ["low", "high"]
    assert picture.real == pytest.approx([1 / 3, 2 / 3])


def test_the_parts_of_a_number_are_written_the_languages_way():
    days = pd.date_range("2026-01-01", "2026-03-31")
    column = Column(name="x", kind=Kind.DATETIME, dtype="datetime64[s]", step=86_400.0)
    features, tables = one(column, pd.DataFrame({"x": days}))
    names = Coded.of(features["x"], tables, parts=3).names
    assert names[:3] == ("< 2026-01-31", "2026-01-31 – 2026-03-02", "≥ 2026-03-02")
    german = [language("de").render(name) for name in names]
    assert german == ["< 31.01.2026", "31.01.2026 – 02.03.2026", "≥ 02.03.2026", "(fehlt)"]
