"""A cell reads as its column is declared, whatever stands in the other cells of its column."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date, time, timedelta
from decimal import Decimal
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from core.encoding.codec import Codec
from core.reading.raw_cells import as_written, raw_frame
from core.reading.tally import count_cells
from core.reading.typed_cells import (
    frame_as_declared,
    says_nothing,
    typed_column,
    typed_rows,
    typed_tally,
)
from core.schema.column import Column, DomainColumn, Kind
from core.schema.form import Form
from core.schema.labels import code_indices, is_absent, to_labels, to_numbers
from core.schema.schema import Domain
from tests.reading.spellings import CELLS, COLUMNS

pytestmark = pytest.mark.slow

Series: TypeAlias = "pd.Series[Any]"
Typed: TypeAlias = Callable[..., Series]
READINGS = settings(
    max_examples=100,  # always the same; the twin below is found among them
    deadline=None,
    derandomize=True,
    report_multiple_bugs=False,
    suppress_health_check=list(HealthCheck),
)


def readings(cells: Series, column: DomainColumn) -> list[tuple[object, ...]]:
    """All that is ever computed of each cell: label, number, code, absence, state and position."""
    found = [to_labels(cells).fillna("\0absent"), code_indices(cells, column)]
    found.append(is_absent(cells, column))
    if column.kind.numeric:
        found.append(np.nan_to_num(to_numbers(cells, column), nan=np.inf))
    if column.modelled:
        codes = Codec(Domain(columns=(column,))).encode(cells.to_frame(column.name))
        found += [codes.states[:, 0], *codes.values.T]
    return list(zip(*(np.asarray(part).tolist() for part in found), strict=True))


def read(
    cells: Sequence[str | None], column: DomainColumn, *, written: bool, typed: Typed
) -> list[tuple[object, ...]]:
    return readings(typed(pa.array(cells, pa.string()), column, written=written), column)


def check(
    cells: list[str | None], odd: str, column: DomainColumn, *, written: bool, typed: Typed
) -> None:
    """No cell reads otherwise because one is odd, left out, there twice or elsewhere, or alone."""

    def of(*rows: str | None) -> list[tuple[object, ...]]:
        return read(rows, column, written=written, typed=typed)

    first, *rest = cells
    one, *others = of(*cells)
    (other,) = of(odd)
    assert of(first) == [one]
    assert of(*rest, odd, *rest) == [*others, other, *others]
    assert of(odd, *rest, first, first) == [other, *others, one, one]
    assert of(*rest) == others


CASES = (st.lists(CELLS | st.none(), min_size=2, max_size=20), CELLS, COLUMNS, st.booleans())


@READINGS
@given(*CASES)
def test_no_cell_says_how_another_is_read(
    cells: list[str | None], odd: str, column: DomainColumn, written: bool
) -> None:
    check(cells, odd, column, written=written, typed=typed_column)


def typed_together(cells: pa.Array, column: Column, *, written: bool) -> Series:
    """The twin: numbers where all cells are, then back to what is declared."""
    text = pd.Series(cells.to_pandas(), dtype="str").str.strip()
    text = text.mask(says_nothing(cells, column, written=written))
    try:
        return pd.to_numeric(text).rename(column.name)
    except (ValueError, TypeError):
        return text.rename(column.name)


def test_typing_a_column_by_all_of_its_cells_is_caught() -> None:
    @settings(READINGS, phases=[Phase.generate])
    @given(*CASES)
    def twin(cells: list[str | None], odd: str, column: DomainColumn, written: bool) -> None:
        check(cells, odd, column, written=written, typed=typed_together)

    with pytest.raises(AssertionError):
        twin()


EPOCH = pd.Timestamp("1970-01-01")
MOMENTS = st.integers(-(2**31), 2**33).map(lambda second: EPOCH + pd.Timedelta(seconds=second))
NATIVE = (
    st.integers(-(2**53), 2**53),
    st.integers(0, 3),
    st.floats(allow_nan=False, allow_infinity=False),
    st.integers(0, 3).map(float),
    st.booleans(),
    MOMENTS,
    MOMENTS.map(lambda moment: moment.tz_localize("UTC").tz_convert("Europe/Berlin")),
    st.integers(-(10**9), 10**9).map(lambda second: pd.Timedelta(seconds=second)),
)


@READINGS
@given(st.data(), st.sampled_from(NATIVE), CELLS | st.none() | st.one_of(*NATIVE), COLUMNS)
def test_an_odd_object_in_a_frame_moves_no_other_cell(
    data: st.DataObject, native: st.SearchStrategy[Any], odd: object, column: DomainColumn
) -> None:
    """It makes whole numbers floats, or all of the column objects."""
    values = data.draw(st.lists(native, min_size=1, max_size=9))

    def of(*cells: object) -> list[tuple[object, ...]]:
        frame = pd.DataFrame({"cell": [*cells]})
        return readings(frame_as_declared(frame, [column])["cell"], column)

    one, *others = of(*values)
    assert of(values[0]) == [one]
    assert of(*values, odd)[:-1] == of(odd, *values)[1:] == [one, *others]
    assert of(*values[1:], values[0]) == [*others, one]


EURO = Form(decimal=",", thousands=".", suffix=" €")
DOLLAR = Form(prefix="$", thousands=",", absent="k. A.", codes=("-99", "N/A"))
LIST = ("1", "2", "2.5")
SAYS = (
    (Kind.NUMBER, "float64", None, ["1e3", ".5", "5.", "+1.5", " -0 "], [1000.0, 0.5, 5.0, 1.5, 0]),
    (Kind.NUMBER, "float64", None, ["word", "inf", "1e151", "1,5", "NA"], [np.nan] * 5),
    (Kind.NUMBER, "float64", EURO, ["1.234,5 €", "-5€", "1234,5", "€", "1.5"],
     [1234.5, -5, 1234.5, np.nan, np.nan]),
    (Kind.NUMBER, "float64", Form(decimal=","), ["1.234", "1,5e2", "1.23"], [1234, 150, np.nan]),
    (Kind.NUMBER, "float64", DOLLAR, ["-$5", "$-5", "$ 1,234.5", "1,23"], [-5, -5, 1234.5, np.nan]),
    (Kind.INTEGER, "int64", None, ["9007199254740993", "2.6", "True", "0x1F"],
     [9007199254740993, 3, None, None]),
    (Kind.INTEGER, "uint8", None, ["300", "-1", "9" * 40], [255, 0, 255]),
    (Kind.INTEGER, "int64", DOLLAR, ["-99.0", "$-99"], [-99, -99]),
    (Kind.INTEGER, "uint8", DOLLAR, ["-99", "N/A", "n/a", "7"], ["-99", "N/A", None, "7"]),
    (Kind.CATEGORY, "int64", None, ["1.0", "+1", "1e0", "007", "2"], [1, 1, 1, 7, 2]),
    (Kind.CATEGORY, "int64", None, ["1.0", "3.5", "one"], ["1", "3.5", "one"]),
    (Kind.CATEGORY, "float64", None, ["1", "2.50"], ["1", "2.5"]),
    (Kind.IDENTIFIER, "int64", None, ["1234567890123456", "3.5"], ["1234567890123456", "3.5"]),
    (Kind.BOOLEAN, "bool", None, ["TRUE", "false", "1", "0"], [True, False, True, False]),
    (Kind.TEXT, "str", None, [" a ", "NULL", "", "a\0b"], ["a", None, None, "a\ufffdb"]),
    (Kind.DATETIME, "datetime64[us]", None, ["2020-01-31", "31.1.2020", "today"],
     [pd.Timestamp("2020-01-31"), pd.NaT, pd.NaT]),
    (Kind.DATETIME, "str", None, [" 31.1.2020 ", "soon", "?"], ["31.1.2020", "soon", None]),
    (Kind.DATETIME, "int64", None, ["20200131", "20200131.0"], [20200131, 20200131]),
)  # fmt: skip


@pytest.mark.parametrize(("kind", "dtype", "form", "cells", "values"), SAYS)
def test_written_cells_read_as_declared(
    kind: Kind, dtype: str, form: Form | None, cells: list[str], values: list[object]
) -> None:
    labels = LIST if kind is Kind.CATEGORY else None
    column = Column(name="x", kind=kind, dtype=dtype, form=form, categories=labels)
    typed = typed_column(pa.array(cells), column, written=True)
    expected = pd.Series(values, name="x", dtype=typed.dtype)
    pd.testing.assert_series_equal(typed, expected)
    words = isinstance(values[0], str)
    assert typed.dtype == ("str" if words else dtype) or typed.dtype == "Int64"


@pytest.mark.parametrize("word", ["NA", "n/a", "?", "", "  ", "None", "k. A."])
def test_a_word_is_missing_unless_it_is_written_as_a_value(word: str) -> None:
    column = Column(name="x", kind=Kind.CATEGORY, categories=("a",), form=Form(absent="k. A."))
    cells = pa.array([word, "a", None])
    assert says_nothing(cells, column, written=True).tolist() == [True, False, True]
    assert says_nothing(cells, column, written=False).tolist() == [False, False, True]
    if word.strip():
        listed = column.model_copy(update={"categories": (word, "a")})
        assert says_nothing(cells, listed, written=True).tolist() == [False, False, True]
        assert typed_column(cells, listed, written=True)[0] == word


def test_native_cells_read_as_declared() -> None:
    day, moment = date(2020, 1, 31), pd.Timestamp("2020-01-31 10:00", tz="Europe/Berlin")
    cases: list[tuple[pa.Array, Kind, str, list[object]]] = [
        (pa.array([1.0, None, 2.6]), Kind.INTEGER, "int64", [1, None, 3]),
        (pa.array([2**63], pa.uint64()), Kind.INTEGER, "int64", [2**63 - 1]),
        (pa.array([1.0, None]), Kind.CATEGORY, "str", ["1", None]),
        (pa.array([1.0, 0.0, None]), Kind.BOOLEAN, "bool", [True, False, None]),
        (pa.array([Decimal("1.10")]), Kind.NUMBER, "float64", [1.1]),
        (pa.array([timedelta(seconds=90), None]), Kind.NUMBER, "float64", [90.0, None]),
        (pa.array([np.inf, 1e151, 2.0]), Kind.NUMBER, "float64", [None, None, 2.0]),
        (pa.array([time(1, 30)]), Kind.TEXT, "str", ["01:30:00.000000"]),
        (pa.array([day]), Kind.DATETIME, "datetime64[us]", [pd.Timestamp(day)]),
        (pa.array([day]), Kind.DATETIME, "str", ["31.01.2020"]),
        (pa.array([moment]), Kind.DATETIME, "datetime64[us]", [pd.Timestamp("2020-01-31 09:00")]),
        (pa.array([10**18], pa.timestamp("s")), Kind.DATETIME, "datetime64[us]", [None]),
        (pa.array(["NA", "", None]), Kind.TEXT, "str", ["NA", "", None]),
        (pa.array(["a", "b"]).dictionary_encode(), Kind.TEXT, "str", ["a", "b"]),
    ]
    for cells, kind, dtype, values in cases:
        column = Column(
            name="x", kind=kind, dtype=dtype, date_format="%d.%m.%Y" if dtype == "str" else None
        )
        typed = typed_column(pa.chunked_array([cells, cells]), column, written=False)
        expected = pd.Series(values * 2, dtype=typed.dtype, name="x")
        pd.testing.assert_series_equal(typed, expected)


def test_a_typed_tally_counts_unreadable_cells() -> None:
    cells = pa.chunked_array([["1,0", "1", "word", "word", "NA", "N/A", "inf", None, "-99"]])
    form = Form(decimal=",", codes=("-99", "N/A"))
    column = Column(name="x", kind=Kind.NUMBER, dtype="float64", form=form)
    typed, unread = typed_tally(count_cells(cells, written=True), column)
    assert unread == 3  # word, word and inf; neither gaps nor codes
    assert typed.labels().to_dict() == {"1.0": 2, "N/A": 1, "-99.0": 1}
    assert (typed.known, typed.absent) == (4, 5)
    day = Column(name="x", kind=Kind.DATETIME, dtype="str", date_format="%d.%m.%Y")
    days = pa.chunked_array([["31.1.2020", "31.2.2020", "soon", ""]])
    assert typed_tally(count_cells(days, written=True), day)[1] == 2


def test_rows_come_in_the_order_of_their_declarations() -> None:
    rows = pa.table({"a": ["1", "NA"], "b": ["x", "NA"], "c": ["", ""]})
    columns = [
        Column(name="b", kind=Kind.TEXT), Column(name="gone", kind=Kind.TEXT),
        Column(name="a", kind=Kind.INTEGER, dtype="int64"),
    ]  # fmt: skip
    expected = pd.DataFrame({"b": ["x", None], "a": pd.array([1, None], dtype="Int64")})
    expected["b"] = expected["b"].astype("str")
    pd.testing.assert_frame_equal(typed_rows(as_written(rows), columns), expected)
    native = typed_rows(rows, columns)
    assert native["b"].tolist() == ["x", "NA"] and native["a"].isna().tolist() == [False, True]
    assert typed_rows(rows.select([]), columns).shape == (2, 0)


def test_frames_of_types_without_arrow_become_raw_cells() -> None:
    frame = pd.DataFrame(
        {
            "mixed": pd.Categorical([1, "a", 2]),
            "alike": pd.Categorical([1, "1", 2]),
            "cut": pd.cut([1, 2, 3], 2),
            "sparse": pd.arrays.SparseArray([1, 0, 0]),
            "complex": [1j, 2, 3],
            "month": pd.period_range("2020-01", periods=3, freq="M"),
        }
    )
    cells = raw_frame(frame)
    assert cells.to_pandas().astype(str).equals(frame.astype(str))
    assert cells.schema.field("cut").type.ordered
