"""planned: from a model's phases to a plan that meets its budget, whatever else the budget pays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from core.privacy.accounting.accountant import calibrate, guarantee
from core.privacy.plan import Budget, Phase, Plan, repeated

__all__ = ["planned"]


def planned(
    model: str,
    n: int,
    budget: Budget,
    phases: Callable[[float], tuple[Phase, ...]],
    settings: dict[str, Any],
) -> Plan:
    """A plan with one noise scale for all of the model's phases.

    Args:
      model: registry id.
      n: number of records, public.
      budget: (ε, δ), what is reserved in it, and how many attempts it pays for.
      phases: of the model for a noise scale, see `calibrate`.
      settings: of the model.

    Raises:
      ValueError: no amount of noise meets the budget.
    """
    reserved, attempts = budget.reserved, budget.attempts
    scale = calibrate(budget, lambda s: repeated((*phases(s), *reserved), attempts))
    left = max(0.01, 1.0 - sum(phase.share for phase in reserved))
    own = (p.model_copy(update={"share": p.share * left}) if reserved else p for p in phases(scale))
    final = (*own, *reserved)
    return Plan(
        model=model,
        n=n,
        budget=budget,
        phases=final,
        guarantee=guarantee(repeated(final, attempts), budget.delta),
        settings=settings,
    )
