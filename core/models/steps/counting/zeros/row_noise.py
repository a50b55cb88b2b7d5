"""How sure noisy counts of a label make that it is lacking from some cells of another column."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.privacy.discovery.thresholds import EVIDENCE, log_ratio_of_none

Floats = NDArray[np.float64]
RARE = 0.04  # of the expected, the most a zero may hold, a standard deviation above its estimate
MOST_SHARE = 0.02  # of all records, that may lie in a zero after all
SUSPECT = 0.5  # of the records that independent columns would show: the other of two hypotheses


@dataclass(frozen=True)
class Told:
    """What counts of a pair say of some of its cells together.

    Attributes:
      evidence: how much likelier it is that they hold none, logarithm, see `RowNoise.evidence`.
      seen, variance: how many they hold, and of that.
      spread: so many may lie there after all, if what noise would put there is as much.
    """

    evidence: float
    seen: float
    variance: float
    spread: float


def evidence_of_none(
    expected: Floats, seen: Floats, noise: float, adds: Floats | float = 1.0
) -> Floats:
    """How much likelier it is that each place holds none, logarithm of the likelihood ratio.

    To `SUSPECT` of the expected records, each of which adds so much to what is seen.
    """
    return log_ratio_of_none(SUSPECT * adds * expected, seen, noise)


def holds_none(told: Told, expected: Floats, counts: Floats, noise: float, adds: Floats) -> bool:
    """Whether both releases say so, and what it may hold is rare or less than a count's noise.

    Args:
      expected: float64 [places], records of those that were asked about if columns were
        independent; `counts`, released; `noise`, standard deviation of one.
      adds: float64 [places], what a record there is expected to add to its count.
    """
    evidence = told.evidence + evidence_of_none(expected, counts, noise, adds).sum()
    if not len(counts) or evidence <= EVIDENCE:
        return False
    precision = np.array([1.0 / told.variance, 1.0 / ((noise / adds) ** 2).sum()])
    sums = np.array([told.seen, (counts / adds).sum()])
    records = max(0.0, float(precision @ sums / precision.sum()))
    most = records + 1.0 / math.sqrt(precision.sum())
    return bool(most <= max(RARE * expected.sum(), told.spread))


@dataclass(frozen=True)
class RowNoise:
    """Noise of the counts of a label in the cells of another column, whose total is known as well.

    Counts are taken to have been fitted to the total, so that what lies in some cells is told by
    these, and by all others.

    Attributes:
      deviation: of one count as released; `total`, of the label's own count.
    """

    deviation: float
    total: float
    cells: int

    def fitted(self, counts: Floats, total: float) -> Floats:
        """Counts that were released → nearer to their total."""
        return np.asarray(counts + (total - counts.sum()) * self._pull(0.0))

    def variance(self, some: NDArray[np.int64]) -> Floats:
        """Of the sum of so many fitted counts; infinite of none, which tell nothing."""
        variance = some * self.deviation**2 * (1.0 - some * self._pull(0.0))
        return np.where(some, variance, np.inf)

    def evidence(self, seen: Floats, expected: Floats) -> Floats:
        """Of the first 0, 1, … of some cells, how much likelier it is that they hold none.

        Logarithm of the likelihood ratio to `SUSPECT` of the expected records; float64 [k + 1].
        """
        some = SUSPECT * expected
        less = some - 2.0 * seen
        each, together, beyond = (
            np.append(0.0, np.cumsum(values)) for values in (some * less, some, less)
        )
        pull = self._pull(np.arange(len(each), dtype=np.float64))
        return np.asarray((each + pull * together * beyond) / (2.0 * self.deviation**2))

    def of_each(self, seen: Floats, expected: Floats) -> Floats:
        """The same of single cells, float64 [k]."""
        pull = 1.0 + self._pull(1.0)
        return np.asarray(pull * evidence_of_none(expected, seen, self.deviation))

    def _pull(self, some: Floats | float) -> Floats:
        return np.asarray(1.0 / (self.cells - some + (self.total / self.deviation) ** 2))
