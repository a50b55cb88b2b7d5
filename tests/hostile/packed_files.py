"""Hostile compressed files: bombs, damage, nesting, and zips of anything but one table."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import struct
import zipfile
from collections.abc import Iterator

from tests.hostile.files import EITHER, REFUSED, TABLE, HostileFile
from tests.hostile.text_files import PLAIN as PLAIN_CSV
from tests.reading.files import zipped

PLAIN, PLAIN_ZIP = gzip.compress(PLAIN_CSV * 20), zipped(t_csv=PLAIN_CSV * 20)
MEGABYTE = 1 << 20
PACKERS = {"gz": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress}
BOMB_MB = 700  # more than the limit that the corpus is read under


def files() -> Iterator[HostileFile]:
    """All of them."""
    for ending, pack in PACKERS.items():
        good = pack(PLAIN_CSV)
        yield HostileFile(f"good.csv.{ending}", good, TABLE)
        yield HostileFile(f"empty.csv.{ending}", pack(b""), REFUSED)
        yield HostileFile(f"cut.csv.{ending}", good[:-8], REFUSED, says="damaged")
        yield HostileFile(f"twice.csv.{ending}", pack(good), REFUSED, says="another compressed")
        yield HostileFile(f"not.csv.{ending}", PLAIN_CSV, REFUSED, says="not compressed that way")
        yield HostileFile(f"tail.csv.{ending}", good + b"tail", EITHER)
        # Members one after the other unpack as one stream, and are made in no time.
        line = pack(b"a" * MEGABYTE) * 40
        yield HostileFile(f"one-line.csv.{ending}", line, REFUSED, says="one line")
        rows = pack(b"a,b\n") + pack(b"1.5,word\n" * (MEGABYTE // 9)) * BOMB_MB
        if ending == "gz":  # the others take ten times as long to unpack
            yield HostileFile(f"bomb.csv.{ending}", rows, REFUSED, says="MB")
    yield from _zips()


def _zips() -> Iterator[HostileFile]:
    yield HostileFile("good.zip", PLAIN_ZIP, TABLE)
    yield HostileFile("two.zip", zipped(a_csv=b"a\n1\n", b_csv=b"a\n1\n"), REFUSED, says="2 files")
    yield HostileFile("none.zip", zipped(), REFUSED, says="0 files")
    yield HostileFile("nested.zip", zipped(a=PLAIN), REFUSED, says="another compressed")
    yield HostileFile("climbing.zip", zipped(**{"../../up_csv": PLAIN_CSV}), TABLE)
    yield HostileFile("folder.zip", zipped(**{"folder/": b""}), REFUSED, says="0 files")
    bomb = io.BytesIO()
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        with archive.open("t.csv", "w") as stream:
            for _ in range(40):
                stream.write(b"a" * MEGABYTE)
    yield HostileFile("one-line.zip", bomb.getvalue(), REFUSED, says="one line")
    locked = bytearray(PLAIN_ZIP)
    for place in (6, locked.rindex(b"PK\x01\x02") + 8):
        locked[place] |= 1
    yield HostileFile("locked.zip", bytes(locked), REFUSED, says="password")
    lying = bytearray(PLAIN_ZIP)
    struct.pack_into("<I", lying, lying.rindex(b"PK\x01\x02") + 24, 10)  # claims ten bytes
    yield HostileFile("lying.zip", bytes(lying), EITHER)
    absurd = bytearray(PLAIN_ZIP)
    struct.pack_into("<I", absurd, absurd.rindex(b"PK\x01\x02") + 42, 2**31)  # no such place
    yield HostileFile("absurd.zip", bytes(absurd), REFUSED, says="damaged")
