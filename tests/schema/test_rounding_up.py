"""Amounts of privacy as they are said are never less than what was proven."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.cli.common import claim_words
from core.privacy.ledger.entries import Entry
from core.privacy.plan import Budget, Guarantee, Plan
from core.runs.execution.privacy_certificate import make_privacy_certificate
from core.schema.rounding_up import round_up

FORMS = (".3g", ".4g", ".2g", ".0e", ".1e", ".2f", ".3f")


@given(st.floats(1e-300, 1e15), st.sampled_from(FORMS))
def test_what_is_said_is_the_next_number_that_is_not_less(amount: float, form: str) -> None:
    said = round_up(amount, form)
    assert float(format(said, form)) == said >= amount * (1.0 - 1e-12)
    nearest = float(format(amount, form))
    if form[-1] == "f":
        unit = 10.0 ** -int(form[1:-1])
    else:
        digits = int(form[1:-1]) - (form[-1] == "g")
        unit = 10.0 ** (math.floor(math.log10(amount)) - digits)
    assert said - nearest <= unit * (1.0 + 1e-9)


@pytest.mark.parametrize("amount", [0.0, math.inf, 0.1 + 0.2])
def test_what_is_exact_stays(amount: float) -> None:
    assert round_up(amount, ".3g") == pytest.approx(amount, rel=1e-12)


def test_no_words_say_less_than_the_claim() -> None:
    claim = Guarantee(epsilon=1.0004, epsilon_replace=2.0004, delta=1.0004e-6)
    words = claim_words(claim.model_dump() | {"private": True})
    assert words.startswith("ε 1.001 (zero-out), 2.001 (replace-one) at δ 1.01e-06")
    plan = Plan(
        model="pearl", n=1000, budget=Budget(epsilon=1, delta=1e-6), phases=(), guarantee=claim
    )
    paid = Entry(
        seq=1, time=0.0, kind="release", account_id="p", run="r", model="pearl", plan="",
        epsilon=1.0, delta=1e-6, rho=0.0, previous="",
    )  # fmt: skip
    certificate = make_privacy_certificate(
        table="t", plan=plan, executed=(), guarantee=claim, rows=1, debit=paid
    )
    assert certificate["claim"] == "ε = 1.001, δ = 1.01e-06"
