"""How far numbers that go together lie apart: counted once, and kept by drawn rows.

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
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import torch
from numpy.typing import NDArray

from core.encoding.codec import Block, Codec, Codes
from core.models.steps.counting.design import CELLS as MOST_RUNS
from core.models.steps.counting.difference_candidates import (
    FINE,
    Curve,
    DifferenceCandidate,
    Unit,
)
from core.models.steps.counting.lines.densities import COARSE, densities, with_coarse
from core.models.steps.counting.lines.ends import seen, supported
from core.models.steps.counting.lines.merging import merged
from core.models.steps.counting.scales import ColumnScale

Floats = NDArray[np.float64]
DIFFERENCE_SNR_THRESHOLD = 4.0  # standard deviations of noise, of all counts of one together
# … from which on records lie farther apart than cells show, though these are too thin to be seen
HIDDEN_SNR_THRESHOLD = 2.0
MOST_ENDS = np.array([0.05, 0.95])  # shares between which most numbers lie
# Of a column's own spread, that a difference has at most: a standard deviation of √(2 - 2ρ), which
# is what two numbers with a correlation of ρ = .8 have.
MOST_SPREAD = 0.63
PASSES = 4  # over all differences, each of which moves others a little
# Mean squared correlation of random signs of two columns, from which on their difference is asked
# about: signs of numbers with a correlation of about a half have this.
LEAST_DEPENDENCE = 0.05
# Of records, by how many more or fewer than not lie in the same half of both columns; from which on
# ranks are asked about: of numbers with a correlation of .7, half more.
LEAST_HALVES = 0.5


@dataclass(frozen=True)
class Difference:
    """How far two columns' numbers lie apart.

    Attributes:
      cumulated: ascending, [FINE + 1], the share below each edge of the fine cells, of the records
        that these show.
      hidden: shares of all records that lie farther apart than noise lets cells show: below, above.
    """

    candidate: DifferenceCandidate
    cumulated: tuple[float, ...]
    hidden: tuple[float, float] = (0.0, 0.0)

    @classmethod
    def of(
        cls,
        candidate: DifferenceCandidate,
        counts: Floats,
        noise: float,
        both: tuple[float, float] = (0.0, math.inf),
    ) -> Difference | None:
        """That of released counts; None where they say nothing.

        Args:
          counts: float64 [CELLS]; `noise`, standard deviation of one.
          both: the fewest and the most records that can have both numbers.
        """
        fine = with_coarse(counts[:FINE], counts[FINE:])
        if counts[FINE:].sum() <= DIFFERENCE_SNR_THRESHOLD * noise * math.sqrt(len(counts) - FINE):
            return None
        runs = merged(fine, noise, MOST_RUNS, frozenset(), np.ones(FINE))
        ends = supported(fine, noise, seen(fine, runs, noise))
        likely = densities(fine, noise, ends, 0)[0]
        cumulated = np.append(0.0, likely.cumsum() / max(float(likely.sum()), 1e-9))
        there = min(max(float(counts[FINE:].sum()), both[0]), both[1])
        hidden = _hidden(fine, np.flatnonzero(likely), there, noise)
        return cls(candidate, tuple(cumulated.tolist()), hidden)

    @classmethod
    def stored(
        cls, candidate: Sequence[object], cumulated: Sequence[float], hidden: Sequence[float]
    ) -> Difference:
        """That of a stored model."""
        known = DifferenceCandidate(*candidate)  # type: ignore[arg-type]
        return cls(known, tuple(cumulated), (hidden[0], hidden[1]))

    def at(self, shares: Floats, blocks: Sequence[Block]) -> Floats:
        """The differences below which these shares of the records that cells show lie."""
        edges = np.linspace(*self.candidate.ends(blocks), FINE + 1)
        return np.asarray(np.interp(shares, self.cumulated, edges))

    def farther(self, shares: Floats) -> tuple[Floats, NDArray[np.bool_]]:
        """Shares of all records → of those that cells show, and which lie farther apart."""
        below, above = self.hidden
        among = (shares - below) / max(1.0 - below - above, 1e-9)
        return among, (among < 0.0) | (among > 1.0)

    def spread(self, blocks: Sequence[Block]) -> float:
        """How far most differences lie from each other."""
        low, high = self.at(MOST_ENDS, blocks)
        return float(high - low)


def _hidden(
    fine: Floats, held: NDArray[np.int64], there: float, noise: float
) -> tuple[float, float]:
    """Shares of records below and above the fine cells that hold some, where noise hides them."""
    if not len(held):
        return 0.0, 0.0
    first, end = int(held[0]), int(held[-1]) + 1
    lacking, coarse = there - float(fine[first:end].sum()), 1.0 + (end - first) / COARSE
    if lacking <= HIDDEN_SNR_THRESHOLD * noise * math.sqrt(coarse):
        return 0.0, 0.0
    below, above = (max(1e-9, float(beyond.sum())) for beyond in (fine[:first], fine[end:]))
    return lacking / there * below / (below + above), lacking / there * above / (below + above)


def asked_differences(
    candidates: Sequence[DifferenceCandidate],
    seen: Mapping[tuple[int, ...], tuple[float, float]],
    tagged: Set[int],
    scales: Sequence[ColumnScale],
    shares: Sequence[Floats],
) -> tuple[DifferenceCandidate, ...]:
    """Those that go together most, as many as there are columns among them at most.

    Args:
      seen: of two columns, by block indices, the mean squared correlation of their signs, and see
        `LEAST_HALVES`.
      tagged: columns of which nothing is asked.
      shares: released, of each column's cells.
    """

    @cache
    def spread(unit: Unit, column: int) -> float:
        return _spread(DifferenceCandidate(column, column, unit), scales[column], shares[column])

    @cache
    def curve(column: int) -> Curve:
        return _curve(scales[column], shares[column])

    clear = []
    for one in candidates:
        much, halves = seen.get((one.first, one.second), (0.0, 0.0))
        if much <= LEAST_DEPENDENCE or {one.first, one.second} & tagged:
            continue
        both = one.first, one.second
        if one.unit == "ranks" or _unlike(*(spread(one.unit, column) for column in both)):
            if abs(halves) <= LEAST_HALVES:
                continue
            unit: Unit = "ranks" if halves > 0.0 else "ranks from either end"
            one = replace(one, unit=unit, curves=tuple(map(curve, both)))
        clear.append((much, one))
    columns = {index for _, one in clear for index in (one.first, one.second)}
    clear.sort(key=lambda pair: -pair[0])
    return tuple(one for _, one in clear[: len(columns)])


def _unlike(one: float, other: float) -> bool:
    """Whether numbers that spread so cannot lie close together."""
    return abs(one - other) >= MOST_SPREAD * min(one, other)


def _curve(scale: ColumnScale, share: Floats) -> Curve:
    """The rank of numbers of a column's line: at the ends of bins, or in the middle of values."""
    cells = scale.grid.cells
    held = scale.in_bins(share)[:cells] + 1e-12
    above = np.cumsum(held) / held.sum()
    low, high = (ends[:cells] for ends in scale.numbers)
    if not scale.grid.width:
        return tuple(low.tolist()), tuple((above - 0.5 * held / held.sum()).tolist())
    return (*low.tolist(), float(high[-1])), (0.0, *above.tolist())


def kept_differences(
    counts: Floats,
    asked: Sequence[DifferenceCandidate],
    scales: Sequence[ColumnScale],
    shares: Sequence[Floats],
    noise: float,
    n: float,
) -> tuple[Difference, ...]:
    """What says more of a number than its own column does, the widest difference first.

    Args:
      counts: float64 [asked, CELLS], released; `noise`, standard deviation of one.
      shares: released shares of each column's cells, of `n` records.
    """
    kept, blocks = list[tuple[float, Difference]](), [scale.grid.block for scale in scales]
    for one, own in zip(asked, counts, strict=True):
        there = [float(shares[i][: scales[i].line].sum()) for i in (one.first, one.second)]
        both = n * max(0.0, sum(there) - 1.0), n * min(there)
        if (found := Difference.of(one, own, noise, both)) is not None:
            spread = found.spread(blocks)
            spreads = [_spread(one, scales[i], shares[i]) for i in (one.first, one.second)]
            if spread < MOST_SPREAD * min(spreads):
                kept.append((spread, found))
    return tuple(found for _, found in sorted(kept, key=lambda pair: -pair[0]))


def _spread(one: DifferenceCandidate, scale: ColumnScale, share: Floats) -> float:
    """How far most of a column's numbers lie from each other."""
    numbers = np.add(*scale.numbers) / 2.0
    known = np.flatnonzero(~np.isnan(numbers))
    known = known[np.argsort(numbers[known])]
    held = scale.in_bins(share)[known].cumsum()
    ends = np.searchsorted(held, MOST_ENDS * held[-1]).clip(0, len(known) - 1)
    low, high = one.along(scale.grid.block, numbers[known[ends]])
    return abs(float(high - low))


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
        rank, farther = one.farther(rank)
        near = first[rows] + one.at(rank, codec.blocks)
        wanted = np.where(farther, second[rows], near)  # as the mixture drew them
        values = np.sort(codes.values[rows, number])
        codes.values[rows[np.argsort(wanted, kind="stable")], number] = values
