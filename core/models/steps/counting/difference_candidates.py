"""Which numbers might lie close together, in one unit or by their ranks; public facts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from core.encoding.codec import Block, Codec, Codes
from core.models.steps.counting.lines.densities import COARSE
from core.models.steps.counting.window_pairs import comparable
from core.schema.calendar import DAY
from core.schema.column import Kind

Floats = NDArray[np.float64]
Unit = Literal["own", "years", "log", "ranks", "ranks from either end"]
Curve = tuple[tuple[float, ...], tuple[float, ...]]  # ascending numbers, and the rank of each
FINE = 256  # cells of a histogram of differences
CELLS = FINE + FINE // COARSE  # that are counted, coarse ones after them
YEAR = 365.2425 * DAY  # seconds, on average
FIRST_YEAR, LAST_YEAR = 1500.0, 2200.0  # between which whole numbers are taken for years


@dataclass(frozen=True)
class DifferenceCandidate:
    """Two numeric columns, by block indices.

    Attributes:
      unit: what they are compared in: years, if they are dates or such numbers, logarithms, their
        own, or, of unlike columns, ranks in [0, 1], the first's from above if they go together so.
      curves: of ranks, how they follow from released shares, of either column.
    """

    first: int
    second: int
    unit: Unit
    curves: tuple[Curve, ...] = ()

    def along(self, block: Block, numbers: Floats) -> Floats:
        """Numbers of either column in the unit."""
        if not self.curves:
            return along(self.unit, block, numbers)
        second = block.index == self.second
        ranks = np.interp(numbers, *self.curves[second])
        return ranks if second or self.unit == "ranks" else 1.0 - ranks

    def ends(self, blocks: Sequence[Block]) -> tuple[float, float]:
        """The least and the greatest difference, second - first, that bounds leave."""
        if self.curves:
            return -1.0, 1.0
        low, high = _ends(self.unit, blocks[self.first])
        least, most = _ends(self.unit, blocks[self.second])
        return least - high, most - low

    def numbers(self, blocks: Sequence[Block], codes: Codes) -> tuple[Floats, Floats]:
        """Both columns' numbers in the unit, [n] each; NaN where either is no value of its line."""
        both = blocks[self.first], blocks[self.second]
        other = np.any([np.asarray(codes.states[:, block.index]) != 0 for block in both], axis=0)
        first, second = (
            np.where(other, np.nan, self.along(block, codes.numbers(block))) for block in both
        )
        return first, second

    def cells(self, blocks: Sequence[Block], codes: Codes) -> NDArray[np.int64]:
        """The fine cell of each record's difference, int64 [n]; `FINE` where there is none."""
        low, high = self.ends(blocks)
        first, second = self.numbers(blocks, codes)
        gap = second - first
        cell = np.floor((np.nan_to_num(gap) - low) / (high - low) * FINE)
        return np.where(np.isnan(gap), FINE, cell.clip(0, FINE - 1)).astype(np.int64)


def difference_candidates(codec: Codec) -> Iterator[DifferenceCandidate]:
    """All numeric columns, by ranks where they have no unit in common or ranges that do not meet.

    Of windows, those that are `comparable`.
    """
    roles = codec.domain.roles
    numeric = [
        (block.index, roles.get(block.column.name), unit, *_ends(unit, block))
        for block in codec.blocks
        if block.number is not None
        for unit in [_unit(block)]
    ]
    for (first, role, unit, low, high), (second, other, same, least, most) in combinations(
        numeric, 2
    ):
        meet = unit == same and low < most and least < high
        lines = low < high and least < most
        if lines and (role is None or other is None or comparable(role, other)):
            yield DifferenceCandidate(first, second, unit if meet else "ranks")


def _unit(block: Block) -> Unit:
    line, column = block.line, block.column
    whole = column.kind is Kind.INTEGER and not line.log
    if _dated(block) or (whole and FIRST_YEAR <= line.low and line.high <= LAST_YEAR):
        return "years"
    return "log" if line.log else "own"


def along(unit: Unit, block: Block, numbers: Floats) -> Floats:
    """A column's numbers in a unit."""
    if unit == "years" and _dated(block):
        return 1970.0 + numbers / YEAR
    return np.arcsinh(numbers / block.line.unit) if unit == "log" else numbers


def _ends(unit: Unit, block: Block) -> tuple[float, float]:
    low, high = along(unit, block, np.array([block.line.low, block.line.high])).tolist()
    return low, high


def _dated(block: Block) -> bool:
    return block.column.kind is Kind.DATETIME
