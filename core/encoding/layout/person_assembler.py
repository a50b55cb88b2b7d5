"""PersonAssembler: rows that come out as people.

A row that a model draws stands for a person and has a count of rows beside it; a person of r rows
takes r of those that have the same count and are alike in what is constant.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from core.encoding.count_bins import CountBins
from core.schema.column import DomainColumn, Kind
from core.schema.labels import category_indices, to_numbers
from core.schema.rules.gaps import free_name

Indices = NDArray[np.intp]
ROWS_PER_PERSON = "rows per person"
MOST_AT_ONCE = 100_000  # candidates drawn at a time
MOST_TIMES = 20  # candidates drawn for a row that is asked for, beyond which they are used again
_SPREAD = 7  # public: where in a bin a count lies depends on a candidate's place alone


@dataclass(frozen=True)
class PersonAssembler:
    """How people are put together; `bins` are the labels of their numbers of rows."""

    column: DomainColumn
    bins: CountBins
    constant: tuple[DomainColumn, ...]

    @classmethod
    def of(
        cls, most: int, constant: Sequence[DomainColumn], taken: Collection[str]
    ) -> PersonAssembler:
        """For people of at most so many rows."""
        bins = CountBins.of(1, most)
        column = DomainColumn(
            name=free_name(ROWS_PER_PERSON, taken), kind=Kind.ORDERED, categories=bins.labels
        )
        return cls(column, bins, tuple(constant))

    def encode(self, rows_of_person: NDArray[np.integer[Any]]) -> pd.Series[Any]:
        """How many rows the person of each row has → labels; more than the most count as that."""
        at = self.bins.index(rows_of_person)
        return pd.Series(np.array(self.column.categories, dtype=object)[at], dtype="str")

    def shortfall(self, frame: pd.DataFrame, rows: int) -> int:
        """How many more candidates to draw before people can be put together; 0 when enough are."""
        bins, sizes, people = self._people(frame, rows)
        needed = np.bincount(bins[people], weights=sizes, minlength=len(self.bins.bins))
        there = np.bincount(bins, minlength=len(self.bins.bins))
        short = needed > there
        if not short.any():
            return 0
        wanted = math.ceil(float((needed[short] / there[short]).max()) * len(frame) * 1.05)
        wanted = min(wanted, MOST_TIMES * max(rows, 1000))
        return max(0, min(wanted - len(frame), MOST_AT_ONCE))

    def assemble(
        self, frame: pd.DataFrame, rows: int, random: np.random.Generator
    ) -> tuple[Indices, Indices]:
        """People of as many rows as candidates say, until there are enough; the last may be cut.

        Returns:
          Which candidate each row is, and whose it is (0, 1, …), int [rows] each, in the order in
            which people were drawn. Where candidates do not suffice some are used again.
        """
        bins, sizes, people = self._people(frame, rows)
        starts = np.cumsum(sizes) - sizes
        chosen = np.zeros(rows, dtype=np.intp)
        order = self._order(frame)
        for one in np.unique(bins[people]):
            who = random.permutation(np.flatnonzero(bins[people] == one))
            needed = int(sizes[who].sum())
            drawn = np.flatnonzero(bins == one)[:needed]
            alike = drawn[np.argsort(order[drawn], kind="stable")]
            rows_of_bin = np.repeat(starts[who], sizes[who]) + _within(sizes[who])
            chosen[rows_of_bin] = np.resize(alike, needed)
        return chosen, np.repeat(np.arange(len(sizes)), sizes)

    def _people(self, frame: pd.DataFrame, rows: int) -> tuple[Indices, Indices, Indices]:
        """Each candidate's bin; then each person's number of rows and the candidate it is for."""
        bins = np.maximum(category_indices(frame[self.column.name], self.column), 0)
        first, last = np.array(self.bins.bins).T
        spread = np.random.default_rng(_SPREAD).random(len(frame))
        sizes = first[bins] + np.floor(spread * (last - first + 1)[bins]).astype(np.intp)
        people = np.arange(len(frame))
        if sizes.sum() < rows:
            times = math.ceil(rows / sizes.sum())
            sizes, people = np.tile(sizes, times), np.tile(people, times)
        ends = np.cumsum(sizes)
        count = int(np.searchsorted(ends, rows)) + 1
        sizes, people = sizes[:count].copy(), people[:count]
        sizes[-1] -= ends[count - 1] - rows
        return bins, sizes, people

    def _order(self, frame: pd.DataFrame) -> Indices:
        """Each candidate's rank by its constant columns, the first of them first."""
        keys: list[NDArray[Any]] = []
        for column in self.constant:
            if column.kind.numeric:
                keys.append(to_numbers(frame[column.name], column))
            else:
                keys.append(category_indices(frame[column.name], column))
        if not keys:
            return np.arange(len(frame))
        rank = np.empty(len(frame), dtype=np.intp)
        rank[np.lexsort(keys[::-1])] = np.arange(len(frame))
        return rank


def _within(sizes: Indices) -> Indices:
    """0 … r - 1 for each size r, one after the other."""
    starts = np.cumsum(sizes) - sizes
    return np.arange(int(sizes.sum())) - np.repeat(starts, sizes)
