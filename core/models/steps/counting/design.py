"""The design of the measurements: which sets of columns, from public facts alone; needs no torch.

Plan and fit must agree on it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations

from core.encoding.codec import Block, Codec
from core.models.steps.counting.relation_candidates import (
    RelationCandidates,
    relation_candidates,
)
from core.models.steps.counting.window_pairs import matters
from core.privacy.plan import Plan

SCALES, COLUMNS, SCAN, RELATIONS, PAIRS, PAIRS_AGAIN, ZEROS, FOCUS = (
    "scales", "columns", "scan", "relations", "pairs", "pairs_again", "zeros", "focus",
)  # fmt: skip
SHARES = {
    SCALES: 0.10, COLUMNS: 0.17, SCAN: 0.08, RELATIONS: 0.03, PAIRS: 0.22, PAIRS_AGAIN: 0.22,
    ZEROS: 0.03, FOCUS: 0.15,
}  # fmt: skip
# where numbers take more values than a column has cells: positions within a cell are known from
# histograms alone, cells again from pairs
LONG = {SCALES: 0.16, COLUMNS: 0.11}
# records a unit of noise: with fewer, noise hides the counts; with more, the usual share is enough
LONG_SNR_FROM, LONG_SNR_TO = 2_100.0, 13_000.0
# of tables with more pairs than are all counted: what the scan misses is not counted at all
SHARES_WIDE = SHARES | {SCAN: 0.35, PAIRS: 0.125, PAIRS_AGAIN: 0.125, FOCUS: 0.07}
ALL_PAIRS = 400  # so many are all counted; of more, the significant ones
TOGETHER = 2  # columns, besides the target, that calibrated models count together
CELLS = 32  # that a column gets at most
MOST_CLASSES = 8  # a target with more states is counted as an ordinary column
MOST_SETS = 3000  # that are scanned, unless there are more pairs than that
MOST_NUMBERS = 8000  # signs of all sets together, of which a set gets `SIGNS` at most
SIGNS = 4
# standard deviations above noise, of larger sets that count; a rough model may miss a little
SET_SNR_THRESHOLD = 25.0


@dataclass(frozen=True)
class Design:
    """What is measured of a table.

    Attributes:
      classes: how many states it has; 1 without a class.
      features: block indices of all columns but the class.
      sizes: columns of the largest sets that are scanned.
      signs: sign patterns a column gets.
      related: which columns may add up, multiply, follow one another or be equal.
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
    related: RelationCandidates
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
            related=relation_candidates(codec),
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
            names += [SCAN, *([RELATIONS] if self.related else [])]
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
