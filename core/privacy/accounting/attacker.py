"""What (ε, δ) means to somebody who guesses whether one person took part."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from dp_accounting.gaussian_mechanism import get_sigma_gaussian
from numpy.typing import NDArray

from core.privacy.accounting.accountant import privacy_profile
from core.privacy.accounting.curves import gaussian_profile
from core.privacy.plan import Phase

Floats = NDArray[np.float64]
_EPS = np.linspace(0.0, 40.0, 4001)  # at which the profile is read: steps of 1 % in the odds


@dataclass(frozen=True)
class BestAttack:
    """A bound on every attack that guesses whether a person took part, from δ(ε) [k] at ε ≥ 0 [k].

    A rule that accuses a share α of those who did not take part finds at most e^ε α + δ(ε) and
    1 - e^-ε (1 - α - δ(ε)) of those who did, at every ε; the least is exact for Gaussians on all
    rows. Source: Dong, Roth and Su, "Gaussian differential privacy", 2022, section 2.3.
    """

    eps: Floats
    delta: Floats

    def found(self, accused: float) -> float:
        """The largest share of those who took part that are found, at a share accused wrongly."""
        above = 1.0 - np.exp(-self.eps) * (1.0 - accused - self.delta)
        return float(min(1.0, (np.exp(self.eps) * accused + self.delta).min(), above.min()))

    @property
    def right(self) -> float:
        """The largest share of right guesses, where half of all took part: (1 + δ(0)) / 2."""
        return 0.5 + 0.5 * float(min(1.0, self.delta[0]))


def best_attack(
    phases: Sequence[Phase] | None, epsilon: float, delta: float, *, rows: int = 1
) -> BestAttack:
    """The bound for phases that claim (ε, δ), ε finite; None where the claim is of more than them.

    >>> round(best_attack(None, 1.0, 1e-6).right, 3)  # e / (1 + e)
    0.731

    Args:
      rows: records that count as one; see `Plan.rows_of_one`.
    """
    # the profile of the most revealing (ε, δ)-private release, whatever runs
    below = np.clip(math.exp(epsilon) - np.exp(_EPS), 0.0, None) / (1.0 + math.exp(epsilon))
    claimed = delta + (1.0 - delta) * below
    profile = None if phases is None else privacy_profile(phases, _EPS, rows=rows)
    return BestAttack(_EPS, claimed if profile is None else np.minimum(profile, claimed))


def gaussian_attack(epsilon: float, delta: float) -> BestAttack:
    """The bound for Gaussians on all rows, and nothing else, that claim (ε, δ), ε finite.

    >>> round(gaussian_attack(1.0, 1e-6).right, 3)
    0.547
    """
    return BestAttack(_EPS, gaussian_profile(_EPS, 1.0 / get_sigma_gaussian(epsilon, delta)))
