"""Delimited text is split into the cells that the csv module finds, or refused in one line."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from core.reading import delimited
from core.reading.cells import ReadLimits, TableReadError
from core.reading.delimited import DelimitedFile
from core.reading.raw_cells import is_written
from core.schema.form import FileForm
from tests.peak_memory import peak_mb

pytestmark = pytest.mark.slow

N = 1_200


def split(file: Path, declared: FileForm | None = None) -> tuple[DelimitedFile, pa.Table]:
    """A file's source and all its cells."""
    source = DelimitedFile(file, declared, file.name.endswith(".tsv"))
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
    monkeypatch.setattr("core.reading.raw_cells.BATCH_ROWS", 500)


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
    spaced = name.startswith("spaced")
    source, table = split_bytes(tmp_path, text)
    header, *rows = by_the_csv_module(text, mark=mark, spaced=spaced)
    assert table.column_names == header and cells(table) == [tuple(row) for row in rows]
    assert source.form == FileForm(delimiter=mark, spaced=spaced)
    assert len(source.doubts) == ("\0" in text)


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


# -- what is refused, and what is said -------------------------------------------------------------

FAR = "1,2\n" * 100_000
REFUSED = {
    "a value too many": ("a,b\n" + FAR + "1,2,3\n", "Line 100002 has 3 values"),
    "a value too few": ("a,b\n" + FAR + '"x\ny",1\n2\n', "Line 100004 has 1 value "),
    "an open quote": ("a,b\n" + FAR + '1,"2\n' + FAR, "Line 100002 opens a quote"),
    "an open quote at the end": ("a,b\n" + FAR + '1,"2', "Line 100002 opens a quote"),
    "text after a quote": ("a,b\n" + FAR + '1,"Zaphod"x\n' + FAR, "Line 100002 has text after"),
    "a quote that swallows lines": (
        "a,b\n" + FAR + '5" Zaphod,"x\n1,2\n3,"y"\n' + FAR, "Line 100002 has text after",
    ),
    "a quote that is closed late": ('a,b\n1,"Zaphod\n2,3\n3,"y\n', "Line 2 has text after"),
    "after a space": ('a,b\n1, "x"\n' + FAR + '1, "2" Zaphod\n', "Line 100003 has text after"),
    "ragged after a space": ('a,b\n1, "x"\n' + FAR + "Zaphod\n", "Line 100003 has 1 value "),
    "after a header over lines": ('"a\nb",c\n' + FAR + "1\n", "Line 100003 has 1 value "),
    "after a sep line": ("sep=;\na;b\n" + "1;2\n" * 20 + "1\n", "Line 23 has 1 value "),
    "a title": ("Zaphod, report\n\na,b,c\n1,2,3\n", "Line 3 has 3 values where the header has 2"),
    "a title with delimiters": ("Zaphod;;\na;b;c\n1;2;3\n", "names 1 of 3 columns"),
    "no name": (",,\n1,2,3\n", "names 0 of 3 columns"),
    "NUL in the header": ("a\0,b\n1,2\n3,4\n5,6\n", "header contains NUL"),
    "a quote in the header": ('a,"b\n1,Zaphod\n', "Line 1 opens a quote"),
    "nothing": ("", "empty"),
    "blanks": ("\n \n\t\n", "empty"),
    "a header": ("a,b\n\n", "no rows"),
    "a page": ("\n <!DOCTYPE html>\n<p>a,b\n", "web page"),
    "an object": ('[{"a": 1}]\n', "JSON"),
    "one line": ("Zaphod," * 2_000_000, "first 2 MB are one line"),
    "a long record": ("a,b,c\n" + ",".join(["x" * 2_000_000] * 3) + "\n", "longer than 2 MB"),
    "a long value": ("a,b\n1," + "x" * 5_000_000 + "\n" + FAR, "Line 2 begins a value longer"),
    "binary data": (bytes(range(256)) * 50, "binary data"),
    "binary data in UTF-16": (("a,b\n1,x\0\n" * 20).encode("utf-16"), "binary data"),
    "UTF-16 cut short": (b"\xff\xfea\0,\0b", "could not be read as utf-16"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_refusals_name_the_line_and_quote_no_value(tmp_path: Path, name: str) -> None:
    data, words = REFUSED[name]
    with pytest.raises(TableReadError, match=words) as refused:
        split_bytes(tmp_path, data)
    said = str(refused.value)
    assert "\n" not in said and "Zaphod" not in said and "." in said[:-1]
    assert refused.value.__suppress_context__ or refused.value.__context__ is None


def test_every_name_that_is_blank_or_taken_is_replaced_and_said(tmp_path: Path) -> None:
    source, table = split_bytes(tmp_path, "a, a,,b,a,a (2)\n1,2,3,4,5,6\n")
    assert table.column_names == ["a", "a (3)", "column 3", "b", "a (4)", "a (2)"]
    assert len(source.doubts) == 1
    assert all(f"'{name}'" in source.doubts[0] for name in ("a (3)", "column 3", "a (4)"))
    file = tmp_path / "wide.csv"
    file.write_text("a,b\n1,2\n")
    with pytest.raises(TableReadError, match="2 columns; 1 is the most"):
        DelimitedFile(file, limits=ReadLimits(max_columns=1))


@pytest.mark.parametrize(
    ("text", "delimiter"),
    [
        ("a;b,c\n1;2,3\n", ";"),  # as declared
        ("a,b\n1;0,2;0\n", ","),  # the header has no declared delimiter
        ("a\n1,2\n", ";"),  # nor any other
        ("sep=|\na,b|c\n1|2\n", "|"),
    ],
)
def test_the_header_alone_overrules_a_declared_delimiter(
    tmp_path: Path, text: str, delimiter: str
) -> None:
    file = tmp_path / "rows.csv"
    file.write_text(text)
    source = DelimitedFile(file, FileForm(delimiter=";", encoding="utf-8", spaced=False))
    assert source.form.delimiter == delimiter


def test_what_is_declared_in_part_is_proposed_in_the_rest(tmp_path: Path) -> None:
    data = 'Ort;n;x\nZürich; "1";,\n'.encode("cp850")
    source, table = split_bytes(tmp_path, data, FileForm(encoding="cp850"))
    assert source.form == FileForm(delimiter=";", encoding="cp850", spaced=True)
    assert split_bytes(tmp_path, data, FileForm(encoding="ibm850"))[0].form == source.form
    assert cells(table) == [("Zürich", "1", ",")] and not source.doubts


@pytest.mark.parametrize(
    ("data", "encoding", "replaced"),
    [
        ("navn\nBjørn\nÅse\n".encode("latin-1"), "cp1252", 0),
        ("имя,город\n".encode("cp1251") + "Пётр,Москва\n".encode("cp1251") * 9, "cp1251", 0),
        (b"navn\n" + "Bjørn\n".encode() * 9 + b"B\xf8rn\n\xff\xff\n", "utf-8", 3),
        (b"navn\n" + b"Bo\n" * 9 + b"\0\0\n", "utf-8", 2),
        ("navn\nBjørn\n".encode("utf-8-sig"), "utf-8-sig", 0),
        ("navn\nBjørn\n".encode("utf-32"), "utf-32", 0),
        ("navn\nBjørn\nÅse\n".encode("utf-16-be"), "utf-16-be", 0),
    ],
)
def test_the_encoding_and_what_is_not_in_it_are_said(
    tmp_path: Path, data: bytes, encoding: str, replaced: int
) -> None:
    source, table = split_bytes(tmp_path, data)
    assert source.form.encoding == encoding
    assert any("not in UTF-8" in said for said in source.doubts) is encoding.startswith("cp")
    assert any(f": {replaced} (" in said for said in source.doubts) is bool(replaced)
    assert not table.column_names[0].startswith("\ufeff")
    list(source.batches())
    assert sum("Unreadable" in said for said in source.doubts) == bool(replaced)


def test_memory_does_not_follow_the_length_of_a_file(tmp_path: Path) -> None:
    script = (
        "import sys; from pathlib import Path\n"
        "import core.reading.raw_cells as raw; raw.BATCH_ROWS = 5_000\n"
        "import core.reading.delimited as text; text.BLOCK_BYTES = 2**16\n"
        "source = text.DelimitedFile(Path(sys.argv[1]))\n"
        "assert sum(map(len, source.batches())) == int(sys.argv[2]) * 50_000\n"
    )
    peaks = []
    for times in (1, 4):
        file = tmp_path / f"{times}.csv"
        with file.open("w") as stream:
            stream.write(",".join(f"x{i}" for i in range(30)) + "\n")
            stream.writelines((",1234567890" * 30)[1:] + "\n" for _ in range(times * 50_000))
        peaks.append(peak_mb(script, file, times))
    assert peaks[1] - peaks[0] < 10, f"{peaks} MB; the rows more are 50 MB"
