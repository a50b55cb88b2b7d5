"""Relations that rows keep, read off releases: columns that determine others, sums and orders.

A mixture of soft components comes near such a relation and breaks it in some rows. Where a release
says that nearly all records keep it, every drawn row is made to keep it. Post-processing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from core.models.steps.counting.counts import PairTarget, RelationCounts
from core.models.steps.counting.differences import Difference, kept_differences
from core.models.steps.counting.relation_candidates import TotalCandidate
from core.models.steps.counting.scales import ColumnScale
from core.models.steps.counting.window_pairs import NextTime
from core.models.steps.counting.zeros.row_noise import evidence_of_none
from core.models.steps.counting.zeros.structural_zeros import EVIDENCE, StructuralZero

Floats = NDArray[np.float64]
# Share of records that may break a relation which rows are made to keep, and the largest standard
# deviation of it. Within one of these a relation is believed: one that is missed costs many rows,
# and one that is nearly kept costs few.
MAX_VIOLATION_RATE = 0.03
# standard deviations of noise that a label's records stand above, to say anything
LABEL_SNR_THRESHOLD = 4.0
MIN_TESTED_SHARE = 0.75  # share of records, at least, whose labels say something
# largest standard deviation, as a share of records, of shares that are believed, and of totals,
# which nearly all records keep or few
MAX_SHARE_NOISE, MAX_TOTAL_NOISE = 0.05, 0.1
RELATION_SNR_THRESHOLD = 2.0  # standard deviations of noise that a count of relations may be off
MOST_OFTEN = 0.99  # of the records in which columns are equal that are not always
DRAWN = 4096  # next events, to tell how late they are
# of the records without the commonest value, which alone show a dependence, how many may break it
# for all that is known
MAX_VARYING_BROKEN = 0.1


@dataclass(frozen=True)
class Determined:
    """A column whose cell follows from another's.

    Attributes:
      source, result: block indices.
      cells: int64 [cells of the source], the cell of the result.
    """

    source: int
    result: int
    cells: Tensor

    def zeros(self, scales: Sequence[ColumnScale]) -> Iterator[StructuralZero]:
        """What the rule says goes together in no record: of each cell of the result."""
        of_bins = self.cells[torch.from_numpy(scales[self.source].cell_of)]
        for cell in range(scales[self.result].size):
            own = torch.arange(scales[self.result].size) == cell
            yield StructuralZero((self.source, self.result), of_bins != cell, own)


def determined(
    pairs: Sequence[PairTarget],
    scales: Sequence[ColumnScale],
    shares: Sequence[Floats],
    taken: int | None,
) -> tuple[Determined, ...]:
    """Columns that follow from another one in nearly all records.

    Each column follows from one at most, and none from one that follows itself.

    Args:
      taken: a column that is never made to follow, the class; None for none.
    """
    relations: list[tuple[float, Determined]] = []
    for pair in pairs:
        joint = pair.shares.sum(dim=0)
        noise = pair.noise * pair.shares.shape[0] ** 0.5
        for (source, result), table in ((pair.columns, joint), (pair.columns[::-1], joint.t())):
            if result == taken or not scales[result].exact:
                continue
            top, whole = table.max(dim=1), torch.from_numpy(shares[source])
            # Only rows that stand above the noise are asked, by their released shares: a rare one's
            # largest cell is one of mere noise, which would speak for any rule or against all.
            asked = whole > LABEL_SNR_THRESHOLD * noise
            records = float(whole[asked].sum())
            if records < MIN_TESTED_SHARE:
                continue
            broken = max(0.0, 1.0 - float(top.values[asked].sum()) / records)
            spread = noise * float(asked.sum()) ** 0.5 / records
            free = 1.0 - float(table.sum(dim=0).max())
            sure = spread < MAX_VIOLATION_RATE and broken + spread < MAX_VARYING_BROKEN * free
            if sure and broken < MAX_VIOLATION_RATE + spread:
                relations.append((broken, Determined(source, result, top.indices)))
    chosen: dict[int, Determined] = {}
    for _, relation in sorted(relations, key=lambda r: (len(r[1].cells), r[0]), reverse=True):
        follows = relation.source in chosen
        leads = any(one.source == relation.result for one in chosen.values())
        if relation.result not in chosen and not follows and not leads:
            chosen[relation.result] = relation
    return tuple(chosen.values())


def relations_kept(
    mechanism: RelationCounts,
    release: Tensor,
    noise: float,
    tagged: Collection[int],
    scales: Sequence[ColumnScale],
    shares: Sequence[Floats],
    n: int,
) -> tuple[
    tuple[TotalCandidate, ...], tuple[Comparison, ...], tuple[Limit, ...], tuple[Difference, ...]
]:
    """What nearly all records keep, of all that was asked about, and how far columns lie apart.

    Args:
      tagged: columns whose relations are not kept.
      noise: standard deviation of a count of totals and comparisons.
      shares: released shares of each column's cells.
    """
    totals, compared, apart = mechanism.split(release)
    sums = totals_kept(totals, mechanism.totals, noise)
    orders = comparisons_kept(compared, mechanism, scales, shares, n, noise)
    differences = kept_differences(
        apart.numpy(), mechanism.differences, scales, shares, noise / mechanism.weight
    )
    free = set(range(len(scales))).difference(tagged)
    sums = tuple(one for one in sums if free.issuperset((one.total, one.left, one.right)))
    orders = tuple(one for one in orders if free.issuperset((one.low, one.high)))
    return sums, *without_limits(orders, mechanism.times), differences


def totals_kept(
    release: Tensor, candidates: Sequence[TotalCandidate], noise: float
) -> tuple[TotalCandidate, ...]:
    """Sums and products that nearly all records keep, in the order that they are made in.

    Each column is the total of one at most.

    Args:
      release: float64 [candidates, 2], see `RelationCounts.split`.
    """
    kept: dict[int, TotalCandidate] = {}
    shares: dict[TotalCandidate, float] = {}
    for one, (keeps, broken) in zip(candidates, release.tolist(), strict=True):
        there, unsure = keeps + broken, RELATION_SNR_THRESHOLD * noise
        if noise <= MAX_TOTAL_NOISE * there and broken < MAX_VIOLATION_RATE * there + unsure:
            shares[one] = broken / there
    for one in sorted(shares, key=lambda c: shares[c]):
        if one.total in kept:
            continue
        with suppress(CycleError):
            _in_order(kept | {one.total: one})
            kept[one.total] = one
    return tuple(kept[total] for total in _in_order(kept) if total in kept)


def _in_order(kept: Mapping[int, TotalCandidate]) -> list[int]:
    """Columns, each after those that it is the total of.

    Raises:
      CycleError: there is no such order.
    """
    parts = {total: (one.left, one.right) for total, one in kept.items()}
    return list(TopologicalSorter(parts).static_order())


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


def comparisons_kept(
    release: Tensor,
    mechanism: RelationCounts,
    scales: Sequence[ColumnScale],
    shares: Sequence[Floats],
    n: int,
    noise: float,
) -> tuple[Comparison, ...]:
    """Orders that nearly all records keep, and equalities of some or all.

    Independent columns would break an order often: a few thousand are more than anybody's age.

    Args:
      release: float64 [compared, 3], see `RelationCounts.split`; `noise`, deviation of one.
      shares: released shares of each column's cells.
    """
    kept, every = list[Comparison](), release.numpy()
    alone = n * _alone(mechanism, scales, shares)
    against = evidence_of_none(alone, every[:, [0, 2]], max(noise, 1e-6))
    place = {columns: i for i, columns in enumerate(mechanism.compared)}
    for time in mechanism.times:  # that events end by something, first ones say too
        for own in [own for own, column in place if column == time.wait]:
            if (own, time.first) in place:
                against[place[own, time.wait]] += against[place[own, time.first]]
    for columns, i in place.items():
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
            low, high = columns if never_above else columns[::-1]
            ordered = bool(never_below or never_above)
            kept.append(Comparison(low, high, ordered, equal))
    return tuple(kept)


def _alone(
    mechanism: RelationCounts, scales: Sequence[ColumnScale], shares: Sequence[Floats]
) -> Floats:
    """Shares of records in which the first of two columns would be below the second, and above it.

    If they were independent; float64 [compared, 2].
    """
    each = []
    for scale, share in zip(scales, shares, strict=True):
        numbers = np.add(*scale.numbers) / 2.0
        known = np.flatnonzero(~np.isnan(numbers))
        known = known[np.argsort(numbers[known], kind="stable")]
        each.append((numbers[known], scale.in_bins(share)[known]))  # noise leaves some negative
    for time in mechanism.times:
        latest = mechanism.blocks[time.first].line.high
        each[time.wait] = next_times(
            each[time.first], each[time.since], each[time.wait], time.unit, latest
        )
    found = np.zeros((len(mechanism.compared), 2))
    for i, (first, second) in enumerate(mechanism.compared):
        (one, held), (other, others) = each[first], each[second]
        up_to = np.append(0.0, np.cumsum(others))
        found[i, 0] = held @ (up_to[-1] - up_to[np.searchsorted(other, one, side="right")])
        found[i, 1] = held @ up_to[np.searchsorted(other, one)]
    return found


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
