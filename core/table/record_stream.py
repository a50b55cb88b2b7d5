"""What a table's people are recognised by, taken from rows that pass by and are not kept.

Of a table that is larger than memory a bounded random part stays, and sums of row hashes that equal
tables share in whatever order their rows are.
"""

from __future__ import annotations

import hashlib

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from core.table.record_hashes import HashedTable, RecordSample, sample_of_drawn

__all__ = ["COMPARED", "PassingRows", "row_digests"]

COMPARED = 200_000  # rows of a table that are compared with earlier ones, at most
_SPARE = 1.5  # how far the drawn rows may grow before they are cut to that
_ODD = np.uint64(0x9E3779B97F4A7C15)  # of a second, independent sum


class PassingRows:
    """Draws rows and sums hashes of batches that pass by.

    Args:
      key: secret bytes of the workspace; they fix which rows are drawn, `COMPARED` at most.

    Attributes:
      n: rows so far.
    """

    def __init__(self, key: bytes) -> None:
        self.n = 0
        self._key = key
        seed = int.from_bytes(hashlib.sha256(key + b"passing").digest()[:8], "big")
        self._random = np.random.default_rng(seed)
        self._drawn: list[pd.DataFrame] = []
        self._lots: NDArray[np.float64] = np.zeros(0)
        self._below = 1.0
        self._sums = np.zeros(2, dtype=np.uint64)
        self._names: tuple[str, ...] = ()

    def add(self, batch: pd.DataFrame) -> None:
        """More rows, of the columns of the first batch."""
        self._names = self._names or tuple(map(str, batch.columns))
        hashes = row_digests(batch)
        with np.errstate(over="ignore"):  # sums wrap around on purpose
            mixed = (hashes ^ (hashes >> np.uint64(29))) * _ODD
            self._sums += np.array([hashes.sum(dtype=np.uint64), mixed.sum(dtype=np.uint64)])
        lots = self._random.random(len(batch))
        chosen = lots < self._below
        self._drawn.append(batch[chosen])
        self._lots = np.concatenate([self._lots, lots[chosen]])
        self.n += len(batch)
        if len(self._lots) > _SPARE * COMPARED:
            self._cut()

    def _cut(self) -> None:
        """Keep the rows with the smallest lots, which are a random part of all."""
        drawn = pd.concat(self._drawn, ignore_index=True)
        if len(drawn) > COMPARED:
            order = np.sort(np.argpartition(self._lots, COMPARED)[:COMPARED])
            drawn, self._lots = drawn.iloc[order].reset_index(drop=True), self._lots[order]
            self._below = float(self._lots.max())
        self._drawn = [drawn]

    def drawn(self) -> pd.DataFrame:
        """A random part of the rows, in file order; all where there are few enough."""
        self._cut()
        return self._drawn[0]

    def hashed(self) -> HashedTable:
        """The drawn rows under the key."""
        return HashedTable.of(self.drawn(), self._key)

    def sample(self) -> RecordSample:
        """What stays of the table."""
        drawn = self.drawn()
        lots = np.argsort(self._lots, kind="stable")  # the file's first rows are no sample
        return sample_of_drawn(drawn.iloc[lots], self.n, self._key)

    def digest(self) -> str:
        """64 hex digits that equal tables share, in whatever order their rows are."""
        told = hashlib.blake2b("\x1f".join(self._names).encode(), key=self._key, digest_size=32)
        told.update(self.n.to_bytes(8, "big") + self._sums.astype("<u8").tobytes())
        return told.hexdigest()


def row_digests(rows: pd.DataFrame) -> NDArray[np.uint64]:
    """Each row's hash by its exact values, uint64 [n]."""
    plain = rows.copy(deep=False)
    for name in plain.columns:
        if plain[name].dtype == object:
            plain[name] = plain[name].astype(str)
    return np.asarray(pd.util.hash_pandas_object(plain, index=False), dtype=np.uint64)
