"""Delimited text is split into the cells that the csv module finds, or refused in one line."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from core.table.form import FileForm
from core.table.io import delimited
from core.table.io.cells import ReadLimits, TableReadError
from core.table.io.delimited import DelimitedFile
from core.table.raw_cells import is_written
from tests.peak_memory import peak_mb

N = 1_200


def split(file: Path, declared: FileForm | None = None) -> tuple[DelimitedFile, pa.Table]:
    """A file's source and all its cells."""
    source = DelimitedFile(file, "a file", declared, file.name.endswith(".tsv"))
    source.prepare(file.parent)
    batches = list(source.batches())
    assert all(is_written(batch.schema) for batch in batches)
    return source, pa.concat_tables(batches)


def split_bytes(
    folder: Path, data: str | bytes, declared: FileForm | None = None
) -> tuple[DelimitedFile, pa.Table]:
    """The same of bytes, or text in UTF-8."""
    file = folder / "visits.csv"
    file.write_bytes(data.encode() if isinstance(data, str) else data)
    return split(file, declared)


def cells(table: pa.Table) -> list[tuple[str, ...]]:
    """All rows."""
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


def by_the_csv_module(text: str, *, mark: str = ",", spaced: bool = False) -> list[list[str]]:
    """Header and rows, split strictly."""
    stream = io.StringIO(text, newline="")
    rows = csv.reader(stream, delimiter=mark, skipinitialspace=spaced, strict=True)
    return [row for row in rows if row]


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files come in blocks and batches of a few rows."""
    monkeypatch.setattr(delimited, "BLOCK_BYTES", 4_096)
    monkeypatch.setattr(delimited, "SPACED_CELLS", 600)
    monkeypatch.setattr("core.table.raw_cells.BATCH_ROWS", 500)


# -- the same cells as one after the other ---------------------------------------------------------

FILES = {
    "plain": ("n,x,word\n" + "".join(f"{i},{i / 8},{'ab'[i % 2]}\n" for i in range(N)), ","),
    "blanks and markers": ("a,b\n" + " 1 ,\nNA,  ?\n,null\n" * N, ","),
    "quotes": ('a,b\n"x, ""y""\nz",1\n' + 'plain,"2"\n' * N, ","),
    "a value with line breaks in every row": ("a;b\n" + '"x\r\n\ny;";1\n' * N, ";"),
    "quotes that are letters": ("a,b\n" + '5" disk,x"y"\n' * N, ","),
    "quotes in quotes after a space": ('a,b\n"x, ""y"", ""z""",1\n' * N, ","),
    "spaced quotes": ("a,b\n" + '1, "x, y"\n' * N + '2, "z"\n', ","),
    "spaced header": ('a, "b, c"\n' + '1, "x, y"\n' * N, ","),
    "tabs": ("a\tb\n" + "1,5\tä\n" * N, "\t"),
    "bars": ("a|b\n" + "1,5|x\n" * N, "|"),
    "header over lines": ('"a\nb",c\n' + "1,2\n" * N, ","),
    "Windows lines": ("a,b\r\n" + "1,x\r\n" * N, ","),
    "old Macintosh lines": ("a,b\r" + "1,x\r" * N, ","),
    "blank lines": ("\n\na,b\n\n" + "1,x\n\n\r\n" * N, ","),
    "no last line end": ("a,b\n" + "1,x\n" * N + '2,"y"', ","),
    "a column": ("n\n" + '1\n""\n \n' * N, ","),
    "NUL": ("a,b\n" + "1,x\n" * N + '\0,"\0y"\n' + "2,z\n" * N, ","),
    "wide": (",".join(f"c{i}" for i in range(700)) + "\n" + (",x" * 700)[1:] + "\n", ","),
}


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("name", FILES)
def test_cells_are_those_of_the_csv_module(tmp_path: Path, name: str) -> None:
    text, mark = FILES[name]
    source, table = split_bytes(tmp_path, text)
    header, *rows = by_the_csv_module(text, mark=mark, spaced=name.startswith("spaced"))
    assert table.column_names == header and cells(table) == [tuple(row) for row in rows]
    assert (
        source.form == FileForm(delimiter=mark, spaced=name.startswith("spaced"))
        and not source.doubts
    )


@pytest.mark.usefixtures("small_blocks")
def test_batches_are_full_and_of_one_schema(tmp_path: Path) -> None:
    for text in ("a,b\n" + "1,x\n" * N, "a,b\n" + '1, "x"\n' * N):
        source, _ = split_bytes(tmp_path, text)
        batches = list(source.batches())
        assert [len(batch) for batch in batches] == [500, 500, 200]
        assert all(batch.schema == batches[0].schema for batch in batches)
        assert set(batches[0].schema.types) == {pa.string()}


def test_a_batch_of_long_cells_has_fewer_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delimited, "BLOCK_BYTES", 4_096)
    monkeypatch.setattr(delimited, "BATCH_BYTES", 100_000)
    source, _ = split_bytes(tmp_path, "a,b\n" + f"1,{'x' * 1000}\n" * N)
    sizes = [len(batch) for batch in source.batches()]
    assert sum(sizes) == N and 90 < max(sizes) < 110


@given(
    body=st.text(st.sampled_from('",\n\r a'), min_size=1, max_size=30),
    block=st.integers(60, 70),
)
@example('"x"a,1\n', 60)
@example('1,"', 60)
@example('5" a,"b\n1,2\n3,"q"\n', 60)
@example('"a"","b"\n', 60)
@settings(max_examples=300, deadline=None)
def test_every_quote_means_what_it_means_to_the_csv_module(
    tmp_path_factory: pytest.TempPathFactory, body: str, block: int
) -> None:
    text = "n,m\n1,2\n" + body
    expected: list[tuple[str, ...]] | None
    try:
        expected = [tuple(row) for row in by_the_csv_module(text)[1:]]
        expected = expected if all(len(row) == 2 for row in expected) else None
    except csv.Error:
        expected = None
    folder = tmp_path_factory.mktemp("quotes")
    declared = FileForm(delimiter=",", encoding="utf-8", spaced=False)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(delimited, "BLOCK_BYTES", block)
        try:
            got = cells(split_bytes(folder, text, declared)[1])
        except TableReadError:
            got = None
    assert got == expected
