"""Every readable file is read rightly."""

from __future__ import annotations

import bz2
import gzip
import lzma
import time

import numpy as np
import pandas as pd
import pytest

from core.reading.cells import MISSING_MARKERS
from core.schema.column import Kind
from tests.reading.files import XLSX, ods, parquet, read, xlsx, zipped


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_delimiters(delimiter: str) -> None:
    text = "name,n,note\nBo,1,x y\nAnn,2,z\n".replace(",", delimiter)
    result = read(text.encode())
    assert result.form.delimiter == delimiter
    assert result.frame.to_dict("list") == {
        "name": ["Bo", "Ann"],
        "n": [1, 2],
        "note": ["x y", "z"],
    }


def test_a_single_column_and_a_declared_separator() -> None:
    assert read(b"n\n1\n2\n").frame["n"].tolist() == [1, 2]
    result = read(b"sep=;\r\na;b\r\n1,5;x\r\n")
    assert result.form.delimiter == ";" and result.frame["a"].tolist() == [1.5]


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
    assert result.frame["город"].tolist()[0] == "Москва" and result.form.encoding == "cp1251"


def test_decimal_commas() -> None:
    result = read(b"a;b;c\n1,5;1.234,50;x\n-2,25;7,5;y\n")
    assert {form.decimal for form in result.form.columns.values()} == {","}
    assert result.frame["a"].tolist() == [1.5, -2.25]
    assert result.frame["b"].tolist() == [1234.5, 7.5]
    assert "'a', 'b'" in result.warnings[0]


def test_a_comma_nobody_can_tell_is_not_guessed() -> None:
    result = read(b"a;b\n1,234;x\n5,678;y\n")
    assert result.frame["a"].tolist() == ["1,234", "5,678"] and "'a' could" in result.warnings[0]
    grouped = read(b'a,b\n"1,234.50",x\n"7.25",y\n')  # both marks: this can be told
    assert grouped.frame["a"].tolist() == [1234.5, 7.25] and not grouped.warnings


def test_missing_markers_ignore_case_and_spaces() -> None:
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
        "3,,011,+46,1,False,?,false,.7,3\n"
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
    assert result.frame["sci"].tolist() == [100000.0, 0.5, 0.7]
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
    assert read(zipped(t=XLSX), "t.zip").frame.shape == read(XLSX, "t.xlsx").frame.shape


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
        "str",
        "bool",
        "str",
        "str",
        "str",
    ]
    assert out["day"].tolist()[0] == "2024-02-29" and result.schema["day"].kind is Kind.DATETIME
    assert out["n"].tolist()[:2] == [1, 2] and out["word"].isna().tolist() == [False, True, False]
    assert out["mixed"].tolist() == ["1", "q", "2.5"] and out["code"].tolist()[0] == "007"
    assert "2 sheets" in result.warnings[0]


def test_opendocument() -> None:
    result = read(ods(("a", "b"), ("x", "1"), ("?", "2")), "t.ods")
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


def test_a_big_file_is_read_fast() -> None:
    rows, width = 100_000, 10  # a tenth of the promise: a million rows in seconds
    rng = np.random.default_rng(0)
    numbers = rng.integers(0, 1000, (rows, width))
    frame = pd.DataFrame(numbers, columns=[f"c{i}" for i in range(width)])
    frame["word"] = rng.choice(["alpha", "beta", "gamma"], rows)
    data = frame.to_csv(index=False).encode()
    started = time.process_time()  # what others do on the machine does not count
    result = read(data)
    assert time.process_time() - started < 2
    pd.testing.assert_frame_equal(result.frame, frame)
