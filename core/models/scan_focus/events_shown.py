"""What released counts of windows say of events as a whole; post-processing.

A mixture spreads noise thinly over all cells. Of a number of events that is nearly always small, a
few people with the most there can be would double all events; and where few people have any, noise
alone would let one in three miss a column that no event misses.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from core.encoding.codec import Block
from core.encoding.windows import FIRST, NUMBER, RARELY_MISSING
from core.models.steps.counting.releases import Releases

Floats = NDArray[np.float64]
# standard deviations of noise from which on it errs less to keep a tail than to leave it out
TAIL_SNR_THRESHOLD = math.sqrt(2.0)
MISSING_SNR_THRESHOLD = 2.0  # … that missing cells of events must


def without_far_numbers(known: Releases, shares: Tensor) -> Tensor:
    """Components' shares of cells without numbers of events from which on counts show nobody.

    Args:
      shares: [components, cells of all columns].
    """
    ends = np.cumsum([0, *(scale.size for scale in known.scales)])
    shares = shares.clone()
    for block, _ in of_role(known, NUMBER):
        own = shares[:, ends[block.index] : ends[block.index + 1]]
        most = _most_shown(*_counted(known, block))
        own[:, most] += (own[:, : most + 1].sum(dim=1) <= 0.0).to(own)  # who has more has the most
        own[:, most + 1 :] = 0.0
        own /= own.sum(dim=1, keepdim=True)
    return shares


def _most_shown(counts: Floats, std: Floats) -> int:
    """The last label from which on counts together stand above their noise, or up to which they do.

    A tail of many small counts shows only as a whole; a few greater ones are not lost among the
    noise of all that could come after them.

    >>> _most_shown(np.array([900.0, 90, 4, 3, -1]), np.full(5, 5.0))
    1
    >>> _most_shown(np.array([900.0, 90, 20, 9, -9, -9, -4]), np.full(7, 5.0))
    3
    """
    least = TAIL_SNR_THRESHOLD * std
    tails = np.cumsum(counts[::-1])[::-1]
    noise = np.sqrt(np.cumsum(np.square(least)[::-1])[::-1])
    whole = int(np.flatnonzero(np.append(True, tails[1:] > noise[1:]))[-1])
    # How much less it errs to keep the first ones than none, as far as counts say themselves.
    gains = np.cumsum(np.square(counts.clip(0.0)) - np.square(least))
    return max(whole, int(gains.argmax()))


def never_missing(known: Releases) -> list[str]:
    """First events' columns that are missing no more often than there is no event, but for noise.

    Then no event misses them.
    """
    numbers = {side: block for block, side in of_role(known, NUMBER)}
    found = []
    for block, side in of_role(known, FIRST):
        if (cell := known.scales[block.index].missing_cell) is None or side not in numbers:
            continue
        gone, noise = (float(one[cell]) for one in _counted(known, block))
        nobody, other = 0.0, 0.0
        if numbers[side].states[0] == "0":
            nobody, other = (float(one[0]) for one in _counted(known, numbers[side]))
        lacking = gone - nobody - RARELY_MISSING * (known.table.n - nobody)
        if lacking <= MISSING_SNR_THRESHOLD * math.hypot(noise, other):
            found.append(block.column.name)
    return found


def of_role(known: Releases, role: str) -> Iterator[tuple[Block, int]]:
    """Blocks of windows with a role, and of which file they are."""
    roles = known.codec.domain.roles
    for block in known.codec.blocks if roles else ():
        own, _, side = roles[block.column.name]
        if own == role:
            yield block, side


def _counted(known: Releases, block: Block) -> tuple[Floats, Floats]:
    """A column's counts by cell and their standard deviations."""
    counts = known.column_counts[block.index]
    return counts, np.broadcast_to(np.asarray(known.column_noise[block.index]), counts.shape)
