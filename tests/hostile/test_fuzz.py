"""Random tables, dates and numbers: what the readers make of them says what was written."""

from __future__ import annotations

import csv
import io

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.proposing.kinds import infer_tally
from core.proposing.misfits import misfits
from core.reading.cells import TableReadError
from core.reading.tally import Tally
from core.schema.column import Kind
from core.schema.labels import from_numbers, to_numbers
from tests.hostile.identity import changed_cells, codec_faults, reading_faults
from tests.reading.files import read_table

pytestmark = pytest.mark.slow

WORDS = st.text(
    st.characters(codec="utf-8", exclude_characters="\0", exclude_categories=("Cs", "Cc")),
    max_size=6,
)
ODD = st.sampled_from(
    ["inf", "-Infinity", "nan", "NA", "Null", "none", "?", "1e400", "1e-400", "1.10", "1.1", "007",
     "+47", "1,5", "1,234", "1.234", "TRUE", "True", "False", "Yes", "no", "y", "0", "1", "", " ",
     "2024-01-31", "31/01/2024", "9999-12-31", "0001-01-01", "2024-01-01T10:00:00+0530", "1.7e308",
     "20240131", "12345678901234567890", "9007199254740993", "0.1234567890123456789", "=1+1"]
)  # fmt: skip
NUMBERS = st.integers(-(10**25), 10**25).map(str) | st.floats(allow_nan=False).map(repr)
DECIMALS = st.decimals(-(10**9), 10**9, places=3, allow_nan=False).map(str)
KINDS = (ODD, NUMBERS, DECIMALS, WORDS, ODD | NUMBERS, ODD | WORDS)


@st.composite
def cells(draw: st.DrawFn) -> list[list[str]]:
    width, height = draw(st.integers(2, 4)), draw(st.integers(1, 25))
    columns = [
        draw(st.lists(draw(st.sampled_from(KINDS)), min_size=height, max_size=height))
        for _ in range(width)
    ]
    return [[column[i] for column in columns] for i in range(height)]


def as_text(rows: list[list[str]], delimiter: str) -> str:
    stream = io.StringIO()
    writer = csv.writer(stream, delimiter=delimiter, quoting=csv.QUOTE_ALL, lineterminator="\n")
    writer.writerow([f"c{i}" for i in range(len(rows[0]))])
    writer.writerows(rows)
    return stream.getvalue()


@given(rows=cells(), delimiter=st.sampled_from(",;\t|"))
@settings(max_examples=60, deadline=None)
def test_every_cell_of_a_delimited_file_is_what_it_was(
    rows: list[list[str]], delimiter: str
) -> None:
    text = as_text(rows, delimiter)
    result = read_table(io.BytesIO(text.encode()), "t.csv")
    assert result.form.delimiter == delimiter and len(result.frame) == len(rows)
    assert reading_faults(result, text) == []
    assert codec_faults(result.frame, result.schema) == []


@given(data=st.binary(max_size=300))
@settings(max_examples=60, deadline=None)
def test_any_bytes_are_a_table_or_a_sentence(data: bytes) -> None:
    for name in ("t.csv", "t.tsv", "t.xlsx", "t.csv.gz"):
        try:
            assert len(read_table(io.BytesIO(data), name).frame) > 0
        except TableReadError as error:
            assert "\n" not in str(error)


FORMATS = st.sampled_from(
    ["%Y-%m-%d", "%d/%m/%Y", "%d.%m.%Y", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%SZ",
     "%Y-%m-%d %H:%M:%S.%f", "%Y-%m-%dT%H:%M:%S%z", "%d %b %Y"]
)  # fmt: skip


@given(
    seconds=st.lists(st.integers(-62_135_000_000, 253_402_000_000), min_size=2, max_size=30),
    written=FORMATS,
)
@settings(max_examples=60, deadline=None)
def test_dates_keep_their_instant(seconds: list[int], written: str) -> None:
    stamps = pd.Series(np.array(seconds, dtype="datetime64[s]")).dt.tz_localize("UTC")
    text = pd.Series(
        [f"{stamp:{written}}".rjust(4, "0") for stamp in stamps], name="c", dtype="str"
    )
    column = infer_tally(Tally.of(text), "c")
    if column.kind is Kind.DATETIME:  # else it stays text, to the letter
        numbers = to_numbers(text, column)
        assert np.array_equal(to_numbers(from_numbers(numbers, column), column), numbers)
    if column.modelled:
        assert changed_cells(text, column) == misfits(Tally.of(text), column)


@given(numbers=st.lists(st.floats(allow_nan=False, width=64), min_size=2, max_size=30))
@settings(max_examples=60, deadline=None)
def test_numbers_of_any_size_are_kept_or_counted(numbers: list[float]) -> None:
    series = pd.Series(numbers, name="c")
    column = infer_tally(Tally.of(series), "c")
    if column.modelled and column.declared:
        assert changed_cells(series.where(series.abs() <= 1e150), column) == 0
        if column.kind.numeric:
            assert np.isfinite([column.low, column.high]).all()
