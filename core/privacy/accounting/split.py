"""Splitting one budget over phases of different kinds, before one scale is calibrated for all.

A Gaussian on all rows, run k times, has precision k/σ². A Poisson-sampled one behaves after many
runs like a single one of precision q²k(e^(1/σ²) - 1) (Bu et al., "Deep learning with Gaussian
differential privacy", 2020). A share of the budget is a share of precision; what is claimed always
comes from the accountant.
"""

from __future__ import annotations

import math


def noise_for_share(
    scale: float, share: float, *, count: int = 1, sampling_rate: float | None = None
) -> float:
    """The noise multiplier that gives a phase its share of the total precision 1/scale².

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
