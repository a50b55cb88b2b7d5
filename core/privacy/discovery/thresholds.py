"""Thresholds: above which noisy count something is known to be there.

A *label* is known to occur only because somebody has it: its threshold bounds the probability that
one shows which a single person holds, a part of δ. A *cell* of a public grid is there whatever the
rows say; its threshold only keeps noise from being taken for data, and costs nothing.

Source: Korolova et al., "Releasing search queries and clicks privately", 2009; for Gaussian noise
"Delta for thresholding" of Google's differential privacy library, 2020.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr, ndtri

Floats = NDArray[np.float64]
NOISE_MARGIN = 1e-4  # for the rounding of statistics and weights, which is far less than this
DOUBT = 1e-4  # chance that noise alone passes for data in any cell of a whole release
TINY = 1e-12  # variance of counts without noise, which is divided by
EVIDENCE = 2.0  # logarithm of the likelihood ratio by which "none" must be the likelier
SURE = 1.5  # standard deviations of noise that counts of what is empty leave room for
HEAPED = 3.0  # … above which numbers of one step are believed
MANY = 4.0  # … that all counts by step must exceed to be believed
RARE_RECORDS = 0.005  # share of the records that are left out though noise does not explain them
FEW_RECORDS = 0.02  # share of the records that years or parts left out hold at most
_STEPS = 200  # halvings of the search for a threshold


def cell_threshold(std: float, tests: int, doubt: float = DOUBT) -> float:
    """The count above which a public cell holds records; noise passes in any with the doubt."""
    return std * float(-ndtri(doubt / max(1, tests)))


def log_ratio_of_none(likely: Floats | float, seen: Floats | float, std: Floats | float) -> Floats:
    """How much likelier no records are than so many, by noisy counts: logarithm of the ratio."""
    variance = np.maximum(np.square(std), TINY)
    return np.asarray(likely * (likely - 2.0 * seen) / (2.0 * variance))


def label_threshold(std: float, failure: float, lists: int, rows: int = 1) -> float:
    """The noisy count τ ≥ 1 above which a label may be shown.

    One unit alone may hold up to `rows` labels in each list, k of them say, with weights that are
    multiples of 1/rows and sum to one. The probability that none is shown is the product of Φ((τ -
    wᵢ)/s); ln Φ is concave, so at given k it is least where all weights but one are smallest
    (1/rows), and the least over k bounds it.

    Args:
      std: s, of the noise in each count.
      failure: the probability, for all lists together, that a label is shown that one unit alone
        holds; in (0, 1).

    >>> round(label_threshold(10.0, 1e-6, 1), 2)  # 1 + 10 · 4.7534
    48.54
    """
    std *= 1.0 + NOISE_MARGIN
    others = np.arange(rows, dtype=np.float64)  # labels beside the heaviest one
    heaviest = 1.0 - others / rows

    def survives(threshold: float) -> float:
        """The logarithm of the least probability that nothing is shown."""
        one = log_ndtr((threshold - heaviest) / std)
        return lists * float(np.min(one + others * log_ndtr((threshold - 1.0 / rows) / std)))

    low, high = 1.0, 1.0 + 40.0 * std
    for _ in range(_STEPS):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if survives(middle) >= math.log1p(-failure) else (middle, high)
    return high
