"""Files that cannot be read are refused with one clear line that quotes no value."""

from __future__ import annotations

import bz2
import gzip
import lzma
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from core.reading.cells import TableReadError
from tests.reading.files import PARQUET, SECRET, XLSX, ods, parquet, read, read_table, xlsx, zipped

pytestmark = pytest.mark.slow

LONG_GZIP = gzip.compress(b"name,n\n" + b"Zaphod,1\n" * 500)

MALFORMED = {
    "empty": (b"", "table.csv", "empty"),
    "header without line end": (b"name,n", "table.csv", "header but no rows"),
    "control bytes": (b"name,n\n\x01\x02\x03\x04,Zaphod\n", "table.csv", "binary data"),
    "picture": (b"\x89PNG\r\n\x1a\nZaphod", "table.csv", "a picture"),
    "PDF": (b"%PDF-1.7 Zaphod", "table.csv", "a PDF"),
    "gzip cut short": (LONG_GZIP[:-20], "table.csv.gz", "gzip file is damaged"),
    "gzip broken": (b"\x1f\x8b\x08\x00 broken", "table.csv.gz", "gzip file is damaged"),
    "gzip by name only": (b"name\nZaphod\n", "table.csv.gz", "ends in .gz"),
    "gzip in gzip": (gzip.compress(LONG_GZIP), "table.csv.gz", "another compressed file"),
    "zip of two": (zipped(a_csv=b"a\n1", b_csv=b"a\n1"), "table.zip", "holds 2 files"),
    "zip of none": (zipped(), "table.zip", "holds 0 files"),
    "zip cut short": (
        zipped(a_csv=b"name\nZaphod\n" * 99)[:60],
        "table.zip",
        "zip file is damaged",
    ),
    "Excel by name only": (b"name,n\nZaphod,1\n", "table.xlsx", "ends in .xlsx"),
    "Excel cut short": (XLSX[:900], "table.xlsx", "Excel file is damaged"),
    "Excel locked": (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600), "t.xls", "password"),
    "Excel empty": (xlsx(pd.DataFrame()), "table.xlsx", "workbook is empty"),
    "Excel header only": (xlsx(pd.DataFrame({"a": []})), "table.xlsx", "header but no rows"),
    "Parquet by name only": (b"name,n\nZaphod,1\n", "table.parquet", "ends in .parquet"),
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


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress])
def test_what_is_too_big_unpacked_is_refused(pack: object) -> None:
    data = pack(b"a,b\n" + b"1,2\n" * 500_000)  # type: ignore[operator]
    with pytest.raises(TableReadError, match="larger than 1,000,000 bytes"):
        read(data, max_bytes=1_000_000)
    with pytest.raises(TableReadError, match="larger than"):
        read(zipped(a_csv=b"0" * 2_000_000), "t.zip", max_bytes=1_000_000)
    with pytest.raises(TableReadError, match="larger than"):
        read(XLSX, "t.xlsx", max_bytes=len(XLSX))  # fits packed, not unpacked


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


def test_sheets_and_columns_have_limits() -> None:
    with pytest.raises(TableReadError, match="2 rows; 1 is the most"):
        read(XLSX, max_rows=1)
    for data in (b"a,b\n1,2\n", XLSX):
        with pytest.raises(TableReadError, match="2 columns; 1 is the most"):
            read(data, max_columns=1)


def test_paths_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(TableReadError, match="no such file"):
        read_table(tmp_path / "absent.csv")
    with pytest.raises(TableReadError, match="a folder"):
        read_table(tmp_path)
