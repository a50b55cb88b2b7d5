"""Counts of public cells of single columns and of pairs, released together once.

Synthetic tables are scored by them without looking at real rows again. A record lies in exactly one
cell of each marginal, so zeroing it out moves one count of each by one: Δ₂ = √M for M marginals.
Where tagged columns are hidden, a record counts with a weight of its own, at most one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from core.encoding.bins import PAIR_GROUPS, SINGLE_GROUPS, groups_of_bins, pairs_of
from core.encoding.codec import Codec
from core.privacy.mechanisms.additive import Mechanism
from core.privacy.mechanisms.histograms import Bins, Weight, bins_of, weighted


@dataclass(frozen=True)
class Marginals(Mechanism):
    """Counts of every cell of all 1-way and some 2-way marginals, by positions in `bins`."""

    bins: tuple[Bins, ...]
    pairs: tuple[tuple[int, int], ...]
    weight: Weight | None = None
    noise: Literal["gaussian"] = "gaussian"

    @classmethod
    def of(
        cls,
        codec: Codec,
        names: Sequence[str],
        target: str | None = None,
        weight: Weight | None = None,
    ) -> Marginals:
        """Of the columns of these names, at least one, all of them modelled."""
        if not names:
            raise ValueError("There is no column that tables could be compared on.")
        index = {name: i for i, name in enumerate(names)}
        return cls(
            tuple(bins_of(codec.block(name)) for name in names),
            tuple((index[a], index[b]) for a, b in pairs_of(names, target)),
            weight,
        )

    @property
    def sensitivity(self) -> float:
        """Δ₂ = √M under zero-out, for M marginals."""
        return math.sqrt(len(self.bins) + len(self.pairs))

    @property
    def sizes(self) -> tuple[int, ...]:
        """Cells of each marginal, single columns first."""
        single, coarse = self._counts(SINGLE_GROUPS), self._counts(PAIR_GROUPS)
        return (*single, *(coarse[i] * coarse[j] for i, j in self.pairs))

    def statistic(self, rows: Any, mask: Tensor) -> Tensor:
        """Float64 [sum of sizes]: counts of the first marginal's cells, then of the second's."""
        rows = rows.to("cpu")
        weights = weighted(rows, mask, self.weight)
        fine = [one.index(rows) for one in self.bins]  # int64 [b] each
        cells, coarse = self._grouped(fine, SINGLE_GROUPS), self._grouped(fine, PAIR_GROUPS)
        width = self._counts(PAIR_GROUPS)
        cells += [coarse[i] * width[j] + coarse[j] for i, j in self.pairs]
        counts = zip(cells, self.sizes, strict=True)
        return torch.cat([torch.bincount(cell, weights, minlength=size) for cell, size in counts])

    def _groups(self, most: int) -> list[tuple[int, ...]]:
        return [groups_of_bins(b.size, missing=b.missing, groups=most) for b in self.bins]

    def _counts(self, most: int) -> list[int]:
        return [max(groups) + 1 for groups in self._groups(most)]

    def _grouped(self, fine: Sequence[Tensor], most: int) -> list[Tensor]:
        pairs = zip(fine, self._groups(most), strict=True)
        return [torch.tensor(group_of, device=bins.device)[bins] for bins, group_of in pairs]
