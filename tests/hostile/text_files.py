"""Hostile text: encodings, line ends, quotes, and cells that look like something else."""

from __future__ import annotations

from collections.abc import Iterator

from tests.hostile.files import EITHER, REFUSED, TABLE, HostileFile

PLAIN = b'name,n,day\n"Ann, B.",1,2024-01-31\n"c ""d""",2,2024-02-29\n"e\nf",3,2023-05-05\n'
RUSSIAN = "имя,город\n" + "Иван,Москва\nПётр,Новосибирск\nАнна,Санкт-Петербург\n" * 5
WESTERN = "navn,sted\nBjørn,Tromsø\nÅse,Málaga\n"
ENCODINGS = {
    "utf-8": WESTERN, "utf-8-sig": WESTERN, "utf-16": WESTERN, "utf-16-le": WESTERN,
    "utf-16-be": WESTERN, "utf-32": WESTERN, "latin-1": WESTERN, "cp1252": WESTERN,
    "koi8_r": RUSSIAN, "cp1251": RUSSIAN,
}  # fmt: skip
CELLS = {  # each is put among words and among numbers
    "inf": "inf", "minus-inf": "-Infinity", "nan": "nan", "too-large": "1e400",
    "too-small": "1e-400", "largest": "1.7e308", "least": "-1.7e308", "square": "1e151",
    "hex": "0x10", "underscore": "1_000", "zeros": "007", "plus": "+47", "point-first": ".5",
    "point-last": "1.", "twenty-digits": "12345678901234567890", "past-double": "9007199254740993",
    "many-decimals": "0.1234567890123456789012", "thousands": '"1,234"', "both": '"1,234.50"',
    "arabic": "٣", "full-width": "１２", "half": "½", "real-minus": "−5", "exponent": "1E5",
    "true": "true", "TRUE": "TRUE", "True": "True", "yes": "Yes", "y": "y", "na": "NA",
    "null": "Null", "none": "None", "nil": "nil", "dash": "-", "not-available": "#N/A",
    "error": "#REF!", "formula": "=1+1", "command": "@SUM(A1)", "last-day": "9999-12-31",
    "first-day": "0001-01-01", "no-day": "0000-00-00", "february-30": "2024-02-30",
    "day-zero": "1900-01-00", "zulu": "2024-01-01T00:00:00Z", "offset": "2024-01-01T00:00:00+0530",
    "late-offset": "9999-12-31T23:59:59-0500", "nanoseconds": "2024-01-01 00:00:00.123456789",
    "midnight": "24:00:00", "epoch": "1700000000", "digits-date": "20240231", "emoji": "👩‍👩‍👧",
    "right-to-left": "\u202egnp.exe", "zero-width": "a\u200bb", "escape": "a\u009bb",
    "script": "<script>alert(1)</script>", "picture": "![](http://example.org/x)",
    "query": "'; DROP TABLE runs; --", "path": "../../etc/passwd", "mark-inside": "a\ufeffb",
    "hard-space": "\u00a01\u00a0", "tab": '"a\tb"', "break": '"a\r\nb"', "long": "x" * 100_000,
}  # fmt: skip
BROKEN = {
    "empty": (b"", "empty"),
    "blank": (b"\n \n\t\n", "empty"),
    "header-only": (b"name,n\n", "no rows"),
    "value-too-many": (b"a,b\n1,2\n1,2,3\n", "Line 3"),
    "value-too-few": (b"a,b\n1,2\n1\n", "Line 3"),
    "open-quote": (b'a,b\n1,"2\n3,4\n', "quote"),
    "late-quote": (b'a,b\n1,"x"y\n', "quote"),
    "open-header": (b'"a,b\n1,2\n', "quote"),
    "nul": (b"a,b\n1,\x00\n", "binary"),
    "nul-utf-16": (("a,b\n1,x\0\n" * 20).encode("utf-16"), "binary"),
    "controls": (b"a,b\n\x01\x02\x03,\x04\x05\n", "binary"),
    "half-utf-16": (b"\xff\xfea\x00,", ""),
    "png": (b"\x89PNG\r\n\x1a\n" + bytes(100), "a picture"),
    "pdf": (b"%PDF-1.7\n1 0 obj\n", "a PDF"),
    "html": (b"<!DOCTYPE html>\n<p>a,b</p>\n", "web page"),
    "json": (b'[{"a": 1}]\n', "JSON"),
    "sqlite": (b"SQLite format 3\0" + bytes(100), "SQLite"),
    "elf": (b"\x7fELF" + bytes(100), "a program"),
    "zstd": (b"\x28\xb5\x2f\xfd" + bytes(100), "Zstandard"),
    "wide": (",".join(f"c{i}" for i in range(3000)) + "\n" + "," * 2999 + "\n", "columns"),
    "one-line": (b"a" * (17 << 20), "one line"),
    "delimiters-only": (b",,,\n,,,\n", "names 0 of 4 columns"),
    "endless-value": (b'a,b\n1,"' + b"x\n" * 200_000, "quote"),
}  # fmt: skip


def files() -> Iterator[HostileFile]:
    """All of them."""
    for encoding, text in ENCODINGS.items():
        for word, delimiter in (("comma", ","), ("semicolon", ";"), ("tab", "\t"), ("bar", "|")):
            data = text.replace(",", delimiter).encode(encoding)
            yield HostileFile(f"{encoding}-{word}.csv", data, TABLE)
    for word, end in (("lf", b"\n"), ("crlf", b"\r\n"), ("cr", b"\r")):
        for last in (b"", end, end * 3):
            rows = end.join([b"a,b", b"1,x", b"2,y"]) + last
            yield HostileFile(f"ends-{word}-{len(last)}.csv", rows, TABLE)
    for word, cell in CELLS.items():
        words = "\n".join(["k,v", *(f"{i},w{i % 3}" for i in range(30)), *[f"5,{cell}"] * 12])
        yield HostileFile(f"among-words-{word}.csv", words.encode(), TABLE)
        numbers = "\n".join(["k,v", *(f"{i},{i * 7 % 50}" for i in range(40)), f"5,{cell}"])
        yield HostileFile(f"among-numbers-{word}.csv", numbers.encode(), TABLE)
    for word, (data, says) in BROKEN.items():
        data = data.encode() if isinstance(data, str) else data
        yield HostileFile(f"broken-{word}.csv", data, REFUSED, says=says)
    yield HostileFile("plain.csv", PLAIN, TABLE)
    yield from _in_doubt()


def _in_doubt() -> Iterator[HostileFile]:
    """Tables that can be read only with a word on what is lost or in doubt."""
    rows = {
        "namibia": ("c\n" + "DE\nNA\n" * 9, ""),
        "country-words": ("c\n" + "Germany\nNA\n" * 9, "read as missing"),
        "surname": ("c\n" + "Smith\nNull\n" * 9, ""),
        "versions": ("c\n" + "1.1\n1.10\n1.2\n" * 9, "several ways"),
        "comma-file": ("a;b\n" + "0,5;1.234\n2,75;5.678\n" * 9, "decimal points or thousands"),
        "giants": ("c\n" + "1\n2.5\n1.7e308\n" * 9, "beyond 1e150"),
        "endless": ("c\n" + "1\n2.5\n1e400\n" * 9, "infinite"),
        "capitals": ("c\n" + "Yes\nNo\nyes\nunknown\n" * 5, ""),
        "numeric-header": ("1,2\n" + "3,4\n" * 9, "looks like values"),
    }
    for word, (text, says) in rows.items():
        yield HostileFile(f"told-{word}.csv", text.encode(), TABLE, says=says)
    lines = b"a,b\n" + b"1,x\n" * 9
    stray, double = lines + "é,ü\n".encode() * 9 + b"2,\xff\n", "a,a,,b\n" + "1,2,3,4\n" * 9
    yield HostileFile("told-stray-byte.csv", stray, TABLE, says="Unreadable characters")
    yield HostileFile("told-nul.csv", lines + b"2,\0x\n", TABLE, says="Unreadable characters")
    yield HostileFile("told-same-header.csv", double.encode(), TABLE, says="'a (2)', 'column 3'")
    yield HostileFile("half-a-row.csv", b"a,b\n" + b"1,2\n" * 50_000 + b"1", EITHER)
