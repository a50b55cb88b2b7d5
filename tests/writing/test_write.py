"""What is written reads back, whole or not at all."""

from __future__ import annotations

import codecs
import csv
import io
import re
from datetime import datetime
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from openpyxl import load_workbook

from core.proposing.propose import infer_schema
from core.schema.column import SchemaError
from core.schema.form import DELIMITERS
from core.schema.magnitudes import LARGEST
from core.writing.excel import fits_excel, write_excel
from core.writing.tables import NUMBER, write_csv_parts, write_parquet_parts
from tests.reading.files import read, read_table

pytestmark = pytest.mark.slow

NAMES = st.text("abcæ_ ,\"'", min_size=1, max_size=6).map(lambda s: "c" + s.strip())
WORDS = st.text("ab ,;|\t\n\"'ø=-1", max_size=8).map(lambda s: f"w{s}".strip())
COLUMNS = st.sampled_from(
    [
        ("int64", st.integers(-(2**63), 2**63 - 1)),
        ("Int64", st.none() | st.integers(-(2**63), 2**63 - 1)),
        ("float64", st.none() | st.floats(-LARGEST, LARGEST)),
        ("str", st.none() | WORDS),
        ("bool", st.booleans()),
    ]
)


@st.composite
def frames(draw: st.DrawFn) -> pd.DataFrame:
    names = draw(st.lists(NAMES, min_size=1, max_size=4, unique=True))
    rows = draw(st.integers(1, 6))
    columns = {}
    for name in names:
        dtype, values = draw(COLUMNS)
        drawn = draw(st.lists(values, min_size=rows, max_size=rows))
        column = pd.Series(drawn, dtype=dtype)
        if column.isna().all():  # a column without a value comes back as text
            column = pd.Series(["w"] * rows, dtype="str")
        elif dtype == "Int64" and not column.isna().any():
            column = column.astype("int64")
        columns[name] = column
    return pd.DataFrame(columns)


@given(frame=frames())
@settings(max_examples=60, deadline=None)  # of four columns of five kinds
def test_what_is_written_reads_back(
    tmp_path_factory: pytest.TempPathFactory, frame: pd.DataFrame
) -> None:
    path = tmp_path_factory.getbasetemp() / "round.csv"
    write_csv_parts([frame], path)
    pd.testing.assert_frame_equal(read_table(path).frame, frame)
    packed = path.with_suffix(".parquet")
    write_parquet_parts([frame], packed)
    pd.testing.assert_frame_equal(read_table(packed).frame, frame)


def test_integers_with_gaps_are_written_as_integers(tmp_path: Path) -> None:
    write_csv_parts([read(b"a,b\n1,x\n,y\n").frame], tmp_path / "t.csv")
    assert (tmp_path / "t.csv").read_text() == "a,b\n1,x\n,y\n"


def test_formulas_are_made_inert_when_asked(tmp_path: Path) -> None:
    frame = pd.DataFrame({"=a": ["=1+1", "@x", "plain", None], "n": [-1, 2, 3, 4]})
    path = tmp_path / "t.csv"
    write_csv_parts([frame], path, escape_formulas=True)
    assert path.read_text() == "'=a,n\n'=1+1,-1\n'@x,2\nplain,3\n,4\n"
    write_csv_parts([frame], path)
    assert path.read_text().startswith("=a,n\n=1+1,-1\n")


@pytest.mark.parametrize(
    ("cell", "escape", "start"),
    [("männlich", True, codecs.BOM_UTF8), ("plain", True, b"sex"), ("männlich", False, b"sex")],
)
def test_spreadsheets_are_told_of_other_letters_than_ascii(
    tmp_path: Path, cell: str, escape: bool, start: bytes
) -> None:
    frame = pd.DataFrame({"sex": [cell]})
    write_csv_parts([frame, frame], tmp_path / "t.csv", escape_formulas=escape)
    written = (tmp_path / "t.csv").read_bytes()
    assert written.startswith(start) and written.count(codecs.BOM_UTF8) == (start != b"sex")
    assert read(written).frame["sex"].tolist() == [cell, cell]


@settings(max_examples=300, deadline=None)
@given(st.lists(st.text(alphabet="=+-@,;|\t\n\"'a1 ", max_size=8), min_size=1, max_size=4))
def test_no_spreadsheet_finds_a_formula_in_any_locale(
    tmp_path_factory: pytest.TempPathFactory, cells: list[str]
) -> None:
    path = tmp_path_factory.getbasetemp() / "inert.csv"
    frame = pd.DataFrame({"key": "k", "text": pd.Series(cells, dtype="str")})
    write_csv_parts([frame], path, escape_formulas=True)
    whole = path.read_text()
    for mark in DELIMITERS:
        for row in csv.reader(io.StringIO(whole), delimiter=mark):
            for cell in row:
                number = re.fullmatch(NUMBER, cell) and cell in cells
                assert number or not cell.startswith(("=", "+", "-", "@")), (mark, cell)


def test_a_failed_write_leaves_the_old_file(tmp_path: Path) -> None:
    class Unprintable:
        def __str__(self) -> str:
            raise RuntimeError("no")

    path = tmp_path / "t.csv"
    path.write_text("old")
    with pytest.raises(RuntimeError):
        write_csv_parts([pd.DataFrame({"a": [Unprintable()]})], path)
    assert path.read_text() == "old" and [p.name for p in tmp_path.iterdir()] == ["t.csv"]


def test_a_workbook_holds_plain_values_and_says_it_is_synthetic(tmp_path: Path) -> None:
    frame = pd.DataFrame(
        {
            "n": [1, 2],
            "x": [0.5, None],
            "day": pd.to_datetime(["2024-02-29", "2024-03-01"]),
            "at": pd.to_datetime(["2024-02-29 12:30", None]),
            "text": ["=1+1", "plain"],
            "flag": [True, False],
        }
    )
    path, schema = tmp_path / "t.xlsx", infer_schema(frame)
    write_excel([frame[:1], frame[1:]], path, schema=schema, label={"synthetic": True, "run": "r1"})
    book = load_workbook(path)
    rows = list(book["table"].iter_rows(values_only=True))
    assert rows[0] == tuple(frame.columns)
    assert rows[1] == (1, 0.5, datetime(2024, 2, 29), datetime(2024, 2, 29, 12, 30), "=1+1", True)
    assert rows[2][:2] == (2, None) and rows[2][3] is None
    assert book["table"]["E2"].data_type == "s"  # text, no formula
    assert list(book["synthetic"].iter_rows(values_only=True)) == [
        ("synthetic", True),
        ("run", "r1"),
    ]


def test_what_no_sheet_can_hold_is_refused_whole(tmp_path: Path) -> None:
    assert fits_excel(1_000_000, 1) and not fits_excel(1_048_576, 1) and not fits_excel(500_001, 2)
    frame = pd.DataFrame({"a": range(400_000), "b": 0, "c": 0})
    with pytest.raises(SchemaError, match="at most 1,000,000 cells"):
        write_excel([frame], tmp_path / "t.xlsx", schema=infer_schema(frame[:100]))
    assert not (tmp_path / "t.xlsx").exists()
