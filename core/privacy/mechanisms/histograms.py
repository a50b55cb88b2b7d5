"""Histograms of single columns, released together once: what people outside may see of real rows.

Every column is cut in public bins (`core.encoding.bins`, over the declared bounds and labels). A
record lies in exactly one bin of each of m columns, so zeroing it out moves the counts of m bins by
one: Δ₂ = √m. One Gaussian covers all columns. Where tagged columns are hidden, a record counts with
a weight of its own, at most one, and the same Δ holds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from core.encoding.bins import MAX_LABELS, edges_of
from core.encoding.codec import Block, Codec
from core.privacy.mechanisms.additive import Mechanism

Weight = Callable[[Any], Tensor]  # records → what each counts, from that record alone, float64 [b]

_ROOM = 1e-6  # positions are float32: a value on an edge belongs to the bin to its right


@dataclass(frozen=True)
class Bins:
    """Public bins of one column; the last is "missing" where that may be.

    Attributes:
      edges: of a numeric column, an atom's edge twice; empty for a list.
      of_state: for each state, its bin, or -1 where the value decides.
      inner: positions between bins of some width, ascending; `of_interval`, the bins between them.
    """

    block: Block
    edges: tuple[float, ...]
    size: int
    of_state: tuple[int, ...]
    inner: tuple[float, ...]
    of_interval: tuple[int, ...]

    @property
    def missing(self) -> bool:
        """Whether the last bin is "missing"."""
        return self.block.missing_state is not None

    def index(self, codes: Any) -> Tensor:
        """Codes as tensors, b records → int64 [b], each in 0 … size - 1."""
        state = codes.states[:, self.block.index]
        by_state = torch.tensor(self.of_state, device=state.device)[state]
        if self.block.number is None or not self.of_interval:
            return by_state
        value = codes.values[:, self.block.number].contiguous()
        inner = torch.tensor(self.inner, device=value.device, dtype=value.dtype)
        interval = torch.bucketize(value, inner, right=True)
        by_value = torch.tensor(self.of_interval, device=value.device)[interval]
        return torch.where(by_state < 0, by_value, by_state)


def bins_of(block: Block) -> Bins:
    """The public bins of one modelled column."""
    column, missing = block.column, block.missing_state is not None
    if block.number is None:
        labels = len(column.categories or ())
        shown = min(labels, MAX_LABELS + (labels > MAX_LABELS))
        of_state = [min(i, MAX_LABELS) for i in range(labels)] + [shown] * missing
        return Bins(block, (), shown + missing, tuple(of_state), (), ())
    line = block.line
    edges, _ = edges_of(column, line.low, line.high)
    bins = len(edges) - 1
    wide = [i for i in range(bins) if edges[i] < edges[i + 1]]
    inner = line.position(np.array([edges[i] for i in wide[1:]])) - _ROOM
    of_state = [-1 if wide else 0]
    for spike in column.spikes:
        atom = [i for i in range(bins) if edges[i] == edges[i + 1] == spike]
        at = int(np.clip(np.searchsorted(edges, spike, side="right") - 1, 0, bins - 1))
        of_state.append(atom[0] if atom else at)
    of_state += [bins] * block.absent
    return Bins(
        block,
        tuple(float(edge) for edge in edges),
        bins + missing,
        tuple(of_state),
        tuple(float(position) for position in inner),
        tuple(wide),
    )


def weighted(rows: Any, mask: Tensor, weight: Weight | None) -> Tensor:
    """What each record counts, float64 [b] in [0, 1]; the sensitivity rests on this cap."""
    each = mask.to(torch.float64).cpu()
    return each if weight is None else each * weight(rows).clamp(0.0, 1.0)


@dataclass(frozen=True)
class Histograms(Mechanism):
    """Counts of every bin of some columns."""

    bins: tuple[Bins, ...]
    weight: Weight | None = None
    noise: Literal["gaussian"] = "gaussian"

    @classmethod
    def of(cls, codec: Codec, names: Sequence[str], weight: Weight | None = None) -> Histograms:
        """Of the columns of these names, at least one, all of them modelled."""
        if not names:
            raise ValueError("There is no column whose histogram could be shown.")
        return cls(tuple(bins_of(codec.block(name)) for name in names), weight)

    @property
    def names(self) -> tuple[str, ...]:
        """The columns, in order."""
        return tuple(one.block.column.name for one in self.bins)

    @property
    def sensitivity(self) -> float:
        """Δ₂ = √m under zero-out, for m columns."""
        return math.sqrt(len(self.bins))

    def statistic(self, rows: Any, mask: Tensor) -> Tensor:
        """Float64 [sum of sizes]: counts of the first column's bins, then of the second's."""
        rows = rows.to("cpu")
        weights = weighted(rows, mask, self.weight)
        return torch.cat(
            [torch.bincount(one.index(rows), weights, minlength=one.size) for one in self.bins]
        )

    def split(self, counts: Sequence[float]) -> dict[str, list[float]]:
        """A statistic, or its release, by column."""
        parts = np.split(np.asarray(counts, float), np.cumsum([one.size for one in self.bins])[:-1])
        return {name: part.tolist() for name, part in zip(self.names, parts, strict=True)}
