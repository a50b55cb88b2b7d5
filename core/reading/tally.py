"""A column as its different values and the number of rows that hold each.

What is proposed of a column, and its picture, depend on nothing else, so a column is counted some
rows at a time. Of very many different values those whose hash is small are kept, with every row of
theirs: a random sample of the values whatever the order of the rows. Beside them the common ones
are, and the first and last in order, whose counts are exact. How many rows there are, the finest
step and both ends of the range of numbers stay exact; how many values there are is estimated. The
hash is fixed and public: what is sampled is shown inside, and counted again where it has to be
exact.

The sample: Gibbons, "Distinct sampling for highly-accurate answers to distinct values queries",
2001.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self, TypeAlias

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from core.reading.arrow_types import is_text
from core.reading.native_cells import native_values
from core.schema.column import Column, Kind, nullable_dtype
from core.schema.labels import dtype_of, to_labels, to_numbers
from core.schema.round_bounds import date_step, number_step

Series: TypeAlias = "pd.Series[Any]"
Floats: TypeAlias = NDArray[np.float64]
Bools: TypeAlias = NDArray[np.bool_]
Cells: TypeAlias = pa.Array | pa.ChunkedArray

VALUES = 100_000  # different values of a column that are kept at most
# kept whatever their hash: values of more than one in so many rows; of each end of an order
COMMONEST, ENDS = 1_000, 16
_EVERY = 2**64  # hashes below it are all


@dataclass(frozen=True, eq=False)
class Tally:
    """Different values and their rows.

    Attributes:
      values: k of them, in the column's dtype, in the order they occur first; of raw cells,
        `pa.array(values)` has them in their Arrow type.
      rows: int64 [k], how many rows hold each, ≥ 1.
      absent: how many rows hold none.
      dtype: what `dtype_of` says of the column; of raw cells the name of their Arrow type.
      known: present rows in all, those of values that are not here too.
      sure: bool [k], of values that are kept whatever their hash; all when no value is left out.
      share: of the other values that are here, (0, 1]; 1 when no value is left out.
      step: the finest step of all numbers or dates where values are left out, else None.
      written: whether these are raw cells of text, see `core.reading.raw_cells.as_written`.
    """

    values: Series
    rows: NDArray[np.int64]
    absent: int
    dtype: str
    known: int
    sure: Bools
    share: float = 1.0
    step: float | None = None
    written: bool = False

    @classmethod
    def of(cls, series: Series) -> Self:
        """All values of a typed column."""
        counts = series.value_counts(sort=False)
        counts = counts[counts > 0]  # categories that no row holds
        rows = np.asarray(counts, dtype=np.int64)
        values, known = pd.Series(counts.index, name=series.name), int(rows.sum())
        sure = np.ones(len(rows), dtype=np.bool_)
        return cls(values, rows, len(series) - known, dtype_of(series), known, sure)

    @property
    def exact(self) -> bool:
        """Whether every value is here."""
        return self.share == 1.0

    @property
    def distinct(self) -> int:
        """How many different values there are; to three digits where some are left out."""
        if self.exact:
            return len(self.rows)
        if self.unique:
            return self.known
        sampled = (~self.sure).sum() / self.share
        return int(min(self.known, float(f"{self.sure.sum() + sampled:.3g}")))

    @property
    def unique(self) -> bool:
        """Whether no value occurs twice, as far as values are here."""
        return bool((self.rows == 1).all())

    @property
    def weights(self) -> Floats:
        """Rows that each value stands for, float64 [k]; they sum to all present rows."""
        rows = self.rows.astype(np.float64)
        light = rows[~self.sure].sum()
        rest = self.known - rows[self.sure].sum()
        return np.where(self.sure, rows, rows * (rest / light if light else 1.0))

    def mapped(self, became: Series) -> Tally:
        """The tally of what the k values became: equal ones are one, those of none are absent."""
        codes, values = pd.factorize(became)
        there = codes >= 0
        rows = np.zeros(len(values), dtype=np.int64)
        np.add.at(rows, codes[there], self.rows[there])
        sure = np.zeros(len(values), dtype=np.bool_)
        sure[codes[there & self.sure]] = True
        gone = int(round(self.weights[~there].sum()))
        return Tally(
            values=pd.Series(values, name=became.name),
            rows=rows,
            absent=self.absent + gone,
            dtype=nullable_dtype(dtype_of(became)) if self.absent + gone else dtype_of(became),
            known=self.known - gone,
            sure=sure,
            share=self.share,
            step=self.step,
        )

    def where(self, chosen: Bools) -> Tally:
        """Some of the values, bool [k]; the rows of all others are absent."""
        gone = int(round(self.weights[~chosen].sum()))
        return replace(
            self,
            values=self.values[chosen],
            rows=self.rows[chosen],
            sure=self.sure[chosen],
            absent=self.absent + gone,
            known=self.known - gone,
        )

    def numbers(self, column: Column) -> Tally:
        """The values as numbers of a declared column, ascending; those that are none are absent."""
        found = self.mapped(pd.Series(to_numbers(self.values, column)))
        order = np.argsort(found.values.to_numpy(np.float64))
        return replace(
            found,
            values=found.values.iloc[order].reset_index(drop=True),
            rows=found.rows[order],
            sure=found.sure[order],
        )

    def labels(self) -> pd.Series[int]:
        """Rows by label, in the order the labels occur first; sampled ones as they are here."""
        found = self.mapped(to_labels(self.values))
        return pd.Series(found.rows, index=pd.Index(found.values, dtype="str"))


class TallyBuilder:
    """Counts a column of raw cells some rows at a time, and keeps so many values at most."""

    def __init__(self, most: int = VALUES, *, written: bool = False) -> None:
        self._most, self._written, self._below = most, written, _EVERY
        self._values: pa.Array | None = None
        self._rows, self._sure = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.bool_)
        self._known, self._absent, self._half = 0, 0, False
        self._step: float | None = None

    def add(self, cells: Cells) -> None:
        """Count more rows; the Arrow type is that of the first."""
        self._half = pa.types.is_float16(cells.type)
        counted = pc.value_counts(_countable(cells))
        counted = counted.filter(counted.field(0).is_valid())
        seen, rows = counted.field(0), np.array(counted.field(1), dtype=np.int64)
        known = int(rows.sum())
        self._known, self._absent = self._known + known, self._absent + len(cells) - known
        if self._values is None:
            self._values, self._rows = seen, rows
        elif len(seen):
            self._merge(seen, rows, known)
        if self._below < _EVERY or len(self._rows) > self._most:
            self._prune(seen)

    def tally(self) -> Tally:
        """What was counted so far."""
        if self._values is None:
            raise ValueError("There are no rows to count.")
        exact = self._below == _EVERY
        values = self._values.cast(pa.float16()) if self._half else self._values
        return Tally(
            values=_series(values),
            rows=self._rows,
            absent=self._absent,
            dtype=str(values.type),
            known=self._known,
            sure=np.ones(len(self._rows), dtype=np.bool_) if exact else self._sure,
            share=self._below / _EVERY,
            step=self._step,
            written=self._written,
        )

    def _merge(self, values: pa.Array, rows: NDArray[np.int64], known: int) -> None:
        assert self._values is not None
        if self._below < _EVERY:  # those that may be kept: this saves looking all others up
            chosen = (_hashes(values) < self._below) | _outstanding(values, rows, known)
            sure = self._values.filter(pa.array(self._sure))
            chosen |= np.asarray(pc.is_in(values, value_set=sure))
            values, rows = values.filter(pa.array(chosen)), rows[chosen]
        index = np.asarray(pc.index_in(values, value_set=self._values).fill_null(-1))
        fresh = index < 0
        self._rows[index[~fresh]] += rows[~fresh]
        self._rows = np.concatenate([self._rows, rows[fresh]])
        self._values = pa.concat_arrays([self._values, values.filter(pa.array(fresh))])

    def _prune(self, seen: pa.Array) -> None:
        """Leave out values where there are too many; those of the last batch are all `seen`."""
        assert self._values is not None
        if not self._written:
            new = _step(self._values if self._below == _EVERY else seen)
            self._step = new if self._step is None or new is None else min(new, self._step)
        hashes, sure = _hashes(self._values), _outstanding(self._values, self._rows, self._known)
        chosen, room = (hashes < self._below) | sure, max(self._most - sure.sum(), self._most // 2)
        while (chosen & ~sure).sum() > room:
            self._below //= 2
            chosen = (hashes < self._below) | sure
        self._values = self._values.filter(pa.array(chosen))
        self._rows, self._sure = self._rows[chosen], sure[chosen]


def count_cells(cells: Cells, *, written: bool) -> Tally:
    """All raw cells of a batch."""
    builder = TallyBuilder(len(cells), written=written)
    builder.add(cells)
    return builder.tally()


def quantile(tally: Tally, share: float) -> float:
    """A quantile, interpolated as `np.quantile` does, of a tally that `Tally.numbers` gives."""
    upto = np.cumsum(tally.weights)
    rank = (upto[-1] - 1.0) * share
    first = np.floor(rank)
    last = np.searchsorted(upto, [first, min(first + 1.0, upto[-1] - 1.0)], side="right")
    ends = tally.values.to_numpy(np.float64)[np.minimum(last, len(upto) - 1)]
    return float(np.quantile(ends, rank - first))


def _countable(cells: Cells) -> Cells:
    """Cells in a type that values can be looked up in; what is not a number is absent."""
    if pa.types.is_dictionary(cells.type):
        cells = cells.cast(cells.type.value_type)
    if is_text(cells.type):
        return cells.cast(pa.large_string())
    if pa.types.is_float16(cells.type):
        cells = cells.cast(pa.float32())
    if pa.types.is_floating(cells.type):
        return pc.if_else(pc.is_nan(cells), pa.scalar(None, cells.type), cells)
    return cells


def _series(values: pa.Array) -> Series:
    return pd.Series(pd.array(values, dtype=pd.ArrowDtype(values.type)))


def _step(values: pa.Array) -> float | None:
    natural = native_values(values).dropna()
    if pd.api.types.is_datetime64_any_dtype(natural.dtype):
        return date_step(to_numbers(natural, Column(name="x", kind=Kind.DATETIME)))
    if pd.api.types.is_bool_dtype(natural.dtype) or natural.dtype == "str":
        return None
    return number_step(natural.to_numpy(np.float64))


def _hashes(values: pa.Array) -> NDArray[np.uint64]:
    hashes = pd.util.hash_pandas_object(_series(values), index=False, categorize=False)
    return np.asarray(hashes, dtype=np.uint64)


def _outstanding(values: pa.Array, rows: NDArray[np.int64], known: int) -> Bools:
    """Which values are kept whatever their hash: the common ones, and both ends of their order."""
    sure = np.asarray(COMMONEST * rows > known)
    for order in ("ascending", "descending"):
        sure[np.asarray(pc.select_k_unstable(values, ENDS, [("", order)]))] = True
    return sure
