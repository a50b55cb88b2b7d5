"""Rényi bounds of composed phases, at as few orders as show which is best.

Every order bounds ε by itself. The bound falls and then rises with the order: a few whole ones say
where the least lies, and only the library's orders about it are computed (fractional ones of
sampled Gaussians take a hundred times longer).
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from dp_accounting import dp_event
from dp_accounting.privacy_accountant import NeighboringRelation
from dp_accounting.rdp import RdpAccountant
from dp_accounting.rdp.rdp_privacy_accountant import DEFAULT_RDP_ORDERS, compute_epsilon
from numpy.typing import NDArray

from core.privacy.accounting.groups import AccountedPhase, mixture_renyi, replaced_renyi

_FEW = (2.0, 3.0, 4.0, 6.0, 8.0, 11.0, 16.0, 23.0, 32.0, 45.0, 63.0, 128.0)


def event_of(part: AccountedPhase) -> dp_event.DpEvent:
    """What the accounting library calls a phase; the only place that says so."""
    kind, noise, rate, count, _ = part
    single: dp_event.DpEvent
    if noise == 0.0:
        return dp_event.NonPrivateDpEvent()
    if kind == "zcdp":
        single = dp_event.ZCDpEvent(noise)
    elif kind == "laplace":
        single = dp_event.LaplaceDpEvent(noise)
    else:
        single = dp_event.GaussianDpEvent(noise)
        if rate < 1.0:
            single = dp_event.PoissonSampledDpEvent(rate, single)
    return dp_event.SelfComposedDpEvent(single, count)


def rdp_epsilon(
    parts: Sequence[AccountedPhase], delta: float, *, two_sided: bool = False, roughly: bool = False
) -> float:
    """ε at δ by the best order; inf where none bounds it."""
    epsilon, best = _best(parts, _FEW, delta, two_sided)
    if math.isfinite(epsilon):
        index = _FEW.index(best)
        low = _FEW[index - 1] if index else 1.0
        high = _FEW[index + 1] if index + 1 < len(_FEW) else math.inf
    else:
        low, high = 1.0, math.inf  # nothing is known of where to look
    if roughly and math.isfinite(high):
        return epsilon
    about = [order for order in DEFAULT_RDP_ORDERS if low < order < high]
    return min(epsilon, _best(parts, about, delta, two_sided)[0])


def _best(
    parts: Sequence[AccountedPhase], orders: Sequence[float], delta: float, two_sided: bool
) -> tuple[float, float]:
    divergences = rdp_divergences(parts, orders, two_sided=two_sided)
    epsilon, order = compute_epsilon(orders, divergences.tolist(), delta)
    return float(epsilon), float(order)


def rdp_divergences(
    parts: Sequence[AccountedPhase], orders: Sequence[float], *, two_sided: bool = False
) -> NDArray[np.float64]:
    """Rényi divergence bounds of all parts together, under zero-out; float64 [orders].

    Orders that cannot be computed count as infinite; the library's warnings are not passed on.
    """
    accountant: Any = RdpAccountant(orders, NeighboringRelation.REPLACE_SPECIAL)
    logger = logging.getLogger("absl")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        for part in parts:
            if not part.grouped:
                accountant.compose(event_of(part))
    finally:
        logger.setLevel(level)
    of_batches: Callable[..., Any] = replaced_renyi if two_sided else mixture_renyi
    divergences = np.asarray(accountant.rdp, dtype=np.float64)
    for part in parts:
        if part.grouped:
            each = of_batches(orders, part.noise, part.rate, part.rows)
            divergences = divergences + part.runs * each
    return divergences
