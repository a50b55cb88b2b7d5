"""Which columns might add up, multiply or be in order, from public facts and released numbers.

Where there are many, those are counted that go together most: what adds up, or is never above
another, shows in pairs, and each candidate more is noise for all.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, combinations, product

import numpy as np
from numpy.typing import NDArray

from core.encoding.codec import Block, Codec
from core.encoding.windows import PERSON
from core.models.steps.counting.difference_candidates import (
    DifferenceCandidate,
    difference_candidates,
)
from core.models.steps.counting.window_pairs import NextTime, comparable, next_times
from core.schema.calendar import named_fields, number_of
from core.schema.column import Kind
from core.schema.round_bounds import number_step

Floats = NDArray[np.float64]
Strength = Callable[[int, int], float]  # how much two columns go together, by block indices
# that are all counted, and looked at; of more, as many as follow, for each column
MOST_CANDIDATES, MOST_TRIPLES = 300, 10_000
COMPARED_A_COLUMN, TOTALS_A_COLUMN = 2.0, 0.5
OF_EACH = 2  # ways to make a total, or a few columns would crowd out all others
MOST_PARTS = 12  # columns that go together most with a total, of which two might be its parts
NEARLY = 1.0 + 1e-9
TWO_RUNGS = 5.0  # the farthest that one round number is from the next but one
OVERSHOT = 25.0  # by which noise may lead a bound too far, two rungs twice


@dataclass(frozen=True)
class TotalCandidate:
    """Three columns of which one might be the sum or the product of the others, or two with a date.

    Attributes:
      total, left, right: block indices; total = left + unit · right, or left · right.
      unit: > 0, what one of `right` is worth in `left`'s unit: seconds a step for dates; 0 for a
        product.
      field: of the date `left`, which is `right` too, whose number the total is; "" for none.
    """

    total: int
    left: int
    right: int
    unit: float
    field: str = ""

    def computed(self, left: Floats, right: Floats) -> Floats:
        """The totals of numbers of both columns, float64 [n]."""
        if self.field:
            number: Floats = number_of(self.field, left)
            return number
        return left + self.unit * right if self.unit else left * right


@dataclass(frozen=True)
class RelationCandidates:
    """Relations that might hold, which are counted.

    Attributes:
      compared: block indices of two numeric columns that are compared.
      differences: of columns whose difference might be counted.
      times: of windows; a wait that is compared stands for when the next event is.
      many: whether these are more than are counted, see `strongest`; no totals are listed then.
    """

    totals: tuple[TotalCandidate, ...]
    compared: tuple[tuple[int, int], ...]
    differences: tuple[DifferenceCandidate, ...] = ()
    many: bool = False
    times: tuple[NextTime, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.totals or self.compared)  # else there may be nothing to ask about


def relation_candidates(codec: Codec) -> RelationCandidates:
    """All that might hold, by what is public of the columns."""
    numeric, ranked = _numeric(codec)
    times = tuple(next_times(codec.domain.roles, codec.blocks))
    compared = (*_comparable(codec), *_bounding(codec, times))
    fields, apart = tuple(_fields(codec)), tuple(difference_candidates(codec))
    if len(compared) <= MOST_CANDIDATES:
        for parts in (numeric + ranked, numeric):
            if len(numeric) * math.comb(max(0, len(parts) - 1), 2) <= MOST_TRIPLES:
                totals = (*fields, *_totals(numeric, {total.index: parts for total in numeric}))
                if len(totals) <= MOST_CANDIDATES:
                    return RelationCandidates(totals, compared, apart, times=times)
    return RelationCandidates(fields, compared, apart, many=True, times=times)


def strongest(
    codec: Codec,
    candidates: RelationCandidates,
    strength: Strength,
    possible: Callable[[TotalCandidate], bool],
) -> RelationCandidates:
    """Those that go together most; a total goes together with either part, and least with one.

    Args:
      candidates: see `relation_candidates`; returned as they are where they are few.
      possible: whether columns by themselves leave room for a total.
    """
    if not candidates.many:
        return candidates
    numeric, ranked = _numeric(codec)
    parts = {
        total.index: sorted(
            (block for block in numeric + ranked if block is not total),
            key=lambda block: strength(total.index, block.index),
            reverse=True,
        )[:MOST_PARTS]
        for total in numeric
    }

    def of_total(one: TotalCandidate) -> float:
        return strength(one.total, one.left) + strength(one.total, one.right)

    columns = len(codec.blocks)
    found = sorted(filter(possible, _totals(numeric, parts)), key=of_total, reverse=True)
    each = [[one for one in found if one.total == total.index] for total in numeric]
    totals = sorted(chain(*(own[:OF_EACH] for own in each)), key=of_total, reverse=True)
    compared = sorted(candidates.compared, key=lambda pair: strength(*pair), reverse=True)
    return RelationCandidates(
        (*candidates.totals, *totals[: int(TOTALS_A_COLUMN * columns)]),
        tuple(compared[: int(COMPARED_A_COLUMN * columns)]),
        candidates.differences,
        times=candidates.times,
    )


def _numeric(codec: Codec) -> tuple[list[Block], list[Block]]:
    """Numbers on a step grid, of which totals are made, and lists whose ranks are numbers.

    Of windows, those of the person: walks draw events one after another, and add nothing up.
    """
    roles = codec.domain.roles
    own = [b for b in codec.blocks if not roles or roles[b.column.name][0] == PERSON]
    numeric = [b for b in own if b.number is not None and b.column.step > 0]
    ranked = [b for b in own if b.column.kind is Kind.ORDERED and _ranks(b)]
    return numeric, ranked


def _fields(codec: Codec) -> Iterator[TotalCandidate]:
    """Columns whose names say that they are the year, month or the like of a date beside them."""
    dates = [block for block in codec.blocks if block.column.kind is Kind.DATETIME]
    for block in codec.blocks:
        if block.column.kind is Kind.INTEGER or (block.number is None and _ranks(block)):
            for date, field in product(dates, named_fields(block.column.name)):
                yield TotalCandidate(block.index, date.index, date.index, 0.0, field)


def _totals(
    numeric: Sequence[Block], parts: Mapping[int, Sequence[Block]]
) -> Iterator[TotalCandidate]:
    """Totals of two of the parts that might be a number's."""
    for total in numeric:
        for pair in combinations([b for b in parts[total.index] if b is not total], 2):
            if (candidate := _could_add_up(total, *sorted(pair, key=_undated))) is not None:
                yield candidate
            if _could_multiply(total, *pair):
                yield TotalCandidate(total.index, pair[0].index, pair[1].index, 0.0)


def _comparable(codec: Codec) -> Iterator[tuple[int, int]]:
    """Two dates or two other numbers each, whose ranges meet.

    Of windows, those of the person, and of a number and the same in the next event.
    """
    roles = codec.domain.roles
    numeric = [block for block in codec.blocks if block.number is not None]
    for one, other in combinations(numeric, 2):
        if roles and not comparable(*(roles[block.column.name] for block in (one, other))):
            continue
        low, high = max(one.line.low, other.line.low), min(one.line.high, other.line.high)
        if _undated(one) == _undated(other) and low < high:
            yield one.index, other.index


def _bounding(codec: Codec, times: Sequence[NextTime]) -> Iterator[tuple[int, int]]:
    """A person's numbers that events may begin after, or end by: the first ones, and all others.

    Numbers that are no dates must reach about as far as those that sort events, or they would be in
    order for no reason.
    """
    roles = codec.domain.roles
    numeric = [block for block in codec.blocks if block.number is not None]
    for time, own in product(times, numeric):
        first = codec.blocks[time.first]
        if roles[own.column.name][0] != PERSON or _undated(own) != _undated(first):
            continue
        ends = [(block.line.low, block.line.high) for block in (own, first)]
        (low, high), (least, most) = ends
        shared = min(high, most) - max(low, least)
        if shared > 0.0 and (
            not _undated(own) or TWO_RUNGS * shared >= max(high - low, most - least)
        ):
            yield own.index, time.first
            yield own.index, time.wait


def _undated(block: Block) -> bool:
    return block.column.kind is not Kind.DATETIME


def _could_add_up(total: Block, left: Block, right: Block) -> TotalCandidate | None:
    """Dates are dates plus whole steps of theirs; numbers are sums of none that are finer."""
    dated = not _undated(total)
    if dated == _undated(left) or not _undated(right):
        return None
    unit = total.column.step if dated else 1.0
    finest = 1.0 if dated else _step(total)
    parts = (right,) if dated else (left, right)
    if finest > NEARLY * min(map(_step, parts)):
        return None
    ends, one, other = (_ends(block) for block in (total, left, right))
    if one[0] + unit * other[0] > ends[1] or one[1] + unit * other[1] < ends[0]:
        return None
    if not dated and min(one[0], other[0]) >= 0.0 and max(one[1], other[1]) > TWO_RUNGS * ends[1]:
        return None
    return TotalCandidate(total.index, left.index, right.index, unit)


def _could_multiply(total: Block, left: Block, right: Block) -> bool:
    """Plain numbers, of which the product is as fine and reaches as far as either alone.

    Learned bounds are round, and noise leads some too far.
    """
    if not all(map(_undated, (total, left, right))):
        return False
    if _step(total) > NEARLY * max(_step(left), _step(right)):
        return False
    far, one, other = (max(map(abs, _ends(block))) for block in (total, left, right))
    return max(one, other) <= OVERSHOT * far and far <= TWO_RUNGS * one * other


def _ranks(block: Block) -> bool:
    """Whether a list's labels are numbers, two of them at least."""
    return int((~np.isnan(block.label_numbers)).sum()) > 1


def _step(block: Block) -> float:
    if block.number is not None:
        return block.column.step
    return number_step(block.label_numbers[~np.isnan(block.label_numbers)])


def _ends(block: Block) -> tuple[float, float]:
    """The least and the greatest number of a column."""
    if block.number is not None:
        return block.line.low, block.line.high
    return float(np.nanmin(block.label_numbers)), float(np.nanmax(block.label_numbers))
