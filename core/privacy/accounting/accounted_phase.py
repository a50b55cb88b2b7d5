"""What the accountant needs of a phase, for one record or for all that are one person's.

The only place that says what m records cost which nobody can put together: see `groups`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from core.privacy.plan import Phase


class AccountedPhase(NamedTuple):
    """A phase, hashable.

    Attributes:
      noise: noise multiplier, or ρ of zCDP; of a group's batches that of one record, else of all.
      rate: Poisson rate of one record; 1 when all take part.
      rows: records that may come into a batch for one; 1 where all take part.
    """

    kind: str
    noise: float
    rate: float
    runs: int
    rows: int = 1

    @property
    def grouped(self) -> bool:
        """Whether a batch may hold any number of a group's records."""
        return self.rows > 1


def accounted_phase(phase: Phase, rows: int = 1) -> AccountedPhase:
    """A phase as it counts for `rows` ≥ 1 records that are one person's."""
    if phase.mechanism == "zcdp":
        assert phase.rho is not None
        return AccountedPhase("zcdp", phase.rho * rows**2, 1.0, phase.count)
    if phase.mechanism == "laplace" and phase.sampling_rate is not None:
        raise ValueError(f"Phase '{phase.name}': sampled Laplace noise is not accounted for.")
    rate = 1.0 if phase.sampling_rate is None else phase.sampling_rate
    if rate < 1.0:
        return AccountedPhase(phase.mechanism, phase.noise_multiplier, rate, phase.count, rows)
    return AccountedPhase(phase.mechanism, phase.noise_multiplier / rows, rate, phase.count)


def accounted_phases(phases: Sequence[Phase], rows: int) -> tuple[AccountedPhase, ...]:
    """See `accounted_phase`."""
    return tuple(accounted_phase(phase, rows) for phase in phases)
