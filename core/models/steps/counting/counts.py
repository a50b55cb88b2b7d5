"""Weighted counts of the cells of sets of columns, and of rows that add up."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from core.encoding.codec import Block, Codes
from core.models.steps.counting.difference_candidates import CELLS, FINE, DifferenceCandidate
from core.models.steps.counting.lines.densities import COARSE
from core.models.steps.counting.relation_candidates import TotalCandidate
from core.models.steps.counting.window_pairs import NextTime
from core.privacy.mechanisms.additive import Mechanism

Floats = NDArray[np.float64]
NEAR = 1e-6  # of a step: what products of fractions are rounded by
OF_DIFFERENCES = 0.25  # of the squared sensitivity of counts of relations
LEAST_NOISE = 3.0  # records: where there is less noise, or none, no count is chased further


class Cells(Protocol):
    """Disjoint cells of one column."""

    @property
    def size(self) -> int:
        """How many there are."""

    def index(self, rows: Codes) -> Tensor:
        """Codes as tensors, b records → int64 [b], the cell of each."""


@dataclass(frozen=True)
class PairTarget:
    """Released shares of the cells of a pair.

    Attributes:
      shares: float32 [classes, a, b], or [1, a, b] of all classes together.
      noise: standard deviation of a share.
      alike: of [1, a, b], whether the pair is taken to go together alike in all classes; else how
        it does in each is left open.
    """

    columns: tuple[int, int]
    shares: Tensor
    noise: float
    alike: bool = True

    def mean(self, other: PairTarget) -> PairTarget:
        """Two releases of one pair, each weighed by its precision."""
        a, b = (1.0 / max(target.noise, 1e-12) ** 2 for target in (self, other))
        shares = (self.shares * a + other.shares * b) / (a + b)
        return replace(self, shares=shares, noise=1.0 / math.sqrt(a + b))


@dataclass(frozen=True)
class Query:
    """The cells of one set of columns.

    Attributes:
      columns: block indices, in the order of the axes.
      groups: per column, int64 [cells], the group each cell is counted in.
      weight: > 0, what its counts are multiplied by; more weight, less noise.
    """

    columns: tuple[int, ...]
    groups: tuple[Tensor, ...]
    weight: float

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """Groups of each column."""
        return tuple(int(groups.max()) + 1 for groups in self.groups)


@dataclass(frozen=True)
class SetCounts(Mechanism):
    """Weighted counts of the cells of several sets of columns.

    A record lies in one cell of each set, so zeroing it out moves one count of each by its weight:
    Δ₂ = √(Σ w²).
    """

    scales: tuple[Cells, ...]
    queries: tuple[Query, ...]
    noise: Literal["gaussian"] = "gaussian"

    @property
    def sensitivity(self) -> float:
        """Δ₂ under zero-out."""
        return math.sqrt(sum(query.weight**2 for query in self.queries))

    def statistic(self, rows: Codes, mask: Tensor) -> Tensor:
        """Float64 [Σ cells]: Σᵢ mᵢ w of the indicator of record i's cell, set by set."""
        rows, weights = rows.to(str(mask.device)), mask.to(torch.float64)
        needed = sorted({column for query in self.queries for column in query.columns})
        cells = {column: self.scales[column].index(rows) for column in needed}
        counts = []
        for query in self.queries:
            joint = torch.zeros(len(rows), dtype=torch.int64, device=mask.device)
            for column, groups, size in zip(query.columns, query.groups, query.shape, strict=True):
                joint = joint * size + groups.to(mask.device)[cells[column]]
            whole = math.prod(query.shape)
            counts.append(torch.bincount(joint, weights, minlength=whole) * query.weight)
        return torch.cat(counts)

    def split(self, release: Tensor) -> list[Tensor]:
        """A release → the counts of each set, float64 of its shape, weights taken off."""
        parts = torch.split(release, [math.prod(query.shape) for query in self.queries])
        return [
            (part / query.weight).reshape(query.shape)
            for part, query in zip(parts, self.queries, strict=True)
        ]

    def deviations(self, noise_multiplier: float) -> list[float]:
        """Standard deviation of each set's counts after `split`."""
        return [noise_multiplier * self.sensitivity / query.weight for query in self.queries]


@dataclass(frozen=True)
class RelationCounts(Mechanism):
    """How many records keep relations of numeric columns that might hold.

    Of columns that might add up, multiply or repeat a date's year, how many do, and how many do
    not; of two, in how many the first is below the second, equal to it, and above it; of others, in
    how many they lie so far apart as each cell says. A record with a missing cell counts for none,
    nor does one of zeros in a total, which says nothing; so zeroing one out moves at most one count
    of each: Δ₂ = √(totals + compared + 2 w² · differences), fine cells and coarse.
    """

    blocks: tuple[Block, ...]
    totals: tuple[TotalCandidate, ...]
    compared: tuple[tuple[int, int], ...]
    differences: tuple[DifferenceCandidate, ...] = ()
    times: tuple[NextTime, ...] = ()  # that compared waits stand for
    noise: Literal["gaussian"] = "gaussian"

    @property
    def weight(self) -> float:
        """What counts of differences are multiplied by: they get `OF_DIFFERENCES` of Δ₂², or more.

        Each of their counts is read; of the others only which are next to none.
        """
        share = OF_DIFFERENCES / (1.0 - OF_DIFFERENCES)
        others = len(self.totals) + len(self.compared)
        return math.sqrt(max(1.0, share * others / max(1, 2 * len(self.differences))))

    @property
    def sensitivity(self) -> float:
        """Δ₂ under zero-out."""
        others = len(self.totals) + len(self.compared)
        return math.sqrt(others + 2.0 * self.weight**2 * len(self.differences))

    def statistic(self, rows: Codes, mask: Tensor) -> Tensor:
        """Float64 [2 totals + 3 compared + CELLS differences]."""
        records, weights = rows.to("cpu"), mask.to("cpu", torch.float64)
        of_totals = {c for one in self.totals for c in (one.total, one.left, one.right)}
        needed = of_totals.union(*self.compared)
        values = {c: records.numbers(self.blocks[c]) for c in sorted(needed)}
        steps = {c: self.blocks[c].column.step for c in needed}
        for time in (one for one in self.times if one.wait in needed):
            values[time.wait] = time.numbers(self.blocks, records)
            steps[time.wait] = time.unit
        ends = {c: [records.at(end, self.blocks[c]) for end in (0.0, 1.0)] for c in of_totals}
        counts = list[Tensor]()
        for one in self.totals:
            total = values[one.total]
            computed = one.computed(values[one.left], values[one.right])
            gap, zeros = total - computed, (total == 0.0) & (computed == 0.0)
            there = ~np.isnan(gap) & ~zeros & ~_cut_off(one, gap, ends)
            step = steps[one.total] or 1.0  # a list is a field of a date, which is whole
            adds = there & (np.abs(gap) < (0.5 + NEAR) * step)
            counts += [weights[torch.from_numpy(rows)].sum() for rows in (adds, ~adds & there)]
        for first, second in self.compared:
            gap = values[first] - values[second]
            apart = 0.5 * min(steps[first], steps[second])
            outcomes = gap < -apart, np.abs(gap) <= apart, gap > apart
            counts += [weights[torch.from_numpy(rows)].sum() for rows in outcomes]
        for difference in self.differences:
            cell = torch.from_numpy(difference.cells(self.blocks, records))
            fine = self.weight * torch.bincount(cell, weights, minlength=FINE + 1)[:FINE]
            counts += [*fine, *fine.reshape(-1, COARSE).sum(dim=1)]
        return torch.stack(counts).to(mask.device)

    def split(self, release: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """A release → float64 [totals, 2], [compared, 3] and [differences, CELLS]."""
        sizes = [2 * len(self.totals), 3 * len(self.compared), CELLS * len(self.differences)]
        totals, compared, differences = torch.split(release, sizes)
        differences = differences.reshape(-1, CELLS) / self.weight
        return totals.reshape(-1, 2), compared.reshape(-1, 3), differences


def _cut_off(
    one: TotalCandidate, gap: Floats, ends: Mapping[int, Sequence[NDArray[np.bool_]]]
) -> NDArray[np.bool_]:
    """Records whose total differs from its parts as a bound of any of them would have it.

    Args:
      gap: float64 [n], by how much the total exceeds what its parts make.
      ends: of each column, which records lie at its lower bound, and at its upper one, bool [n].
    """
    total, left, right = (ends[column] for column in (one.total, one.left, one.right))
    too_low = (gap < 0.0) & (total[1] | left[0] | right[0])
    return too_low | ((gap > 0.0) & (total[0] | left[1] | right[1]))


def uniform_query(scales: Sequence[Cells], columns: tuple[int, ...], weight: float = 1.0) -> Query:
    """A query whose groups are the cells themselves.

    Args:
      columns: block indices, in the order of the axes.
    """
    return Query(columns, tuple(torch.arange(scales[c].size) for c in columns), weight)
