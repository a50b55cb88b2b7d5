"""Reading in another process: the same table, or one sentence, whatever becomes of the process."""

from __future__ import annotations

import ast
import io
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from core.importing import apart
from core.importing.apart import ReadBounds, Request, read_apart
from core.importing.raw_table import RawTable
from core.reading.address import Address
from core.reading.cells import TableReadError
from core.reading.raw_cells import is_written
from core.reading.typed_cells import typed_rows
from tests.reading.files import SECRET, parquet, read_table

pytestmark = pytest.mark.slow

Read: TypeAlias = Callable[..., tuple[RawTable, pa.Table]]

SMALL = ReadBounds(memory_mb=512, seconds=60.0)


@pytest.fixture
def read(tmp_path: Path) -> Read:
    """Reads a path, or the content of a file of some name; the raw table, and its rows."""

    def reading(
        source: Path | bytes, name: str = "t.csv", bounds: ReadBounds = SMALL, **more: Any
    ) -> tuple[RawTable, pa.Table]:
        content = io.BytesIO(source) if isinstance(source, bytes) else None
        path = source if isinstance(source, Path) else None
        folder = tmp_path / "reading"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        request = Request(path=path, name=name)
        raw = read_apart(request, folder / "rows", content=content, bounds=bounds, **more)
        return raw, pq.read_table(raw.path)

    return reading


@pytest.mark.usefixtures("fresh")
def test_the_same_cells_come_back_with_what_they_propose(read: Read, tmp_path: Path) -> None:
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
    raw, rows = read(path)
    assert rows.cast(pq.read_table(path).schema).equals(pq.read_table(path))
    here = read_table(path)
    assert raw.schema == here.schema and raw.profile is not None and raw.profile.n == raw.n == 3
    pd.testing.assert_frame_equal(typed_rows(rows, here.schema.columns), here.frame)
    heard: list[int] = []
    raw, rows = read(b"a;b\n1,5;NA\n2,5;y\n", progress=heard.append)
    assert is_written(rows.schema) and rows.to_pydict() == {"a": ["1,5", "2,5"], "b": ["NA", "y"]}
    assert raw.schema is not None and raw.schema["a"].form is not None
    assert raw.schema["a"].form.decimal == ","
    assert (raw.form.delimiter, raw.names, set(heard)) == (";", ("a", "b"), {2})
    assert len(raw.doubts) == 2 and raw.profile is not None and raw.profile.reading == raw.doubts


def test_refusals_are_the_readers_own_words(read: Read, tmp_path: Path) -> None:
    for source, words in (
        (tmp_path / "absent.csv", "no such file"),
        (tmp_path, "a folder"),
        (b"a,b\nZaphod\n", "Line 2 has 1 value"),
    ):
        with pytest.raises(TableReadError, match=words) as caught:
            read(source)
        assert SECRET not in str(caught.value)
        assert not (tmp_path / "reading" / "rows").exists()


@pytest.mark.usefixtures("fresh")
def test_only_a_file_that_needs_too_much_memory_is_stopped(read: Read) -> None:
    cell = io.BytesIO()
    pq.write_table(pa.table({"x": ["x" * 300_000_000]}), cell)
    assert len(cell.getvalue()) < 30_000_000
    with pytest.raises(TableReadError, match="more than 256 MB of memory.*FACSIMILE_READ_MB"):
        read(cell.getvalue(), bounds=ReadBounds(256))
    numbers = np.random.default_rng(0).integers(0, 9, 30_000_000)  # 240 MB, read in batches
    raw, _ = read(parquet(pd.DataFrame({"x": numbers})), bounds=ReadBounds(400))
    assert raw.n == 30_000_000


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
    monkeypatch: pytest.MonkeyPatch, read: Read, code: str, words: str
) -> None:
    stub(monkeypatch, code)
    monkeypatch.setattr(apart, "GRACE", 0.5)
    seconds = 1.0 if "sleep" in code else 60.0
    with pytest.raises(TableReadError, match=words) as caught:
        read(b"a\n1\n", bounds=ReadBounds(512, seconds))
    assert SECRET not in str(caught.value) and "\n" not in str(caught.value)


def test_no_process_no_harm(monkeypatch: pytest.MonkeyPatch, read: Read) -> None:
    monkeypatch.setattr(apart.sys, "executable", "/no/such/python")
    with pytest.raises(TableReadError, match="no process could be started"):
        read(b"a\n1\n")


def test_leaving_a_page_ends_a_silent_process(
    monkeypatch: pytest.MonkeyPatch, read: Read, tmp_path: Path
) -> None:
    """Whoever waits hears of the rows again while the process thinks about them."""
    code = "import os, pathlib, time; print('{\"read\": 7}', flush=True); "
    code += f"pathlib.Path({str(tmp_path / 'pid')!r}).write_text(str(os.getpid())); time.sleep(60)"
    stub(monkeypatch, code)
    monkeypatch.setattr(apart, "HEARTBEAT", 0.05)
    heard: list[int] = []

    def leave(rows: int) -> None:
        heard.append(rows)
        if len(heard) == 3:
            raise InterruptedError

    with pytest.raises(InterruptedError):
        read(b"a\n1\n", progress=leave)
    assert heard == [7, 7, 7]
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


def test_an_address_may_take_longer_than_a_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    stub(monkeypatch, 'import time; time.sleep(1.5); print(\'{"refused": "At last."}\')')
    monkeypatch.setattr(apart, "GRACE", 0.0)
    bounds = ReadBounds(512, 0.5)
    for request, words in (
        (Request(path=tmp_path / "t.csv"), "takes longer than"),
        (Request(address=Address.of(str(tmp_path / "t.csv"))), "At last"),
    ):
        with pytest.raises(TableReadError, match=words):
            read_apart(request, tmp_path / "rows", bounds=bounds)


def test_names_of_files_are_harmless(read: Read) -> None:
    for name in ("a\0b.csv", "-" * 5000 + ".csv", "\ud800.csv", ""):
        assert read(b"a\n1\n", name)[0].n == 1


def test_bounds_come_from_the_environment() -> None:
    found = ReadBounds.from_environment({apart.MEMORY: "4096", apart.SECONDS: "20"})
    assert found == ReadBounds(4096, 20.0)
    assert ReadBounds.from_environment({}) == ReadBounds(2048, 300.0)
    for wrong in ("much", "-1", "255", "1e9"):
        with pytest.raises(TableReadError, match="FACSIMILE_READ_MB must be a whole number"):
            ReadBounds.from_environment({apart.MEMORY: wrong})


def test_pages_and_command_line_never_read_a_file_themselves() -> None:
    root = Path(__file__).resolve().parents[2]
    folders = ("pages", "core/cli", "core/services")
    sources = [path for folder in folders for path in (root / folder).rglob("*.py")]
    sources.append(root / "core/api.py")  # has a function of that name, which reads apart
    readers = []
    for path in sources:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):  # not code that is shown
            named = node.func if isinstance(node, ast.Call) else None
            if isinstance(named, ast.Attribute) and getattr(named.value, "id", "") == "pq":
                continue  # rows that the process left, as Parquet
            names = {getattr(named, "id", ""), getattr(named, "attr", "")}
            names |= {one.name for one in getattr(node, "names", ()) if hasattr(one, "name")}
            readers += [path.name] if "read_table" in names else []
    assert readers == [] and len(sources) > 20


def test_only_whoever_asks_elsewhere_is_told_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file may be made to take over who reads it, and the database's address has a password."""
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
    for request in (
        Request(path=Path("/srv/rows.csv")),
        Request(address=Address.of("/srv/rows.csv")),
        Request(address=Address.of("sqlite:////srv/rows.db", query="SELECT 1")),
    ):
        told = apart._environment(request)
        assert told["TZ"] == "UTC" and SECRET not in "".join(told.values())
    told = apart._environment(Request(address=Address.of("s3://bucket/rows.csv")))
    assert told["AWS_SECRET_ACCESS_KEY"] == SECRET


def test_a_request_shows_no_password_where_it_is_printed() -> None:
    text = f"postgresql://a:{SECRET}@host/db"
    assert SECRET not in repr(Request(address=Address.of(text, query=SECRET, password=SECRET)))
