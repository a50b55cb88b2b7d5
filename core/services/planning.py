"""make_plan: what a run would do to a table and what it would cost; reads no data."""

from __future__ import annotations

from typing import Any

from pydantic import ValidationError

from core.lmdp.level import GROUP, groups_of
from core.models.synthesizer import Synthesizer, synthesizer
from core.privacy.plan import Budget, Plan, Protection, default_delta
from core.runs.execution.noisy_scores import score_phase
from core.runs.execution.review_histograms import review_phase
from core.table.schema import Domain, DomainSource, Schema, SchemaError

__all__ = ["DEFAULT_SHIFT", "make_plan"]

DEFAULT_SHIFT = 0.75  # share of groups of 128 records that notice


def make_plan(
    schema: Schema,
    n: int,
    *,
    model: str,
    epsilon: float,
    delta: float | None = None,
    settings: dict[str, Any] | None = None,
    alpha: float = 0.05,
    shift: float | None = None,
    certificate: float | None = None,
    attempts: int = 1,
    review: float | None = None,
    score: float | None = None,
) -> Plan:
    """The plan of a model for a schema and n records; touches no data.

    Args:
      schema: its domain must be declared.
      n: number of records to train on (public), ≥ 1: `TableRecord.training_n`.
      model: registry id.
      epsilon: budget under zero-out, > 0; inf turns differential privacy off.
      delta: in (0, 1/n); `default_delta(n)` when None.
      settings: advanced settings by name.
      alpha: level of the tests that protect tagged columns.
      shift: how different they must be, see `Protection`; None for the model's default.
      certificate: ε of each group's private certificate, out of the budget; None for none.
      attempts: how often the run may begin anew until its check passes; all are paid for.
      review: share of the budget that buys histograms for people outside, in (0, ½]; None for none.
      score: share that buys noisy counts to compare runs by, in (0, ½]; None for none.

    Raises:
      ValueError: one plain line on what is wrong (SchemaError, or the model's own words).
      KeyError: no such model.
    """
    unpaid = [c.name for c in schema.columns if c.source is DomainSource.BOUGHT]
    if unpaid:
        raise SchemaError(
            f"Buying a domain with budget is not part of this version: {', '.join(unpaid)}. "
            "Declare these columns' bounds or categories public, or drop them."
        )
    domain = schema.domain()
    try:
        budget = Budget(epsilon=epsilon, delta=default_delta(n) if delta is None else delta)
        bought = ((review_phase, review), (score_phase, score)) if budget.private else ()
        phases = [make(domain, budget, part, attempts=attempts) for make, part in bought if part]
        budget = budget.model_copy(update={"reserved": tuple(phases)})
        if not domain.sensitive:
            if certificate is not None or attempts > 1:
                raise ValueError("A certificate and attempts need tagged columns; none is tagged.")
            return synthesizer(model).plan(domain, n, budget, settings)
        return _protected(
            synthesizer(model),
            domain,
            n,
            budget,
            settings or {},
            alpha=alpha,
            shift=shift,
            certificate=certificate,
            attempts=attempts,
        )
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        if first["type"] == "extra_forbidden":
            raise ValueError(f"{model} has no setting called '{where}'") from None
        raise ValueError(f"{where}: {first['msg'].lower()}, not {first['input']!r}") from None


def _protected(
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
