"""The Rényi bound at few orders is the one at all of the library's."""

import math

import numpy as np
import pytest
from dp_accounting.rdp.rdp_privacy_accountant import DEFAULT_RDP_ORDERS, compute_epsilon

from core.privacy.accounting import rdp
from core.privacy.accounting.groups import AccountedPhase
from core.privacy.accounting.rdp import rdp_divergences, rdp_epsilon

PLANS = {
    f"{rate}, σ {sigma}, {runs} runs": (AccountedPhase("gaussian", sigma, rate, runs),)
    for rate, sigma, runs in [
        (0.002, 0.6, 1000),
        (0.02, 0.7, 500),  # large ε: low, fractional orders
        (0.02, 1.1, 4000),
        (0.02, 6.0, 4000),
        (0.2, 3.0, 300),
        (1e-4, 20.0, 100),  # tiny ε: the highest order
        (1.0, 0.3, 1),
        (1.0, 5.0, 1),
    ]
} | {
    "mixed": (
        AccountedPhase("gaussian", 2.0, 1.0, 3),
        AccountedPhase("gaussian", 1.5, 0.01, 200),
        AccountedPhase("zcdp", 0.01, 1.0, 10),
        AccountedPhase("laplace", 4.0, 1.0, 2),
    ),
    "groups": (AccountedPhase("gaussian", 6.0, 0.01, 500, 2),),
}


def of_all_orders(parts, delta):
    divergences = rdp_divergences(parts, DEFAULT_RDP_ORDERS)
    return float(compute_epsilon(DEFAULT_RDP_ORDERS, divergences.tolist(), delta)[0])


@pytest.mark.parametrize("name", PLANS)
@pytest.mark.parametrize("delta", [1e-5, 1e-9])
def test_the_best_order_is_among_those_about_the_best_of_few(name, delta):
    parts = PLANS[name]
    best = of_all_orders(parts, delta)
    assert rdp_epsilon(parts, delta) == pytest.approx(best, rel=1e-12)
    assert best <= rdp_epsilon(parts, delta, roughly=True) <= 1.1 * best


def test_the_wrong_neighbourhood_would_show(monkeypatch):
    """The broken twin looks at too few."""
    parts = PLANS["0.02, σ 0.7, 500 runs"]
    monkeypatch.setattr(rdp, "DEFAULT_RDP_ORDERS", [1.1, 20.0, 30.0, 512.0, 1024.0])
    monkeypatch.setattr(rdp, "_FEW", (2.0, 128.0, 1024.0))
    assert rdp_epsilon(parts, 1e-5) > 1.0001 * of_all_orders(parts, 1e-5)


def test_where_no_order_bounds_it_there_is_no_epsilon():
    with np.errstate(over="ignore"):
        assert math.isinf(rdp_epsilon((AccountedPhase("gaussian", 1e-160, 1.0, 1),), 1e-5))
