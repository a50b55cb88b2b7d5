"""Over 300 hostile files, made by code: every reader, every trick we know of.

`TABLE` files must be read, `REFUSED` ones must be refused; of damaged ones either will do.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tests.hostile import packed_files, parquet_files, text_files, workbook_files
from tests.hostile.files import EITHER, HostileFile

DAMAGED = 22  # copies of each format


def damaged() -> Iterator[HostileFile]:
    """Cut short, with a piece missing, or with a flipped byte, always at the same places."""
    rng = np.random.default_rng(15)
    whole = {
        "csv": text_files.PLAIN,
        "parquet": parquet_files.PLAIN,
        "xlsx": workbook_files.PLAIN,
        "ods": workbook_files.PLAIN_ODS,
        "gz": packed_files.PLAIN,
        "zip": packed_files.PLAIN_ZIP,
    }
    for ending, good in whole.items():
        for i in range(DAMAGED):
            data = bytearray(good)
            place = int(rng.integers(1, len(data)))
            if i % 3 == 0:
                del data[place:]
            elif i % 3 == 1:
                del data[place : place + int(rng.integers(1, 30))]
            else:
                data[place] ^= int(rng.integers(1, 256))
            yield HostileFile(f"damaged-{i}.{ending}", bytes(data), EITHER)


def corpus() -> list[HostileFile]:
    """All files, each with a name of its own."""
    sources = (
        text_files.files, packed_files.files, workbook_files.files, parquet_files.files, damaged,
    )  # fmt: skip
    return [file for source in sources for file in source()]
