"""planned: from a model's phases to a plan that meets its budget, whatever else the budget pays."""

from __future__ import annotations

from collections.abc import Callable

from core.privacy.accounting.accountant import calibrate, check_budget, guarantee
from core.privacy.plan import Budget, Phase, Plan, for_group, repeated
from core.schema.person import Person


def planned(
    model: str,
    n: int,
    budget: Budget,
    phases: Callable[[float], tuple[Phase, ...]],
    *,
    fixed: tuple[Phase, ...] = (),
    added: tuple[Phase, ...] = (),
    attempts: int = 1,
    unit: Person | None = None,
) -> Plan:
    """A plan with one noise scale for all of the model's phases.

    Args:
      n: number of records, public; of people where the unit has columns.
      fixed: further phases of the model, which no scale changes.
      added: phases beside the model's own; noise of both is stated for one record.

    Raises:
      ValueError: δ ≥ 1/n, or no amount of noise meets the budget.
    """
    check_budget(budget, n)
    rows = 1 if unit is None or unit.grouped else unit.rows
    reserved = tuple(for_group(phase, rows) for phase in (*fixed, *added))
    scale = calibrate(budget, lambda s: repeated((*phases(s), *reserved), attempts), rows=rows)
    left = max(0.01, 1.0 - sum(phase.share for phase in reserved))
    own = (p.model_copy(update={"share": p.share * left}) if reserved else p for p in phases(scale))
    final = (*own, *reserved)
    return Plan(
        model=model,
        n=n,
        budget=budget,
        phases=final,
        guarantee=guarantee(repeated(final, attempts), budget.delta, rows=rows),
        added=len(added),
        attempts=attempts,
        unit=unit,
    )
