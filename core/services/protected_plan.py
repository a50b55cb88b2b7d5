"""protected_plan: a model's plan for a table with tagged columns (α-LMDP); needs no tensors."""

from __future__ import annotations

from typing import Any

from core.lmdp.level import GROUP, groups_of
from core.models.synthesizer import Synthesizer
from core.privacy.plan import Budget, Plan, Protection
from core.table.schema import Domain

__all__ = ["DEFAULT_SHIFT", "protected_plan"]

DEFAULT_SHIFT = 0.75  # share of groups of 128 records that notice


def protected_plan(
    model: Synthesizer,
    domain: Domain,
    n: int,
    budget: Budget,
    settings: dict[str, Any],
    *,
    alpha: float,
    shift: float | None,
    certificate: float | None,
    attempts: int,
) -> Plan:
    """The plan of a model for a domain with tagged columns; arguments as `service.make_plan`.

    Raises:
      ValueError: the certificate cannot be had, or attempts would leak; one plain line.
    """
    protection = Protection(
        groups=domain.sensitive,
        alpha=alpha,
        shift=DEFAULT_SHIFT if shift is None else shift,
        certificate=certificate if budget.private else None,
    )
    if attempts > 1 and budget.private and certificate is None:
        raise ValueError(
            "Beginning anew until the check passes would reveal what the check saw. Ask for a "
            "private certificate, or allow one attempt."
        )
    if protection.certificate is not None and not groups_of(n):
        raise ValueError(
            f"A private certificate needs {GROUP} records at least and the table has {n}. "
            "Choose the inside check."
        )
    reserved = (*budget.reserved, *protection.phases(budget.epsilon))
    budget = budget.model_copy(update={"reserved": reserved, "attempts": attempts})
    if model.card.protects:
        settings = {"alpha": alpha, **settings}
    plan = model.plan(domain, n, budget, settings)
    return plan.model_copy(update={"protection": protection})
