"""plan_fit: a model's plan, with one noise scale for all that its budget pays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from core.models.registry import cards
from core.models.step import planned_phases
from core.models.synthesizer import Synthesizer
from core.privacy.plan import Budget, Phase, Plan
from core.privacy.planning import planned
from core.schema.person import Person
from core.schema.schema import Domain

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
    added: tuple[Phase, ...] = (),
    attempts: int = 1,
    unit: Person | None = None,
) -> Plan:
    """The private accesses of a fit and of what goes with it, noise calibrated to the budget.

    Touches no data.

    Args:
      n: number of records, public, ≥ 1; of people where rows are put together by person.
      settings: those set by hand, by name.
      added: accesses beside the model's own that the budget pays for too.
      attempts: how often everything may be done over, ≥ 1; all of them are paid for beforehand.
      unit: whose rows are protected together; the domain's person where None.

    Raises:
      ValueError: δ ≥ 1/n, an unknown setting, or a budget that no noise can meet.
    """
    chosen = model.configure(settings or {}, private=budget.private)
    steps = model.steps(domain, chosen)
    plan = planned(
        model.card.id,
        n,
        budget,
        lambda scale: planned_phases(steps, domain, n, scale),
        fixed=model.fixed_phases(budget, chosen),
        added=added,
        attempts=attempts,
        unit=unit or domain.person,
    )
    finished = model.finish(domain, plan, chosen)
    return plan.model_copy(update={"settings": finished.model_dump()})
