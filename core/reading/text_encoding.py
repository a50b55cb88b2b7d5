"""Which encoding a text file is in, told from its beginning or declared; and the same in UTF-8."""

from __future__ import annotations

import codecs
import re
from collections.abc import Sequence

from charset_normalizer import from_bytes

from core.reading.cells import TableReadError

LEGACY = ["cp1252", "latin_1", "cp1251", "koi8_r", "cp1253", "shift_jis", "gb18030", "euc_kr"]
ENCODINGS = (  # that can be declared: what no byte, wherever it stands, carries into the next line
    "utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", *LEGACY,
    "cp1250", "cp1254", "cp1255", "cp1256", "cp1257", "cp437", "cp850", "mac_roman",
    "iso8859_2", "iso8859_15", "big5", "euc_jp",
)  # fmt: skip
WESTERN_SHARE = 0.3  # of accented letters; above it the script is hardly a Western one
WIDE_SHARE = 0.7  # of NUL among every other byte; text of any script has fewer where it has none
SAMPLE_BYTES = 1 << 16  # of lines that tell a legacy encoding
CONTROLS = re.compile("[\0-\x08\x0e-\x19\x1b-\x1f]")
MARKS = {  # byte order marks, the longer first where one begins another
    b"\xef\xbb\xbf": "utf-8-sig",
    b"\xff\xfe\x00\x00": "utf-32",
    b"\x00\x00\xfe\xff": "utf-32",
    b"\xff\xfe": "utf-16",
    b"\xfe\xff": "utf-16",
}


def encoding_of(prefix: bytes, declared: str | None) -> str:
    """The encoding that a byte order mark tells, else the declared one, else the likeliest.

    No single line of the file's beginning decides: it is the one in which most lines with letters
    outside ASCII are sound.
    """
    mark = next((m for m in MARKS if prefix.startswith(m)), None)
    if mark is not None:
        return MARKS[mark]
    if declared is not None:
        known = _supported(declared)
        if known is None:
            raise TableReadError(
                "The declared encoding '{encoding}' is not supported. Save the file in UTF-8, "
                "and declare utf-8.",
                encoding=declared,
            )
        return known
    wide = _wide_encoding(prefix)
    if wide is not None:
        return wide
    foreign = [line for line in re.findall(rb"[^\r\n]+", prefix) if not line.isascii()]
    if 2 * sum(map(_is_utf8, foreign)) >= len(foreign):
        return "utf-8"
    return _legacy_encoding(foreign)


def refuse_binary(text: str) -> None:
    """Raise for what is no text at all: at least half its lines hold control characters."""
    lines = re.findall(r"[^\r\n]+", text)
    if lines and 2 * sum(bool(CONTROLS.search(line)) for line in lines) >= len(lines):
        raise TableReadError(
            "The file holds binary data, not a text table. Choose a CSV, TSV, Parquet or Excel "
            "file, or save it again as CSV in UTF-8."
        )


class Utf8:
    """Blocks of a file as UTF-8; `replaced` counts U+FFFD, for NUL and what cannot be read."""

    def __init__(self, encoding: str) -> None:
        self._decoder = codecs.getincrementaldecoder(encoding)("replace")
        self.replaced = 0

    def __call__(self, block: bytes) -> bytes:
        """The next block, without a byte order mark; an empty one is the end."""
        text = self._decoder.decode(block, not block)
        self.replaced += text.count("\ufffd") + text.count("\0")
        return text.encode()


def _supported(encoding: str) -> str | None:
    """The name in `ENCODINGS` of an encoding, which may have others; None for any that is not."""
    try:
        own = codecs.lookup(encoding)
    except LookupError:
        return None
    return next((name for name in ENCODINGS if codecs.lookup(name).name == own.name), None)


def _is_utf8(line: bytes) -> bool:
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True


def _wide_encoding(prefix: bytes) -> str | None:
    """UTF-16 without a mark: every other byte is nearly always NUL in Western text."""
    half = len(prefix) // 2
    even, odd = prefix[: 2 * half : 2].count(0), prefix[1::2].count(0)
    few, many = (1 - WIDE_SHARE) * half, WIDE_SHARE * half
    if odd > many and even < few:
        return "utf-16-le"
    if even > many and odd < few:
        return "utf-16-be"
    return None


def _legacy_encoding(lines: Sequence[bytes]) -> str:
    """The likeliest encoding of text that is not Unicode.

    Western ones differ in a few letters, too few for statistics, so cp1252 is taken unless the text
    is full of other letters.
    """
    sample = b"\n".join(lines)[:SAMPLE_BYTES]
    letters = sum(byte > 127 or chr(byte).isalpha() for byte in sample)
    if sum(byte > 127 for byte in sample) > WESTERN_SHARE * letters:
        best = from_bytes(sample, cp_isolation=LEGACY).best()
        if best is not None and best.encoding != "latin_1":
            return best.encoding
    return "cp1252"
