"""Both pairs of inverses in core.schema.labels, for every dtype a table can have."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.schema.column import Column, DomainColumn, Kind, Learned
from core.schema.form import Form
from core.schema.labels import (
    category_indices,
    code_indices,
    dtype_of,
    from_labels,
    from_numbers,
    snap,
    to_labels,
    to_numbers,
)
from core.schema.magnitudes import LARGEST

MOMENT = st.datetimes(dt.datetime(1850, 1, 1), dt.datetime(2100, 1, 1))
VALUES = {
    "int64": st.integers(-(2**63), 2**63 - 1),
    "Int64": st.none() | st.integers(-(2**63), 2**63 - 1),
    "uint8": st.integers(0, 255),
    "float64": st.floats(allow_nan=True, allow_infinity=False),
    "float32": st.floats(width=32, allow_nan=True, allow_infinity=False),
    "bool": st.booleans(),
    "boolean": st.none() | st.booleans(),
    "str": st.none() | st.text(st.characters(exclude_categories=["Cs"]), max_size=8),
    "datetime64[us]": st.none() | MOMENT,
    "datetime64[us, Europe/Oslo]": st.none() | MOMENT,
}


def series(values: list[object], dtype: str) -> pd.Series:
    if "," in dtype:
        return pd.Series(values, dtype="datetime64[us]").dt.tz_localize("UTC").astype(dtype)
    return pd.Series(values, dtype=dtype)


@pytest.mark.parametrize("dtype", VALUES)
@given(data=st.data())
@settings(max_examples=40, deadline=None)
def test_labels_come_back_exactly(dtype: str, data: st.DataObject) -> None:
    original = series(data.draw(st.lists(VALUES[dtype], max_size=12)), dtype).rename("c")
    column = Column(name="c", kind=Kind.CATEGORY, dtype=dtype_of(original))
    labels = to_labels(original)
    assert labels.dtype == "str" and (labels.isna() == original.isna()).all()
    back = from_labels(labels, column)
    pd.testing.assert_series_equal(back, original, check_dtype=not original.isna().any())


def test_labels_are_what_a_person_would_write() -> None:
    assert to_labels(pd.Series([1, 20])).tolist() == ["1", "20"]
    assert to_labels(pd.Series([True, False])).tolist() == ["True", "False"]
    assert to_labels(pd.Series([0.1, 2.0])).tolist() == ["0.1", "2.0"]
    assert to_labels(pd.Series(pd.Categorical(["b", None, "a"]))).tolist()[::2] == ["b", "a"]


def test_absent_integers_and_booleans_get_the_nullable_twin() -> None:
    labels = pd.Series(["1", None], dtype="str")
    assert from_labels(labels, Column(name="c", kind=Kind.CATEGORY, dtype="int64")).dtype == "Int64"
    truths = pd.Series(["True", None], dtype="str")
    column = Column(name="c", kind=Kind.BOOLEAN, dtype="bool")
    assert from_labels(truths, column).dtype == "boolean"


def test_a_label_outside_the_dtype_keeps_the_column_text() -> None:
    column = Column(name="c", kind=Kind.CATEGORY, dtype="int64")
    back = from_labels(pd.Series(["1", "OTHER"]), column)
    assert back.tolist() == ["1", "OTHER"]


def test_an_index_survives() -> None:
    original = pd.Series([3, 1, 3], index=[7, 7, 2], name="c")
    column = Column(name="c", kind=Kind.ORDERED, dtype="int64")
    pd.testing.assert_series_equal(from_labels(to_labels(original), column), original)


def numeric(kind: Kind, dtype: str, step: float, date_format: str | None = None) -> Column:
    return Column(name="c", kind=kind, dtype=dtype, step=step, date_format=date_format)


def check_numbers(original: pd.Series, column: Column) -> None:
    numbers = to_numbers(original, column)
    assert numbers.dtype == np.float64 and numbers.shape == (len(original),)
    assert (np.isnan(numbers) == original.isna().to_numpy()).all()
    back = from_numbers(numbers, column)
    pd.testing.assert_series_equal(back, original.rename("c"))


@given(st.lists(st.integers(-(2**53), 2**53), min_size=1))
@settings(max_examples=40, deadline=None)
def test_integers_come_back(values: list[int]) -> None:
    check_numbers(pd.Series(values), numeric(Kind.INTEGER, "int64", 1))
    check_numbers(pd.Series([None, *values], dtype="Int64"), numeric(Kind.INTEGER, "Int64", 1))
    check_numbers(pd.Series(values).astype("str"), numeric(Kind.INTEGER, "str", 1))


@given(st.lists(st.integers(-(10**9), 10**9), min_size=1), st.integers(1, 6))
@settings(max_examples=40, deadline=None)
def test_decimals_come_back_on_their_step(units: list[int], places: int) -> None:
    values = pd.Series([None, *(round(u / 10**places, places) for u in units)], dtype="float64")
    check_numbers(values, numeric(Kind.NUMBER, "float64", 10.0**-places))


@given(st.lists(st.just(math.nan) | st.floats(-LARGEST, LARGEST), min_size=1))
@settings(max_examples=40, deadline=None)
def test_continuous_numbers_pass_unchanged(values: list[float]) -> None:
    check_numbers(pd.Series(values), numeric(Kind.NUMBER, "float64", 0))


@pytest.mark.parametrize(
    ("date_format", "step"),
    [
        ("%Y-%m-%d", 86400),
        ("%d/%m/%Y", 86400),
        ("%m/%d/%Y %H:%M", 60),
        ("%Y-%m-%dT%H:%M:%SZ", 1),
        ("%Y-%m-%d %H:%M:%S.%f", 1e-6),
        ("%d %b %Y", 86400),
    ],
)
@given(moments=st.lists(MOMENT, min_size=1, max_size=8))
@settings(max_examples=20, deadline=None)
def test_text_dates_come_back(date_format: str, step: float, moments: list[dt.datetime]) -> None:
    text = pd.Series([None, *(m.strftime(date_format) for m in moments)], dtype="str")
    check_numbers(text, numeric(Kind.DATETIME, "str", step, date_format))


@pytest.mark.parametrize(
    "dtype", ["datetime64[us]", "datetime64[s]", "datetime64[us, Europe/Oslo]"]
)
@given(moments=st.lists(MOMENT, min_size=1, max_size=8))
@settings(max_examples=20, deadline=None)
def test_dates_come_back(dtype: str, moments: list[dt.datetime]) -> None:
    whole = [None, *(m.replace(microsecond=0) for m in moments)]
    check_numbers(series(whole, dtype), numeric(Kind.DATETIME, dtype, 1))


def test_dates_are_seconds_since_1970_in_utc() -> None:
    day = Column(name="c", kind=Kind.DATETIME, date_format="%d.%m.%Y")
    assert to_numbers(pd.Series(["02.01.1970"]), day).tolist() == [86400.0]
    oslo = pd.Series(pd.to_datetime(["1970-01-01 01:00"])).dt.tz_localize("Europe/Oslo")
    assert to_numbers(oslo, Column(name="c", kind=Kind.DATETIME)).tolist() == [0.0]


def test_dates_written_as_integers_come_back() -> None:
    column = numeric(Kind.DATETIME, "int64", 86400, "%Y%m%d")
    check_numbers(pd.Series([20240229, 19991231]), column)


def test_numbers_snap_to_the_step_and_the_dtype() -> None:
    back = from_numbers([2.4, np.nan, 254.6], numeric(Kind.INTEGER, "uint8", 1))
    assert back.dtype == "UInt8" and back.tolist()[::2] == [2, 255]
    assert from_numbers([-3.0, 300.0], numeric(Kind.INTEGER, "uint8", 1)).tolist() == [0, 255]
    assert snap(np.array([0.28, 0.31]), 0.1).tolist() == [0.3, 0.3]
    assert snap(np.array([1.3]), 0.25).tolist() == [1.25]


def test_what_is_no_number_is_absent() -> None:
    column = numeric(Kind.NUMBER, "str", 0)
    numbers = to_numbers(pd.Series(["1.5", "about 2", None, "inf"]), column)
    assert numbers[0] == 1.5 and np.isnan(numbers[1:]).all()
    assert to_numbers(pd.Series([True, False]), column).tolist() == [1.0, 0.0]


def left_out_moves_nobody(series: pd.Series, read) -> None:
    """What each cell reads as is the same whichever other cell is left out."""
    whole = list(read(series))
    for i in range(len(series)):
        others = list(read(series.drop(index=i)))
        np.testing.assert_array_equal(others, whole[:i] + whole[i + 1 :])


@pytest.mark.parametrize("date_format", [None, "%Y-%m-%d %H:%M:%S.%f"])
def test_a_date_in_nanoseconds_moves_no_other(date_format: str | None) -> None:
    cells = ["9999-12-31 00:00:00.5", "2020-01-01 00:00:00.123456789", "1600-02-29 00:00:00.0"]
    column = Column(name="end", kind=Kind.DATETIME, low=0, high=1, date_format=date_format)
    left_out_moves_nobody(pd.Series(cells, dtype="str"), lambda one: to_numbers(one, column))


@pytest.mark.parametrize(
    "cells",
    [
        pd.Series([-0.0, 0.0, 1.0, None], dtype="float64"),
        pd.Series([-0.0, 0.0, None], dtype="Float64"),
        pd.Series([1.0, 1, True, Decimal("1.00"), "1", None], dtype=object),
    ],
    ids=lambda cells: str(cells.dtype),
)
def test_equal_values_that_are_written_otherwise_move_no_other(cells: pd.Series) -> None:
    left_out_moves_nobody(cells, lambda one: to_labels(one).astype(object))


def test_a_minus_before_zero_is_not_written() -> None:
    assert to_labels(pd.Series([-0.0, 0.0])).tolist() == ["0.0", "0.0"]


# -- a cell by itself ------------------------------------------------------------------------------

READ = {
    "listed": Column(name="c", kind=Kind.CATEGORY, categories=("10", "4", "N", "7.5")),
    "beginnings": Column(name="c", kind=Kind.CATEGORY, pattern="#|#", categories=("10", "1…", "4")),
    "nearest": DomainColumn(
        name="c",
        kind=Kind.CATEGORY,
        categories=("10", "4", "N", "7.5"),
        learned=Learned(domain="", nearest=True),
    ),
    "numbers": Column(name="c", kind=Kind.NUMBER, form=Form(codes=("-9", "N"))),
}


@pytest.mark.parametrize("column", READ.values(), ids=READ.keys())
@given(
    values=st.lists(
        st.sampled_from(["10", "4", "N", "7.5", "-9", "5", "9", "1000", "6", "x", "13", None]),
        max_size=12,
    )
)
@settings(max_examples=60, deadline=None)
def test_what_a_cell_counts_as_follows_from_it_alone(
    column: Column, values: list[str | None]
) -> None:
    cells = pd.Series(values, dtype="str")
    for read in (category_indices, code_indices, to_numbers):
        together = np.asarray(read(cells, column), dtype=float)
        alone = [float(read(cells.iloc[[i]], column)[0]) for i in range(len(cells))]
        np.testing.assert_array_equal(together, np.array(alone, dtype=float))
