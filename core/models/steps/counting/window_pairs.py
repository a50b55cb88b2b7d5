"""What the pairs of a window's columns matter, for histories that are drawn event by event."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from core.encoding.codec import Block, Codes
from core.encoding.windows import AGAIN, FIRST, GAP, LEFT, NEXT, NOW, NUMBER, OWNER, PERSON, SINCE

Floats = NDArray[np.float64]
Role = tuple[str, str, int]  # of which file's events, too

OF_PERSON, DRAWN = {PERSON, NUMBER, FIRST}, {NEXT, GAP}
FOLLOWS = 150.0  # lists with themselves in the next event, all together: transition matrices
GOES_ON = 20.0  # numbers with themselves in the next event
WAITS = 40.0  # the wait with the number of events: who has many waits less
ENDS = 15.0  # lists of the next event with how many there are and are left: where histories end
TOGETHER = 3.0  # lists of one event, and the first one with what holds for the person
STEP = 1.5  # the next event with what is known before it
GIVEN = 0.3  # weight of counts of a column that a walk never draws
LISTED = 2.0  # times as much of two lists, whose labels people compare


def column_weights(
    roles: Mapping[str, Role], blocks: Sequence[Block], cells: Sequence[int]
) -> tuple[float, ...]:
    """What each column's counts are multiplied by, so that all are least far off together.

    A column of k cells is off by k / w, and the sum is least at w = ∛k. Windows are drawn by a few
    columns that all matter alike; what lies before the next event has been drawn by then, so it is
    counted to find cells alone.

    Args:
      cells: of each column.
    """
    if not roles:
        return tuple(map(math.cbrt, cells))
    drawn = OF_PERSON | DRAWN | {OWNER}  # by whose cells events are told apart
    return tuple(1.0 if roles[block.column.name][0] in drawn else GIVEN for block in blocks)


def window_importance(
    roles: Mapping[str, Role], blocks: Sequence[Block], pairs: Sequence[tuple[int, ...]]
) -> Floats:
    """How often each pair's error counts, float64 [pairs]; 1 for tables that are no windows.

    A walk draws the next event given the person, the event before and what has been so far, so
    pairs of one with the other say most. What those that are given have to do with one another, it
    never asks.
    """
    if not roles:
        return np.ones(len(pairs))
    role = [roles[block.column.name] for block in blocks]
    listed = [block.number is None for block in blocks]
    drawn = zip(role, listed, strict=True)
    lists = Counter(file for (kind, _, file), label in drawn if label and kind == NEXT)
    owned = {file for kind, _, file in role if kind == OWNER}
    return np.array(
        [
            _importance(role[a], role[b], max(1, lists[role[b][2]]) * (listed[a] and listed[b]))
            if _meet(role[a], role[b], owned)
            else 0.0
            for a, b in pairs
        ]
    )


def _meet(one: Role, other: Role, owned: Collection[int]) -> bool:
    """Whether a walk may ask for a pair: owners are known before their events, and walks of them.

    Args:
      owned: files whose events belong to rows of another file.
    """
    kinds = {one[0], other[0]}
    if kinds <= {OWNER, PERSON}:
        return kinds == {PERSON}
    return one[2] == other[2] or PERSON in kinds or not {one[2], other[2]} & set(owned)


def matters(roles: Mapping[str, Role], blocks: Sequence[Block], features: Sequence[int]) -> int:
    """How many pairs say what is not known otherwise: all of tables that are no windows."""
    return int((window_importance(roles, blocks, tuple(combinations(features, 2))) > 0.0).sum())


def _importance(one: Role, other: Role, lists: int) -> float:
    """Of a pair; `lists`: how many lists an event has, at least 1, where both are lists; else 0."""
    kinds, listed = {PERSON if kind == OWNER else kind for kind in (one[0], other[0])}, lists > 0
    twice = LISTED if listed else 1.0
    if kinds <= OF_PERSON:
        owned = OWNER in (one[0], other[0])
        begins = owned or (FIRST in kinds and (listed or PERSON in kinds))
        return twice * (TOGETHER if begins else 1.0)
    if one[2] != other[2] and PERSON not in kinds:
        return 0.0  # windows of two files stand beside each other in no order
    if AGAIN in kinds:
        return GOES_ON * (kinds == {AGAIN, NEXT} and one[1] == other[1])
    if kinds <= DRAWN:
        return twice * (TOGETHER if listed else 1.0)
    if FIRST in kinds or not kinds & DRAWN:
        return 0.0  # what other pairs say already, or follows from how windows are made
    if kinds == {NOW, NEXT} and one[1] == other[1]:
        return twice * FOLLOWS / lists if listed else GOES_ON
    if listed and NEXT in kinds and kinds & {NUMBER, LEFT}:
        return twice * ENDS / lists
    return WAITS if kinds == {NUMBER, GAP} else twice * STEP


@dataclass(frozen=True)
class NextTime:
    """When the next event of a window is: its person's first time, and what has passed since.

    Attributes:
      first, since, wait: block indices.
      unit: what one of a wait is worth in the first time's unit.
    """

    first: int
    since: int
    wait: int
    unit: float

    def numbers(self, blocks: Sequence[Block], codes: Codes) -> Floats:
        """Float64 [n], NaN where there is none; of events that take time, from the end of one."""
        first, since, wait = (
            codes.numbers(blocks[index]) for index in (self.first, self.since, self.wait)
        )
        return first + self.unit * (since + wait)


def next_times(roles: Mapping[str, Role], blocks: Sequence[Block]) -> Iterator[NextTime]:
    """Of each file whose events a number or a date sorts."""
    index = {roles[block.column.name]: block for block in blocks if block.column.name in roles}
    for kind, source, file in index:
        first, sorts = index[kind, source, file], (NEXT, source, file) not in index
        if kind == FIRST and sorts and first.number is not None and (GAP, "", file) in index:
            since, wait = (index[role, "", file].index for role in (SINCE, GAP))
            yield NextTime(first.index, since, wait, first.column.step or 1.0)


def comparable(one: Role, other: Role) -> bool:
    """Whether both are a person's, or the same column of an event and of the next one."""
    kinds = {one[0], other[0]}
    return kinds == {PERSON} or (kinds == {NOW, NEXT} and one[1:] == other[1:])


def none_cells(
    roles: Mapping[str, Role], blocks: Sequence[Block], missing: Sequence[int | None]
) -> dict[int, int]:
    """By column, the cell that says that its person has no window; none of tables that are none.

    Args:
      missing: of each column, the cell that says that it is missing.
    """
    cells = zip(blocks, missing, strict=True) if roles else ()
    return {
        block.index: cell
        for block, cell in cells
        if cell is not None and roles[block.column.name][0] not in OF_PERSON
    }
