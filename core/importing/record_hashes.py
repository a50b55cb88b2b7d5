"""Records as keyed hashes of their values, and a bounded random sample of a table's records.

Two tables about the same people are recognised by the rows they share, also after the older one is
gone: what stays of it is a `RecordSample`, of at most `ROWS` rows one keyed hash a cell. Whoever
holds the key and a guess of a row can check the guess, so both stay where the rows are.

7, 7.0, "7" and " 7.00 " are one value, and so are "Male" and "MALE". Columns are compared by what
they hold; names and order play a part only where values alone leave a doubt.
"""

from __future__ import annotations

import base64
import hashlib
import io
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

ROWS = 32_768  # rows of a sample at most
CELLS = 500_000  # cells of a sample at most, but for very wide tables
FEWEST = 1_000  # rows of a sample of a very wide table
KEY_LIKE = 0.5  # share of distinct values from which a column tells rows apart by itself
UNIQUE = 0.9  # ... and from which its values look as if they were handed out once each

Hashes: TypeAlias = NDArray[np.uint64]
Indices: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True, eq=False)  # one column is itself and no other
class HashedColumn:
    """One column as keyed hashes of its values.

    Attributes:
      distinct: uint64 [k], each different value's hash; absent is a value of its own.
      codes: int64 [n], the index in `distinct` of each row's value.
      density: of integers that hardly repeat: how densely they fill their range, in (0, 1]. Two
        tables numbered 1, 2, 3, … share numbers and nobody. 0 for all other columns.
    """

    name: str
    distinct: Hashes
    codes: Indices
    density: float

    @cached_property
    def shares(self) -> NDArray[np.float64]:
        """Share of rows of each distinct value, float64 [k]."""
        return np.bincount(self.codes, minlength=len(self.distinct)) / max(1, len(self.codes))

    @cached_property
    def _index(self) -> pd.Index:
        return pd.Index(self.distinct)

    def positions_of(self, hashes: Hashes) -> NDArray[np.intp]:
        """Where in `distinct` hashes are, intp [len(hashes)]; -1 for those that are not there."""
        return self._index.get_indexer(pd.Index(hashes))

    @property
    def key_like(self) -> bool:
        """Whether most rows have a value of their own."""
        return len(self.distinct) > KEY_LIKE * len(self.codes)


@dataclass(frozen=True)
class HashedTable:
    """All columns of a table as keyed hashes; n rows."""

    n: int
    columns: tuple[HashedColumn, ...]

    @classmethod
    def of(cls, frame: pd.DataFrame, key: bytes) -> HashedTable:
        """Hash a frame's cells under a secret key of the workspace."""
        columns = (_hashed(str(name), frame.iloc[:, i], key) for i, name in enumerate(frame))
        return cls(len(frame), tuple(columns))

    def thinned(self, step: int) -> HashedTable:
        """Every step-th row."""
        columns = tuple(replace(column, codes=column.codes[::step]) for column in self.columns)
        return HashedTable(len(range(0, self.n, step)), columns)


@dataclass(frozen=True)
class RecordSample:
    """What stays of a table to recognise its people."""

    n: int
    sample: HashedTable

    def to_bytes(self) -> bytes:
        """A compressed NumPy archive."""
        arrays: dict[str, NDArray[Any]] = {"n": np.array([self.n, self.sample.n])}
        columns = self.sample.columns
        arrays["names"] = np.array([column.name for column in columns], dtype=np.str_)
        arrays["density"] = np.array([column.density for column in columns])
        for i, column in enumerate(columns):
            small = np.min_scalar_type(max(1, len(column.distinct)))
            arrays |= {f"d{i}": column.distinct, f"c{i}": column.codes.astype(small)}
        out = io.BytesIO()
        np.savez_compressed(out, allow_pickle=False, **arrays)
        return out.getvalue()

    @classmethod
    def from_bytes(cls, body: bytes) -> RecordSample:
        """The inverse of `to_bytes`."""
        with np.load(io.BytesIO(body), allow_pickle=False) as arrays:
            n, drawn = (int(one) for one in arrays["n"])
            named = enumerate(zip(arrays["names"], arrays["density"], strict=True))
            columns = tuple(
                HashedColumn(
                    str(name), arrays[f"d{i}"], arrays[f"c{i}"].astype(np.int64), float(density)
                )
                for i, (name, density) in named
            )
        return cls(n, HashedTable(drawn, columns))


def sample_records(frame: pd.DataFrame, hashed: HashedTable, key: bytes) -> RecordSample:
    """Draw rows of a table, also of those that will be kept out; the key fixes which."""
    n, most = len(frame), _most(frame.shape[1])
    if n <= most:
        return RecordSample(n, hashed)
    seed = int.from_bytes(hashlib.sha256(key + b"rows").digest()[:8], "big")
    drawn = np.random.default_rng(seed).choice(n, most, replace=False)
    return sample_of_drawn(frame.iloc[drawn], n, key)


def sample_of_drawn(drawn: pd.DataFrame, n: int, key: bytes) -> RecordSample:
    """Hash rows that were drawn, or as many of them as a sample may have."""
    drawn = drawn.iloc[: _most(drawn.shape[1])]
    hashed = HashedTable.of(drawn, key)
    if n > len(drawn):  # numbers that were drawn lie further apart than they did
        scale = n / len(drawn)
        columns = (replace(c, density=min(1.0, c.density * scale)) for c in hashed.columns)
        hashed = HashedTable(hashed.n, tuple(columns))
    return RecordSample(n, hashed)


def _most(columns: int) -> int:
    return min(ROWS, max(FEWEST, CELLS // max(1, columns)))


def table_digest(hashed: HashedTable, key: bytes) -> str:
    """64 hex digits that equal tables share, in whatever order their rows are."""
    hashes = np.sort(row_hashes(hashed.columns, hashed.n))
    return hashlib.blake2b(hashes.tobytes(), key=key, digest_size=32).hexdigest()


def same_rows(one: HashedTable, other: HashedTable) -> bool:
    """Whether two whole tables hold the same rows, in whatever order rows and columns are."""
    if one.n != other.n or len(one.columns) != len(other.columns):
        return False
    first, second = (np.sort(_rows_in_any_order(table)) for table in (one, other))
    return bool(np.array_equal(first, second))


def _rows_in_any_order(table: HashedTable) -> Hashes:
    total = np.zeros(table.n, dtype=np.uint64)
    for column in table.columns:
        total += splitmix(column.distinct, 0)[column.codes]
    return total


def row_hashes(columns: Sequence[HashedColumn], n: int) -> Hashes:
    """Each row's hash, uint64 [n]: the sum of its values' terms, which wraps around on purpose."""
    total = np.zeros(n, dtype=np.uint64)
    for position, column in enumerate(columns):
        total += splitmix(column.distinct, position)[column.codes]
    return total


def splitmix(hashes: Hashes, position: int) -> Hashes:
    """Hashes of values to terms of a row's hash: as random for each position in the row.

    Source: the finaliser of SplitMix64, Steele et al., "Fast splittable pseudorandom number
    generators", 2014.
    """
    x = hashes + np.uint64((0x9E3779B97F4A7C15 * (position + 1)) % 2**64)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def _hashed(name: str, series: pd.Series[Any], key: bytes) -> HashedColumn:
    codes, values = pd.factorize(series, use_na_sentinel=True)
    spelled, numbers = _spelled(pd.Series(values))
    # SipHash-2-4 by pandas; its key is 16 characters
    secret = base64.b85encode(hashlib.sha256(key + b"cells").digest())[:16].decode()
    hashes = pd.util.hash_array(spelled, hash_key=secret, categorize=False)
    hashes[spelled == ""] = 0  # as absent values, which have code -1
    hashes = np.append(hashes, np.uint64(0))
    codes = np.where(codes < 0, len(hashes) - 1, codes)
    again, distinct = pd.factorize(hashes)  # two spellings of one value are one
    codes = again[codes].astype(np.int64)
    present = np.bincount(codes, minlength=len(distinct)) > 0
    if not present.all():
        codes, distinct = (np.cumsum(present) - 1)[codes], distinct[present]
    return HashedColumn(name.strip().casefold(), distinct, codes, _density(numbers, len(series)))


def _spelled(values: pd.Series[Any]) -> tuple[NDArray[np.object_], NDArray[np.float64]]:
    """One spelling for equal values, "" for absent ones, and what of them are numbers."""
    if isinstance(values.dtype, pd.CategoricalDtype):
        values = values.astype(values.cat.categories.dtype)
    if pd.api.types.is_bool_dtype(values.dtype) or not pd.api.types.is_numeric_dtype(values.dtype):
        text = values.astype("str").str.strip().str.casefold()
        parsed = pd.to_numeric(text, errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan)
        spelled = text.to_numpy(dtype=object)
    else:
        parsed = values.to_numpy(dtype=np.float64, na_value=np.nan)
        spelled = np.full(len(values), "nan", dtype=object)
    number = np.isfinite(parsed)
    exact = np.ascontiguousarray(parsed[number] + 0.0, dtype="<f8")  # -0.0 becomes 0.0
    spelled[number] = exact.view("S8").astype(object)
    return spelled, parsed[number]


def _density(numbers: NDArray[np.float64], n: int) -> float:
    """How densely integers that hardly repeat fill their range; 0 when they are something else."""
    if len(numbers) < 2 or len(numbers) < UNIQUE * n or (numbers != np.floor(numbers)).any():
        return 0.0
    return float(min(1.0, len(numbers) / (numbers.max() - numbers.min() + 1.0)))


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
    total = np.zeros(len(rows), dtype=np.uint64)
    for position, column in enumerate(rows.itercolumns()):
        total += splitmix(_cell_hashes(column), position)
    return total


def _cell_hashes(cells: pa.ChunkedArray) -> NDArray[np.uint64]:
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
