"""How finely numbers are written, and how round most are: by released counts of their steps."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from functools import cache

import numpy as np

from core.privacy.discovery.bins_in_a_row import Counts
from core.privacy.discovery.grids import STEPS, coarsest_steps, is_multiple, step_grid
from core.privacy.discovery.planning import BESIDE, BOUNDS, Levels
from core.privacy.discovery.thresholds import HEAPED, MANY
from core.schema.column import Column

MULTIPLES = 20_000  # of a step, which tell how round multiples are that nobody rounded
FEWEST_SHARED = 3  # values that many records share, which tell of a step
OTHERS_SNR_THRESHOLD = 2.0  # standard deviations of noise, from which on others tell of another
DECIMALS = (1.0, 0.1, 0.01, 0.001, 1e-4)
FEW_OTHERS = 1.0 / 3.0  # of the numbers at most may need more decimals than noise tells of
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


def learned_step(
    column: Column, counts: Counts, levels: Levels, values: Collection[float] = ()
) -> float:
    """The coarsest step of which nearly all numbers are multiples; the kind's own without one.

    Args:
      counts: of `step_grid`, noisy, of all numbers but `values`, which many records share: where
        there are some, the others are taken to be of their step, if too few to say otherwise.
    """
    classes, std = counts[1 : step_grid().bins + 1], levels.std[BOUNDS] / BESIDE
    step = max(column.step, coarsest(classes, STEPS, std), likely(classes, std))
    if len(values) < FEWEST_SHARED:
        return step
    shared = max((one for one in STEPS if all(is_multiple(x, one) for x in values)), default=0.0)
    others = classes[[True, *(not is_multiple(one, shared or 1.0) for one in STEPS)]]
    few = float(others.sum()) <= OTHERS_SNR_THRESHOLD * std * math.sqrt(len(others))
    return shared if shared > step and few else step


def coarsest(classes: Counts, steps: Sequence[float], std: float) -> float:
    """The coarsest step of which nearly all numbers are multiples; 0 without one.

    Args:
      classes: of numbers that are no multiples of any step, of the first alone, … of the last.
      std: of the noise in each.
    """
    others = np.array([[True, *(not is_multiple(one, step) for one in steps)] for step in steps])
    noise = std * np.sqrt(others.sum(axis=1))
    there = float(classes.sum() - MANY * std * math.sqrt(len(classes)))
    sure = np.flatnonzero((others @ classes + noise <= UNEVEN * there) & (there > 0.0))
    return steps[int(sure[-1])] if len(sure) else 0.0


def likely(classes: Counts, std: float) -> float:
    """Of the decimals that people write, the fewest that noise lets nearly all numbers need.

    0 where most seem to need more.

    Args:
      classes, std: see `coarsest`.
    """
    there = float(classes.sum())
    if there <= OTHERS_SNR_THRESHOLD * std * math.sqrt(len(classes)):
        return 0.0
    for step in DECIMALS:
        others = np.array([True, *(not is_multiple(one, step) for one in STEPS)])
        noise = std * math.sqrt(others.sum())
        if classes[others].sum() <= min(UNEVEN * there + noise, FEW_OTHERS * there):
            return step
    return 0.0


def learned_heaps(
    column: Column, counts: Counts, levels: Levels
) -> tuple[tuple[float, float], ...]:
    """Steps with the share of numbers that are multiples of each and of no coarser one.

    From the column's own step on, ascending; none where no coarser one holds clearly more than it
    would among numbers that are not rounded.

    Args:
      counts: of `step_grid`, noisy.
    """
    if not np.isclose(STEPS, column.step).any():
        return ()
    own = np.array([is_multiple(step, column.step) for step in STEPS])
    classes = np.where(own, counts[2 : step_grid().bins + 1], 0.0)
    clear = HEAPED * levels.std[BOUNDS] / BESIDE
    shares = np.where(classes > clear, classes, 0.0)
    whole = float(shares.sum())
    more = shares - unrounded(column.step) * whole > clear
    if not whole or not (more & ~np.isclose(STEPS, column.step)).any():
        return ()
    kept = np.flatnonzero(own)
    return tuple((STEPS[i], float(shares[i] / whole)) for i in kept)


@cache
def unrounded(step: float) -> Counts:
    """How often each of `STEPS` is the coarsest that a multiple of a step is one of, of many."""
    classes = coarsest_steps(step * np.arange(1.0, MULTIPLES + 1.0))
    known = classes[~np.isnan(classes)].astype(np.intp)
    return np.bincount(known, minlength=len(STEPS) + 1)[1:] / len(known)
