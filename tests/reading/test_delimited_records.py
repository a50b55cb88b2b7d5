"""What stands in one record of a text file says nothing of how the others are read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from core.reading import delimited
from core.reading.cells import TableReadError
from core.reading.text_encoding import ENCODINGS
from core.schema.form import FileForm
from tests.reading.test_delimited import cells, split_bytes

HEADER = b"town,note,n\n"
OTHERS = [
    "Zürich,1,5\n", '"Genève, GE"," x",-99\n', "Bern,NA,\n", ' Biel ,"a ""b""",007\n',
    '"Chur\nGR",?,1e3\n', 'Łódź,5" disk,"1,5"\n',
]  # fmt: skip
ODD = {
    "stray bytes": b"\xff,\xc3,\xe2\x82\n",
    "another encoding": "Zürich,Genève,5 €\n".encode("cp1252"),
    "half of a double byte": b"\x81,\x8f,\x81\x30\n",
    "NUL": b"a\0b,\0,\0\0\n",
    "many NUL": b"a,b," + b"\0" * 5_000 + b"\n",
    "control characters": b"\x01\x1a,\x1b[2J,\x7f\n",
    "marks of order": b"\xef\xbb\xbf,\xff\xfe,\xfe\xff\n",
    "a quote after a space": b'x, "y", "z"\n',
    "a quote as a letter": b'5",6" x,7"8\n',
    "line breaks in quotes": b'"a\n\n\rb","\r\n","c\n"\n',
    "delimiters in quotes": b'",,;","|||","\t\t"\n',
    "other delimiters": b"a;b;c,d|e|f,g\th\n",
    "a word on the delimiter": b"sep=;,;,;\n",
    "nothing": b",,\n",
    "separators of lines in Unicode": "\u2028\u2029,\x85,\x0b\x0c\x1c\x1d\n".encode(),
    "emoji": "👩‍👩‍👧,\u202egnp.exe,\ufffd\n".encode(),
    "other numbers": b'"0,5",12.50,"1,234,567"\n',
    "a long value": b"x" * 200_000 + b",y,z\n",
    "a header": HEADER,
    "markup": b"<html>,{,[{\n",
    "a Windows line": b"a,b,c\r\n",
}

Indices = Callable[[list[bytes], bytes], list[bytes]]
CHANGES: dict[str, Indices] = {
    "first": lambda others, odd: [odd, *others],
    "in between": lambda others, odd: [*others[:7], odd, *others[7:]],
    "last": lambda others, odd: [*others, odd],
    "twice": lambda others, odd: [odd, *others, odd],
    "together": lambda others, odd: [*others[:7], odd, odd, *others[7:]],
}


@pytest.mark.parametrize("form", ["declared", "proposed"])
@pytest.mark.parametrize("name", ODD)
def test_an_odd_record_moves_no_other(
    tmp_path: Path, name: str, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delimited, "BLOCK_BYTES", 1 << 18)  # so that files take several
    others = [row.encode() for row in OTHERS] * 30
    declared = FileForm(delimiter=",", encoding="utf-8", spaced=False)
    given = declared if form == "declared" else None
    source, table = split_bytes(tmp_path, HEADER + b"".join(others), given)
    assert source.form == declared
    left_out = trimmed(cells(table))
    for change in CHANGES.values():
        data = HEADER + b"".join(change(others, ODD[name]))
        rows = trimmed(cells(split_bytes(tmp_path, data, given)[1]))
        (odd,) = set(rows) - set(left_out) or {("", "", "")}
        assert [row for row in rows if row != odd] == left_out
        assert 1 <= rows.count(odd) <= 2


def test_a_letter_cut_short_at_the_end_is_one_of_its_cell(tmp_path: Path) -> None:
    for encoding, end in (("utf-8", b"\xc3"), ("shift_jis", b"\x81"), ("gb18030", b"\x81\x30")):
        declared = FileForm(delimiter=",", encoding=encoding, spaced=False)
        source, table = split_bytes(tmp_path, b"a,b\n1,x\n2,y" + end, declared)
        assert cells(table)[0] == ("1", "x") and cells(table)[1][1].startswith("y\ufffd")
        assert "Unreadable" in source.doubts[0]


def trimmed(rows: list[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Spaces around a cell say nothing; where quotes may follow one, some are skipped."""
    return [tuple(cell.strip(" ") for cell in row) for row in rows]


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_no_bytes_are_carried_into_the_next_line(tmp_path: Path, encoding: str) -> None:
    plain = {"utf-8-sig": "utf-8", "utf-16": "utf-16-le", "utf-32": "utf-32-le"}
    each = plain.get(encoding, encoding)
    width = len("\n".encode(each))
    structure = [mark.encode(each) for mark in ',"\r\n']
    rng = np.random.default_rng(5)
    data, good = "a,b\n".encode(encoding), ("x", "y")
    for length in rng.integers(1, 5, 3_000):
        units = [rng.bytes(width) for _ in range(length)]
        odd = b"".join(unit for unit in units if unit not in structure)
        before, after, line = (text.encode(each) for text in ("x,", "\n", "x,y\n"))
        data += before + odd + after + line
        data += odd + ",y\n".encode(each) + line
    declared = FileForm(delimiter=",", encoding=encoding, spaced=False)
    rows = cells(split_bytes(tmp_path, data, declared)[1])
    assert len(rows) == 12_000 and rows[1::2] == [good] * 6_000
    assert {row[0] for row in rows[::4]} == {"x"} and {row[1] for row in rows[2::4]} == {"y"}


@pytest.mark.parametrize("encoding", ["utf-7", "iso2022_jp", "hz", "unicode_escape", "no-such"])
def test_an_encoding_with_a_memory_cannot_be_declared(tmp_path: Path, encoding: str) -> None:
    with pytest.raises(TableReadError, match="is not supported"):
        split_bytes(tmp_path, "a,b\n1,2\n", FileForm(encoding=encoding))


def test_a_byte_too_many_in_wide_text_refuses_the_file(tmp_path: Path) -> None:
    wide = "a,b\n1,2\n3,4\n".encode("utf-16")
    with pytest.raises(TableReadError, match="could not be read as utf-16"):
        split_bytes(tmp_path, wide[:18] + b"x" + wide[18:])
    assert len(split_bytes(tmp_path, wide)[1]) == 2


def test_what_stands_after_the_prefix_changes_no_proposal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delimited, "PREFIX_BYTES", 4_096)
    head = "town;note\n" + "Zürich;x\n" * 500
    plain, table = split_bytes(tmp_path, head)
    tails = [b'a; "b"\n', b"\xff\xfe;\0\n" * 900, "Genève;,,,,\n".encode("cp1252") * 900]
    for tail in tails:
        source, longer = split_bytes(tmp_path, head.encode() + tail)
        assert source.form == plain.form == FileForm(delimiter=";")
        assert cells(longer)[: len(table)] == cells(table)


def test_no_single_line_of_the_prefix_decides(tmp_path: Path) -> None:
    utf8, western = "Zürich;1,5\n".encode(), "Zürich;1,5\n".encode("cp1252")
    wide = "Zürich;1,5\n".encode("utf-16-le")
    for usual, odd, encoding in (
        (utf8, western, "utf-8"),
        (western, utf8, "cp1252"),
        (western, b"\x81\x8d;\x8f\n", "cp1252"),
        (wide, "Ā\0Ā;Ā\n".encode("utf-16-le"), "utf-16-le"),
    ):
        header = "town;x\n".encode("utf-16-le" if usual is wide else "ascii")
        for rows in ([odd, *[usual] * 9], [*[usual] * 9, odd], [usual] * 9):
            source, table = split_bytes(tmp_path, header + b"".join(rows))
            assert (source.form.encoding, source.form.delimiter) == (encoding, ";")
            assert cells(table).count(("Zürich", "1,5")) == 9
