"""Whether an account admits a release: what it costs, what is left, what it may reveal."""

from __future__ import annotations

import math

from core.message import ReportedError
from core.privacy.ledger.entries import Entry
from core.privacy.ledger.filters import admitted, left_of, opening, order_of
from core.privacy.ledger.shift_consistency import MAX_WORDS, ReleaseScope, objection
from core.privacy.ledger.units import unit_objection
from core.privacy.plan import Plan


class LedgerError(ReportedError):
    """The ledger refused; nothing was spent."""


class OverBudgetError(LedgerError):
    """A release would exceed what may be learned about these people; nothing was spent."""


class HiddenError(LedgerError):
    """A release would reveal distributions that earlier ones hide; nothing was spent."""


class MixedUnitsError(LedgerError):
    """A release would protect another unit than earlier ones; nothing was spent."""


def price_of(plan: Plan) -> float:
    """What the plan's phases cost at its δ, all attempts together; inf without privacy."""
    from core.privacy.accounting.accountant import epsilon  # costs 65 MB

    price = epsilon(plan.charged, plan.budget.delta, rows=plan.rows_of_one)[0]
    if math.isfinite(price) and plan.budget.delta * plan.n >= 1.0:
        raise LedgerError(
            "δ must be below one over the number of records, 1/{n}. Nothing was spent. Choose "
            "a smaller δ.",
            n=plan.n,
        )
    return price


def admit(
    known: tuple[Entry, ...], plan: Plan, epsilon: float, *, allow_non_private: bool
) -> float:
    """The release's Rényi divergence, 0 without privacy; raises what must not be paid for."""
    account, delta = opening(known), plan.budget.delta
    if account is None:
        raise LedgerError("These people have no account yet. Register one before you start a run.")
    if not math.isfinite(epsilon):
        if allow_non_private:
            return 0.0
        raise LedgerError(
            "This run has no differential privacy, so no budget can pay for it. Nothing was "
            "read. Confirm in words that it may run without protection, or choose a finite ε."
        )
    from core.privacy.accounting.accountant import renyi  # costs 65 MB

    rho = renyi(plan.charged, order_of(account), rows=plan.rows_of_one)
    if admitted(known, epsilon=epsilon, delta=delta, rho=rho, failure=plan.failure):
        return rho
    if plan.failure and admitted(known, epsilon=epsilon, delta=delta, rho=rho):
        raise OverBudgetError(
            "Learning lists needs a part of these people's δ that must be set aside before "
            "their first release. It was not set aside, or it is used up. Nothing was spent. "
            "Use what an earlier run learned, declare the lists public, or leave their columns "
            "out."
        )
    left = left_of(known)
    raise OverBudgetError(
        "This run needs ε {epsilon:.2f}; {left} is left of these people's ε {limit:g} "
        "(δ {delta:g}). Nothing was spent. Lower ε or ask the table's owner. The limit is what "
        "all releases about these people may reveal together. It was set before the first "
        "release and cannot be raised, because a release cannot be taken back.",
        epsilon=epsilon,
        left=left.words(delta),
        limit=left.limit,
        delta=left.delta,
    )


def confirmation(known: tuple[Entry, ...], scope: ReleaseScope, words: str, run: str) -> str:
    """The words that a release needs which reveals hidden distributions; empty for all others.

    A run that begins anew after a crash has released nothing before, so what it paid then, under
    keys alike up to their first dot, does not stand in its way.
    """
    own = run.split(".")[0]
    others = [one for one in known if (one.run or "").split(".")[0] != own]
    return _confirmed(objection(others, scope), words, HiddenError)


def unit_confirmation(known: tuple[Entry, ...], plan: Plan, words: str) -> str:
    """The words that a release needs which protects another unit; empty for all others."""
    return _confirmed(unit_objection(known, plan), words, MixedUnitsError)


def _confirmed(problem: str | None, words: str, error: type[LedgerError]) -> str:
    if problem is None:
        return ""
    confirmed = " ".join(words.split())[:MAX_WORDS]
    if not confirmed:
        raise error(problem)
    return confirmed
