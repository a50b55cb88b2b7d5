"""Two columns of numbers of which one stays below the other: children, of the people in a family.

Cells of the pair in which it would not are many, and each may be too rare for its count to tell.
Counts of all of them together do, and so does a release that asks of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from core.models.steps.counting.comparisons import Comparison
from core.models.steps.counting.scales import ColumnScale
from core.models.steps.counting.zeros.row_noise import (
    MOST_SHARE,
    Told,
    evidence_of_none,
    holds_none,
)
from core.models.steps.counting.zeros.structural_zeros import StructuralZero
from core.privacy.discovery.thresholds import EVIDENCE

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Order:
    """A first column that seems to stay below a second, or not to pass it.

    Attributes:
      asked: of cells of the second column, the bins of the first that are not below them.
      in_parts: float64 [asked], records of each if columns were independent.
      told: what counts of the pair say of all of them together.
    """

    asked: tuple[StructuralZero, ...]
    in_parts: Floats
    told: Told

    @property
    def clearest(self) -> float:
        """How much likelier they are empty, logarithm."""
        return self.told.evidence

    @property
    def beforehand(self) -> Floats:
        """The same of each that is asked about, float64 [asked]."""
        return np.full(len(self.asked), self.told.evidence)

    def kept(self, counts: Floats, noise: float, adds: Floats) -> Iterator[StructuralZero]:
        """All of them, where both releases say that they hold next to nothing.

        Args:
          counts: float64 [asked], released; `noise`, standard deviation of one.
          adds: float64 [asked], what a record there is expected to add to its count.
        """
        if holds_none(self.told, self.in_parts, counts, noise, adds):
            yield from self.asked


def orders(
    columns: tuple[int, int],
    scales: tuple[ColumnScale, ColumnScale],
    counts: Floats,
    shares: tuple[Floats, Floats],
    n: int,
    noise: float,
) -> Iterator[Order]:
    """The order of two columns, if counts of the pair suggest that the first stays below.

    Args:
      counts: float64 [cells, cells], released; `noise`, standard deviation of one.
      shares: of each column's cells.
    """
    first, second = scales
    expected = n * np.outer(first.in_bins(shares[0]), shares[1])
    whole = np.eye(first.size, dtype=bool)[first.cell_of].T
    best: Order | None = None
    for beyond in (_beyond(scales, ties) for ties in (False, True)):
        cells = np.array([beyond[own].all(axis=0) for own in whole])
        seen = counts[cells]
        evidence = float(evidence_of_none(n * np.outer(*shares)[cells], seen, noise).sum())
        if evidence > max(EVIDENCE, best.clearest if best else 0.0):
            variance = len(seen) * noise**2
            spread = min(math.sqrt(variance), MOST_SHARE * n)
            told = Told(evidence, float(seen.sum()), variance, spread)
            each = (expected * beyond).sum(axis=0)[beyond.any(axis=0)]
            best = Order(_places(columns, beyond), each, told)
    if best:
        yield best


def out_of_order(
    compared: Sequence[Comparison], scales: Sequence[ColumnScale]
) -> Iterator[StructuralZero]:
    """Where one column would be above another that it stays below by counts of both."""
    for one in compared:
        if one.ordered and one.equal < 1.0:
            yield from _places((one.low, one.high), _beyond((scales[one.low], scales[one.high])))


def _beyond(scales: tuple[ColumnScale, ColumnScale], ties: bool = False) -> Mask:
    """Bool [bins of the first, cells of the second], where it is above, or not below."""
    (low, _), (_, high) = (scale.numbers for scale in scales)
    second = scales[1]
    most = np.array([high[second.cell_of == cell].max() for cell in range(second.size)])
    return low[:, None] >= most if ties else low[:, None] > most


def _places(columns: tuple[int, int], beyond: Mask) -> tuple[StructuralZero, ...]:
    each = torch.eye(beyond.shape[1], dtype=torch.bool)
    cells = np.flatnonzero(beyond.any(axis=0))
    return tuple(
        StructuralZero(columns, torch.from_numpy(beyond[:, cell]), each[int(cell)])
        for cell in cells
    )
