"""Heaping: people write amounts in round numbers, so rows that are drawn are rounded as theirs are.

A run that learns a column's bounds also learns how many of its numbers are multiples of 5, 10, 50
and so on (`core.privacy.discovery.grids`). Models draw positions on a line and know none of it.
Here each number moves to a round one next to it, as often as was learned. It stays within one part
in 256 of the line, as fine as histograms are, so that distributions keep their shape.

Source: Roberts and Brewer, "Measures and tests of heaping in discrete quantitative distributions",
Journal of Applied Statistics 2001 (shares of heaps against those of a smooth distribution).
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from core.encoding.codec import Block, Codec
from core.schema.labels import from_numbers, snap, to_numbers

WITHIN = 1.0 / 256.0  # of the line, that a number is rounded in
Floats = NDArray[np.float64]


def heaped(frame: pd.DataFrame, codec: Codec, seed: int) -> pd.DataFrame:
    """Drawn rows with their numbers rounded as often as was learned of each column."""
    random = np.random.default_rng(seed)
    for block in codec.blocks:
        learned = getattr(block.column, "learned", None)
        if block.number is None or learned is None or not learned.heaps:
            continue
        name, column = block.column.name, block.column
        numbers = to_numbers(frame[name], column)
        rows = np.flatnonzero(~np.isnan(numbers) & ~np.isin(numbers, column.spikes))
        if not len(rows):
            continue
        rounded = _rounded(numbers[rows], block, learned.heaps, random.random(len(rows)))
        moved = rounded != numbers[rows]
        cells = frame[name].to_numpy(copy=True)
        cells[rows[moved]] = from_numbers(rounded[moved], column).to_numpy()
        frame[name] = pd.Series(cells, index=frame.index).astype(frame[name].dtype)
    return frame


def _rounded(
    numbers: Floats, block: Block, heaps: tuple[tuple[float, float], ...], chance: Floats
) -> Floats:
    """Each number or a round one near it, float64 [n].

    A step is chosen in proportion to its learned share, and where fewer than one of its multiples
    is to be expected so near, to as many times that as makes up for the places without any.

    Args:
      heaps: ascending steps, the first the column's own, with the shares of numbers that are
        multiples of each and of no coarser one.
      chance: uniform in [0, 1), float64 [n].
    """
    line, own = block.line, heaps[0][0]
    at = line.position(numbers)
    ends = line.value(np.array([at - WITHIN / 2, at + WITHIN / 2]))
    places = np.maximum((ends[1] - ends[0]) / own, 1.0)
    steps = [step for step, _ in heaps]
    choices, weights = [], []
    for (step, share), coarser in zip(heaps, [*steps[1:], np.inf], strict=True):
        near = _nearest(numbers, step, coarser, chance)
        smooth = own / step * (1.0 - step / coarser)  # share in a distribution without heaps
        there = (near >= ends[0]) & (near <= ends[1]) & (near != 0.0)
        choices.append(near)
        weights.append(np.where(there, share * np.maximum(1.0, 1.0 / (smooth * places)), 0.0))
    choices.append(numbers)  # where no multiple is near
    weights.append(np.where(np.sum(weights, axis=0) > 0.0, 0.0, 1.0))
    total = np.cumsum(weights, axis=0)
    chosen = (chance * total[-1] >= total).sum(axis=0).clip(max=len(choices) - 1)
    return np.asarray(np.array(choices)[chosen, np.arange(len(numbers))])


def _nearest(numbers: Floats, step: float, coarser: float, chance: Floats) -> Floats:
    """The nearest multiples of one step that are none of a coarser one, float64 [n]."""
    near = snap(numbers, step)
    if not np.isfinite(coarser):
        return near
    too_round = np.isclose(snap(near, coarser), near, rtol=1e-12, atol=0.0)
    upwards = np.where(numbers == near, (4096.0 * chance) % 1.0 < 0.5, numbers > near)
    return np.where(too_round, snap(near + np.where(upwards, step, -step), step), near)
