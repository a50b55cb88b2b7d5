"""Text that is larger than memory is typed as text that is read at once, or refused in one line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from core.table.io import large_text, sources
from core.table.io.address import Address, Allowed
from core.table.io.cells import DeclaredWords, TableReadError
from core.table.io.large_text import LargeText
from core.table.io.opening import WholeFile, open_address
from core.table.io.read import read_table
from tests.peak_memory import peak_mb

N = 1_200


@pytest.fixture(autouse=True)
def small_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every file is large, and comes in blocks and batches of a few rows."""
    monkeypatch.setattr(large_text, "LARGE_BYTES", 1)
    monkeypatch.setattr(large_text, "BLOCK_BYTES", 4_096)
    monkeypatch.setattr(sources, "BATCH_ROWS", 500)


def written(tmp_path: Path, text: str | bytes, name: str = "visits.csv") -> Path:
    file = tmp_path / name
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    return file


def large(
    tmp_path: Path, file: Path, declared: DeclaredWords | None = None
) -> tuple[LargeText, pd.DataFrame]:
    source = open_address(Address.of(str(file)), Allowed(None, tmp_path / "workspace"), declared)
    assert isinstance(source, LargeText)
    folder = tmp_path / "fetched"
    folder.mkdir()
    source.prepare(folder)
    frames = list(source.batches())
    assert len(frames) == -(-sum(map(len, frames)) // 500)
    return source, pd.concat(frames, ignore_index=True)


def lines(*columns: Callable[[int], object], header: str, mark: str = ",") -> str:
    rows = [mark.join(str(cell(i)) for cell in columns) for i in range(N)]
    return "\n".join([header, *rows]) + "\n"


def last(first: object, other: object) -> Callable[[int], object]:
    """A column that is one thing until the last row says otherwise."""
    return lambda i: other if i == N - 1 else first


FILES = {
    "plain": lines(
        lambda i: i, lambda i: i / 8, lambda i: "ab"[i % 2], lambda i: "" if i == 7 else i,
        lambda i: i % 2 == 0, header="n,x,word,gap,truth",
    ),
    "the last row decides": lines(
        last(1, "x"), last(1, 1.5), last(1, "007"), last(1, ""), last("True", "maybe"),
        header="text,fraction,code,gap,flag",
    ),
    "Namibia": lines(last("DE", "NA"), last("DE", "Na"), header="country,country2"),
    "Namibia no more": lines(
        lambda i: "NA" if i == 3 else "DE" if i < N - 1 else "Deutschland", header="country"
    ),
    "a comma is decimal": lines(
        lambda i: f"{i},5", lambda i: "1,234", lambda i: "1.234", header="a;b;c", mark=";"
    ),
    "nobody can tell": lines(lambda i: "1,234", lambda i: i, header="a;b", mark=";"),
    "one version": lines(
        lambda i: {3: "1.1", N - 1: "1.10"}.get(i, f"2.{i % 7}"), lambda i: "1.10", header="v,w"
    ),
    "money": lines(
        lambda i: f"$ {i}", lambda i: f"{i} %", lambda i: f"1'{i % 900 + 100}", header="a,b,c"
    ),
    "codes for absent": lines(
        lambda i: "NA" if i % 9 == 0 else "null" if i % 10 == 0 else i, header="a"
    ),
    "quotes": 'a,b\n"x, ""y""\nz",1\n' + 'plain,"2"\n' * N,
    "spaced quotes": 'a,b\n' + '1, "x, y"\n' * N + '2, "z"\n',
    "spaced header": 'a, "b"\n' + '1, "x, y"\n' * N,
    "a mark and tabs": "\ufeff" + lines(lambda i: i, lambda i: "ä", header="a\tb", mark="\t"),
    "a sep line": "sep=;\n" + lines(lambda i: i, lambda i: "a,b,c", header="a;b", mark=";"),
    "long numbers": lines(
        lambda i: 10**18 + i, lambda i: 10**20 + i, lambda i: f"0.{'1' * 20}{i}", lambda i: "inf",
        header="a,b,c,d",
    ),
    "nothing": lines(lambda i: "", lambda i: i, header="a,b"),
    "values as header": lines(lambda i: i, lambda i: i, header="1,2"),
    "ends of lines": lines(lambda i: i, lambda i: "x", header="a,b").replace("\n", "\r\n"),
}  # fmt: skip


@pytest.mark.parametrize("declared", [None, {}, {"country": ["NA"], "a": ["null"]}])
@pytest.mark.parametrize("name", FILES)
def test_it_is_the_table_that_reading_at_once_gives(
    tmp_path: Path, name: str, declared: DeclaredWords | None
) -> None:
    file = written(tmp_path, FILES[name])
    at_once = read_table(file, declared=declared)
    source, frame = large(tmp_path, file, declared)
    pd.testing.assert_frame_equal(frame, at_once.frame)
    assert source.form == at_once.form
    assert sorted(source.doubts) == sorted(at_once.warnings)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a,b\n" + "1,2\n" * N + "1,2,3\n", f"Line {N + 2} has 3 values"),
        ("a,b\n" + "1,2\n" * N + '1,"2\n', f"Line {N + 2} opens a quote"),
        ("a,b\n" + "1,2\n" * 100_000 + "1,\0\n", "Line 100002 holds NUL"),
        ("a,b\n" + "1,2\n" * N + '1, "2"\n1, "2" x\n', f"Line {N + 3} has text after"),
        ("a,a\n" + "1,2\n" * N, "names 'a' more than once"),
        ("a,b\n\n", "no rows"),
        (("a,b\n" + "1,2\n" * 100_000).encode() + b"1,\xff\n", "not in UTF-8"),
        (("a,b\n" + "1,2\n" * 100_000).encode() + b'"1\n\xff",2\n', "not in UTF-8"),
    ],
)
def test_what_cannot_be_read_is_one_line(tmp_path: Path, text: str | bytes, words: str) -> None:
    with pytest.raises(TableReadError, match=words) as refused:
        large(tmp_path, written(tmp_path, text))
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    "data",
    [b"PK\x03\x04a,b\n", b"<html>\n", b"\xff\xfea\x00\n", "a,b\nä\n".encode("cp1252"), b"\0\n"],
)
def test_what_is_no_text_in_utf8_is_left_to_the_reader_of_whole_files(
    tmp_path: Path, data: bytes
) -> None:
    file = written(tmp_path, data)
    source = open_address(Address.of(str(file)), Allowed(None, tmp_path / "workspace"))
    assert isinstance(source, WholeFile)


def test_memory_holds_a_column_and_a_batch_and_not_the_rows(tmp_path: Path) -> None:
    """A process of its own reads three times the rows; its largest size grows by a few columns."""
    script = (
        "import sys; from pathlib import Path\n"
        "import core.table.io.sources as sources; sources.BATCH_ROWS = 20_000\n"
        "import core.table.io.large_text as large; large.BLOCK_BYTES = 2**18\n"
        "source = large.LargeText(Path(sys.argv[1]), 'test'); folder = Path(sys.argv[2])\n"
        "folder.mkdir(); source.prepare(folder)\n"
        "assert sum(map(len, source.batches())) == int(sys.argv[3]) * 50_000\n"
    )
    peaks = []
    cells = np.random.default_rng(0).integers(10**9, 10**10, (50_000, 30))
    text = pd.DataFrame(cells, columns=[f"x{i}" for i in range(30)]).to_csv(index=False)
    header, body = text.split("\n", 1)
    for times in (1, 3):
        file = written(tmp_path, f"{header}\n{body * times}", f"{times}.csv")
        peaks.append(peak_mb(script, file, tmp_path / f"{times}", times))
    assert peaks[1] - peaks[0] < 25, f"{peaks} MB; the rows more are 33 MB as text, 24 MB typed"
