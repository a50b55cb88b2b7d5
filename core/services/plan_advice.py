"""What stands beside a plan before it is started, from public numbers alone."""

from __future__ import annotations

import math
from dataclasses import dataclass

from core.lmdp.level import chance, full_groups, groups_of
from core.message import Message, plural
from core.privacy.plan import Phase, Plan
from core.runs.request import DEFAULT_ALPHA
from core.schema.person import Person

CERTIFICATE_COSTS = (0.02, 0.05, 0.1, 0.25, 0.5)  # ε of each group's certificate
MOST_FOR_CERTIFICATES = 0.8  # share of ε that all groups' certificates may not reach
SURE = 0.95  # a certificate should be this likely to be granted


@dataclass(frozen=True)
class CertificateOffer:
    """What one group's α-LMDP certificate may cost.

    Attributes:
      epsilon: its price, > 0.
      likely: chance that one attempt grants it if the columns come out as different as asked, in
        [0, 1].
    """

    epsilon: float
    likely: float

    @property
    def enough(self) -> bool:
        """Whether the chance is as good as it should be."""
        return self.likely >= SURE


def certificate_offers(
    n: int,
    *,
    groups: int,
    epsilon: float,
    shift: float,
    unit: Person | None = None,
    alpha: float = DEFAULT_ALPHA,
    attempts: int = 1,
) -> tuple[CertificateOffer, ...]:
    """The certificates that a budget can pay for, the cheapest first; none when ε is too small.

    Args:
      n: records that are trained on, ≥ `core.lmdp.level.GROUP`.
      groups: of tagged columns, each with a certificate of its own.
      shift: how different the columns are to come out, as `Protection.shift`.
      unit: whose rows are protected together; None where a row is a person.
      alpha: level of one certificate's tests in all attempts together, in (0, ½).
      attempts: ≥ 1; each pays for its certificates and is tested at its part of `alpha`.
    """
    people = unit is not None and unit.grouped
    # noise for all rows of a person, where nobody can tell them, is as many times wider
    rows = 1 if unit is None or people else unit.rows
    groups_tested, level = groups_of(n, people=people), alpha / attempts
    rate = shift * full_groups(n, people=people)
    return tuple(
        CertificateOffer(cost, chance(groups_tested, epsilon=cost / rows, alpha=level, rate=rate))
        for cost in CERTIFICATE_COSTS
        if cost * groups * attempts < MOST_FOR_CERTIFICATES * epsilon
    )


def phase_words(phase: Phase, plan: Plan) -> str:
    """How often a phase runs, on how much, with what noise."""
    often = plural(phase.count, "Once", "{n:,} times")
    grouped = plan.records == "people"
    on = Message("on all people") if grouped else Message("on all records")
    if phase.sampling_rate is not None and phase.sampling_rate < 1:
        batch = phase.sampling_rate * plan.n
        on = Message("on random batches of about {n:,.0f} records", n=batch)
        if grouped:
            on = Message("on random batches of about {n:,.0f} people", n=batch)
    if phase.rho is not None:
        return Message(
            "{often}, {on}. One record changes the odds of a choice by a factor of {odds:.4f} at "
            "most.",
            often=often,
            on=on,
            odds=math.exp(math.sqrt(8.0 * phase.rho)),
        )
    if not phase.noise_multiplier:
        return Message("{often}, {on}. No noise.", often=often, on=on)
    return Message(
        "{often}, {on}. Noise: {noise:.2f} × what one record can change.",
        often=often,
        on=on,
        noise=phase.noise_multiplier,
    )
