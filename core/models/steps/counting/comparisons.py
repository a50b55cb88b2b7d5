"""Which of two numbers is never above the other, or often equal to it, read off counts.

Only what can show above the noise is asked: what two columns by themselves leave no room for, each
candidate more would hide a little. Post-processing of releases.

Source: Strassen, "The existence of probability measures with given marginals", 1965 (how often an
order must be broken, for what is known of each column).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from core.encoding.codec import Block
from core.models.steps.counting.counts import RelationCounts
from core.models.steps.counting.scales import ColumnScale
from core.models.steps.counting.window_pairs import NextTime
from core.models.steps.counting.zeros.row_noise import evidence_of_none
from core.privacy.discovery.thresholds import EVIDENCE

Floats = NDArray[np.float64]
# Share of records that may break a relation which rows are made to keep, and the largest standard
# deviation of it. Within one of these a relation is believed: one that is missed costs many rows,
# and one that is nearly kept costs few.
MAX_VIOLATION_RATE = 0.03
MAX_SHARE_NOISE = 0.05  # largest standard deviation, as a share of records, of shares believed
RELATION_SNR_THRESHOLD = 2.0  # standard deviations of noise that a count of relations may be off
MOST_OFTEN = 0.99  # of the records in which columns are equal that are not always
DRAWN = 4096  # next events, to tell how late they are


@dataclass(frozen=True)
class Comparison:
    """Two numeric columns of which the first is never above the second, or often equal to it.

    Attributes:
      low, high: block indices.
      ordered: whether the first is never above the second.
      equal: share of the records with both in which they are equal, at least; 1 if they always are.
    """

    low: int
    high: int
    ordered: bool
    equal: float


class Limit(NamedTuple):
    """A person's column that their events end by, and the wait for a next one, block indices."""

    until: int
    wait: int


def without_limits(
    compared: Sequence[Comparison], times: Sequence[NextTime]
) -> tuple[tuple[Comparison, ...], tuple[Limit, ...]]:
    """Comparisons of two columns of a row, and what next events end by."""
    waits = {time.wait for time in times}
    limits = tuple(Limit(c.high, c.low) for c in compared if c.ordered and c.low in waits)
    # A first event that comes too late is drawn anew, so its person's column stays as it is.
    firsts = {(time.first, one.until) for time in times for one in limits if one.wait == time.wait}
    others = (c for c in compared if not {c.low, c.high} & waits and (c.low, c.high) not in firsts)
    return tuple(others), limits


class Marginal(NamedTuple):
    """Where a column's numbers lie.

    Attributes:
      numbers: ascending; `shares` of those records that have one, ≥ 0, summing to one or nothing.
      present: share of all records that have a number.
    """

    numbers: Floats
    shares: Floats
    present: float

    @property
    def mean(self) -> float:
        """Of the numbers."""
        return float(self.shares @ self.numbers)

    @property
    def deviation(self) -> float:
        """Their standard deviation."""
        return math.sqrt(max(0.0, float(self.shares @ np.square(self.numbers - self.mean))))

    def up_to(self, most: float) -> Marginal:
        """With each number beyond one taken for it."""
        return self._replace(numbers=np.minimum(self.numbers, most))

    def reached_by(self, share: float) -> float:
        """The least number that this share of the records do not exceed; 0 where there is none."""
        at = int(np.searchsorted(np.cumsum(self.shares), share))
        return float(self.numbers[min(at, len(self.numbers) - 1)]) if len(self.numbers) else 0.0

    def highest(self, share: float) -> float:
        """What this share of the records, those with the highest numbers, adds to the mean."""
        up_to_each = np.minimum(np.cumsum(self.shares[::-1]), share)
        return float(np.diff(up_to_each, prepend=0.0) @ self.numbers[::-1])

    @property
    def negative(self) -> float:
        """Share below zero."""
        return float(self.shares[self.numbers < 0.0].sum())

    @property
    def zero(self) -> float:
        """Share of zeros."""
        return float(self.shares[self.numbers == 0.0].sum())

    @property
    def near_zero(self) -> float:
        """Share of what may be zero: the number, or a cell by its middle, that lies nearest."""
        return float(self.shares[np.abs(self.numbers).argmin()]) if len(self.numbers) else 0.0

    @property
    def magnitudes(self) -> Marginal:
        """Logarithms of what is not zero."""
        there = self.numbers != 0.0
        numbers, held = np.log(np.abs(self.numbers[there])), self.shares[there]
        order, whole = np.argsort(numbers), float(held.sum())
        return Marginal(numbers[order], held[order] / max(whole, 1e-12), self.present * whole)

    def below(self, numbers: Floats, *, same: bool = False) -> Floats:
        """Share of its records below each number, or not above it."""
        at = np.searchsorted(self.numbers, numbers, side="right" if same else "left")
        return np.asarray(np.append(0.0, np.cumsum(self.shares))[at])


def marginals(
    blocks: Sequence[Block],
    times: Sequence[NextTime],
    scales: Sequence[ColumnScale],
    shares: Sequence[Floats],
) -> list[Marginal]:
    """Of every column, from released shares of its cells; a wait's are of when next events are."""
    each = []
    for scale, share in zip(scales, shares, strict=True):
        numbers = np.add(*scale.numbers) / 2.0
        known = np.flatnonzero(~np.isnan(numbers))
        known = known[np.argsort(numbers[known], kind="stable")]
        each.append((numbers[known], scale.in_bins(share)[known].clip(0.0)))
    for time in times:
        latest = blocks[time.first].line.high
        each[time.wait] = next_times(
            each[time.first], each[time.since], each[time.wait], time.unit, latest
        )
    return [
        Marginal(numbers, held / max(held.sum(), 1e-12), min(1.0, float(held.sum())))
        for numbers, held in each
    ]


def unrelated(first: Marginal, second: Marginal) -> tuple[float, float]:
    """Shares of records in which the first is below the second, and above it.

    Of those that have both, if the columns are independent.
    """
    above = float(first.shares @ second.below(first.numbers))
    up_to = float(first.shares @ second.below(first.numbers, same=True))
    return float(first.shares.sum()) - up_to, above


def most_to_show(first: Marginal, second: Marginal) -> float:
    """Share of records by which the most that two columns might keep differs from chance.

    Of those that have both: in which an order that holds in all would set right what independent
    columns break, if these leave room for it, or in which they might be equal.
    """
    below, above = unrelated(first, second)
    at = np.union1d(first.numbers, second.numbers)
    ahead = first.below(at, same=True) - second.below(at, same=True)
    must_exceed, must_lack = -float(ahead.min(initial=0.0)), float(ahead.max(initial=0.0))
    equal = below + above - max(must_exceed, must_lack)  # all but those by chance
    return max(equal, above - must_exceed, below - must_lack)


def comparisons_kept(
    release: Tensor,
    mechanism: RelationCounts,
    columns: Sequence[Marginal],
    n: int,
    noise: float,
) -> tuple[Comparison, ...]:
    """Orders that nearly all records keep, and equalities of some or all.

    Independent columns would break an order often: a few thousand are more than anybody's age.

    Args:
      release: float64 [compared, 3], see `RelationCounts.split`; `noise`, deviation of one.
      columns: see `marginals`; of `n` records.
    """
    kept, every = list[Comparison](), release.numpy()
    alone = np.array(
        [_alone(columns, *one, n) for one in zip(mechanism.compared, every, strict=True)]
    ).reshape(-1, 2)
    against = evidence_of_none(alone, every[:, [0, 2]], max(noise, 1e-6))
    place = {pair: i for i, pair in enumerate(mechanism.compared)}
    for time in mechanism.times:  # that events end by something, first ones say too
        for own in [own for own, wait in place if wait == time.wait]:
            if (own, time.first) in place:
                against[place[own, time.wait]] += against[place[own, time.first]]
    for pair, i in place.items():
        seen, expected, evidence = every[i], alone[i], against[i]
        records = max(1.0, float(seen.sum()))
        unsure = RELATION_SNR_THRESHOLD * noise
        few = np.maximum(MAX_VIOLATION_RATE * expected, unsure)
        never_below, never_above = (evidence > EVIDENCE) & (seen[[0, 2]] < few)
        often = min((float(seen[1]) - unsure) / records, MOST_OFTEN)
        often = often if noise <= MAX_SHARE_NOISE * records else 0.0
        equal = 1.0 if never_below and never_above else max(0.0, often)
        by_chance = max(0.0, 1.0 - float(expected.sum()) / records)
        if never_below or never_above or equal > by_chance + MAX_VIOLATION_RATE:
            low, high = pair if never_above else pair[::-1]
            ordered = bool(never_below or never_above)
            kept.append(Comparison(low, high, ordered, equal))
    return tuple(kept)


def _alone(
    columns: Sequence[Marginal], pair: tuple[int, int], seen: Floats, n: int
) -> tuple[float, float]:
    """Records in which the first of two columns would be below the second, and above it.

    Of as many with both as counts say and columns leave room for, if these were independent.
    """
    first, second = (columns[column] for column in pair)
    least, most = first.present + second.present - 1.0, min(first.present, second.present)
    both = min(max(float(seen.sum()), n * least, 0.0), n * most)
    below, above = unrelated(first, second)
    return both * below, both * above


def next_times(
    first: tuple[Floats, Floats],
    since: tuple[Floats, Floats],
    wait: tuple[Floats, Floats],
    unit: float,
    latest: float,
) -> tuple[Floats, Floats]:
    """When next events are, ascending, and shares of records, if waits depend on nothing."""
    random, chances = np.random.default_rng(0), [one[1].clip(0.0) for one in (first, since, wait)]
    if not all(held.sum() > 0.0 for held in chances):
        return np.zeros(0), np.zeros(0)
    drawn = [
        random.choice(numbers, DRAWN, p=held / held.sum())
        for (numbers, _), held in zip((first, since, wait), chances, strict=True)
    ]
    times = np.minimum(drawn[0] + unit * (drawn[1] + drawn[2]), latest)
    return np.sort(times), np.full(DRAWN, wait[1].sum() / DRAWN)
