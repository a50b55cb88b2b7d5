"""How many rows of a table are also in an earlier one, beyond what chance would bring.

Columns are matched first, by the values they share and how often; names decide only in doubt. Then
rows are compared on the matched columns, all at once and with each one left out in turn (one column
may have been rounded or recoded).

Tables of different people share rows too, when their columns take few values. So only rows that are
single in the earlier table count (in the new one, where the earlier one repeats its rows), and they
are judged against the larger of two estimates of how often strangers would meet them: as if columns
were independent, and by equal rows within either table. For the latter the smaller is taken of Good
and Turing's count of rows that occur twice ("The population frequencies of species", 1953), good
for large tables, and the share of equal pairs, for small ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from core.importing.record_hashes import HashedColumn, HashedTable, RecordSample, row_hashes

SURE = 1e-6  # chance that as many rows are shared by strangers
ENOUGH = 0.02  # share of either table's rows that makes two tables one people's
FEWEST = 3  # shared rows
PLENTY = 0.5  # share from which no column is left out to find more
CONTAINED = 0.5  # share of rows whose value the other column knows, for a match
CONTAINED_KEY = 0.02  # ... of columns whose values tell rows apart
MARGIN = 0.03  # two candidates closer than this leave a column unmatched, if no name decides
LOOK = 500  # values that are tried before all of them are
REPEATED = 0.5  # share of rows without an equal, below which a table repeats its rows
EXPLORED = 50_000  # rows that columns are left out with

Pairs: TypeAlias = "Sequence[tuple[HashedColumn, HashedColumn]]"


@dataclass(frozen=True)
class Overlap:
    """What two tables share.

    Attributes:
      of_new, of_old: estimated share of either table's rows that are in the other one, [0, 1].
      shared: single rows of the earlier table's sample that were met.
      p_value: chance that strangers share as many.
    """

    of_new: float
    of_old: float
    shared: int
    p_value: float

    @property
    def same_people(self) -> bool:
        """Whether the tables are probably about the same people, in part at least."""
        enough = max(self.of_new, self.of_old) >= ENOUGH and self.shared >= FEWEST
        return enough and self.p_value < SURE

    @property
    def strength(self) -> float:
        """The larger share."""
        return max(self.of_new, self.of_old)

    @property
    def rank(self) -> tuple[bool, float, float]:
        """Orders overlaps: those that tell most come last."""
        return self.same_people, self.strength if self.same_people else 0.0, -self.p_value


def estimate_overlap(
    new: HashedTable, old: RecordSample, *, n: int | None = None
) -> Overlap | None:
    """The overlap of a table with that of a sample under the same key; None without any."""
    found = _one_way(new, old, n=n)
    counts = np.unique(row_hashes(old.sample.columns, old.sample.n), return_counts=True)[1]
    repeats = (counts == 1).sum() <= REPEATED * old.sample.n
    if (found is not None and found.same_people) or not repeats:
        return found
    # where the earlier table repeats its rows, those that are single in the new one tell more
    rows = new.n if n is None else n
    turned = _one_way(old.sample, RecordSample(rows, new), n=old.n)
    if turned is None or not turned.same_people:
        return found
    return replace(turned, of_new=turned.of_old, of_old=turned.of_new)


def _one_way(new: HashedTable, old: RecordSample, *, n: int | None) -> Overlap | None:
    part = 1.0 if n is None else new.n / n
    pairs = _matched(new, old.sample)
    if not pairs:
        return None
    best = _Rows(new, old, pairs).overlap(part)
    if len(pairs) == 1 or (best is not None and best.same_people and best.strength >= PLENTY):
        return best
    # each column in turn may have been changed; some rows of a large table are enough to see it
    some = new.thinned(max(1, new.n // EXPLORED))
    thin = dict(zip(new.columns, some.columns, strict=True))
    ranked = []
    for i in range(len(pairs)):
        fewer = [(before, thin[now]) for before, now in (*pairs[:i], *pairs[i + 1 :])]
        overlap = _Rows(some, old, fewer).overlap(part * some.n / new.n)
        if overlap is not None:
            ranked.append((overlap.rank, i))
    if ranked and max(ranked)[0][0]:
        left_out = max(ranked)[1]
        other = _Rows(new, old, [*pairs[:left_out], *pairs[left_out + 1 :]]).overlap(part)
        if other is not None and (best is None or other.rank > best.rank):
            return other
    return best


# -- columns ----------------------------------------------------------------------------------


def _matched(new: HashedTable, old: HashedTable) -> list[tuple[HashedColumn, HashedColumn]]:
    """Pairs of an earlier and a new column that hold the same, each column in one pair."""
    olds = [column for column in old.columns if len(column.distinct) > 1]
    news = [column for column in new.columns if len(column.distinct) > 1]
    if not olds or not news:
        return []
    from scipy.optimize import linear_sum_assignment  # slow to import; a first table needs none

    alike = np.array([[_alike(o, c) for c in news] for o in olds])
    named = np.array([[o.name == c.name for c in news] for o in olds])
    rows, columns = linear_sum_assignment(-(alike + (named & (alike > 0.0))))
    pairs = []
    for i, j in zip(rows, columns, strict=True):
        rivals = np.concatenate([np.delete(alike[i], j), np.delete(alike[:, j], i)])
        doubtful = rivals.size and rivals.max() > alike[i, j] - MARGIN
        if alike[i, j] > 0.0 and (named[i, j] or not doubtful):
            pairs.append((olds[i], news[j]))
    return pairs


def _alike(old: HashedColumn, new: HashedColumn) -> float:
    keys = old.key_like and new.key_like
    if len(old.distinct) > LOOK and (new.positions_of(old.distinct[:LOOK]) < 0).all():
        return 0.0
    indices = new.positions_of(old.distinct)
    known = indices >= 0
    of_old, of_new = old.shares[known], new.shares[indices[known]]
    contained = max(float(of_old.sum()), float(of_new.sum()))
    if contained < (CONTAINED_KEY if keys else CONTAINED):
        return 0.0
    return contained if keys else float(np.minimum(of_old, of_new).sum())


# -- rows -------------------------------------------------------------------------------------


class _Rows:
    """Rows of both tables on matched columns."""

    def __init__(self, new: HashedTable, old: RecordSample, pairs: Pairs) -> None:
        self._n, self._old, self._pairs = new.n, old, pairs
        self._before = row_hashes([o for o, _ in pairs], old.sample.n)
        self._now = row_hashes([c for _, c in pairs], new.n)

    def overlap(self, part: float) -> Overlap | None:
        """What is shared; None when the earlier table has no row of its own kind."""
        from scipy.stats import binom  # half a second, which whoever compares nothing can save

        distinct, first, counts = np.unique(self._before, return_index=True, return_counts=True)
        single = counts == 1
        singles, twice = int(single.sum()), int((counts == 2).sum())
        if not singles:
            return None
        indices = pd.Index(distinct).get_indexer(pd.Index(self._now))
        met = np.bincount(indices[indices >= 0], minlength=len(distinct)) > 0
        shared = int(met[single].sum())
        drawn = self._old.sample.n
        again = 2.0 * (twice + 1) / singles / drawn * self._n  # meetings with a single row
        again = min(again, self._n * self._twins(counts))
        expected = np.maximum(again, self._independent(first[single]))
        chance = float(np.minimum(expected, 1.0).mean())  # the union bound
        beyond = max(0.0, (shared / singles - chance) / max(1e-12, 1.0 - chance))
        return Overlap(
            of_new=min(1.0, beyond * self._old.n / self._n),
            of_old=min(1.0, beyond / part),
            shared=shared,
            p_value=float(binom.sf(shared - 1, singles, min(chance, 1.0))),
        )

    def _twins(self, counts: NDArray[np.intp]) -> float:
        """Chance that two rows of one table are equal, estimated from all pairs in both."""
        now = np.unique(self._now, return_counts=True)[1]
        pairs = [float((one * (one - 1.0)).sum()) for one in (counts, now)]
        most = [n * (n - 1.0) for n in (self._old.sample.n, self._n)]
        return min(1.0, (sum(pairs) + 2.0) / max(1.0, sum(most)))

    def _independent(self, rows: NDArray[np.intp]) -> NDArray[np.float64]:
        """Meetings with rows of the sample if columns were independent, float64 [rows]."""
        logs = np.full(len(rows), np.log(float(self._n)))
        for old, new in self._pairs:
            density = max(old.density, new.density)
            if density:
                logs += np.log(density / self._n)
                continue
            indices = new.positions_of(old.distinct)
            there = np.where(indices >= 0, new.shares[indices], 0.0)
            logs += np.log(np.maximum(there, old.shares))[old.codes[rows]]
        expected: NDArray[np.float64] = np.exp(np.minimum(logs, 50.0))
        return expected
