"""What m rows of a person cost where nobody can put them together."""

from __future__ import annotations

import decimal
import itertools
import math

import numpy as np
import pytest
from scipy import stats
from scipy.special import logsumexp

from core.privacy.accounting.accountant import epsilon, guarantee, renyi
from core.privacy.accounting.groups import mixture_renyi, replaced_renyi
from core.privacy.ledger.ledger import Ledger
from core.privacy.plan import Budget, Phase, Plan, for_group
from core.privacy.planning import planned
from core.runs.storage.engine import open_engine
from core.schema.person import Person, Unit
from tests.ledger_files import ledger_files
from tests.privacy import toys

pytestmark = pytest.mark.slow

DELTA = 1e-6
SAMPLED = toys.phase("sgd", 4.0, sampling_rate=0.05, count=100)
ALL_KINDS = (
    toys.phase("sgd", 1.3, sampling_rate=0.05, count=200),
    toys.phase("sum", 6.0),
    toys.phase("count", 20.0, mechanism="laplace"),
    toys.phase("pick", 0.0, mechanism="zcdp", rho=1e-3, count=5),
)


def test_one_row_costs_what_it_did() -> None:
    """To a billionth: processors transform a distribution with other last digits."""

    def costs(**rows: int) -> tuple[float, ...]:
        spent = epsilon(ALL_KINDS, DELTA, **rows)
        assert spent[1] == "PLD"
        replaced = epsilon(ALL_KINDS, DELTA, "replace-one", **rows)[0]
        sums = epsilon(ALL_KINDS[1:2] * 3, DELTA, **rows)[0]
        return spent[0], replaced, renyi(ALL_KINDS, 12.3, **rows), sums

    known = 3.530981383950309, 5.981840041871206, 81.96789150251571, 1.2390207071199664
    assert costs() == pytest.approx(known, rel=1e-9)
    assert costs(rows=1) == costs()


@pytest.mark.parametrize("phase", ALL_KINDS[1:], ids=lambda phase: phase.mechanism)
@pytest.mark.parametrize("rows", [2, 7])
def test_noise_for_a_group_makes_it_cost_what_one_did(phase: Phase, rows: int) -> None:
    alone, wider = epsilon([phase], DELTA)[0], for_group(phase, rows)
    assert epsilon([wider], DELTA, rows=rows)[0] == pytest.approx(alone, rel=1e-9)
    assert epsilon([phase], DELTA, rows=rows)[0] > 1.5 * alone
    assert for_group(phase, 1) is phase


def test_epsilon_grows_with_the_rows_of_a_person() -> None:
    quiet = [toys.phase("sgd", 20.0, sampling_rate=0.05, count=100)]
    zero_out = [epsilon(quiet, DELTA, rows=m)[0] for m in (1, 2, 4, 8)]
    replace = [epsilon(quiet, DELTA, "replace-one", rows=m)[0] for m in (2, 4, 8)]
    orders = [renyi(quiet, 9.5, rows=m) for m in (1, 2, 4, 8)]
    for rising in (zero_out, replace, orders):
        assert all(b > a for a, b in itertools.pairwise(rising))
    assert all(r > z for r, z in zip(replace, zero_out[1:], strict=True))


def simple(phase: Phase, rows: int) -> Phase:
    """The bound anybody can prove: any of the rows comes, and then moves the sum by all of them."""
    assert phase.sampling_rate is not None
    return phase.model_copy(
        update={
            "noise_multiplier": phase.noise_multiplier / rows,
            "sampling_rate": 1.0 - (1.0 - phase.sampling_rate) ** rows,
        }
    )


@pytest.mark.parametrize("rows", [2, 5])
def test_the_mixture_is_never_worse_than_the_simple_bound(rows: int) -> None:
    assert epsilon([SAMPLED], DELTA, rows=rows)[0] < epsilon([simple(SAMPLED, rows)], DELTA)[0]
    for order in (2.0, 5.5, 20.0):
        assert renyi([SAMPLED], order, rows=rows) < renyi([simple(SAMPLED, rows)], order)


@pytest.mark.parametrize(("sigma", "rate", "rows"), [(2.0, 0.1, 3), (0.8, 0.3, 2), (9.0, 0.02, 12)])
def test_divergences_of_a_group_agree_with_sums_over_who_came(
    sigma: float, rate: float, rows: int
) -> None:
    """∫ P²/Q is Σ p_j p_k e^(jk/σ²), and so on for three; a person of one row is the library's."""
    count = np.arange(rows + 1)
    p = stats.binom.pmf(count, rows, rate)
    pairs = np.log(np.sum(np.outer(p, p) * np.exp(np.outer(count, count) / sigma**2)))
    j, k, i = np.meshgrid(count, count, count)
    triple = p[j] * p[k] * p[i] * np.exp((j * k + k * i + i * j) / sigma**2)
    found = mixture_renyi([2.0, 3.0], sigma, rate, rows)
    assert found == pytest.approx([pairs, math.log(triple.sum()) / 2.0], rel=1e-8)
    one = toys.phase("sgd", sigma, sampling_rate=rate)
    assert float(mixture_renyi([3.0], sigma, rate, 1)[0]) == pytest.approx(renyi([one], 3.0))


def opposite(order: float, sigma: float, rate: float, rows: int) -> float:
    """D of the worst pair there is in one dimension: the rows push one way, or the other."""
    reach = rows * order + 12.0 * sigma
    x = np.linspace(-reach, reach, 20_001)
    count = np.arange(rows + 1)[:, None]
    weights = stats.binom.logpmf(count, rows, rate)
    there, back = (
        logsumexp(weights + stats.norm.logpdf(x, way * count, sigma), axis=0) for way in (1, -1)
    )
    logs = order * there + (1.0 - order) * back
    return (float(logsumexp(logs)) + math.log(x[1] - x[0])) / (order - 1.0)


@pytest.mark.parametrize("sigma", [0.7, 1.0, 2.0, 4.0])
@pytest.mark.parametrize("rate", [0.02, 0.2, 0.6])
@pytest.mark.parametrize("rows", [2, 4])
def test_swapping_all_rows_of_a_person_is_bounded(sigma: float, rate: float, rows: int) -> None:
    # by way of nobody: the divergences of about twice the order on either way are what bounds it;
    # those of the order itself lie below the truth where σ is large and the rate small
    orders = (1.5, 4.0, 16.0)
    for order, bound in zip(orders, replaced_renyi(orders, sigma, rate, rows), strict=True):
        assert opposite(order, sigma, rate, rows) <= bound


def exact(order: int, sigma: float, rate: float, rows: int) -> decimal.Decimal:
    """ln ∫ P^α Q^(1-α) / (α - 1) at a whole order, to fifty digits: a sum over who came."""
    with decimal.localcontext(prec=50):
        q, variance = decimal.Decimal(rate), decimal.Decimal(sigma) ** 2
        weights = [math.comb(rows, k) * q**k * (1 - q) ** (rows - k) for k in range(rows + 1)]
        total = decimal.Decimal(0)
        for came in itertools.product(range(rows + 1), repeat=order):
            products = sum(a * b for a, b in itertools.combinations(came, 2))
            chance = math.prod(weights[k] for k in came)
            total += chance * (decimal.Decimal(products) / variance).exp()
        return total.ln() / (order - 1)


@pytest.mark.parametrize(("sigma", "rate"), [(0.7, 0.3), (2.0, 0.001), (20.0, 0.001), (2e3, 0.02)])
@pytest.mark.parametrize("rows", [2, 3])
def test_divergences_of_a_group_are_rounded_up(sigma: float, rate: float, rows: int) -> None:
    for order in (2, 3, 4):
        (found,) = mixture_renyi([order], sigma, rate, rows)
        due = exact(order, sigma, rate, rows)
        assert due < decimal.Decimal(float(found))
        assert float(found) <= float(due) * (1.0 + 2e-9) + 1e-12


def test_an_order_out_of_reach_counts_as_infinite() -> None:
    assert mixture_renyi([2.0, 1e6], 1.0, 0.1, 3)[1] == math.inf
    assert mixture_renyi([1e6], 1.0, 0.1, 3)[0] == math.inf


# -- plans and the ledger --------------------------------------------------------------------------


def plan_of(unit: Person | None) -> Plan:
    def phases(scale: float) -> tuple[Phase, ...]:
        return (toys.phase("sum", scale, count=3),)

    fixed, added = toys.phase("pick", 40.0), toys.phase("look", 30.0)
    budget = Budget(epsilon=1.0, delta=DELTA)
    return planned("toy", 1000, budget, phases, fixed=(fixed,), added=(added,), unit=unit)


def test_plan_for_a_group_meets_and_uses_its_budget(tmp_path) -> None:
    alone, group = plan_of(None), plan_of(Person(rows=3))
    keyed = plan_of(Person(columns=("who",), rows=3))
    assert keyed.phases == alone.phases and keyed.guarantee == alone.guarantee
    assert (alone.rows_of_one, group.rows_of_one, keyed.rows_of_one) == (1, 3, 1)
    assert (alone.most_rows, group.most_rows, keyed.most_rows) == (1, 1, 3)
    assert 0.99 < group.guarantee.epsilon <= 1.0
    assert epsilon(group.charged, DELTA)[0] < 0.5  # what each row gets
    for phase in alone.phases:
        wider = group.phase(phase.name).noise_multiplier / phase.noise_multiplier
        assert wider == pytest.approx(3.0)
    engine = open_engine(f"sqlite:///{tmp_path}/ledger.db")
    ledger = Ledger(engine, ledger_files(tmp_path))
    for name, plan in (("a", alone), ("g", group)):
        entry = ledger.debit(name, plan, name, limit=(10.0, 2e-5))
        order = 1.0 + 2.0 * math.log(5e4) / 10.0
        assert entry.rho == pytest.approx(renyi(plan.charged, order, rows=plan.rows_of_one))
        assert entry.epsilon == pytest.approx(1.0, rel=1e-2)
        assert entry.unit == Unit.of(plan.unit)


def test_a_plan_whose_delta_lets_records_be_published_is_refused() -> None:
    budget = Budget(epsilon=1.0, delta=1e-3)
    with pytest.raises(ValueError, match="too large for 1000 records"):
        planned("toy", 1000, budget, lambda scale: (toys.phase("sum", scale),))


def test_a_plan_and_its_digest_keep_the_unit_through_json() -> None:
    alone, group = plan_of(None), plan_of(Person(rows=3))
    for plan in (alone, group):
        again = Plan.model_validate_json(plan.model_dump_json())
        assert again == plan and again.digest == plan.digest
    assert group.unit == Person(rows=3) and group.digest != alone.digest


def test_a_claim_is_made_for_the_whole_group() -> None:
    claim = guarantee([SAMPLED], DELTA, rows=3)
    assert claim.epsilon == epsilon([SAMPLED], DELTA, rows=3)[0]
    assert claim.epsilon_replace == epsilon([SAMPLED], DELTA, "replace-one", rows=3)[0]
