"""Codes among numbers: words for "not applicable", short and long lists, and what numbers stay."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from core.privacy.discovery.open_domain import bare
from core.proposing.code_patterns import code_note
from core.proposing.propose import Counts, propose
from core.reading.raw_cells import as_written
from core.reading.typed_cells import typed_column
from core.schema.column import Kind, SchemaColumn
from core.schema.form import Form
from core.schema.labels import category_indices
from core.schema.schema import Schema
from core.writing.tables import as_written as written_out

RNG = np.random.default_rng(5)
INCOMES = np.rint(np.exp(RNG.normal(10, 1.2, 4000)) / 10) * 10 - 3000  # signed, a long tail


def proposed(cells: list[object], name: str = "c") -> SchemaColumn:
    """The proposal for one column of a text file."""
    texts = pa.array(["" if cell is None else str(cell) for cell in cells], pa.string())
    rows = as_written(pa.table({name: texts}))
    return propose(Counts.of([rows]), lambda names: [rows.select(list(names))])[0][name]


def with_word(numbers: object, word: str = "N", rows: int = 600) -> list[object]:
    return [*list(numbers), *[word] * rows]  # type: ignore[call-overload]


@pytest.mark.parametrize("word", ["N", "X", "-", ".", "Unknown", "k. A."])
@pytest.mark.parametrize("spelled", [lambda x: f"{x:.1f}", lambda x: f"{x:.0f}"])
def test_a_word_among_numbers_is_their_missing_code(word, spelled) -> None:  # type: ignore[no-untyped-def]
    found = proposed(with_word(map(spelled, INCOMES), word))
    assert found.kind is Kind.INTEGER and found.scale == "log" and found.missing
    assert found.low is not None and found.low < 0 and found.form and found.form.absent == word
    assert code_note(word) in found.note
    cells = typed_column(pa.array([spelled(150.0), word, "x"]), found, written=True)
    assert cells.isna().tolist() == [False, True, True]
    table = pd.DataFrame({"c": cells})
    back = written_out(table, Schema(columns=(found,)))["c"].tolist()
    assert back == [spelled(150.0), word, word]


def test_a_capped_number_with_a_code_keeps_both() -> None:
    shares = np.where(RNG.random(6000) < 0.4, 501, RNG.integers(0, 501, 6000))
    found = proposed(with_word(shares))
    assert (found.kind, found.low, found.high) == (Kind.INTEGER, 0, 501)
    assert found.spikes == (501.0,) and found.missing


def test_a_word_of_its_own_is_a_code_that_runs_forget() -> None:
    found = proposed(with_word(map(int, INCOMES), "Zarathustra"))
    assert found.kind is Kind.INTEGER and found.codes == ("Zarathustra",)
    assert bare(found).form == Form()
    public = bare(proposed(with_word(map(int, INCOMES))))
    assert public.form == Form(absent="N")


@pytest.mark.parametrize("word", ["99+", "=N"])  # may be an amount; a spreadsheet runs it
def test_what_is_no_word_stays_a_label(word: str) -> None:
    found = proposed(with_word(map(int, INCOMES), word))
    assert not found.kind.numeric and (found.form or Form()).absent == ""


def test_empty_cells_beside_a_word_stay_apart() -> None:
    found = proposed([*with_word(map(int, INCOMES)), *[None] * 30])
    assert found.kind is Kind.INTEGER and found.codes == ("N",) and found.missing
    assert found.form is not None and found.form.absent == ""


def test_few_codes_beside_a_word_are_a_list_with_it() -> None:
    few = proposed(with_word([1, 2, 3, 10] * 100))
    assert few.kind is Kind.CATEGORY and few.categories == ("1", "2", "3", "10", "N")
    assert not few.missing and few.form is None and not few.note
    twenty = proposed(with_word(list(range(20)) * 200))
    assert twenty.kind is Kind.CATEGORY and len(twenty.categories or ()) == 21
    assert proposed(with_word(list(range(20)) * 20)).kind is Kind.INTEGER  # for so few rows


def test_long_codes_far_apart_are_a_list_without_a_hint() -> None:
    codes = RNG.choice(np.arange(170, 9921), 264, replace=False)
    found = proposed(with_word(np.repeat(codes, RNG.integers(1, 60, 264))))
    assert found.kind is Kind.CATEGORY and "kind" not in found.note
    rents = RNG.choice(np.arange(200, 3000, 50), 6000)
    assert proposed(with_word(rents)).kind is Kind.INTEGER
    years = RNG.integers(1950, 2021, 6000)
    assert proposed(with_word(years)).kind is Kind.INTEGER


def test_short_codes_stay_a_list_though_one_is_rare() -> None:
    race = [1] * 900 + [2] * 400 + [3] * 90 + [4] * 2 + [5] * 97 + [6] * 200
    found = proposed(race)
    assert found.kind is Kind.CATEGORY and found.categories == ("1", "2", "3", "5", "6")
    assert found.other is None and found.dtype == "int64"
    count = [0] * 900 + [1] * 300 + [2] * 90 + [3] * 30 + [4] * 4 + [7]
    assert proposed(count).kind is Kind.INTEGER  # which thins out towards its end
    pair = proposed([3] * 300 + [8] * 4)
    assert pair.kind is Kind.INTEGER  # a list would say what four rows hold


def test_few_decimals_of_many_rows_are_each_kept() -> None:
    densities = np.round(np.exp(RNG.uniform(2, 11, 20)), 1)
    found = proposed(list(np.repeat(densities, 300)))
    assert found.kind is Kind.ORDERED and found.dtype == "float64" and "no others" in found.note
    assert found.categories == tuple(str(x) for x in np.sort(densities))
    assert proposed(list(np.repeat(densities, 100))).kind is Kind.NUMBER
    grades = np.round(RNG.integers(10, 41, 20_000) / 10, 1)
    assert proposed(list(grades)).kind is Kind.NUMBER  # on a grid that is full


@pytest.mark.parametrize("dtype", ["str", "int64", "float64"])
@pytest.mark.parametrize("declared", [("17", "18"), ("17.0", "18.0"), ("17", "18.0")])
def test_a_listed_number_is_found_however_it_is_spelled(dtype: str, declared: tuple) -> None:
    column = SchemaColumn(name="c", kind=Kind.CATEGORY, dtype=dtype, categories=declared)
    texts = pa.array(["17", "17.0", "18.00", "18", "1.7", "117"], pa.large_string())
    for cells, written in (
        (texts, True),
        (texts, False),
        (pa.array([17, 17, 18, 18, 1, 117]), False),
        (pa.array([17.0, 17.0, 18.0, 18.0, 1.7, 117.0]), False),
    ):
        typed = typed_column(cells, column, written=written)
        assert category_indices(typed, column).tolist() == [0, 0, 1, 1, -1, -1]


def test_both_spellings_that_are_declared_stay_apart() -> None:
    column = SchemaColumn(name="c", kind=Kind.CATEGORY, categories=("1.0", "1"))
    typed = typed_column(pa.array(["1", "1.0", "1.00"]), column, written=True)
    assert typed.tolist() == ["1", "1.0", "1.0"]


@pytest.mark.parametrize("name", ["Incident Zip", "store_zip", "PLZ", "zip_code", "birth postcode"])
def test_postal_codes_are_a_list_wherever_they_are_of(name: str) -> None:
    zips = RNG.choice(np.arange(10001, 10181), 5000)
    found = proposed(list(map(int, zips)), name)
    assert found.kind is Kind.CATEGORY and found.pattern == "#|#|###"
    assert proposed(list(map(int, zips)), "zip files").kind is Kind.INTEGER, "a count of files"
