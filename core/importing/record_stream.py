"""What a table's people are recognised by, taken from raw rows that pass by and are not kept."""

from __future__ import annotations

import secrets

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from core.importing.record_hashes import splitmix

COMPARED = 200_000  # rows of a table that are compared with earlier ones, at most
_CELLS = 50 * COMPARED  # of those rows: wider tables have fewer
_FEWEST = 20_000  # rows of a very wide table
_BYTES = 2**27  # of those rows: where cells are long there are fewer
_SPARE = 1.5  # how far the drawn rows may grow before they are cut to that
_ABSENT = 0x9E3779B97F4A7C15  # stands for the hash of a cell that is absent


def most_compared(columns: int) -> int:
    """How many rows of a table of so many columns, ≥ 1, are compared at most.

    >>> most_compared(10), most_compared(100)
    (200000, 100000)
    """
    return min(COMPARED, max(_FEWEST, _CELLS // columns))


class DrawnRows:
    """Draws rows at random and sums hashes of batches of raw cells that pass by."""

    def __init__(self) -> None:
        self.n, self.most = 0, COMPARED
        self._random = np.random.default_rng(secrets.randbits(128))
        self._drawn: list[pa.Table] = []
        self._lots: NDArray[np.float64] = np.zeros(0)
        self._below = 1.0
        self._sums = np.zeros(2, dtype=np.uint64)

    def add(self, batch: pa.Table) -> None:
        """More rows, of the columns of the first batch."""
        if not self.n:
            self.most = most_compared(batch.num_columns)
        hashes = _row_hashes(batch)
        self._sums += np.array([hashes.sum(), splitmix(hashes, 1).sum()])
        lots = self._random.random(len(batch))
        chosen = lots < self._below
        self._drawn.append(batch if chosen.all() else batch.filter(pa.array(chosen)))
        self._lots = np.concatenate([self._lots, lots[chosen]])
        self.n += len(batch)
        if sum(part.nbytes for part in self._drawn) > _BYTES:
            self.most = min(self.most, max(1, len(self._lots) // 2))
        if len(self._lots) > _SPARE * self.most:
            self._cut()

    def _cut(self) -> None:
        """Keep the rows with the smallest lots, which are a random part of all."""
        drawn = pa.concat_tables(self._drawn)
        if len(drawn) > self.most:
            order = np.argpartition(self._lots, self.most)[: self.most]
            drawn, self._lots = drawn.take(pa.array(order)), self._lots[order]
            self._below = float(self._lots.max())
        self._drawn = [drawn]

    def rows(self) -> pa.Table:
        """A random part of the rows in random order, all where there are few enough; n ≥ 1."""
        self._cut()
        return self._drawn[0].take(pa.array(np.argsort(self._lots)))

    def sums(self) -> str:
        """Of all rows' hashes, in hex; equal tables share them."""
        return self._sums.astype("<u8").tobytes().hex()


def _row_hashes(rows: pa.Table) -> NDArray[np.uint64]:
    """Each row's hash by its raw cells, uint64 [n]."""
    total = np.zeros(len(rows), dtype=np.uint64)
    for position, column in enumerate(rows.itercolumns()):
        total += splitmix(_cell_hashes(column), position)
    return total


def _cell_hashes(cells: pa.ChunkedArray) -> NDArray[np.uint64]:
    """One number for each cell, the same for equal ones, uint64 [n]."""
    kind = cells.type
    if pa.types.is_temporal(kind):
        cells = cells.cast(pa.int32() if kind.bit_width == 32 else pa.int64())
    if pa.types.is_primitive(kind) and not pa.types.is_boolean(kind):
        wide = pa.float64() if pa.types.is_floating(kind) else pa.int64()
        plain = cells.cast(wide, safe=False).combine_chunks()
        hashes = np.asarray(plain.fill_null(0)).view(np.uint64)
        if plain.null_count:
            hashes = np.where(np.asarray(plain.is_null()), np.uint64(_ABSENT), hashes)
        return hashes
    coded = cells.combine_chunks().dictionary_encode()
    spelled = coded.dictionary.cast(pa.string()).to_numpy(zero_copy_only=False)
    values = pd.util.hash_array(spelled, categorize=False)
    indices = np.asarray(coded.indices.fill_null(len(values)), dtype=np.int64)
    return np.append(values, np.uint64(_ABSENT))[indices]
