"""The design of the measurements: which sets of columns, from public facts alone; needs no torch.

Plan and fit must agree on it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations, product

import numpy as np
from numpy.typing import NDArray

from core.encoding.codec import Block, Codec
from core.encoding.windows import PERSON
from core.models.steps.counting.window_pairs import matters
from core.privacy.plan import Plan
from core.schema.calendar import named_fields, number_of
from core.schema.column import Kind
from core.schema.round_bounds import number_step

Floats = NDArray[np.float64]
SCALES, COLUMNS, SCAN, RELATIONS, PAIRS, PAIRS_AGAIN, ZEROS, FOCUS = (
    "scales", "columns", "scan", "relations", "pairs", "pairs_again", "zeros", "focus",
)  # fmt: skip
SHARES = {
    SCALES: 0.10, COLUMNS: 0.17, SCAN: 0.08, RELATIONS: 0.02, PAIRS: 0.22, PAIRS_AGAIN: 0.22,
    ZEROS: 0.03, FOCUS: 0.16,
}  # fmt: skip
# where numbers take more values than a column has cells: positions within a cell are known from
# histograms alone, cells again from pairs
LONG = {SCALES: 0.16, COLUMNS: 0.11}
# records a unit of noise: with fewer, noise hides the counts; with more, the usual share is enough
LONG_SNR_FROM, LONG_SNR_TO = 2_100.0, 13_000.0
# of tables with more pairs than are all counted: what the scan misses is not counted at all
SHARES_WIDE = SHARES | {SCAN: 0.35, PAIRS: 0.125, PAIRS_AGAIN: 0.125, FOCUS: 0.08}
ALL_PAIRS = 400  # so many are all counted; of more, the significant ones
TOGETHER = 2  # columns, besides the target, that calibrated models count together
CELLS = 32  # that a column gets at most
MOST_CLASSES = 8  # a target with more states is counted as an ordinary column
MOST_SETS = 3000  # that are scanned, unless there are more pairs than that
MOST_NUMBERS = 8000  # signs of all sets together, of which a set gets `SIGNS` at most
SIGNS = 4
MOST_CANDIDATES, MOST_TRIPLES = 300, 10_000  # that are counted, and looked at
NEARLY = 1.0 + 1e-9
TWO_RUNGS = 5.0  # the farthest that one round number is from the next but one
OVERSHOT = 25.0  # by which noise may lead a bound too far, two rungs twice
# standard deviations above noise, of larger sets that count; a rough model may miss a little
SET_SNR_THRESHOLD = 25.0


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
class Design:
    """What is measured of a table.

    Attributes:
      classes: how many states it has; 1 without a class.
      features: block indices of all columns but the class.
      sizes: columns of the largest sets that are scanned.
      signs: sign patterns a column gets.
      compared: block indices of two numeric columns that are compared.
      long: whether a number takes more values than a column has cells.
      learned: block indices of lists that this run learns; their counts are known with them.
      wide: whether there are too many pairs for all to be counted.
    """

    columns: int
    condition: int | None
    classes: int
    features: tuple[int, ...]
    sizes: int
    signs: int
    totals: tuple[TotalCandidate, ...]
    compared: tuple[tuple[int, int], ...]
    long: bool
    learned: frozenset[int]
    wide: bool

    @classmethod
    def of(cls, codec: Codec, most_together: int) -> Design:
        """The design for a domain and the largest set that may be scanned."""
        target = codec.target_block(MOST_CLASSES) if len(codec.blocks) > 2 else None
        condition = None if target is None else target.index
        features = tuple(block.index for block in codec.blocks if block.index != condition)
        sizes, total = 1, 0
        for size in range(2, min(most_together, len(features)) + 1):
            total += math.comb(len(features), size)
            if size > 2 and total > MOST_SETS:
                break
            sizes = size
        count = sum(math.comb(len(features), size + 1) for size in range(sizes))
        return cls(
            columns=len(codec.blocks),
            condition=condition,
            classes=1 if target is None else len(target.states),
            features=features,
            sizes=sizes,
            signs=min(SIGNS, max(1, MOST_NUMBERS // count)),
            totals=_total_candidates(codec),
            compared=_comparable(codec),
            long=any(_is_long(block) for block in codec.blocks),
            learned=frozenset(block.index for block in codec.blocks if _is_learned(block)),
            wide=matters(codec.domain.roles, codec.blocks, features) > ALL_PAIRS,
        )

    def within_noise(self, plan: Plan) -> Design:
        """Without sets of three or more columns that noise hides even if they show all they could.

        That is one sign for all records in one pattern, as a parity does. The fewer sets there are,
        the less noise have the others.
        """
        clear = SET_SNR_THRESHOLD * math.sqrt(2.0 * self.signs * self.classes)
        fewer = self
        while fewer.sizes > 2:
            noise = plan.phase(SCAN).noise_multiplier * math.sqrt(self.signs * fewer.scanned)
            if noise * math.sqrt(clear) <= plan.n:
                break
            fewer = replace(fewer, sizes=fewer.sizes - 1)
        return fewer

    @cached_property
    def sets(self) -> tuple[tuple[tuple[int, ...], ...], ...]:
        """Sets of block indices that are scanned, by size: singles first."""
        return tuple(tuple(combinations(self.features, size + 1)) for size in range(self.sizes))

    @property
    def pairs(self) -> tuple[tuple[int, ...], ...]:
        """All pairs of features; empty for a single column."""
        return self.sets[1] if self.sizes > 1 else ()

    @property
    def larger(self) -> bool:
        """Whether sets of three or more columns are scanned."""
        return self.sizes > 2

    @property
    def scanned(self) -> int:
        """How many sets are scanned, singles included."""
        return sum(math.comb(len(self.features), size + 1) for size in range(self.sizes))

    def shares(self, n: int, scale: float, *, focus: bool = True) -> dict[str, float]:
        """Shares of the composed Gaussian's 1/σ², by phase; they sum to one.

        Lists that the run learns have got their part already, see `list_share`. One column's part
        is always kept: rules may lay a list out otherwise once it is known.

        Args:
          focus: whether something is counted last; else the pairs get its share.

        >>> [round(sum(s.values()), 9) for s in (SHARES, SHARES | LONG, SHARES_WIDE)]
        [1.0, 1.0, 1.0]
        """
        shares = SHARES_WIDE if self.wide else SHARES
        if shares is SHARES and self.long and LONG_SNR_FROM * scale <= n <= LONG_SNR_TO * scale:
            shares = SHARES | LONG
        if not focus:
            half = (shares[ZEROS] + shares[FOCUS]) / 2.0
            shares = shares | {name: shares[name] + half for name in (PAIRS, PAIRS_AGAIN)}
        names = [SCALES, COLUMNS]
        if self.sizes > 1:
            names += [SCAN, *([RELATIONS] if self.totals or self.compared else [])]
            names += [PAIRS, PAIRS_AGAIN]
            names += [ZEROS, FOCUS] if focus else []
        whole = sum(shares[name] for name in names)
        left = 1.0 - min(len(self.learned), self.columns - 1) / self.columns
        single = (SCALES, COLUMNS)
        return {name: shares[name] / whole * (left if name in single else 1.0) for name in names}


def list_share(columns: int) -> float:
    """The share of the composed Gaussian's 1/σ² that goes to counts of one of so many columns."""
    return (SHARES[SCALES] + SHARES[COLUMNS]) / columns


def _is_learned(block: Block) -> bool:
    learned = block.column.learned
    if learned is None or learned.entry or block.number is not None:
        return False
    return learned.domain == block.column.domain_digest


def _is_long(block: Block) -> bool:
    if block.number is None:
        return False
    line = block.line
    return line.step <= 0.0 or (line.high - line.low) / line.step >= CELLS


def _total_candidates(codec: Codec) -> tuple[TotalCandidate, ...]:
    """What could add up, multiply or be a field of a date; none where there would be too many.

    The total is on a step grid, and so are the others, or they are ranks that are numbers.
    """
    numeric = [b for b in codec.blocks if b.number is not None and b.column.step > 0]
    ranked = [b for b in codec.blocks if b.column.kind is Kind.ORDERED and _ranks(b)]
    for parts in (numeric + ranked, numeric):
        if len(numeric) * math.comb(max(0, len(parts) - 1), 2) <= MOST_TRIPLES:
            found = [*_fields(codec), *_totals(numeric, parts)]
            if len(found) <= MOST_CANDIDATES:
                return tuple(found)
    return ()


def _fields(codec: Codec) -> Iterator[TotalCandidate]:
    """Columns whose names say that they are the year, month or the like of a date beside them."""
    dates = [block for block in codec.blocks if block.column.kind is Kind.DATETIME]
    for block in codec.blocks:
        if block.column.kind is Kind.INTEGER or (block.number is None and _ranks(block)):
            for date, field in product(dates, named_fields(block.column.name)):
                yield TotalCandidate(block.index, date.index, date.index, 0.0, field)


def _totals(numeric: Sequence[Block], parts: Sequence[Block]) -> Iterator[TotalCandidate]:
    for total in numeric:
        for pair in combinations([b for b in parts if b is not total], 2):
            if (candidate := _could_add_up(total, *sorted(pair, key=_undated))) is not None:
                yield candidate
            if _could_multiply(total, *pair):
                yield TotalCandidate(total.index, pair[0].index, pair[1].index, 0.0)


def _comparable(codec: Codec) -> tuple[tuple[int, int], ...]:
    """Two dates or two other numbers each, whose ranges meet; none where there are too many.

    Of windows, those of the person: what a walk draws keeps no relation.
    """
    roles = codec.domain.roles
    numeric = [
        block
        for block in codec.blocks
        if block.number is not None and (not roles or roles[block.column.name][0] == PERSON)
    ]
    pairs = tuple(
        (one.index, other.index)
        for one, other in combinations(numeric, 2)
        if _undated(one) == _undated(other)
        and max(one.line.low, other.line.low) < min(one.line.high, other.line.high)
    )
    return pairs if len(pairs) <= MOST_CANDIDATES else ()


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
