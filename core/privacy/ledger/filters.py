"""Filters: whether an account's limit admits one more release, decided before data is read.

Which filter governs an account is settled by its first private release; see
`core.privacy.ledger.ledger`.

A release may fail with some probability beside its divergence (`Phase.failure`). Failures add up
and are part of δ_g. The RDP filter spends δ_g in its conversion, so a part of it must be set aside
before anything is released: where the first private release can fail, `SET_ASIDE` of δ_g is for
failures, and the conversion gets the rest. Set aside later, it would depend on what was released:
on paths that revealed little the failures would come on top of what other paths revealed.
"""

from __future__ import annotations

import math

from core.message import ReportedError
from core.privacy.ledger.entries import Entry, Left
from core.privacy.ledger.units import units_of

SET_ASIDE = 0.25  # of δ_g, for failures, where the first private release can fail


def check_limit(epsilon: float, delta: float, n: int) -> None:
    """Refuse a limit that promises nothing: ε_g > 0 is finite and δ_g in (0, 1/n)."""
    if not (math.isfinite(epsilon) and epsilon > 0.0 and 0.0 < delta < 1.0):
        raise ValueError(f"A limit needs a finite ε > 0 and 0 < δ < 1, got ({epsilon}, {delta}).")
    if n < 1 or delta * n >= 1.0:
        raise ReportedError(
            "A limit needs δ below one over the number of records, 1/{n}, got {delta:g}. At "
            "1/n it would permit giving away one person's record unchanged.",
            n=n,
            delta=delta,
        )


def opening(known: tuple[Entry, ...]) -> Entry | None:
    """The entry that opened the account, or None."""
    return next((entry for entry in known if entry.kind == "account"), None)


def order_of(account: Entry) -> float:
    """α*, fixed by the account's limit alone."""
    return 1.0 + 2.0 * math.log(1.0 / account.delta) / account.limit


def _capacity(account: Entry, aside: float) -> float:
    """The most Σρᵢ(α*) may reach; can be ≤ 0 for limits so tight that only the sum filter works."""
    order = order_of(account)
    correction = math.log((account.delta - aside) * order) / (order - 1.0)
    return account.limit + correction - math.log1p(-1.0 / order)


def _releases(known: tuple[Entry, ...]) -> list[Entry]:
    return [e for e in known if e.kind == "release" and e.private]


def _aside(account: Entry, earlier: list[Entry], first_failure: float) -> float:
    """The part of δ_g that is for failures: settled by the first private release."""
    failure = earlier[0].failure if earlier else first_failure
    return SET_ASIDE * account.delta if failure else 0.0


def _by_sum(earlier: list[Entry], first_rho: float, capacity: float) -> bool:
    """Whether the sum filter governs: settled by the first private release, before any output."""
    return (earlier[0].rho if earlier else first_rho) > capacity


def admitted(
    known: tuple[Entry, ...], *, epsilon: float, delta: float, rho: float, failure: float = 0.0
) -> bool:
    """Whether one more release keeps everything within the limit."""
    account = opening(known)
    assert account is not None
    earlier = _releases(known)
    aside = _aside(account, earlier, failure)
    capacity = _capacity(account, aside)
    if not _by_sum(earlier, rho, capacity):
        total = math.fsum([*(e.rho for e in earlier), rho])
        failures = math.fsum([*(e.failure for e in earlier), failure])
        return total <= capacity and failures <= aside
    spent = math.fsum([*(e.limit for e in earlier), epsilon])
    failed = math.fsum([*(e.delta for e in earlier), delta])
    return spent <= account.limit and failed <= account.delta


def left_of(known: tuple[Entry, ...]) -> Left:
    """What an open account still allows."""
    account = opening(known)
    assert account is not None
    earlier = _releases(known)
    capacity = _capacity(account, _aside(account, earlier, 0.0))
    by_sum = _by_sum(earlier, 0.0, capacity)
    return Left(
        limit=account.limit,
        delta=account.delta,
        order=order_of(account),
        releases=len(earlier),
        non_private=sum(not e.private for e in known if e.kind == "release"),
        filter="sum" if by_sum else "rdp",
        capacity=account.limit if by_sum else capacity,
        spent=math.fsum((e.limit if by_sum else e.rho) for e in earlier),
        delta_spent=math.fsum(e.delta for e in earlier) if by_sum else 0.0,
        units=units_of(known),
    )
