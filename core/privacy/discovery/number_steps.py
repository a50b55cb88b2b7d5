"""How finely numbers are written, and how round most are: by released counts of their steps."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from core.privacy.discovery.bins_in_a_row import Counts
from core.privacy.discovery.grids import STEPS, coarsest_steps, step_grid
from core.privacy.discovery.planning import BESIDE, BOUNDS, Levels
from core.privacy.discovery.ranges import HEAPED, MANY
from core.schema.column import Column

UNEVEN = 0.1  # of the numbers need be no multiples of a step; without one, half or more are none


def without_values(steps: Counts, values: Mapping[float, float]) -> Counts:
    """Counts by step of all numbers but these.

    What many records share is a value of its own, and says nothing of how all others are written.

    Args:
      steps: of `step_grid`, noisy.
      values: with their counts.
    """
    left = steps.copy()
    for value, count in values.items():
        class_of_it = float(coarsest_steps(np.array([value]))[0])
        if not math.isnan(class_of_it):
            left[1 + int(class_of_it)] -= count
    return left


def learned_step(column: Column, counts: Counts, levels: Levels) -> float:
    """The coarsest step of which nearly all numbers are multiples; the kind's own without one.

    Args:
      counts: of `step_grid`, noisy.
    """
    classes = counts[1 : step_grid().bins + 1]
    return max(column.step, coarsest(classes, STEPS, levels.std[BOUNDS] / BESIDE))


def coarsest(classes: Counts, steps: Sequence[float], std: float) -> float:
    """The coarsest step of which nearly all numbers are multiples; 0 without one.

    Args:
      classes: of numbers that are no multiples of any step, of the first alone, … of the last.
      std: of the noise in each.
    """
    finer = np.cumsum(classes)[:-1]  # numbers that are no multiples, by step
    noise = std * np.sqrt(1.0 + np.arange(len(classes)))
    there = float(classes.sum() - MANY * noise[-1])
    sure = np.flatnonzero((finer + noise[:-1] <= UNEVEN * there) & (there > 0.0))
    return steps[int(sure[-1])] if len(sure) else 0.0


def learned_heaps(
    column: Column, counts: Counts, levels: Levels
) -> tuple[tuple[float, float], ...]:
    """Steps with the share of numbers that are multiples of each and of no coarser one.

    From the column's own step on, ascending; none where no coarser one holds clearly more than it
    would among numbers that are not rounded.

    Args:
      counts: of `step_grid`, noisy.
    """
    finer = [i for i, step in enumerate(STEPS) if step <= column.step * (1.0 + 1e-9)]
    if not finer or not np.isclose(STEPS[finer[-1]], column.step):
        return ()
    own = finer[-1]
    steps, classes = STEPS[own:], counts[2 + own : step_grid().bins + 1]
    clear = HEAPED * levels.std[BOUNDS] / BESIDE
    shares = np.where(classes > clear, classes, 0.0)
    whole = float(shares.sum())
    coarser = np.array([*steps[1:], np.inf])
    smooth = column.step / np.array(steps) * (1.0 - np.array(steps) / coarser)
    if not whole or not (shares - smooth * whole > clear)[1:].any():
        return ()
    return tuple(zip(steps, (shares / whole).tolist(), strict=True))
