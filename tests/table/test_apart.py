"""Reading in another process: the same table, or one sentence, whatever becomes of the process."""

from __future__ import annotations

import ast
import io
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from core.table.io import apart
from core.table.io.apart import ReadBounds, read_apart
from core.table.io.cells import TableReadError
from tests.table.files import SECRET, parquet, read_table

SMALL = ReadBounds(memory_mb=512, seconds=60.0)


@pytest.mark.usefixtures("fresh")
def test_the_same_table_comes_back(tmp_path: Path) -> None:
    frame = pd.DataFrame(
        {
            "i": pd.array([1, None, 3], dtype="Int64"),
            "n": [1, 2, 3],
            "u": np.array([1, 200, 3], dtype="uint8"),
            "x": [0.5, None, 2.0],
            "b": pd.array([True, None, False], dtype="boolean"),
            "f": [True, False, True],
            "s": ["a", None, "é\nz"],
            "d": pd.to_datetime(["2024-01-01", None, "9999-12-31"]),
            "z": pd.to_datetime(["2024-01-01", None, "2024-07-01"]).tz_localize("Europe/Paris"),
        }
    )
    path = tmp_path / "t.parquet"
    path.write_bytes(parquet(frame))
    here, there = read_table(path), read_apart(path, bounds=SMALL)
    pd.testing.assert_frame_equal(there.frame, here.frame)
    there.frame.loc[0, ["n", "x"]] = (7, 0.25)  # the rows can be worked with
    assert there.frame["n"].tolist() == [7, 2, 3]
    result = read_apart(io.BytesIO(b"a;b\n1,5;NA\n2,5;y\n"), "t.csv", bounds=SMALL)
    assert (result.form.delimiter, result.form.columns["a"].decimal) == (";", ",")
    assert result.frame["a"].tolist() == [1.5, 2.5] and len(result.warnings) == 2


def test_refusals_are_the_readers_own_words(tmp_path: Path) -> None:
    for source, words in (
        (tmp_path / "absent.csv", "no such file"),
        (tmp_path, "a folder"),
        (io.BytesIO(b"a,b\nZaphod\n"), "Line 2 has 1 value"),
    ):
        with pytest.raises(TableReadError, match=words) as caught:
            read_apart(source, "t.csv", bounds=SMALL)
        assert SECRET not in str(caught.value)


@pytest.mark.usefixtures("fresh")
def test_a_file_that_takes_too_much_memory_is_stopped_and_nothing_else_is() -> None:
    numbers = np.random.default_rng(0).random(20_000_000)  # 160 MB, which fit once and not twice
    with pytest.raises(TableReadError, match="more than 256 MB of memory.*FACSIMILE_READ_MB"):
        read_apart(io.BytesIO(parquet(pd.DataFrame({"x": numbers}))), bounds=ReadBounds(256))


def stub(monkeypatch: pytest.MonkeyPatch, code: str) -> None:
    monkeypatch.setattr(apart, "READER", ("-c", code))


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("import time; time.sleep(60)", "longer than 1 second"),
        ("import os; os.abort()", "damaged"),
        ("import os, sys; sys.stderr.write('memory allocation of 9 bytes failed'); os.abort()",
         "more than 512 MB"),
        ("raise SystemExit(0)", "damaged"),
        ("import sys; sys.stdin.close(); raise ValueError('Zaphod')", "damaged"),
    ],
)  # fmt: skip
def test_a_process_that_ends_without_an_answer_is_one_sentence(
    monkeypatch: pytest.MonkeyPatch, code: str, words: str
) -> None:
    stub(monkeypatch, code)
    monkeypatch.setattr(apart, "GRACE", 0.5)
    seconds = 1.0 if "sleep" in code else 60.0
    data = io.BytesIO(b"a\n1\n" * 1_000_000)  # more than a pipe holds
    with pytest.raises(TableReadError, match=words) as caught:
        read_apart(data, "t.csv", bounds=ReadBounds(512, seconds))
    assert SECRET not in str(caught.value) and "\n" not in str(caught.value)


def test_no_process_no_harm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apart.sys, "executable", "/no/such/python")
    with pytest.raises(TableReadError, match="no process could be started"):
        read_apart(io.BytesIO(b"a\n1\n"), "t.csv", bounds=SMALL)


def test_names_of_files_are_harmless() -> None:
    for name in ("a\0b.csv", "-" * 5000 + ".csv", "\ud800.csv", ""):
        assert len(read_apart(io.BytesIO(b"a\n1\n"), name, bounds=SMALL).frame) == 1


def test_bounds_come_from_the_environment() -> None:
    found = ReadBounds.from_environment({apart.MEMORY: "4096", apart.SECONDS: "20"})
    assert found == ReadBounds(4096, 20.0)
    assert ReadBounds.from_environment({}) == ReadBounds(2048, 300.0)
    for wrong in ("much", "-1", "255", "1e9"):
        with pytest.raises(TableReadError, match="FACSIMILE_READ_MB must be a whole number"):
            ReadBounds.from_environment({apart.MEMORY: wrong})


def test_pages_and_command_line_never_read_a_file_themselves() -> None:
    root = Path(__file__).resolve().parents[2]
    folders = ("pages", "pages/parts", "core/cli", "core/services")
    sources = [path for folder in folders for path in (root / folder).glob("*.py")]
    sources.append(root / "core/api.py")  # has a function of that name, which reads apart
    readers = []
    for path in sources:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):  # not code that is shown
            named = node.func if isinstance(node, ast.Call) else None
            names = {getattr(named, "id", ""), getattr(named, "attr", "")}
            names |= {one.name for one in getattr(node, "names", ()) if hasattr(one, "name")}
            readers += [path.name] if "read_table" in names else []
    assert readers == [] and len(sources) > 20


def test_the_process_is_told_no_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    """What it reads may be made to take it over, and the database's address holds a password."""
    monkeypatch.setenv("FACSIMILE_DATABASE", f"postgresql://ann:{SECRET}@host/db")
    for name in (
        "FACSIMILE_SOURCE_PASSWORD",
        "FACSIMILE_METRICS_TOKEN",
        "AWS_SECRET_ACCESS_KEY",
        "AWS_SESSION_TOKEN",
        "FSSPEC_S3",
        "PGPASSWORD",
    ):
        monkeypatch.setenv(name, SECRET)
    monkeypatch.setenv("TZ", "UTC")
    told = apart._environment()
    assert told["TZ"] == "UTC" and SECRET not in "".join(told.values())
