"""How far numbers of one unit that go together lie apart: counted once, and kept by drawn rows.

A mixture knows numbers by their cells, which may be many years wide, and what noise leaves of a
table of both lets some people die before they were born. How far apart both lie is one histogram.
Values of the second number change places among rows until they lie as far from the first as was
counted: each column keeps its values, and rows that lie farther apart than others still do.
Post-processing of a release.

Source: Pitié, Kokaram and Dahyot, "N-dimensional probability density function transfer and its
application to colour transfer", ICCV 2005 (distributions carried over one direction at a time).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from core.encoding.codec import Block, Codec, Codes
from core.models.steps.counting.densities import densities, seen, supported, with_coarse
from core.models.steps.counting.design import CELLS as MOST_RUNS
from core.models.steps.counting.difference_candidates import FINE, DifferenceCandidate, Unit, along
from core.models.steps.counting.scales import ColumnScale, merged

Floats = NDArray[np.float64]
DIFFERENCE_SNR_THRESHOLD = 4.0  # standard deviations of noise, of all counts of one together
MOST_ENDS = np.array([0.05, 0.95])  # shares between which most numbers lie
# Of a column's own spread, that a difference has at most: a standard deviation of √(2 - 2ρ), which
# is what two numbers with a correlation of ρ = .8 have.
MOST_SPREAD = 0.63
PASSES = 4  # over all differences, each of which moves others a little


@dataclass(frozen=True)
class Difference:
    """How far two columns' numbers lie apart.

    Attributes:
      cumulated: ascending, [FINE + 1], the share of records below each edge of the fine cells.
    """

    candidate: DifferenceCandidate
    cumulated: tuple[float, ...]

    @classmethod
    def of(cls, candidate: DifferenceCandidate, counts: Floats, noise: float) -> Difference | None:
        """That of released counts; None where they say nothing.

        Args:
          counts: float64 [CELLS]; `noise`, standard deviation of one.
        """
        fine = with_coarse(counts[:FINE], counts[FINE:])
        if counts[FINE:].sum() <= DIFFERENCE_SNR_THRESHOLD * noise * math.sqrt(len(counts) - FINE):
            return None
        runs = merged(fine, noise, MOST_RUNS, frozenset(), np.ones(FINE))
        ends = supported(fine, noise, seen(fine, runs, noise))
        likely = densities(fine, noise, ends, 0)[0]
        cumulated = np.append(0.0, likely.cumsum() / max(float(likely.sum()), 1e-9))
        return cls(candidate, tuple(cumulated.tolist()))

    @classmethod
    def stored(cls, candidate: Sequence[object], cumulated: Sequence[float]) -> Difference:
        """That of a stored model."""
        return cls(DifferenceCandidate(*candidate), tuple(cumulated))  # type: ignore[arg-type]

    def at(self, shares: Floats, blocks: Sequence[Block]) -> Floats:
        """The differences below which these shares of records lie."""
        edges = np.linspace(*self.candidate.ends(blocks), FINE + 1)
        return np.asarray(np.interp(shares, self.cumulated, edges))

    def spread(self, blocks: Sequence[Block]) -> float:
        """How far most differences lie from each other."""
        low, high = self.at(MOST_ENDS, blocks)
        return float(high - low)


def kept_differences(
    counts: Floats,
    asked: Sequence[DifferenceCandidate],
    scales: Sequence[ColumnScale],
    shares: Sequence[Floats],
    noise: float,
) -> tuple[Difference, ...]:
    """What says more of a number than its own column does, the widest difference first.

    Args:
      counts: float64 [asked, CELLS], released; `noise`, standard deviation of one.
      shares: released shares of each column's cells.
    """
    kept, blocks = list[tuple[float, Difference]](), [scale.grid.block for scale in scales]
    for one, own in zip(asked, counts, strict=True):
        if (found := Difference.of(one, own, noise)) is not None:
            spread = found.spread(blocks)
            both = (_spread(one.unit, scales[i], shares[i]) for i in (one.first, one.second))
            if spread < MOST_SPREAD * min(both):
                kept.append((spread, found))
    return tuple(found for _, found in sorted(kept, key=lambda pair: -pair[0]))


def _spread(unit: Unit, scale: ColumnScale, share: Floats) -> float:
    """How far most of a column's numbers lie from each other."""
    numbers = np.add(*scale.numbers) / 2.0
    known = np.flatnonzero(~np.isnan(numbers))
    known = known[np.argsort(numbers[known])]
    held = scale.in_bins(share)[known].cumsum()
    ends = np.searchsorted(held, MOST_ENDS * held[-1]).clip(0, len(known) - 1)
    low, high = along(unit, scale.grid.block, numbers[known[ends]])
    return float(high - low)


def keep_differences(
    codec: Codec, codes: Codes, kept: Sequence[Difference], random: torch.Generator
) -> None:
    """Let numbers of second columns change places, in place; nothing else is moved."""
    for one in [*kept] * PASSES:
        number = codec.blocks[one.candidate.second].number
        first, second = one.candidate.numbers(codec.blocks, codes)
        rows = np.flatnonzero(~np.isnan(first + second))
        chance = torch.rand(len(rows), generator=random, dtype=torch.float64).numpy()
        rank = np.empty(len(rows))
        apart = np.lexsort((chance, second[rows] - first[rows]))
        rank[apart] = (np.arange(len(rows)) + 0.5) / max(1, len(rows))
        wanted = first[rows] + one.at(rank, codec.blocks)
        values = np.sort(codes.values[rows, number])
        codes.values[rows[np.argsort(wanted, kind="stable")], number] = values
