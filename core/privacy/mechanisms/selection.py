"""Private selection: the exponential mechanism over options scored by means over all records.

Option j has the utility q_j + o_j, where q_j is the mean over all n records of a score in [0, 1]
and o_j is public. One record's absence lowers every q_j, each by at most 1/n, so with weights
exp(ε₀·n·(q_j + o_j)) the log-probabilities of any two options move apart by at most ε₀: the
mechanism has bounded range ε₀, and is ε₀²/8-zCDP.

Options are scored once and the sums stay inside; each selection is charged for itself.

Sources: McSherry and Talwar, "Mechanism design via differential privacy", 2007; Cesar and Rogers,
"Bounding, concentrating, and truncating", 2021 (bounded range to zCDP).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from core.privacy.mechanisms.noise import NoiseSource
from core.privacy.plan import Phase


def range_of(phase: Phase) -> float:
    """ε₀ of one planned selection, whose ρ is ε₀²/8; inf where no privacy is claimed."""
    return math.inf if phase.rho is None else math.sqrt(8.0 * phase.rho)


class Scores(Protocol):
    """What options are scored by."""

    @property
    def options(self) -> int:
        """How many there are, N ≥ 1."""

    def scores(self, rows: Any) -> Any:
        """Records on a device → float [b, N], each from its own record alone; clamped to [0, 1]."""


class Selection:
    """A planned phase of selections; made by `PrivateTable.selection` and by nothing else.

    Args:
      sums: gives float64 [N], sums of scores over all records, which never leave; called once,
        after the first charge.
      epsilon0: range of one selection; inf picks the best option.
      charge: counts one run of the phase; raises when none is left.
    """

    __slots__ = ("__charge", "__sums", "__total", "_epsilon0", "_n", "_options", "_source")

    def __init__(
        self,
        sums: Callable[[], NDArray[np.float64]],
        *,
        options: int,
        n: int,
        epsilon0: float,
        charge: Callable[[], None],
        source: NoiseSource,
    ):
        self.__sums = sums
        self.__total: NDArray[np.float64] | None = None
        self.__charge = charge
        self._options = options
        self._n, self._epsilon0, self._source = n, epsilon0, source

    def select(self, offsets: NDArray[np.float64]) -> int:
        """One option, drawn with probability ∝ exp(ε₀ (Σ scores + n · offset))."""
        if offsets.shape != (self._options,) or not np.isfinite(offsets).all():
            raise ValueError(f"Need {self._options} finite offsets. Nothing was released.")
        self.__charge()
        if self.__total is None:
            self.__total = self.__sums()
        utility = self.__total + self._n * offsets
        if math.isinf(self._epsilon0):
            return int(utility.argmax())
        uniform = self._source.generator().random(len(utility))
        gumbel = -np.log(-np.log(np.clip(uniform, 1e-300, 1.0 - 1e-16)))
        return int((self._epsilon0 * utility + gumbel).argmax())
