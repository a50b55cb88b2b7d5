"""Heaping: people write amounts in round numbers, so rows that are drawn are rounded as theirs are.

A run that learns a column's bounds also learns how many of its numbers are multiples of 5, 10, 50
and so on (`core.privacy.discovery.grids`). Models draw positions on a line and know none of it.
Here each number moves to a round one next to it, as often as was learned. It stays within one part
in 256 of the line, as fine as histograms are, or in 64 where so many numbers are round that fewer
would have a round one near, so that distributions keep their shape.

Source: Roberts and Brewer, "Measures and tests of heaping in discrete quantitative distributions",
Journal of Applied Statistics 2001 (shares of heaps against those of a smooth distribution).
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from core.encoding.codec import Block, Codec, Line
from core.schema.labels import from_numbers, snap, to_numbers

WITHIN, MOST_WITHIN = 1.0 / 256.0, 1.0 / 64.0  # of the line, that a number is rounded in
Floats = NDArray[np.float64]


def heaped(frame: pd.DataFrame, codec: Codec, seed: int) -> pd.DataFrame:
    """Drawn rows with their numbers rounded as often as was learned of each column."""
    chance = np.random.default_rng(seed).random(len(frame))  # one a row: equal numbers stay equal
    for block in codec.blocks:
        learned = getattr(block.column, "learned", None)
        if block.number is None or learned is None or not learned.heaps:
            continue
        name, column = block.column.name, block.column
        numbers = to_numbers(frame[name], column)
        rows = np.flatnonzero(~np.isnan(numbers) & ~np.isin(numbers, column.spikes))
        if not len(rows):
            continue
        rounded = _rounded(numbers[rows], block, learned.heaps, chance[rows])
        moved = rounded != numbers[rows]
        cells = frame[name].to_numpy(copy=True)
        cells[rows[moved]] = from_numbers(rounded[moved], column).to_numpy()
        frame[name] = pd.Series(cells, index=frame.index).astype(frame[name].dtype)
    return frame


def _rounded(
    numbers: Floats, block: Block, heaps: tuple[tuple[float, float], ...], chance: Floats
) -> Floats:
    """Each number or a round one near it, float64 [n].

    From the coarsest step on, numbers with a multiple near are rounded to it as often as makes up
    the learned share.

    Args:
      heaps: ascending steps, the first the column's own, with the shares of numbers that are
        multiples of each and of no coarser one.
      chance: uniform in [0, 1), float64 [n].
    """
    line, own = block.line, heaps[0][0]
    at = line.position(numbers)
    least, most = (_width(line, at, within) for within in (WITHIN, MOST_WITHIN))
    rounded, still = numbers.copy(), np.ones(len(numbers), dtype=bool)
    random, coarser = chance.copy(), np.inf
    for step, share in reversed(heaps):
        near = _nearest(numbers, step, coarser, chance)
        smooth = own / step * (1.0 - step / coarser)  # share in a distribution without heaps
        width = np.clip(own * share / smooth, least, most)
        there = still & (np.abs(near - numbers) <= width / 2.0) & (near != 0.0)
        often = min(1.0, share * len(numbers) / max(1, there.sum()))
        taken = there & (random < often)
        rounded[taken] = near[taken]
        still &= ~taken
        others = there & ~taken
        random[others] = (random[others] - often) / (1.0 - often)
        coarser = step
    return rounded


def _width(line: Line, at: Floats, within: float) -> Floats:
    """How far it is from either side of a place on a line to the other, in its numbers."""
    return np.asarray(line.value(at + within / 2) - line.value(at - within / 2))


def _nearest(numbers: Floats, step: float, coarser: float, chance: Floats) -> Floats:
    """The nearest multiples of one step that are none of a coarser one, float64 [n]."""
    near = snap(numbers, step)
    if not np.isfinite(coarser):
        return near
    too_round = np.isclose(snap(near, coarser), near, rtol=1e-12, atol=0.0)
    upwards = np.where(numbers == near, (4096.0 * chance) % 1.0 < 0.5, numbers > near)
    return np.where(too_round, snap(near + np.where(upwards, step, -step), step), near)
