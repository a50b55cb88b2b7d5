"""Which encoding a text file is in, and the same text in UTF-8."""

from __future__ import annotations

import io

import pyarrow as pa
from charset_normalizer import from_bytes

from core.table.io.cells import TableReadError

__all__ = ["SAMPLE_BYTES", "holds_nul", "to_utf8"]

SAMPLE_BYTES = 1 << 18
LEGACY = ["cp1252", "latin_1", "cp1251", "koi8_r", "cp1253", "shift_jis", "gb18030", "euc_kr"]
WESTERN_SHARE = 0.3  # of accented letters; above it the script is hardly a Western one
CONTROLS = bytes([*range(1, 9), *range(14, 26), *range(27, 32)])
ADVICE = "Choose a CSV, TSV, Parquet or Excel file, or save it again as CSV in UTF-8."
MAX_CONTROLS = 0.01  # share of control characters no text table has
MARKS = {  # byte order marks, the longer first where one begins another
    b"\xef\xbb\xbf": "utf-8-sig",
    b"\xff\xfe\x00\x00": "utf-32",
    b"\x00\x00\xfe\xff": "utf-32",
    b"\xff\xfe": "utf-16",
    b"\xfe\xff": "utf-16",
}


def to_utf8(data: bytes) -> tuple[bytes, str, list[str]]:
    """The text in UTF-8 without a byte order mark, the encoding it had, and warnings."""
    mark = next((m for m in MARKS if data.startswith(m)), None)
    if mark is not None:
        encoding = MARKS[mark]
        if encoding == "utf-8-sig":
            return _checked(data[len(mark) :]), encoding, []
        return _recoded(data, encoding), encoding, []
    wide = _wide_encoding(data[:SAMPLE_BYTES])
    if wide is not None:
        return _recoded(data, wide), wide, []
    _refuse_binary(data)
    try:
        return _checked(data), "utf-8", []
    except TableReadError:
        encoding = _legacy_encoding(data)
        warning = (
            f"The file is not in UTF-8; it is read as {encoding}. Check that accented letters "
            "look right, or save it again in UTF-8."
        )
        return _recoded(data, encoding), encoding, [warning]


def _legacy_encoding(data: bytes) -> str:
    """The likeliest encoding of text that is not Unicode.

    Western encodings differ in a few letters only, too few for statistics on a short file, so
    cp1252 (or latin_1, which has every byte) is taken unless the text is full of other letters.
    """
    sample = _foreign_sample(data)
    letters = sum(byte > 127 or chr(byte).isalpha() for byte in sample)
    accented = sum(byte > 127 for byte in sample)
    if accented > WESTERN_SHARE * letters:
        best = from_bytes(sample, cp_isolation=LEGACY).best()
        if best is not None and best.encoding not in ("cp1252", "latin_1"):
            return best.encoding
    try:
        data.decode("cp1252")
    except UnicodeError:
        return "latin_1"
    return "cp1252"


def _refuse_binary(data: bytes) -> None:
    """Raise for bytes that are no text at all."""
    if b"\0" in data:
        raise holds_nul(data.count(b"\n", 0, data.index(b"\0")) + 1)
    sample = data[:SAMPLE_BYTES]
    if len(sample) - len(sample.translate(None, CONTROLS)) > MAX_CONTROLS * len(sample):
        raise TableReadError(f"The file holds binary data, not a text table. {ADVICE}")


def holds_nul(line: int) -> TableReadError:
    """The error for a line with NUL bytes, counted from 1."""
    return TableReadError(f"Line {line} holds NUL bytes, so this is not a text table. {ADVICE}")


def _checked(data: bytes) -> bytes:
    """The bytes themselves when they are UTF-8, checked by arrow without making a copy."""
    try:
        offsets = pa.py_buffer(len(data).to_bytes(8, "little").rjust(16, b"\0"))  # 0, length
        buffers = [None, offsets, pa.py_buffer(data)]
        pa.Array.from_buffers(pa.large_binary(), 1, buffers).cast(pa.large_string())
    except pa.ArrowInvalid:
        raise TableReadError("The file is not in UTF-8. Save it again in UTF-8.") from None
    return data


def _recoded(data: bytes, encoding: str) -> bytes:
    try:
        text = data.decode(encoding).removeprefix("\ufeff")
    except UnicodeError:
        raise TableReadError(
            f"The text could not be read as {encoding}. Save the file again as CSV in UTF-8."
        ) from None
    if "\0" in text:
        raise TableReadError(
            "The file holds NUL characters, so this is not a text table. "
            "Choose a CSV, TSV, Parquet or Excel file, or save it again as CSV in UTF-8."
        )
    return text.encode()


def _wide_encoding(sample: bytes) -> str | None:
    """UTF-16 without a mark: every other byte is nearly always NUL in Western text."""
    half = len(sample) // 2
    even, odd = sample[: 2 * half : 2].count(0), sample[1::2].count(0)
    if half and odd > 0.7 * half and even == 0:
        return "utf-16-le"
    if half and even > 0.7 * half and odd == 0:
        return "utf-16-be"
    return None


def _foreign_sample(data: bytes) -> bytes:
    """The lines with letters outside ASCII, which are the ones that tell an encoding."""
    lines: list[bytes] = []
    size = 0
    for line in io.BytesIO(data):
        if not line.isascii():
            lines.append(line)
            size += len(line)
            if size > SAMPLE_BYTES // 4:
                break
    return b"".join(lines)
