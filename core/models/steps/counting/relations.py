"""Relations that rows keep, read off releases: columns that determine others, sums and orders.

A mixture of soft components comes near such a relation and breaks it in some rows. Where a release
says that nearly all records keep it, every drawn row is made to keep it. Post-processing.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import ndtri
from torch import Tensor

from core.encoding.codec import Block
from core.models.steps.counting.comparisons import (
    MAX_VIOLATION_RATE,
    RELATION_SNR_THRESHOLD,
    Comparison,
    Limit,
    Marginal,
    comparisons_kept,
    most_to_show,
    without_limits,
)
from core.models.steps.counting.counts import PairTarget, RelationCounts
from core.models.steps.counting.difference_candidates import DifferenceCandidate
from core.models.steps.counting.differences import Difference, kept_differences
from core.models.steps.counting.relation_candidates import RelationCandidates, TotalCandidate
from core.models.steps.counting.scales import ColumnScale
from core.models.steps.counting.zeros.row_noise import SUSPECT
from core.models.steps.counting.zeros.structural_zeros import StructuralZero
from core.privacy.discovery.thresholds import EVIDENCE, log_ratio_of_none

Floats = NDArray[np.float64]
# standard deviations of noise that a label's records stand above, to say anything
LABEL_SNR_THRESHOLD = 4.0
LABEL_DOUBT = 0.01  # chance that noise makes any label of a rule that all keep seem to break it
MIN_TESTED_SHARE = 0.75  # share of records, at least, whose labels say something
# largest standard deviation, as a share of records, of totals, which nearly all keep or few
MAX_TOTAL_NOISE = 0.1
# share of records with a number, from which on means and deviations tell; and how far off these may
# be, as a share of a deviation: a few amounts in the tail make half of it, and noise may hide them
MOST_PRESENT, MOMENTS_APART = 0.9, 0.3
TAIL = 0.05  # share of the records with the highest totals, of which noise may hide more or fewer
# of the records without the commonest value, which alone show a dependence, how many may break it,
# and do by the other of two hypotheses
MAX_VARYING_BROKEN, SUSPECT_VARYING = 0.1, 0.25


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
            sure = spread < MAX_VIOLATION_RATE
            against = log_ratio_of_none(SUSPECT_VARYING * free, broken, max(spread, 1e-9))
            sure &= bool(against > EVIDENCE)
            sure &= _each_keeps(whole[asked], top.values[asked], noise)
            if sure and broken < min(MAX_VIOLATION_RATE + spread, MAX_VARYING_BROKEN * free):
                relations.append((broken, Determined(source, result, top.indices)))
    chosen: dict[int, Determined] = {}
    for _, relation in sorted(relations, key=lambda r: (len(r[1].cells), r[0]), reverse=True):
        follows = relation.source in chosen
        leads = any(one.source == relation.result for one in chosen.values())
        if relation.result not in chosen and not follows and not leads:
            chosen[relation.result] = relation
    return tuple(chosen.values())


def _each_keeps(records: Tensor, keeping: Tensor, noise: float) -> bool:
    """Whether each label of a source may be followed by one result, as far as noise tells.

    All of them together break a rule in few records where one that most records do not have breaks
    it often.
    """
    unsure = noise * float(ndtri(1.0 - LABEL_DOUBT / max(1, len(records))))
    return bool((records - keeping <= torch.clamp(MAX_VIOLATION_RATE * records, min=unsure)).all())


def telling(
    asked: RelationCandidates,
    blocks: Sequence[Block],
    apart: Sequence[DifferenceCandidate],
    columns: Sequence[Marginal],
    n: int,
    multiplier: float,
) -> RelationCounts:
    """The counts of those candidates that can show above the noise of all; one at least.

    All where waits are compared: what is asked of these, first events say too.

    Args:
      apart: whose differences are counted in any case.
      columns: see `marginals`; of `n` records.
    """
    if asked.times:
        every = asked.totals, asked.compared, tuple(apart), asked.times
        return RelationCounts(tuple(blocks), *every)
    totals = [_hidden_total(columns, one, n) for one in asked.totals]
    compared = [_hidden_from(columns, pair, n) for pair in asked.compared]

    def counts(least: float) -> RelationCounts:
        return RelationCounts(
            tuple(blocks),
            tuple(one for one, own in zip(asked.totals, totals, strict=True) if own >= least),
            tuple(pair for pair, own in zip(asked.compared, compared, strict=True) if own >= least),
            tuple(apart),
        )

    levels = sorted({*totals, *compared}) or [0.0]
    for least in levels:
        if least >= multiplier * counts(least).sensitivity:
            return counts(least)
    return counts(levels[-1])


def _hidden_from(columns: Sequence[Marginal], pair: tuple[int, int], n: int) -> float:
    """The noise from which on an order or equality of two columns could not be believed."""
    first, second = (columns[column] for column in pair)
    records = n * min(first.present, second.present) * most_to_show(first, second)
    return SUSPECT * records / math.sqrt(2.0 * EVIDENCE)


def _hidden_total(columns: Sequence[Marginal], one: TotalCandidate, n: int) -> float:
    """The same of a total."""
    parts = one.total, one.left, one.right
    there = n * min(columns[part].present for part in parts)
    return MAX_TOTAL_NOISE * there if moments_fit(columns, one) else 0.0


def moments_fit(columns: Sequence[Marginal], one: TotalCandidate) -> bool:
    """Whether columns by themselves leave room for a total: means of its parts make up its own.

    And none spreads more than both others together. Of a product, those of logarithms, and signs.
    True where so many cells are missing, or zero, that these may be of other records.

    Bounds and noise cut off tails, and not those of a total where they do its parts'. So numbers
    count up to where all but the highest totals lie, and to the least of the bounds; a total that
    is cut off there lacks no more than the lesser of its parts has.
    """
    each = [columns[part] for part in (one.total, one.left, one.right)]
    if one.field or (not one.unit and not _signs_fit(*each)):
        return bool(one.field)
    each = each if one.unit else [column.magnitudes for column in each]
    if min(column.present for column in each) < MOST_PRESENT:
        return True
    unit, lacking = one.unit or 1.0, 0.0
    lows, highs = ([float(column.numbers[i]) for column in each] for i in (0, -1))
    cut = min(highs[0], max(highs[1], unit * highs[2]), each[0].reached_by(1.0 - TAIL))
    beyond = float(each[0].shares[each[0].numbers >= cut].sum())
    positive = lows[2] >= 0.0 and (lows[1] >= 0.0 or unit * highs[2] <= cut)
    if one.unit and positive and beyond <= 1.0 - MOST_PRESENT:  # a tail, and no more
        each = [column.up_to(cut / own) for column, own in zip(each, (1.0, 1.0, unit), strict=True)]
        parts = ((1.0, each[1]), (unit, each[2]))[lows[1] < 0.0 :]
        lacking = min(own * part.highest(beyond) for own, part in parts)
    total, left, right = (column.mean for column in each)
    spreads = np.array([column.deviation for column in each]) * (1.0, 1.0, unit)
    room, excess = MOMENTS_APART * float(spreads[:2].max()), total - left - unit * right
    widest = 2.0 * float(spreads.max()) - float(spreads.sum())
    return -lacking - room <= excess <= room and widest <= room


def _signs_fit(total: Marginal, left: Marginal, right: Marginal) -> bool:
    """Whether a product can have its parts' zeros and signs, give or take what is missing."""
    room, own, zeros = 1.0 - MOST_PRESENT, total.near_zero, max(left.zero, right.zero)
    uneven = abs(left.negative - right.negative) - left.zero - right.zero
    below = uneven - room <= total.negative <= left.negative + right.negative + room
    return below and zeros - room <= own and total.zero <= left.near_zero + right.near_zero + room


def relations_kept(
    mechanism: RelationCounts,
    release: Tensor,
    noise: float,
    tagged: Collection[int],
    scales: Sequence[ColumnScale],
    shares: Sequence[Floats],
    columns: Sequence[Marginal],
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
    orders = comparisons_kept(compared, mechanism, columns, n, noise)
    differences = kept_differences(
        apart.numpy(), mechanism.differences, scales, shares, noise / mechanism.weight, n
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
