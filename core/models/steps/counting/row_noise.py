"""How sure noisy counts of a label make that it is lacking from some cells of another column."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
SUSPECT = 0.5  # of the records that independent columns would show: the other of two hypotheses


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

    def variance(self, some: int) -> float:
        """Of the sum of so many fitted counts."""
        return float(some * self.deviation**2 * (1.0 - some * self._pull(0.0)))

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
        some = SUSPECT * expected
        pull = 1.0 + self._pull(1.0)
        return np.asarray(pull * some * (some - 2.0 * seen) / (2.0 * self.deviation**2))

    def _pull(self, some: Floats | float) -> Floats:
        return np.asarray(1.0 / (self.cells - some + (self.total / self.deviation) ** 2))
