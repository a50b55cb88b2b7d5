"""plan_fit: a model's plan, with one noise scale for all that its budget pays, learning first."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from core.models.registry import cards
from core.models.step import PlannedStep, planned_phases
from core.models.steps.counting.design import list_share
from core.models.synthesizer import Synthesizer
from core.privacy.discovery.open_domain import OpenDomain
from core.privacy.discovery.planning import FAILURES, discovery_phases
from core.privacy.plan import Budget, Phase, Plan
from core.privacy.planning import planned
from core.schema.person import Person
from core.schema.schema import Domain


@dataclass(frozen=True)
class DiscoverDomain:
    """What nobody has declared of a table is learned with noise, before the phases of any model.

    A list gets as much of the budget as counting gives to one column, and its counts take the place
    of those.

    Attributes:
      failure: the probability that a label is shown which one unit alone holds; part of δ.
    """

    wanted: OpenDomain
    failure: float

    @classmethod
    def of(cls, wanted: OpenDomain, budget: Budget) -> DiscoverDomain:
        """For a budget, whose δ pays for what lists may show."""
        return cls(wanted, FAILURES * budget.delta)

    def phases(self, domain: Domain, n: int, scale: float) -> tuple[Phase, ...]:
        """See `Step`; the domain is made up where it is open."""
        each = list_share(len(domain.modelled))
        return discovery_phases(self.wanted, scale, each=each, failure=self.failure)


Hiding = Literal["shifted", "trained", "none"]


def hiding(plan: Plan) -> Hiding:
    """What a plan does to tagged columns: a shift of what is released, training alone, or nothing.

    Whatever is said of a run's hidden distributions goes by this.
    """
    if plan.protection is None:
        return "none"
    if plan.protection.shift:
        return "shifted"
    return "trained" if any(c.protects for c in cards() if c.id == plan.model) else "none"


def plan_fit(
    model: Synthesizer[Any],
    domain: Domain,
    n: int,
    budget: Budget,
    settings: Mapping[str, Any] | None = None,
    *,
    discover: DiscoverDomain | None = None,
    added: tuple[Phase, ...] = (),
    attempts: int = 1,
    unit: Person | None = None,
) -> Plan:
    """The private accesses of a fit and of what goes with it, noise calibrated to the budget.

    Touches no data.

    Args:
      domain: made up where it is open, see `core.privacy.discovery.open_domain.stand_in`.
      n: number of records, public, ≥ 1; of people where rows are put together by person.
      discover: learns what is open; None where all is declared.
      added: accesses beside the model's own that the budget pays for too.
      attempts: how often everything may be done over, ≥ 1; all of them are paid for beforehand.
      unit: whose rows are protected together; the domain's person where None.

    Raises:
      ValueError: δ ≥ 1/n, an unknown setting, or a budget that no noise can meet.
    """
    chosen = model.configure(settings or {}, private=budget.private)
    steps = model.steps(domain, chosen)
    before: list[DiscoverDomain] = [] if discover is None else [discover]
    plan = planned(
        model.card.id,
        n,
        budget,
        lambda scale: _shared([*before, *steps], domain, n, scale),
        fixed=model.fixed_phases(budget, chosen),
        added=added,
        attempts=attempts,
        unit=unit or domain.person,
    )
    finished = model.finish(domain, plan, chosen)
    return plan.model_copy(update={"settings": finished.model_dump()})


def _shared(
    steps: Iterable[PlannedStep], domain: Domain, n: int, scale: float
) -> tuple[Phase, ...]:
    """The phases of all steps, with shares that sum to one."""
    phases = planned_phases(steps, domain, n, scale)
    total = math.fsum(phase.share for phase in phases)
    if total <= 1.0 + 1e-9:
        return phases
    return tuple(p.model_copy(update={"share": p.share / total}) for p in phases)
