"""Opacus's ε beside ours: golden numbers, what is covered, and accountants that are wrong."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest

from core.privacy.accounting import accountant
from core.privacy.accounting import second_opinion as module
from core.privacy.accounting.accountant import epsilon
from core.privacy.accounting.groups import AccountedPhase, accounted_phases
from core.privacy.accounting.second_opinion import Comparison, second_opinion
from core.privacy.plan import Phase
from tests.privacy.toys import phase

pytestmark = pytest.mark.slow

DELTA = 1e-5
SGD = phase("sgd", 1.1, sampling_rate=64 / 32561, count=7635)
SUM = phase("embedding", 5.0)
BOOST = phase("boost", 0.0, mechanism="zcdp", rho=0.02**2 / 8, count=400)
COUNT = phase("certificate", 4.0, mechanism="laplace")


def only(*phases: Phase, rows: int = 1) -> Comparison:
    found = second_opinion(phases, DELTA, rows=rows)
    assert found.together is not None
    return found.together


def test_golden_numbers_of_both_accountants() -> None:
    found = only(SGD)
    assert found.rdp == pytest.approx(0.8905, abs=1e-4)
    assert found.epsilon == pytest.approx(0.7295, abs=1e-4)
    assert found.prv == (pytest.approx(0.7204, abs=1e-3), pytest.approx(0.7383, abs=1e-3))
    assert found.agrees
    # the limit for many steps, which is no bound: below the least that ε can be
    from opacus.accountants import GaussianAccountant

    with pytest.warns(UserWarning, match="can underestimate"):
        limit = GaussianAccountant()
    limit.load_state_dict({"mechanism": "gdp", "history": [(1.1, 64 / 32561, 7635)]})
    assert limit.get_epsilon(DELTA) == pytest.approx(0.7045, abs=1e-4)
    assert limit.get_epsilon(DELTA) < found.lowest


def test_each_phase_and_all_together_are_compared() -> None:
    found = second_opinion((SGD, SUM, BOOST, COUNT), DELTA)
    assert [one.phases for one in found.phases] == [("sgd",), ("embedding",)]
    assert found.together is not None and found.together.phases == ("sgd", "embedding")
    assert found.together.epsilon == epsilon((SGD, SUM), DELTA)[0]
    assert found.together.lowest > max(one.highest for one in found.phases)
    assert found.not_covered.keys() == {"boost", "certificate"} and not found.differing
    alone = second_opinion((BOOST, COUNT), DELTA)
    assert alone.together is None and alone.phases == () and not alone.differing


def test_rows_of_one_person_and_failing_thresholds() -> None:
    found = only(SUM.model_copy(update={"noise_multiplier": 10.0}), rows=2)
    assert found.epsilon == pytest.approx(only(SUM).epsilon, rel=1e-9) and found.agrees
    assert second_opinion((SGD,), DELTA, rows=2).not_covered.keys() == {"sgd"}
    lists = phase("lists", 5.0, failure=1e-6)
    assert second_opinion((lists,), DELTA).not_covered.keys() == {"lists"}


SETTINGS = [
    (sigma, rate, count)
    for (sigma, rate), count in itertools.product(
        [(0.7, 0.01), (1.1, 0.002), (4.0, 0.2), (20.0, 0.05), (2000.0, 0.05)], [1, 50, 8000]
    )
    if not (sigma == 4.0 and count == 8000)
] + [(0.5, 1.0, 1), (50.0, 1.0, 1), (30.0, 1e-4, 50), (5.0, 1.0, 20)]


@pytest.mark.parametrize(("sigma", "rate", "count"), SETTINGS)
def test_opacus_agrees_over_noise_rates_and_steps(sigma: float, rate: float, count: int) -> None:
    ran = phase("a", sigma, sampling_rate=None if rate == 1.0 else rate, count=count)
    assert only(ran).agrees


@pytest.mark.parametrize("delta", [1e-4, 1e-8, 1e-10, 1e-12, 1e-14])
def test_opacus_agrees_at_small_delta(delta: float) -> None:
    found = second_opinion((SGD, SUM), delta)
    assert not found.differing and found.together is not None
    assert (found.together.prv is None) is (delta < 1e-10)  # there float64 drowns δ


# -- accountants that are wrong --------------------------------------------------------------------


def louder(part: AccountedPhase) -> AccountedPhase:
    return part._replace(noise=1.2 * part.noise)


def half_the_steps(part: AccountedPhase) -> AccountedPhase:
    return part._replace(runs=max(1, part.runs // 2))


def seldom(part: AccountedPhase) -> AccountedPhase:
    return part._replace(rate=part.rate / 2.0) if part.rate < 1.0 else part


def quieter(part: AccountedPhase) -> AccountedPhase:
    return part._replace(noise=part.noise / 1.2)


MISTAKES = [(louder, SGD), (louder, SUM), (half_the_steps, SGD), (seldom, SGD), (quieter, SGD)]


@pytest.mark.parametrize(("mistake", "ran"), MISTAKES)
def test_an_accountant_with_a_mistake_is_contradicted(
    mistake: Callable[[AccountedPhase], AccountedPhase], ran: Phase, monkeypatch: pytest.MonkeyPatch
) -> None:
    def wrong(phases: tuple[Phase, ...], rows: int) -> tuple[AccountedPhase, ...]:
        return tuple(mistake(part) for part in accounted_phases(phases, rows))

    monkeypatch.setattr(accountant, "accounted_phases", wrong)
    found = second_opinion((ran,), DELTA)
    assert len(found.differing) == 2  # by itself and together


def test_a_claim_of_the_gdp_accountant_is_contradicted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "epsilon", lambda phases, delta, rows: (0.7045, "GDP"))
    assert not only(SGD).agrees
