"""No file of the corpus hurts whoever reads it: a usable table or one sentence, within limits."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from core.importing.apart import ReadBounds, Request, read_apart
from core.importing.raw_table import RawTable
from core.reading.cells import TableReadError
from tests.hostile import parquet_files, workbook_files
from tests.hostile.corpus import corpus
from tests.hostile.files import EITHER, REFUSED, TABLE, HostileFile

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
MEMORY_MB = 512  # the largest files of the corpus would take more
SECONDS = 20.0  # for any one file; the machine may be busy
PARTS = 2  # of the corpus, so that tests run side by side
HEAVY = {  # and the rows that each has, at least
    "filled-rows.ods": 1_000_001,
    "filled-columns.ods": 1_000_001,
    "dictionary.parquet": parquet_files.ROWS,
    "dictionary-bare.parquet": parquet_files.ROWS,
}


@functools.cache
def everything() -> list[HostileFile]:
    """The corpus, made once a process and only where it is needed."""
    return corpus()


def measured(files: list[HostileFile], folder: Path) -> dict[str, dict[str, Any]]:
    """What became of files that one limited process reads, one after the other."""
    for file in files:
        (folder / file.name).write_bytes(file.data)
    names = [file.name for file in files]
    command = [sys.executable, "-m", "tests.hostile.measured", str(folder), str(MEMORY_MB), "300"]
    ended = subprocess.run(
        [*command, *names],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=400,
        env={**os.environ, "MALLOC_ARENA_MAX": "2", "ARROW_DEFAULT_MEMORY_POOL": "system"},
        check=False,
    )
    results = [json.loads(line) for line in ended.stdout.splitlines()]
    assert len(results) == len(names), (names[len(results)], ended.stderr[-2000:])
    return {result["name"]: result for result in results}


def check(file: HostileFile, result: dict[str, Any]) -> list[str]:
    """What is wrong with how a file ended."""
    faults = [f"{file.name}: {fault}" for fault in result.get("faults", [])]
    refused = result.get("refused")
    if file.ends != EITHER and (refused is None) is not (file.ends == TABLE):
        faults.append(f"{file.name} should end as {file.ends}: {refused or result}")
    words = refused if refused is not None else " ".join(result["doubts"])
    if file.says not in words:
        faults.append(f"{file.name} should say {file.says!r}: {words}")
    if refused is not None and ("\n" in refused or "." not in refused[:-1] or len(refused) > 400):
        faults.append(f"{file.name} is refused in odd words: {refused}")
    if refused is None and not (result["rows"] and result["columns"]):
        faults.append(f"{file.name} ends as a table of nothing")
    if result["seconds"] > SECONDS or result["peak_mb"] > MEMORY_MB:
        faults.append(f"{file.name} takes {result['seconds']:.1f} s, {result['peak_mb']:.0f} MB")
    return faults


def read_alone(path: Path, folder: Path, seconds: float) -> RawTable:
    """A file read as the product reads, in a process of its own."""
    folder.mkdir(exist_ok=True)
    bounds = ReadBounds(memory_mb=MEMORY_MB, seconds=seconds)
    return read_apart(Request(path=path), folder / "rows.parquet", bounds=bounds)


def test_the_corpus_is_large_and_of_every_kind() -> None:
    names = [file.name for file in everything()]
    assert len(names) == len(set(names)) >= 300
    assert tuple(HEAVY) == tuple(file.name for file in everything() if file.own)
    for ending in (".csv", ".gz", ".bz2", ".xz", ".zip", ".xlsx", ".xls", ".ods", ".parquet"):
        assert any(name.endswith(ending) for name in names), ending


@pytest.mark.parametrize("part", range(PARTS))
def test_every_file_is_a_table_or_a_sentence_within_limits(part: int, tmp_path: Path) -> None:
    files = [file for file in everything() if not file.own][part::PARTS]
    results = measured(files, tmp_path)
    faults = [fault for file in files for fault in check(file, results[file.name])]
    assert not faults, "\n".join(faults)


@pytest.mark.parametrize("name", HEAVY)
def test_what_nearly_fills_its_process_has_one_of_its_own(name: str, tmp_path: Path) -> None:
    made = parquet_files if name.endswith(".parquet") else workbook_files
    (data,) = (file.data for file in made.files() if file.name == name)
    (tmp_path / name).write_bytes(data)
    try:
        assert read_alone(tmp_path / name, tmp_path / "rows", SECONDS).n >= HEAVY[name]
    except TableReadError as error:
        assert "MB of memory" in str(error) or "columns" in str(error)


def test_an_unbounded_reader_would_be_caught() -> None:
    """The limits of this test are no dead letters."""
    good = {"seconds": 1.0, "peak_mb": 100.0, "rows": 2, "columns": 1, "doubts": []}
    file = HostileFile("t.csv", b"", TABLE)
    assert check(file, good) == []
    assert check(file, {**good, "peak_mb": 600.0}) and check(file, {**good, "seconds": 30.0})
    assert check(file, {**good, "faults": ["v: 'unknown' is 'No'"]})
    refused = {"seconds": 1.0, "peak_mb": 1.0, "refused": "Two\nlines. Here."}
    assert len(check(HostileFile("t.csv", b"", REFUSED, says="x"), refused)) == 2


@pytest.mark.long
@pytest.mark.timeout(3000)
def test_each_file_in_a_process_of_its_own(tmp_path: Path) -> None:
    """The long form: as the product reads, one process a file."""
    for file in everything():
        path = tmp_path / file.name
        path.write_bytes(file.data)
        try:
            table = read_alone(path, tmp_path / "rows", 60.0)
            assert file.ends != REFUSED and table.n > 0, file.name
        except TableReadError as error:
            assert file.ends != TABLE and "\n" not in str(error), (file.name, error)
        path.unlink()
