"""Noise scales: each phase's by its share, and the least that meets a budget.

The search is a bracketed secant one in ln s. A library's root finder ends on either side of the
root; this returns only scales that were evaluated and whose excess is not positive.
"""

from __future__ import annotations

import math
from collections.abc import Callable


def noise_for_share(
    scale: float, share: float, *, count: int = 1, sampling_rate: float | None = None
) -> float:
    """The noise multiplier that gives a phase its share of the total precision 1/scale².

    A Gaussian on all rows, run k times, has precision k/σ². A Poisson-sampled one behaves after
    many runs like a single one of precision q²k(e^(1/σ²) - 1) (Bu et al., "Deep learning with
    Gaussian differential privacy", 2020). What is claimed always comes from the accountant.

    >>> noise_for_share(2.0, 0.25)
    4.0
    >>> noise_for_share(2.0, 0.25, count=4)
    8.0
    """
    if scale == 0.0:
        return 0.0
    if sampling_rate is None or sampling_rate >= 1.0:
        return scale * math.sqrt(count / share)
    precision = share / scale**2 / (sampling_rate**2 * count)
    return 1.0 / math.sqrt(math.log1p(precision)) if precision > 1e-14 else precision**-0.5


_SCALES = (1e-6, 1e9)  # where the search looks


def smallest_scale(
    excess: Callable[[float], float], tolerance: float, *, near: float = 1.0
) -> float:
    """The least s with excess(s) ≤ 0, to a relative tolerance > 0; the returned s was evaluated.

    Args:
      excess: of a scale s > 0, such as ln(ε(s)/ε); falls with s, may be infinite.

    Raises:
      ValueError: no s up to 10⁹ has excess(s) ≤ 0.
    """
    (low, above), (high, below) = _bracket(excess, near)
    while high > low * (1.0 + tolerance):
        middle = _secant(math.log(low), above, math.log(high), below, tolerance)
        value = excess(middle)
        if value > 0.0:
            low, above = middle, value
        else:
            high, below = middle, value
    return high


def _bracket(
    excess: Callable[[float], float], near: float
) -> tuple[tuple[float, float], tuple[float, float]]:
    """Two scales around the answer, each with its excess.

    Steps go a little further than a straight line in ln s, at most a factor of two.
    """
    scale, value = near, excess(near)
    slope = 1.0  # of -excess in ln s
    while _SCALES[0] < scale < _SCALES[1]:
        step = math.log(2.0)
        if math.isfinite(value):
            step = min(step, 1.1 * abs(value) / slope + 1e-3)
        following = scale * math.exp(step if value > 0.0 else -step)
        next_value = excess(following)
        if (value > 0.0) != (next_value > 0.0):
            pair = (scale, value), (following, next_value)
            return pair if value > 0.0 else (pair[1], pair[0])
        if math.isfinite(value) and math.isfinite(next_value):
            slope = max(0.05, abs(next_value - value) / step)
        scale, value = following, next_value
    if value > 0.0:
        raise ValueError(
            "No amount of noise meets this budget: one step alone costs more. Raise ε, or plan "
            "fewer private accesses."
        )
    return (scale / 2.0, math.inf), (scale, value)


def _secant(low: float, above: float, high: float, below: float, tolerance: float) -> float:
    """A scale strictly inside (e^low, e^high): near the straight line's root, nudged to bracket.

    ε falls about like 1/s, so ln ε is almost straight in ln s; the middle when a value is infinite.
    """
    width = high - low
    if not (math.isfinite(above) and math.isfinite(below)):
        return math.exp(low + width / 2.0)
    share = above / (above - below)
    margin = min(0.25, max(0.4 * tolerance / width, 1e-3 if width > 1e-2 else 0.0))
    return math.exp(low + width * min(max(share, margin), 1.0 - margin))
