"""Nothing is silently changed: what a cell loses on the way in is counted and said."""

from __future__ import annotations

import io

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from core.proposing.kinds import infer_tally
from core.proposing.misfits import misfit_words, misfits
from core.proposing.propose import infer_schema
from core.reading.cells import TableReadError
from core.reading.tally import Tally
from core.schema.column import Column, DomainSource, Kind, SchemaColumn, SchemaError
from core.schema.form import Form
from core.schema.labels import from_numbers, to_numbers
from core.schema.round_bounds import round_bounds
from core.schema.schema import Schema, check_writable
from core.services.schema_grid import grid_of
from tests.hostile.identity import changed_cells
from tests.hostile.workbook_files import GOOD, HEAD, book, cell
from tests.reading.files import ReadResult, read


def doubts(result: ReadResult) -> str:
    return " ".join(result.warnings)


def csv(*cells: str) -> ReadResult:
    return read(("c\n" + "\n".join(cells * 3) + "\n").encode())


def parquet_of(column: pa.Array) -> ReadResult:
    stream = io.BytesIO()
    pq.write_table(pa.table({"c": column}), stream)
    return read(stream.getvalue(), "t.parquet")


@pytest.mark.parametrize(
    "values",
    [
        ["Yes", "No", "yes", "unknown"],
        ["No", "Yes", "no", "yes"],
        ["Y", "N", "y", "Maybe", "Deceased"],
        ["TRUE", "True", "true", "False", "?"],
    ],
)
def test_a_boolean_needs_every_cell_to_be_one_of_two(values: list[str]) -> None:
    series = pd.Series(values * 20, name="c")
    found = infer_tally(Tally.of(series), "c")
    assert found.kind is Kind.CATEGORY and set(found.categories or ()) == set(values)
    assert changed_cells(series, found) == misfits(Tally.of(series), found) == 0
    assert "capital letters" in found.note


def test_countries_and_surnames_are_kept() -> None:
    countries = csv("DE", "NA", "FR")
    assert countries.frame["c"].tolist().count("NA") == 3 and not countries.warnings
    names = csv("Smith", "Null", "Nan")
    assert names.frame["c"].notna().all() and not names.warnings


def test_words_read_as_missing_are_counted_and_named() -> None:
    result = csv("Germany", "NA", "n/a", "Kenya")
    assert result.frame["c"].isna().sum() == 6
    assert "6 cells saying n/a, na were read as missing, in 'c'" in doubts(result)
    sheet = read(book(cell("NULL", "str")), "t.xlsx")
    assert "1 cell saying null was read as missing, in 'a'" in doubts(sheet)


def test_a_point_in_a_comma_file_is_not_guessed() -> None:
    result = read(b"a;b\n0,5;1.234\n2,75;5.678\n")
    assert result.frame["b"].tolist() == ["1.234", "5.678"] and "'b' could" in doubts(result)
    sure = read(b"a;b\n0,5;1.5\n2,75;5.678\n")  # no thousands are written so
    assert sure.frame["b"].tolist() == [1.5, 5.678]
    codes = read(b"a;b\n0,5;007\n2,75;1,5\n")
    assert codes.frame["b"].tolist() == ["007", "1,5"]


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("inf", "infinite values; they are treated as missing (3 cells)"),
        ("1e400", "infinite values; they are treated as missing (3 cells)"),
        ("-1.7e308", "numbers beyond 1e150; they are treated as missing (3 cells)"),
        ("1e-400", "more digits than can be held; they were rounded (3 cells)"),
        ("0.12345678901234567890", "more digits than can be held; they were rounded (3 cells)"),
    ],
)
def test_numbers_that_do_not_fit_are_counted(value: str, words: str) -> None:
    result = csv("1", "2.5", value)
    assert words in doubts(result)
    assert result.frame["c"].dtype == "float64"
    assert np.isfinite(result.frame["c"].dropna()).all()


def test_infinities_of_every_width_are_missing() -> None:
    for kind in (pa.float16(), pa.float32(), pa.float64()):
        result = parquet_of(pa.array([1.0, np.inf, -np.inf], kind))
        assert result.frame["c"].isna().sum() == 2 and "(2 cells)" in doubts(result)


def test_versions_are_no_numbers() -> None:
    result = csv("1.1", "1.10", "1.2")
    assert result.frame["c"].tolist()[:3] == ["1.1", "1.10", "1.2"]
    assert "several ways" in doubts(result)
    assert csv("1.10", "2.50").frame["c"].tolist()[:2] == [1.1, 2.5]  # prices
    assert csv("1.0", "2.25").frame["c"].dtype == "float64"  # as programs write numbers


def test_numbers_with_hundredths_may_be_spelled_in_two_ways() -> None:
    result = csv("1.5", "1.50", "1.05", "2.25")
    assert result.frame["c"].tolist()[:4] == [1.5, 1.5, 1.05, 2.25]
    assert "several ways" not in doubts(result)
    versions = csv(*["1.1", "1.10"] * 60, "1.05")  # one cell does not decide
    assert versions.frame["c"].dtype != "float64" and "several ways" in doubts(versions)


def test_koi8_is_told_from_other_cyrillic_encodings() -> None:
    text = "имя,город\n" + "Иван,Москва\nПётр,Новосибирск\nАнна,Санкт-Петербург\n" * 5
    result = read(text.encode("koi8_r"))
    assert result.frame["город"].tolist()[0] == "Москва" and result.form.encoding == "koi8_r"


def test_nul_is_replaced_wherever_it_comes_from() -> None:
    """One cell of another table must not be refused for it, nor cut there by another program."""
    book_of_one = read(book(cell("a_x0000_b", "str")), "t.xlsx")
    assert book_of_one.frame["a"].tolist()[-1] == "a\ufffdb"
    text = read(b"a\n" + b"word\n" * 99 + b"x\0\n", "t.csv")
    assert text.frame["a"].tolist()[-1] == "x\ufffd"
    assert parquet_of(pa.array(["a\0b", "a"])).frame["c"].tolist() == ["a\ufffdb", "a"]


def test_bytes_of_a_fixed_width_are_refused() -> None:
    with pytest.raises(TableReadError, match="binary data"):
        parquet_of(pa.array([b"abcd", b"efgh"], pa.binary(4)))


def test_nanoseconds_are_cut_and_counted() -> None:
    result = parquet_of(pa.array([1_000_000_001, 1_000, None], pa.timestamp("ns")))
    assert "(1 cell)" in doubts(result) and str(result.frame["c"].dtype) == "datetime64[us]"
    times = pd.Series(["2024-01-01 10:00:00.123456789", "2024-01-02 10:00:00.5"])
    text = infer_tally(Tally.of(times), "c")
    assert "1 time is finer than a microsecond" in text.note


def test_an_offset_comes_back_as_one() -> None:
    series = pd.Series(["2024-01-01T10:00:00+0200", "2024-06-01T10:00:00-0530"] * 5, name="c")
    found = infer_tally(Tally.of(series), "c")
    back = from_numbers(to_numbers(series, found), found)
    assert back.tolist()[:2] == ["2024-01-01T08:00:00+0000", "2024-06-01T15:30:00+0000"]
    assert np.array_equal(to_numbers(back, found), to_numbers(series, found))


@pytest.mark.parametrize(
    "column",
    [
        pa.array([0, 10**14, None], pa.timestamp("s")),
        pa.array([0, 10**18, None], pa.timestamp("us")),
        pa.array([0, 2**31 - 1, None], pa.date32()),
        pa.array([0, -(86_400_000 * 10**10), None], pa.date64()),
    ],
)
def test_far_dates_are_missing_and_counted(column: pa.Array) -> None:
    result = parquet_of(column)
    assert "outside the years 1 to 9999; they are treated as missing (1 cell)" in doubts(result)
    assert result.frame["c"].notna().tolist() == [True, False, False]
    grid_of(infer_schema(result.frame))  # drawn without a fault


def test_an_offset_past_the_last_year_can_be_shown() -> None:
    """In UTC such a time lies in the year 10000, which no calendar has."""
    near = pd.Series(["9999-12-31T18:59:59-0500", "2024-01-01T00:00:00+0000"] * 5, name="c")
    schema = infer_schema(near.to_frame())
    assert grid_of(schema)["to"].tolist() == ["9999-12-31 23:59:59"]
    past = near.str.replace("T18", "T23")
    assert misfits(Tally.of(past), schema["c"]) == 5 == changed_cells(past, schema["c"])


def test_errors_in_cells_and_hidden_sheets_are_named() -> None:
    error = HEAD + GOOD + '<row r="3"><c r="A3" t="e"><v>#REF!</v></c><c r="B3"><v>1</v></c></row>'
    assert "1 cell holds an error such as #REF!" in doubts(read(book(error), "t.xlsx"))
    other = HEAD.replace(">a<", ">seen<") + GOOD
    result = read(book(HEAD + GOOD, other, states=("hidden", "visible")), "t.xlsx")
    assert list(result.frame.columns) == ["seen", "b"]
    assert "The first sheet, 's1', is hidden and was left out." in result.warnings
    only = read(book(HEAD + GOOD, states=("hidden",)), "t.xlsx")
    assert "'s1' is hidden; no other has cells" in doubts(only)


def number(low: float, high: float, kind: Kind = Kind.NUMBER) -> Schema:
    return Schema(columns=(SchemaColumn(name="c", kind=kind, low=low, high=high),))


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        (number(-1.7e308, 1.7e308), "between -1e150 and 1e150"),
        (number(0, 2e150, Kind.INTEGER), "between -1e150 and 1e150"),
        (number(0, 1e15, Kind.DATETIME), "years 1 to 9999"),
        (number(-1e12, 0, Kind.DATETIME), "years 1 to 9999"),
    ],
)
def test_magnitudes_are_checked_before_anything_is_spent(schema: Schema, words: str) -> None:
    with pytest.raises(SchemaError, match=words) as caught:
        schema.domain()
    assert "'c'" in str(caught.value) and "Nothing more was spent" in str(caught.value)
    assert len(grid_of(schema)) == 1  # and the page that mends it can be drawn
    dropped = schema["c"].model_copy(update={"source": DomainSource.DROP})
    keep = SchemaColumn(name="k", kind=Kind.BOOLEAN, categories=("0", "1"))
    assert (
        Schema(columns=(dropped, keep)).domain().columns == Schema(columns=(keep,)).domain().columns
    )


def test_bounds_stay_inside_a_narrow_float() -> None:
    assert round_bounds(0, 3e38, dtype="float32")[1] <= np.finfo("float32").max
    assert round_bounds(0, 6e4, dtype="float16")[1] == 65504.0


@pytest.mark.parametrize(
    ("values", "column", "expected"),
    [
        (["a", "b", "c", None], {"kind": "category", "categories": ("a", "b")}, 2),
        (["a", "b", "c", None], {"kind": "category", "categories": ("a", "b"), "missing": True}, 1),
        (["a", "c", "c"], {"kind": "category", "categories": ("a", "O"), "other": "O"}, 2),
        ([1.0, 5.0, 11.0, None], {"kind": "number", "low": 0, "high": 10}, 2),
        ([1.0, 5.5, 7.0], {"kind": "number", "low": 0, "high": 10, "step": 1}, 1),
        ([1.0, 5.5, None], {"kind": "number", "low": 0, "high": 10, "missing": True}, 0),
    ],
)
def test_misfits_are_the_cells_that_encoding_changes(
    values: list[object], column: dict[str, object], expected: int
) -> None:
    series = pd.Series(values, name="c")
    declared = Column(name="c", dtype=str(series.dtype), **column)
    assert misfits(Tally.of(series), declared) == changed_cells(series, declared) == expected
    assert bool(misfit_words(declared, expected)) is bool(expected)


@pytest.mark.parametrize(
    "declared",
    [
        {"kind": Kind.NUMBER, "dtype": "decimal"},
        {"kind": Kind.NUMBER, "dtype": "float16", "high": 1e6},
        {"kind": Kind.NUMBER, "dtype": "float64", "step": float("inf")},
        {"kind": Kind.DATETIME, "date_format": "%Q"},
        {"kind": Kind.DATETIME, "dtype": "datetime64[ns]", "high": 253402300799.0},
        {"kind": Kind.CATEGORY, "dtype": "int8", "categories": ("1", "300")},
        {"kind": Kind.DATETIME, "date_format": "%d.%m.", "high": 86_400.0 * 900},
        {"kind": Kind.DATETIME, "date_format": "%d.%m.%y", "high": 86_400.0 * 365.25 * 120},
    ],
)
def test_unwritable_values_are_refused_before_spending(
    declared: dict[str, object],
) -> None:
    column = SchemaColumn.model_validate({"name": "c", "low": 0.0, "high": 86_400.0, **declared})
    keep = SchemaColumn(name="k", kind=Kind.BOOLEAN, categories=("0", "1"))
    with pytest.raises(SchemaError, match="'c'.*cannot be written.*Nothing more was spent"):
        Schema(columns=(column, keep)).domain()


def test_a_spike_outside_its_bounds_is_refused_unspent() -> None:
    column = number(10.0, 20.0)["c"]
    check_writable(column.model_copy(update={"spikes": (10.0, 20.0)}))
    check_writable(column.model_copy(update={"spikes": (99.0,), "form": Form(codes=("99",))}))
    for spike in (0.0, 21.0):
        with pytest.raises(SchemaError, match=f"spike {spike:g} lies outside the bounds 10 and 20"):
            check_writable(column.model_copy(update={"spikes": (12.0, spike)}))
