"""Which numbers have one unit, so that how far apart they lie might be counted; public facts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import combinations
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from core.encoding.codec import Block, Codec, Codes
from core.models.steps.counting.densities import COARSE
from core.models.steps.counting.window_pairs import comparable
from core.schema.calendar import DAY
from core.schema.column import Kind

Floats = NDArray[np.float64]
Unit = Literal["own", "years", "log"]
FINE = 256  # cells of a histogram of differences
CELLS = FINE + FINE // COARSE  # that are counted, coarse ones after them
# Mean squared correlation of random signs of two columns, from which on their difference is asked
# about: signs of numbers with a correlation of about a half have this.
LEAST_DEPENDENCE = 0.05
YEAR = 365.2425 * DAY  # seconds, on average
FIRST_YEAR, LAST_YEAR = 1500.0, 2200.0  # between which whole numbers are taken for years


@dataclass(frozen=True)
class DifferenceCandidate:
    """Two numeric columns of one unit, by block indices.

    Attributes:
      unit: what they are compared in: years, if they are dates or such numbers, logarithms, or
        their own.
    """

    first: int
    second: int
    unit: Unit

    def ends(self, blocks: Sequence[Block]) -> tuple[float, float]:
        """The least and the greatest difference, second - first, that bounds leave."""
        low, high = _ends(self.unit, blocks[self.first])
        least, most = _ends(self.unit, blocks[self.second])
        return least - high, most - low

    def numbers(self, blocks: Sequence[Block], codes: Codes) -> tuple[Floats, Floats]:
        """Both columns' numbers in the unit, [n] each; NaN where either is no value of its line."""
        both = blocks[self.first], blocks[self.second]
        other = np.any([np.asarray(codes.states[:, block.index]) != 0 for block in both], axis=0)
        first, second = (
            np.where(other, np.nan, along(self.unit, block, codes.numbers(block))) for block in both
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
    """All columns of one unit whose ranges meet; of windows, what is `comparable`."""
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
        if meet and (role is None or other is None or comparable(role, other)):
            yield DifferenceCandidate(first, second, unit)


def asked_differences(
    candidates: Sequence[DifferenceCandidate],
    dependence: Mapping[tuple[int, ...], float],
    tagged: Set[int],
) -> tuple[DifferenceCandidate, ...]:
    """Those that go together most, as many as there are columns among them at most.

    Args:
      dependence: mean squared correlation of signs of two columns, by block indices.
      tagged: columns of which nothing is asked.
    """
    free = (one for one in candidates if not {one.first, one.second} & tagged)
    found = [(dependence.get((one.first, one.second), 0.0), one) for one in free]
    clear = [(much, one) for much, one in found if much > LEAST_DEPENDENCE]
    columns = {index for _, one in clear for index in (one.first, one.second)}
    clear.sort(key=lambda pair: -pair[0])
    return tuple(one for _, one in clear[: len(columns)])


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
