"""Weighted counts of the cells of sets of columns, and of rows that add up."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from core.encoding.codec import Block, Codes
from core.models.steps.counting.design import SumCandidate
from core.models.steps.counting.scales import ColumnScale
from core.privacy.mechanisms.additive import Mechanism

LEAST_NOISE = 3.0  # records: where there is less noise, or none, no count is chased further


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

    scales: tuple[ColumnScale, ...]
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
class SumCounts(Mechanism):
    """For each three columns that might add up: how many records do, and how many do not.

    A record with a missing cell counts for neither, so zeroing one out moves at most one of two
    counts of each candidate: Δ₂ = √(number of candidates).
    """

    blocks: tuple[Block, ...]
    candidates: tuple[SumCandidate, ...]
    noise: Literal["gaussian"] = "gaussian"

    @property
    def sensitivity(self) -> float:
        """Δ₂ under zero-out."""
        return math.sqrt(len(self.candidates))

    def statistic(self, rows: Codes, mask: Tensor) -> Tensor:
        """Float64 [candidates, 2]: records that add up, and those that do not."""
        rows = rows.to("cpu")
        weights = mask.to("cpu", torch.float64)
        needed = sorted({c for one in self.candidates for c in (one.total, one.left, one.right)})
        values = {c: rows.numbers(self.blocks[c]) for c in needed}
        counts = []
        for one in self.candidates:
            gap = values[one.total] - values[one.left] - one.unit * values[one.right]
            step = self.blocks[one.total].column.step
            adds = torch.from_numpy(np.abs(gap) < 0.5 * step)
            present = torch.from_numpy(~np.isnan(gap))
            counts.append(
                torch.stack([weights[adds & present].sum(), weights[~adds & present].sum()])
            )
        return torch.stack(counts).to(mask.device)


def uniform_query(
    scales: Sequence[ColumnScale], columns: tuple[int, ...], weight: float = 1.0
) -> Query:
    """A query whose groups are the cells themselves.

    Args:
      columns: block indices, in the order of the axes.
    """
    return Query(columns, tuple(torch.arange(scales[c].size) for c in columns), weight)
