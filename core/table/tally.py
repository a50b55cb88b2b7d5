"""A column as its different values and the number of rows that hold each.

What is proposed of a column, and its picture, depend on nothing else. So a column that is larger
than memory is counted some rows at a time, and a column that is not in the same words at once.

Of a column with very many different values not all are kept. Those whose hash is small are, with
every row of theirs, so that they are a random sample of the values whatever the order of the rows;
beside them the common ones are, and of numbers and dates the smallest and largest, whose counts are
exact. How many rows there are, the finest step and both ends of the range stay exact; how many
values there are is estimated. The hash is fixed and public: what is sampled is proposed and shown
inside, and counted again where it has to be exact.

The sample: Gibbons, "Distinct sampling for highly-accurate answers to distinct values queries",
2001.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Self, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from core.table.labels import dtype_of, to_labels
from core.table.resolution import finest, values_step

__all__ = ["VALUES", "Tally", "TallyBuilder", "median", "quantile"]

Series: TypeAlias = "pd.Series[Any]"
Floats: TypeAlias = NDArray[np.float64]

VALUES = 100_000  # different values of a column that are kept of a table read in batches
# kept whatever their hash: values of more than one in so many rows; of each end of a range
COMMONEST, ENDS = 1_000, 16
_EVERY = 2**64  # hashes below it are all


@dataclass(frozen=True, eq=False)
class Tally:
    """Different values and their rows.

    Attributes:
      values: k of them, in the column's dtype, in the order they occur first.
      rows: int64 [k], how many rows hold each.
      absent: how many rows hold none.
      dtype: what `dtype_of` says of the column.
      known: present rows in all, those of values that are not here too.
      sure: bool [k], of values that are kept whatever their hash; all when no value is left out.
      share: of the other values that are here, (0, 1]; 1 when no value is left out.
      step: the finest step of all numbers or dates where values are left out, else None.
    """

    values: Series
    rows: NDArray[np.int64]
    absent: int
    dtype: str
    known: int
    sure: NDArray[np.bool_]
    share: float = 1.0
    step: float | None = None

    @classmethod
    def of(cls, series: Series) -> Self:
        """All values of a column."""
        counts = series.value_counts(sort=False)
        rows = np.asarray(counts, dtype=np.int64)
        known = int(rows.sum())
        return cls(
            values=pd.Series(counts.index, name=series.name),
            rows=rows,
            absent=len(series) - known,
            dtype=dtype_of(series),
            known=known,
            sure=np.ones(len(rows), dtype=np.bool_),
        )

    @property
    def n(self) -> int:
        """All rows."""
        return self.known + self.absent

    @property
    def exact(self) -> bool:
        """Whether every value is here."""
        return self.share == 1.0

    @property
    def distinct(self) -> int:
        """How many different values there are; to three digits where some are left out."""
        there = self.rows > 0
        if self.exact:
            return int(there.sum())
        if self.unique:
            return self.known
        sampled = (there & ~self.sure).sum() / self.share
        return int(min(self.known, float(f"{(there & self.sure).sum() + sampled:.3g}")))

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

    def present(self) -> Series:
        """The values that rows hold: of a categorical column some may hold none."""
        return self.values[self.rows > 0]

    def taking(self, chosen: NDArray[np.bool_], values: Series | None = None) -> Tally:
        """Some of the values, the rows of all others absent.

        Args:
          chosen: bool [k].
          values: k others in place of these; of another dtype, they have no known step.
        """
        told = self.values if values is None else values
        gone = int(round(self.weights[~chosen].sum()))
        return replace(
            self,
            values=told[chosen],
            rows=self.rows[chosen],
            sure=self.sure[chosen],
            absent=self.absent + gone,
            known=self.known - gone,
            dtype=self.dtype if values is None else dtype_of(told),
            step=self.step if values is None else None,
        )

    def numbers(self, read: Callable[[Series], Floats]) -> Tally:
        """The values as numbers, ascending; those that are none are absent.

        Args:
          read: values to float64, NaN for none, such as `to_numbers` of a declaration.
        """
        numbers = read(self.values)
        there = ~np.isnan(numbers) & (self.rows > 0)
        bare = self.taking(there, pd.Series(numbers))
        ascending, places = np.unique(bare.values.to_numpy(np.float64), return_inverse=True)
        sure = np.zeros(len(ascending), dtype=np.bool_)
        np.logical_or.at(sure, places, bare.sure)
        rows = np.zeros(len(ascending), dtype=np.int64)
        np.add.at(rows, places, bare.rows)
        return replace(bare, values=pd.Series(ascending), rows=rows, sure=sure, step=self.step)

    def labels(self) -> pd.Series[int]:
        """Rows by label, in the order the labels occur first; sampled ones as they are here."""
        there = self.rows > 0
        spelled = to_labels(self.values[there])
        counts = pd.Series(self.rows[there], index=pd.Index(spelled, dtype="str"))
        if self.values.dtype == "str":
            return counts
        return counts.groupby(level=0, sort=False).sum()


class TallyBuilder:
    """Counts a column some rows at a time.

    Args:
      most: values that are kept; None keeps all.
    """

    def __init__(self, most: int | None = VALUES) -> None:
        self._most, self._below = most, _EVERY
        self._tally: Tally | None = None

    def add(self, series: Series) -> None:
        """Count more rows."""
        new = Tally.of(series)
        if self._tally is None:
            self._tally = self._pruned(new, new.values)
            return
        old, seen = self._tally, new.values
        if self._below < _EVERY:
            new = self._worth_it(new)
        index, more = pd.Index(old.values), pd.Index(new.values)
        places = index.get_indexer(more)
        rows = old.rows.copy()
        np.add.at(rows, places[places >= 0], new.rows[places >= 0])
        fresh = places < 0
        both = Tally(
            values=pd.Series(index.append(more[fresh]), name=old.values.name),
            rows=np.concatenate([rows, new.rows[fresh]]),
            absent=old.absent + new.absent,
            dtype=old.dtype if old.dtype == new.dtype else "str",
            known=old.known + new.known,
            sure=np.concatenate([old.sure, np.ones(int(fresh.sum()), dtype=np.bool_)]),
            share=old.share,
            step=old.step,
        )
        self._tally = self._pruned(both, seen)

    def tally(self) -> Tally:
        """What was counted so far.

        Raises:
          ValueError: nothing was.
        """
        if self._tally is None:
            raise ValueError("There are no rows to count.")
        return self._tally

    def _worth_it(self, new: Tally) -> Tally:
        """Values of a batch that may be kept: this saves looking all others up."""
        chosen = _hashes(new.values) < self._below
        chosen |= _outstanding(new)
        assert self._tally is not None
        kept = pd.Index(self._tally.values[self._tally.sure])
        chosen |= pd.Index(new.values).isin(kept)
        return replace(new, values=new.values[chosen], rows=new.rows[chosen], sure=new.sure[chosen])

    def _pruned(self, tally: Tally, seen: Series) -> Tally:
        """The tally with few enough values.

        Args:
          tally: with the last batch in it.
          seen: all different values of that batch.
        """
        most = self._most
        if most is None or (self._below == _EVERY and len(tally.rows) <= most):
            return tally
        step = finest(tally.step, values_step(tally.values if tally.share == 1.0 else seen))
        hashes, sure = _hashes(tally.values), _outstanding(tally)
        chosen, room = (hashes < self._below) | sure, max(most - int(sure.sum()), most // 2)
        while (chosen & ~sure).sum() > room:
            self._below //= 2
            chosen = (hashes < self._below) | sure
        return replace(
            tally,
            values=tally.values[chosen].reset_index(drop=True),
            rows=tally.rows[chosen],
            sure=sure[chosen],
            share=self._below / _EVERY,
            step=step,
        )


def quantile(tally: Tally, share: float) -> float:
    """A quantile of a tally of numbers, interpolated as `np.quantile` does.

    Args:
      tally: as `Tally.numbers` gives it, with a row at least.
      share: in [0, 1].
    """
    ends, part = _around(tally, share)
    return float(np.quantile(ends, part))


def median(tally: Tally) -> float:
    """The median of a tally of numbers, as `np.median` has it."""
    ends, part = _around(tally, 0.5)
    return float(np.mean(ends) if part else ends[0])


def _around(tally: Tally, share: float) -> tuple[Floats, float]:
    """The two neighbours of a quantile, and how far it is from the first to the second."""
    upto = np.cumsum(tally.weights)
    place = (upto[-1] - 1.0) * share
    first = np.floor(place)
    last = np.searchsorted(upto, [first, min(first + 1.0, upto[-1] - 1.0)], side="right")
    ends = tally.values.to_numpy(np.float64)[np.minimum(last, len(upto) - 1)]
    return ends, float(place - first)


def _hashes(values: Series) -> NDArray[np.uint64]:
    hashes = pd.util.hash_pandas_object(values, index=False, categorize=False)
    return np.asarray(hashes, dtype=np.uint64)


def _outstanding(tally: Tally) -> NDArray[np.bool_]:
    """Which values are kept whatever their hash: the common ones, and both ends of a range."""
    sure = np.asarray(COMMONEST * tally.rows > tally.known)
    kind = tally.values.dtype
    if pd.api.types.is_numeric_dtype(kind) or pd.api.types.is_datetime64_any_dtype(kind):
        order = tally.values.argsort().to_numpy()
        sure[order[:ENDS]] = sure[order[-ENDS:]] = True
    return sure
