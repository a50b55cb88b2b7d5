"""Workbooks: each cell as the text a person sees, whatever stands in the others."""

from __future__ import annotations

import datetime as dt
import io
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from openpyxl import Workbook as Book

from core.reading.cells import ReadLimits, TableReadError
from core.reading.raw_cells import is_written
from core.reading.workbook import Workbook
from core.schema.column import Kind
from tests.reading.files import read_table

pytestmark = pytest.mark.slow

CELLS = (
    (1, "1"),
    (-0.5, "-0.5"),
    (2.0**53, "9007199254740992"),
    (1e17, "1e+17"),
    ("007", "007"),
    (" NA ", " NA "),
    (True, "True"),
    (dt.datetime(2024, 2, 29), "2024-02-29"),
    (dt.datetime(2024, 2, 29, 3, 4), "2024-02-29 03:04:00"),
    (dt.time(3, 4, 5), "03:04:05"),
)


def saved(folder: Path, rows: list[list[Any]], first: tuple[int, int] = (1, 1)) -> Path:
    """A workbook of rows, the header first; `first` is the row and column that it begins at."""
    book = Book()
    for i, row in enumerate(rows):
        for j, cell in enumerate(row):
            book.active.cell(first[0] + i, first[1] + j, cell)
    stream = io.BytesIO()
    book.save(stream)
    path = folder / "table"  # told by its content
    path.write_bytes(stream.getvalue())
    return path


def read(path: Path) -> tuple[pa.Table, tuple[str, ...]]:
    """All cells, and doubts."""
    source = Workbook(path, ReadLimits())
    cells = pa.concat_tables(source.batches())
    assert is_written(cells.schema) and set(cells.schema.types) == {pa.string()}
    return cells, source.doubts


def test_a_cell_is_the_text_that_a_person_sees(tmp_path: Path) -> None:
    cells, doubts = read(saved(tmp_path, [["a"], *([cell] for cell, _ in CELLS)]))
    assert cells.column("a").to_pylist() == [text for _, text in CELLS] and doubts == ()


@pytest.mark.parametrize(("odd", "text"), CELLS)
def test_no_cell_says_how_others_are_spelled(tmp_path: Path, odd: Any, text: str) -> None:
    rows = [["a", "b"], [1, "x"], [2.5, dt.datetime(2024, 1, 2)], [3, "z"]]
    before = read(saved(tmp_path, rows))[0].to_pylist()
    for place in (1, 2, 3):
        changed = [row if i != place else [odd, odd] for i, row in enumerate(rows)]
        after = read(saved(tmp_path, changed))[0].to_pylist()
        assert after[place - 1] == {"a": text, "b": text}
        assert [r for i, r in enumerate(after, 1) if i != place] == [
            r for i, r in enumerate(before, 1) if i != place
        ]


def test_a_table_may_begin_anywhere_and_have_empty_rows(tmp_path: Path) -> None:
    rows = [["a", "b", None], [1, None, ""], [None, None, None], [None, 2, None]]
    cells, doubts = read(saved(tmp_path, rows, first=(4, 3)))
    assert cells.to_pylist() == [{"a": "1", "b": ""}, {"a": "", "b": "2"}]
    assert doubts == ("1 empty row was left out.",)


def test_blank_and_equal_names_are_changed_and_said(tmp_path: Path) -> None:
    cells, doubts = read(saved(tmp_path, [["a", "a", None], [1, 2, 3]]))
    assert cells.to_pylist() == [{"a": "1", "a (2)": "2", "column 3": "3"}]
    assert len(doubts) == 1 and "'a (2)'" in doubts[0] and "'column 3'" in doubts[0]


def test_rows_come_in_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("core.reading.raw_cells.BATCH_ROWS", 10)
    source = Workbook(saved(tmp_path, [["a"], *([i] for i in range(25))]), ReadLimits())
    assert [batch.num_rows for batch in source.batches()] == [10, 10, 5]


def test_a_workbook_without_a_table_is_refused(tmp_path: Path) -> None:
    for rows, words in (([], "empty"), ([["a"]], "no rows"), ([[""], [""]], "empty|no rows")):
        with pytest.raises(TableReadError, match=words):
            read(saved(tmp_path, rows))


def test_moments_some_of_which_are_midnight_are_dates(tmp_path: Path) -> None:
    moments = [dt.datetime(2024, 1, 1) + dt.timedelta(hours=6 * i) for i in range(40)]
    result = read_table(saved(tmp_path, [["at"], *([moment] for moment in moments)]))
    assert result.schema["at"].kind is Kind.DATETIME
    assert result.frame["at"].tolist() == moments
