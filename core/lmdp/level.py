"""Level and power of the private certificate, from public numbers alone; needs no tensors."""

from __future__ import annotations

import numpy as np
from scipy import optimize, stats

from core.encoding.key_groups import bucket_count, share_filled
from core.message import ReportedError

GROUP = 128  # real records a group
GROUP_LEVEL = 0.06  # at most this share of groups rejects when nothing differs


class ShiftError(ReportedError):
    """No tilt within the bounds is strong enough; the message says what to change."""


def groups_of(n: int, *, people: bool = False) -> int:
    """K: groups of `GROUP` among n records.

    Args:
      people: whether records are people, whom their own keys put into groups; some of the groups
        are then not full. They count, but never reject, which keeps the level.
    """
    if not people:
        return n // GROUP
    return bucket_count(n, GROUP) if n >= GROUP else 0


def full_groups(n: int, *, people: bool = False) -> float:
    """Which share of the groups can reject, in [0, 1]; where records are people, on average."""
    return share_filled(n, GROUP) if people else 1.0


def _exceeds(groups: int, rate: float, epsilon: float, level: float) -> float:
    """P(Bin(groups, rate) + Laplace(1/epsilon) > level)."""
    counts = np.arange(groups + 1)
    weights = stats.binom.pmf(counts, groups, rate)
    return float(weights @ stats.laplace.sf(level - counts, scale=1.0 / epsilon))


def threshold(groups: int, *, epsilon: float, alpha: float) -> float:
    """The count above which the certificate is granted.

    >>> round(threshold(254, epsilon=0.25, alpha=0.05), 1)
    26.3
    """
    high = groups + 40.0 / epsilon + 1.0
    return float(
        optimize.brentq(
            lambda t: _exceeds(groups, GROUP_LEVEL, epsilon, t) - alpha, -high, high, xtol=1e-6
        )
    )


def chance(groups: int, *, epsilon: float, alpha: float, rate: float) -> float:
    """Chance that the certificate is granted when this share of groups rejects.

    >>> round(chance(254, epsilon=0.25, alpha=0.05, rate=0.2), 3)
    0.996
    """
    if groups < 1:
        return 0.0
    level = threshold(groups, epsilon=epsilon, alpha=alpha)
    return _exceeds(groups, rate, epsilon, level)
