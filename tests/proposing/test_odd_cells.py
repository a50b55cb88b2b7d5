"""Numbers and dates among which some cells are neither: words are codes, a few others missing."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from core.reading.typed_cells import typed_column
from core.schema.column import Kind
from core.schema.form import Form
from tests.proposing.test_codes import INCOMES, proposed, with_word
from tests.proposing.test_infer import column


def test_several_words_among_numbers_are_each_a_code() -> None:
    found = proposed([*with_word(map(int, INCOMES), "refused"), *["not asked"] * 50])
    assert found.kind is Kind.INTEGER and found.form == Form(absent="refused", codes=("not asked",))


ODD = ["nothing", "12 (I think)", "1 234,5 €", "ca. 30", "n/b", "3rd", "<5", "10-20", "20%"]


@pytest.mark.parametrize("spelled", [lambda x: f"{x:.1f}", lambda x: f"{x:.0f}"])
def test_a_few_odd_cells_among_numbers_are_missing(spelled) -> None:  # type: ignore[no-untyped-def]
    plain, found = (proposed([*map(spelled, INCOMES), *odd]) for odd in ([], ODD))
    assert (found.kind, found.form) == (plain.kind, plain.form)
    assert (found.low, found.high, found.step) == (plain.low, plain.high, plain.step)
    assert found.missing and not plain.missing
    cells = typed_column(pa.array([spelled(150.0), *ODD]), found, written=True)
    assert cells.isna().tolist() == [False, *[True] * len(ODD)]


@pytest.mark.parametrize("cell", ["1,5", "12 kg", "?!", "$7", "2024-01-31", "7.5.1"])
@pytest.mark.parametrize("form", ["{:.0f}", "{:.2f}", "${:,.0f}", "{:.0f} %"])
def test_no_cell_changes_how_others_are_read(form: str, cell: str) -> None:
    spelled = [form.format(x) for x in np.abs(INCOMES)]
    alone, beside = proposed(spelled), proposed([*spelled, cell])
    assert beside.kind.numeric and (alone.kind, alone.form) == (beside.kind, beside.form)
    read = [typed_column(pa.array(spelled), one, written=True) for one in (alone, beside)]
    assert read[0].astype(float).equals(read[1].astype(float))


def test_many_odd_cells_are_labels_with_a_hint() -> None:
    words = ["x" * (1 + i % 100) for i in range(300)]
    found = proposed([*map(int, INCOMES), *words])
    assert not found.kind.numeric and "Most values fit the kind integer" in found.note


DAYS = [f"{day:02d}.01.2024" for day in range(1, 31)] * 10


@pytest.mark.parametrize("odd", ["soon", "31.02.2024", "2024", "1.1.24 or later"])
def test_a_few_odd_cells_among_dates_are_missing(odd: str) -> None:
    found, plain = column([odd, *DAYS]), column(DAYS)
    assert found.date_format == "%d.%m.%Y" and found.missing and not plain.missing
    assert (found.low, found.high, found.form) == (plain.low, plain.high, plain.form)


@pytest.mark.parametrize("word", ["soon", "00.00.0000"])
def test_a_word_among_dates_is_their_missing_code(word: str) -> None:
    found = column([*DAYS, *[word] * 10])
    assert found.kind is Kind.DATETIME and found.codes == (word,) and found.missing


def test_nearly_dates_are_kept_as_they_are_with_a_note() -> None:
    found = column([*DAYS, *["about 1990", "about 2000", "about 2010"] * 9])
    assert not found.kind.numeric and "dates" in found.note
