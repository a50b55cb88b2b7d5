"""Opacus's accountants as a second opinion on ε, for the phases that they can express.

Opacus holds a history of (σ, q, steps): Gaussian noise on Poisson batches, or on all records where
q = 1. Adding a record, as it counts, adds at most Δ to a sum to which it otherwise adds nothing, as
under zero-out, so their ε may be held against each other. Under replace-one they may not.

The history is made from the phases as they stand and not from `accounted_phase`, so that a mistake
there shows. Asked are a bound from above (RDP) and an interval (PRV); not GDP, which is a limit for
many steps and no bound (.7045 for a run whose ε is at least .7204).

Source: Gopi, Lee & Wutschitz, "Numerical composition of differential privacy", 2021.
"""

from __future__ import annotations

import functools
import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass

from core.message import Message
from core.privacy.accounting.accountant import epsilon, grid_error
from core.privacy.plan import Phase

History = list[tuple[float, float, int]]  # (σ over Δ, Poisson rate, steps)

_HIGHER_ORDERS = (64, 128, 256, 512)  # beside Opacus's own, which end at 63: for ε below .5
_PRECISION = 0.01  # of the RDP bound: how far the PRV interval reaches to either side
_DELTA_PRECISION = 1e-3  # of δ; Opacus's own choice
_MOST_POINTS = 500_000  # of the PRV grid: under a second and about 200 MB; then it gets coarser
_ROUNDING = 2.0**-52  # of each point in float64
_SAME = 1e-6  # of ε: two Rényi bounds from the same formulas differ by less


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """ε of the same phases at the same δ by this accountant and by Opacus's.

    Attributes:
      rdp: Opacus's RDP bound, which no ε that is computed well exceeds.
      prv: Opacus's PRV interval (lowest, highest), which holds ε; None where it gave none.
      grid: by how much our own grid may raise ours.
    """

    phases: tuple[str, ...]
    epsilon: float
    rdp: float
    prv: tuple[float, float] | None
    grid: float

    @property
    def lowest(self) -> float:
        """The least that ε can be, as Opacus counts it."""
        return 0.0 if self.prv is None else max(0.0, self.prv[0])

    @property
    def highest(self) -> float:
        """The least bound from above that Opacus has."""
        return self.rdp if self.prv is None else min(self.rdp, self.prv[1])

    @property
    def agrees(self) -> bool:
        """Whether the two differ by no more than their numerical errors."""
        room = self.grid + _SAME * self.highest
        return self.lowest <= self.epsilon <= self.highest + room


@dataclass(frozen=True, kw_only=True)
class SecondOpinion:
    """What Opacus's accountants say of a run."""

    library: str
    phases: tuple[Comparison, ...]
    together: Comparison | None
    not_covered: dict[str, str]

    @property
    def differing(self) -> tuple[Comparison, ...]:
        """The comparisons that numerical errors do not explain."""
        made = self.phases if self.together is None else (*self.phases, self.together)
        return tuple(one for one in made if not one.agrees)


def second_opinion(phases: Sequence[Phase], delta: float, *, rows: int = 1) -> SecondOpinion:
    """Opacus's ε beside ours, by phase and for all phases together that Opacus can express.

    Imports Opacus, which brings torch along, for workers. It may raise anything: a run that was
    paid for must outlive it.
    """
    from opacus import __version__  # brings torch along: 1.5 s and 120 MB beside it

    reasons = {phase.name: _why_not(phase, rows) for phase in phases}
    covered = [phase for phase in phases if not reasons[phase.name]]
    single = tuple(_compare([phase], delta, rows) for phase in covered)
    return SecondOpinion(
        library=f"Opacus {__version__}",
        phases=single,
        together=_compare(covered, delta, rows) if covered else None,
        not_covered={name: why for name, why in reasons.items() if why},
    )


def _why_not(phase: Phase, rows: int) -> str:
    if phase.mechanism == "laplace":
        return Message("Laplace noise")
    if phase.mechanism == "zcdp":
        return Message("a choice known only by its zCDP bound")
    if phase.failure:
        return Message("a threshold with its own probability of failure")
    if rows > 1 and phase.sampling_rate not in (None, 1.0):
        return Message("batches that may hold several rows of one person")
    return ""


def _compare(phases: Sequence[Phase], delta: float, rows: int) -> Comparison:
    history = tuple(
        (phase.noise_multiplier / rows, phase.sampling_rate or 1.0, phase.count) for phase in phases
    )
    ours = epsilon(phases, delta, rows=rows)[0]
    rdp, prv = _of_opacus(history, delta)
    return Comparison(
        phases=tuple(phase.name for phase in phases),
        epsilon=ours,
        rdp=rdp,
        prv=prv,
        grid=grid_error(phases, ours, rows=rows),
    )


@functools.lru_cache(maxsize=64)  # a plan of one phase is asked for it alone and together
def _of_opacus(
    history: tuple[tuple[float, float, int], ...], delta: float
) -> tuple[float, tuple[float, float] | None]:
    with warnings.catch_warnings():  # of logarithms of 0 at q = 1, and of orders at the end
        warnings.simplefilter("ignore")
        rdp = _rdp(list(history), delta)
        return rdp, _prv(list(history), delta, rdp)


def _rdp(history: History, delta: float) -> float:
    from opacus.accountants import RDPAccountant  # see `second_opinion`

    accountant = RDPAccountant()
    accountant.load_state_dict({"mechanism": accountant.mechanism(), "history": history})
    orders = [*RDPAccountant.DEFAULT_ALPHAS, *_HIGHER_ORDERS]
    return float(accountant.get_epsilon(delta, alphas=orders))


def _prv(history: History, delta: float, rdp: float) -> tuple[float, float] | None:
    """The interval that holds ε at δ; None where rounding would drown δ or it has no such ε.

    Opacus returns the upper end alone, (ε at δ - e) + E for errors e of δ and E of ε. Asked at
    δ + 2e on the same grid it is (ε at δ + e) + E, and that less 2E is the lower end.
    """
    from opacus.accountants import PRVAccountant  # see `second_opinion`

    error = _DELTA_PRECISION * delta
    steps = sum(count for _, _, count in history)
    # the grid's length and step, as Opacus chooses them
    longest = max(
        _rdp(history, error / 4.0),
        *(_rdp([(sigma, rate, 1)], error / (8.0 * steps)) for sigma, rate, _ in history),
    )
    points_at_one = 2.0 * (longest + 3.0) * math.sqrt(steps * math.log(12.0 / error) / 2.0)
    precision = max(_PRECISION * rdp, points_at_one / _MOST_POINTS)
    if not math.isfinite(precision) or points_at_one / precision * _ROUNDING > delta:
        return None
    accountant = PRVAccountant()
    accountant.load_state_dict({"mechanism": accountant.mechanism(), "history": history})
    asked = {"eps_error": precision, "delta_error": error}
    try:
        highest = float(accountant.get_epsilon(delta, **asked))
        lowest = float(accountant.get_epsilon(delta + 2.0 * error, **asked)) - 2.0 * precision
    except (RuntimeError, ValueError):  # as it says that it cannot; the RDP bound is left
        return None
    return (lowest, highest) if math.isfinite(lowest + highest) else None
