"""Every file is read rightly or refused with one clear line that quotes no value."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import time
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.table.io.cells import MISSING_MARKERS
from core.table.io.read import ReadLimits, ReadResult, TableReadError, read_table
from core.table.io.write import write_csv, write_parquet

SECRET = "Zaphod"  # a cell value no message may quote


def read(data: bytes, name: str = "table.csv", **limits: int) -> ReadResult:
    return read_table(io.BytesIO(data), name, limits=ReadLimits(**limits))


def zipped(**files: bytes) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name.replace("_csv", ".csv"), content)
    return stream.getvalue()


def parquet(frame: pd.DataFrame) -> bytes:
    stream = io.BytesIO()
    frame.to_parquet(stream)
    return stream.getvalue()


def xlsx(*sheets: pd.DataFrame) -> bytes:
    stream = io.BytesIO()
    with pd.ExcelWriter(stream, engine="openpyxl") as writer:
        for i, sheet in enumerate(sheets):
            sheet.to_excel(writer, sheet_name=f"sheet {i}", index=False)
    return stream.getvalue()


def ods(*rows: tuple[str, ...]) -> bytes:
    """The smallest OpenDocument spreadsheet of text cells."""
    cells = "".join(
        "<table:table-row>"
        + "".join(
            '<table:table-cell office:value-type="string">'
            f"<text:p>{cell}</text:p></table:table-cell>"
            for cell in row
        )
        + "</table:table-row>"
        for row in rows
    )
    spaces = " ".join(
        f'xmlns:{key}="urn:oasis:names:tc:opendocument:xmlns:{key}:1.0"'
        for key in ("office", "table", "text")
    )
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("mimetype", "application/vnd.oasis.opendocument.spreadsheet")
        archive.writestr(
            "content.xml",
            f"<office:document-content {spaces}><office:body><office:spreadsheet>"
            f'<table:table table:name="s">{cells}</table:table>'
            "</office:spreadsheet></office:body></office:document-content>",
        )
        archive.writestr("META-INF/manifest.xml", "<manifest/>")
    return stream.getvalue()


PARQUET = parquet(pd.DataFrame({"name": [SECRET, "b"]}))
XLSX = xlsx(pd.DataFrame({"name": [SECRET, "b"], "n": [1, 2]}))
LONG_GZIP = gzip.compress(b"name,n\n" + b"Zaphod,1\n" * 500)

MALFORMED = {
    "empty": (b"", "table.csv", "empty"),
    "blank lines": (b"\n  \n", "table.csv", "empty"),
    "header only": (b"name,n\n", "table.csv", "header but no rows"),
    "header without line end": (b"name,n", "table.csv", "header but no rows"),
    "a value too many": (b"name,n\nb,2\nZaphod,1,3\n", "table.csv", "Line 3 has 3 values"),
    "a value too few": (b"name,n\nb,2\n\nZaphod\n", "table.csv", "Line 4 has 1 value "),
    "ragged after a line break": (b'a,b\n"x\ny",2\nZaphod\n', "t.csv", "Line 4 has 1 value "),
    "ragged with spaced quotes": (b'a,b\n1, "x"\nZaphod\n', "t.csv", "Line 3 has 1 value "),
    "header twice": (b"name,n, name\nZaphod,1,2\n", "table.csv", "'name' more than once"),
    "header blank": (b"name,,n\nZaphod,1,2\n", "table.csv", "Column 2 has no name"),
    "quote left open": (b'a,b\n1,2\n"Zaphod,2\n3,4\n', "table.csv", "Line 3 opens a quote"),
    "quote closed late": (b'a,b\n1,"Zaphod\n2,3\n3,"y\n', "table.csv", "Line 2 has text after"),
    "quote in the header": (b'a,"b\n1,Zaphod\n', "table.csv", "Line 1 opens a quote"),
    "NUL bytes": (b"name,n\nZaphod,\x00\n", "table.csv", "Line 2 holds NUL"),
    "control bytes": (b"name,n\n\x01\x02\x03\x04,Zaphod\n", "table.csv", "binary data"),
    "UTF-16 cut short": (b"\xff\xfea\x00,\x00b", "table.csv", "utf-16"),
    "picture": (b"\x89PNG\r\n\x1a\nZaphod", "table.csv", "a picture"),
    "PDF": (b"%PDF-1.7 Zaphod", "table.csv", "a PDF"),
    "web page": (b"<!DOCTYPE html><p>Zaphod", "table.csv", "web page"),
    "JSON": (b'[{"name": "Zaphod"}]', "table.csv", "JSON"),
    "gzip cut short": (LONG_GZIP[:-20], "table.csv.gz", "gzip file is damaged"),
    "gzip broken": (b"\x1f\x8b\x08\x00 broken", "table.csv.gz", "gzip file is damaged"),
    "gzip by name only": (b"name\nZaphod\n", "table.csv.gz", "named .gz"),
    "gzip in gzip": (gzip.compress(LONG_GZIP), "table.csv.gz", "another compressed file"),
    "zip of two": (zipped(a_csv=b"a\n1", b_csv=b"a\n1"), "table.zip", "holds 2 files"),
    "zip of none": (zipped(), "table.zip", "holds 0 files"),
    "zip cut short": (
        zipped(a_csv=b"name\nZaphod\n" * 99)[:60],
        "table.zip",
        "zip file is damaged",
    ),
    "Excel by name only": (b"name,n\nZaphod,1\n", "table.xlsx", "named .xlsx"),
    "Excel cut short": (XLSX[:900], "table.xlsx", "Excel file is damaged"),
    "Excel locked": (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600), "t.xls", "password"),
    "Excel empty": (xlsx(pd.DataFrame()), "table.xlsx", "workbook is empty"),
    "Excel header only": (xlsx(pd.DataFrame({"a": []})), "table.xlsx", "header but no rows"),
    "Excel header blank": (xlsx(pd.DataFrame([[1, 2]], columns=["a", ""])), "t.xlsx", "Column 2"),
    "Parquet by name only": (b"name,n\nZaphod,1\n", "table.parquet", "named .parquet"),
    "Parquet cut short": (PARQUET[:-9], "table.parquet", "Parquet file is damaged"),
    "Parquet broken": (PARQUET[:4] + b"\xff" * 60 + PARQUET[64:], "t.parquet", "damaged"),
    "Parquet nested": (parquet(pd.DataFrame({"tags": [["Zaphod"]]})), "t.parquet", "'tags' holds"),
    "Parquet without rows": (parquet(pd.DataFrame({"a": [1]})[:0]), "t.parquet", "no rows"),
}


@pytest.mark.parametrize("case", MALFORMED)
def test_malformed_files_are_refused_in_one_clear_line(case: str) -> None:
    data, name, expected = MALFORMED[case]
    with pytest.raises(TableReadError) as caught:
        read(data, name)
    message = str(caught.value)
    assert expected in message
    assert "\n" not in message and SECRET not in message
    assert message.count(".") >= 2 or "." in message[:-1]  # what happened, then what to do
    # The library's own error may quote a row, and must not be printed with ours.
    assert caught.value.__context__ is None or caught.value.__suppress_context__


@pytest.mark.parametrize("pack", [bytes, gzip.compress, bz2.compress, lzma.compress])
def test_what_is_too_big_is_refused_before_it_is_unpacked(pack: object) -> None:
    data = pack(b"a,b\n" + b"1,2\n" * 500_000)  # type: ignore[operator]
    with pytest.raises(TableReadError, match="larger than 1,000,000 bytes"):
        read(data, max_bytes=1_000_000)
    with pytest.raises(TableReadError, match="larger than"):
        read(zipped(a_csv=b"0" * 2_000_000), "t.zip", max_bytes=1_000_000)
    with pytest.raises(TableReadError, match="larger than"):
        read(XLSX, "t.xlsx", max_bytes=len(XLSX))  # fits packed, not unpacked


def test_parquet_is_measured_unpacked() -> None:
    data = parquet(pd.DataFrame({"n": np.arange(100_000) % 7, "x": np.arange(100_000) / 3}))
    with pytest.raises(TableReadError, match="larger than"):
        read(data, "t.parquet", max_bytes=len(data) - 1)
    assert len(read(data, "t.parquet").frame) == 100_000


@pytest.mark.parametrize("kind", ["csv", "utf-16", "gzip", "zip", "parquet", "xlsx", "ods"])
def test_damaged_files_are_read_or_refused_and_nothing_else(kind: str) -> None:
    frame = pd.DataFrame({"n": [1, 2, None], "w": ["a,b", 'c"d', "é\nz"]})
    csv = frame.to_csv(index=False).encode()
    whole = {
        "csv": csv,
        "utf-16": csv.decode().encode("utf-16"),
        "gzip": gzip.compress(csv),
        "zip": zipped(t_csv=csv),
        "parquet": parquet(frame),
        "xlsx": xlsx(frame),
        "ods": ods(("a", "b"), ("x", "1")),
    }[kind]
    rng = np.random.default_rng(3)
    for _ in range(60):
        data = bytearray(whole)
        place = int(rng.integers(1, len(data)))
        damage = rng.integers(3)
        if damage == 0:
            del data[place:]
        elif damage == 1:
            del data[place : place + int(rng.integers(1, 30))]
        else:
            data[place] ^= int(rng.integers(1, 256))
        try:
            assert len(read(bytes(data), "t").frame) > 0
        except TableReadError as error:
            assert "\n" not in str(error)


def test_rows_and_columns_have_limits() -> None:
    with pytest.raises(TableReadError, match="3 rows; 2 is the most"):
        read(b"a\n1\n2\n3\n", max_rows=2)
    with pytest.raises(TableReadError, match="2 columns; 1 is the most"):
        read(b"a,b\n1,2\n", max_columns=1)
    with pytest.raises(TableReadError, match="2 rows; 1 is the most"):
        read(PARQUET, max_rows=1)


def test_paths_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(TableReadError, match="no such file"):
        read_table(tmp_path / "absent.csv")
    with pytest.raises(TableReadError, match="a folder"):
        read_table(tmp_path)
    big = tmp_path / "big.csv"
    big.write_bytes(b"a\n" + b"1\n" * 50)
    with pytest.raises(TableReadError, match="larger than"):
        read_table(big, limits=ReadLimits(max_bytes=50))


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_delimiters(delimiter: str) -> None:
    text = "name,n,note\nBo,1,x y\nAnn,2,z\n".replace(",", delimiter)
    result = read(text.encode())
    assert result.delimiter == delimiter
    assert result.format == ("tsv" if delimiter == "\t" else "csv")
    assert result.frame.to_dict("list") == {
        "name": ["Bo", "Ann"],
        "n": [1, 2],
        "note": ["x y", "z"],
    }


def test_a_single_column_and_a_declared_separator() -> None:
    assert read(b"n\n1\n2\n").frame["n"].tolist() == [1, 2]
    result = read(b"sep=;\r\na;b\r\n1,5;x\r\n")
    assert result.delimiter == ";" and result.frame["a"].tolist() == [1.5]


@pytest.mark.parametrize(
    "encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-32", "latin-1", "cp1252"]
)
def test_encodings(encoding: str) -> None:
    text = "navn,sted\nBjørn,Tromsø\nÅse,Málaga\n"
    if encoding == "cp1252":
        text += "“Bo”,5 €\n"
    result = read(text.encode(encoding))
    assert result.frame["navn"].tolist()[:2] == ["Bjørn", "Åse"]
    assert bool(result.warnings) == (encoding in ("latin-1", "cp1252"))
    if encoding == "cp1252":
        assert result.frame["sted"].tolist()[2] == "5 €"


def test_other_scripts_are_recognised() -> None:
    text = "имя,город\n" + "Иван,Москва\nПётр,Новосибирск\nАнна,Санкт-Петербург\n" * 5
    result = read(text.encode("cp1251"))
    assert result.frame["город"].tolist()[0] == "Москва" and "cp1251" in result.warnings[0]


def test_decimal_commas() -> None:
    result = read(b"a;b;c\n1,5;1.234,50;x\n-2,25;7,5;y\n")
    assert result.decimal == ","
    assert result.frame["a"].tolist() == [1.5, -2.25]
    assert result.frame["b"].tolist() == [1234.5, 7.5]
    assert "'a', 'b'" in result.warnings[0]


def test_a_comma_nobody_can_tell_is_not_guessed() -> None:
    result = read(b"a;b\n1,234;x\n5,678;y\n")
    assert result.frame["a"].tolist() == ["1,234", "5,678"] and "'a' could" in result.warnings[0]
    grouped = read(b'a,b\n"1,234.50",x\n"7.25",y\n')
    assert grouped.frame["a"].tolist()[0] == "1,234.50" and "group" in grouped.warnings[0]


def test_missing_markers_are_absent_whatever_their_case_and_spaces() -> None:
    rows = [marker.upper() + "," + f" {marker} " for marker in MISSING_MARKERS]
    result = read(("a,b\n1,x\n" + "\n".join(rows) + "\n").encode())
    assert result.frame["a"].isna().sum() == len(MISSING_MARKERS)
    assert result.frame["b"].tolist()[0] == "x" and result.frame["b"].isna()[1:].all()


def test_spaces_around_values_and_before_quotes() -> None:
    result = read(b'a, b , c\n 1 ,"x, y", z\n2, "p, q",r \n')
    assert list(result.frame.columns) == ["a", "b", "c"]
    assert result.frame.to_dict("list") == {"a": [1, 2], "b": ["x, y", "p, q"], "c": ["z", "r"]}


def test_dtypes_lose_nothing() -> None:
    text = (
        "n,gap,code,phone,long,flag,maybe,word,sci,inf\n"
        "1,5,007,+47,12345678901234567890,True,True,true,1e5,inf\n"
        "-2,,010,+46,1,False,?,false,.5,2\n"
    )
    result = read(text.encode())
    kinds = {name: str(dtype) for name, dtype in result.frame.dtypes.items()}
    assert kinds == {
        "n": "int64",
        "gap": "Int64",
        "code": "str",
        "phone": "str",
        "long": "str",
        "flag": "bool",
        "maybe": "boolean",
        "word": "str",
        "sci": "float64",
        "inf": "Int64",
    }
    assert result.frame["sci"].tolist() == [100000.0, 0.5]
    assert any("'inf' has infinite values" in warning for warning in result.warnings)


def test_doubts_about_the_header_and_empty_columns_are_said() -> None:
    assert "looks like values" in read(b"1,2\n3,4\n").warnings[0]
    assert "'b'" in read(b"a,b\n1,\n2,?\n").warnings[0]


def test_line_ends_and_quoted_breaks() -> None:
    for end in (b"\n", b"\r\n", b"\r"):
        data = end.join([b"a,b", b"1,x", b"2,y", b""])
        assert read(data).frame.to_dict("list") == {"a": [1, 2], "b": ["x", "y"]}
    assert read(b'a,"b\nc"\n1,"x\ny"\n').frame.to_dict("list") == {"a": [1], "b\nc": ["x\ny"]}
    assert read(b'a,b\n5" disk,1\n6" disk,2\n').frame["a"].tolist() == ['5" disk', '6" disk']


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress])
def test_compressed_files(pack: object) -> None:
    assert read(pack(b"a,b\n1,2\n"), "t").frame.shape == (1, 2)  # type: ignore[operator]


def test_zip_of_one_file_and_its_litter() -> None:
    litter = {"__MACOSX/._t.csv": b"x", ".DS_Store": b"y"}
    assert read(zipped(t_csv=b"a,b\n1,2\n", **litter), "t.zip").frame.shape == (1, 2)
    inside = read(zipped(t=XLSX), "t.zip")
    assert inside.format == "xlsx"


def test_excel() -> None:
    frame = pd.DataFrame(
        {
            "n": [1, 2, None],
            "x": [0.5, 1, None],
            "day": pd.to_datetime(["2024-02-29", None, "2024-03-01"]),
            "flag": [True, False, True],
            "word": ["x", "N/A", " z "],
            "code": ["007", "8", "9"],
            "mixed": [1, "q", 2.5],
        }
    )
    result = read(xlsx(frame, pd.DataFrame({"other": [1]})), "t.xlsx")
    out = result.frame
    assert [str(d) for d in out.dtypes] == [
        "Int64",
        "float64",
        "datetime64[us]",
        "bool",
        "str",
        "str",
        "str",
    ]
    assert out["n"].tolist()[:2] == [1, 2] and out["word"].isna().tolist() == [False, True, False]
    assert out["mixed"].tolist() == ["1", "q", "2.5"] and out["code"].tolist()[0] == "007"
    assert "2 sheets" in result.warnings[0] and "'mixed'" in result.warnings[1]


def test_opendocument() -> None:
    result = read(ods(("a", "b"), ("x", "1"), ("?", "2")), "t.ods")
    assert result.format == "ods"
    assert result.frame["b"].tolist() == [1, 2] and result.frame["a"].isna().tolist() == [
        False,
        True,
    ]


def test_parquet_keeps_its_types() -> None:
    frame = pd.DataFrame(
        {
            "i": pd.array([1, None], dtype="Int64"),
            "u": np.array([1, 200], dtype="uint8"),
            "f": [np.inf, 1.5],
            "b": pd.array([True, None], dtype="boolean"),
            "s": ["?", None],
            "c": pd.Categorical(["x", "y"]),
            "d": pd.to_datetime(["2024-01-01", "2024-01-02 03:04:05"], format="ISO8601"),
        },
        index=[5, 9],
    )
    result = read(parquet(frame), "t.parquet")
    kinds = [str(d) for d in result.frame.dtypes]
    assert kinds == ["Int64", "uint8", "float64", "boolean", "str", "str", "datetime64[us]"]
    assert result.frame["s"].tolist()[0] == "?"  # parquet has nulls of its own
    assert result.frame["f"].isna().tolist() == [True, False]
    assert len(result.warnings) == 2


NAMES = st.text("abcæ_ ,\"'", min_size=1, max_size=6).map(lambda s: "c" + s.strip())
WORDS = st.text("ab ,;|\t\n\"'ø=-1", max_size=8).map(lambda s: f"w{s}".strip())
COLUMNS = st.sampled_from(
    [
        ("int64", st.integers(-(2**63), 2**63 - 1)),
        ("Int64", st.none() | st.integers(-(2**63), 2**63 - 1)),
        ("float64", st.none() | st.floats(allow_nan=False, allow_infinity=False)),
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
@settings(max_examples=150, deadline=None)
def test_what_is_written_reads_back(
    tmp_path_factory: pytest.TempPathFactory, frame: pd.DataFrame
) -> None:
    path = tmp_path_factory.getbasetemp() / "round.csv"
    write_csv(frame, path)
    pd.testing.assert_frame_equal(read_table(path).frame, frame)
    packed = path.with_suffix(".parquet")
    write_parquet(frame, packed)
    pd.testing.assert_frame_equal(read_table(packed).frame, frame)


def test_integers_with_gaps_are_written_as_integers(tmp_path: Path) -> None:
    write_csv(read(b"a,b\n1,x\n,y\n").frame, tmp_path / "t.csv")
    assert (tmp_path / "t.csv").read_text() == "a,b\n1,x\n,y\n"


def test_formulas_are_made_inert_when_asked(tmp_path: Path) -> None:
    frame = pd.DataFrame({"=a": ["=1+1", "@x", "plain", None], "n": [-1, 2, 3, 4]})
    path = tmp_path / "t.csv"
    write_csv(frame, path, escape_formulas=True)
    assert path.read_text() == "'=a,n\n'=1+1,-1\n'@x,2\nplain,3\n,4\n"
    write_csv(frame, path)
    assert path.read_text().startswith("=a,n\n=1+1,-1\n")


def test_a_failed_write_leaves_the_old_file(tmp_path: Path) -> None:
    class Unprintable:
        def __str__(self) -> str:
            raise RuntimeError("no")

    path = tmp_path / "t.csv"
    path.write_text("old")
    with pytest.raises(RuntimeError):
        write_csv(pd.DataFrame({"a": [Unprintable()]}), path)
    assert path.read_text() == "old" and [p.name for p in tmp_path.iterdir()] == ["t.csv"]


def test_a_big_file_is_read_fast() -> None:
    rows, width = 100_000, 10  # a tenth of the promise: a million rows in seconds
    rng = np.random.default_rng(0)
    numbers = rng.integers(0, 1000, (rows, width))
    frame = pd.DataFrame(numbers, columns=[f"c{i}" for i in range(width)])
    frame["word"] = rng.choice(["alpha", "beta", "gamma"], rows)
    data = frame.to_csv(index=False).encode()
    started = time.perf_counter()
    result = read(data)
    assert time.perf_counter() - started < 2
    pd.testing.assert_frame_equal(result.frame, frame)
