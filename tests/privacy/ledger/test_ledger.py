"""The ledger: filter, accounts, one debit per key, two processes at once."""

from __future__ import annotations

import math
import multiprocessing
from pathlib import Path

import pytest
from sqlalchemy import create_engine

from core.privacy.accounting.accountant import calibrate, epsilon, renyi
from core.privacy.ledger.admission import LedgerError, OverBudgetError
from core.privacy.ledger.filters import admitted, opening, order_of
from core.privacy.ledger.ledger import Ledger
from core.privacy.plan import Budget, Phase, Plan
from tests.ledger_files import ledger_files
from tests.postgres_server import BOTH
from tests.privacy import races, toys
from tests.privacy.toys import N

pytestmark = pytest.mark.slow


def admissions(ledger: Ledger, plan: Plan, account_id: str = "people") -> int:
    """How many releases of one plan pass, one after the other."""
    for done in range(200):
        passed = races.passes(ledger, plan, account_id, f"{account_id}-{done}")
        assert len(ledger.entries(account_id)) - 1 == done + passed
        if not passed:
            return done
    raise AssertionError("the filter never refused")


def fits(ledger: Ledger, plan: Plan) -> bool:
    """Whether the filter has room for a plan; spends nothing."""
    known = ledger.entries("people")
    account = opening(known)
    assert account is not None
    return admitted(
        known,
        epsilon=epsilon(plan.phases, plan.budget.delta)[0],
        delta=plan.budget.delta,
        rho=renyi(plan.phases, order_of(account)),
    )


# -- filter ---------------------------------------------------------------------------------------


def test_golden_number_of_releases(ledger: Ledger) -> None:
    """DP-SGD at ε = .5, δ = 1e-6 under (3, 1e-5): adding ε admits 6, the filter 29."""

    def sgd(scale: float) -> tuple[Phase, ...]:
        return (toys.phase("sgd", scale, sampling_rate=64 / 32561, count=7635),)

    scale = calibrate(Budget(epsilon=0.5, delta=1e-6), sgd)
    assert int(3.0 / 0.5) == 6
    assert admissions(ledger, toys.plan(N, sgd(scale))) == 29
    # a Gaussian of the same ε has a little more Rényi divergence at this order
    ledger.register("others", 3.0, 1e-5, n=N)
    assert admissions(ledger, toys.gaussian_plan(0.5), "others") == 28


def test_declared_attempts_are_all_paid_for(ledger: Ledger) -> None:
    once = toys.plan(N, [toys.phase(noise_multiplier=12.0, failure=1e-8)])
    plan = once.model_copy(update={"attempts": 3})
    entry = ledger.debit("people", plan, "three")
    order = 1 + 2 * math.log(1e5) / 3.0
    thrice = [toys.phase(noise_multiplier=12.0, count=3, failure=1e-8)]
    assert entry.rho == pytest.approx(3.0 * renyi(once.phases, order), rel=1e-12)
    assert entry.epsilon == epsilon(thrice, once.budget.delta)[0]
    assert entry.failure == pytest.approx(3e-8, rel=1e-12)
    # no more of them pass than of a plan that says the same in one attempt
    many = toys.plan(N, [toys.phase(noise_multiplier=12.0)]).model_copy(update={"attempts": 3})
    ledger.register("others", 3.0, 1e-5, n=N)
    ledger.register("one by one", 3.0, 1e-5, n=N)
    single = toys.plan(N, [toys.phase(noise_multiplier=12.0)])
    passed = admissions(ledger, many, "others")
    assert passed == admissions(ledger, single, "one by one") // 3


@BOTH
def test_everything_admitted_together_stays_within_the_limit(ledger: Ledger) -> None:
    plans = [toys.gaussian_plan(wanted) for wanted in (1.2, 0.3, 0.9, 0.5, 0.2, 0.1, 0.6)]
    passed: list[Phase] = []
    for i, plan in enumerate(plans * 6):
        if races.passes(ledger, plan, "people", str(i)):
            passed += plan.phases
    assert len(passed) > 7
    assert epsilon(passed, 1e-5)[0] <= 3.0
    total = sum(e.rho for e in ledger.entries("people"))
    order = 1 + 2 * math.log(1e5) / 3.0
    assert total == pytest.approx(renyi(passed, order))
    limit = 3.0 + math.log(1e-5 * order) / (order - 1) - math.log(1 - 1 / order)
    assert total <= limit
    left = ledger.left("people")
    assert (left.capacity, left.spent) == pytest.approx((limit, total))


def test_what_is_said_to_be_left_is_left(ledger: Ledger) -> None:
    ledger.debit("people", toys.gaussian_plan(1.0), "first")
    for _ in range(3):
        rest = ledger.left("people").epsilon(1e-6)
        assert not races.passes(ledger, toys.gaussian_plan(rest * 1.001), "people", "too much")
        assert fits(ledger, toys.gaussian_plan(rest * 0.999))
        ledger.debit("people", toys.gaussian_plan(rest / 2), f"half of {rest}")
    ledger.debit("people", toys.gaussian_plan(ledger.left("people").epsilon(1e-6) * 0.9999), "rest")
    assert ledger.left("people").share < 0.001


def test_one_release_may_use_the_whole_limit(ledger: Ledger) -> None:
    whole = toys.gaussian_plan(2.9999, 1e-5)
    order = 1 + 2 * math.log(1e5) / 3.0
    assert renyi(whole.phases, order) > ledger.left("people").capacity  # the filter alone says no
    assert ledger.left("people").epsilon(1e-5) == 3.0
    ledger.debit("people", whole, "all at once")
    left = ledger.left("people")
    assert left.filter == "sum" and left.epsilon(1e-6) == 0.0
    assert left.share == pytest.approx(1e-4 / 3, rel=0.1)
    with pytest.raises(OverBudgetError, match="nothing is left"):
        ledger.debit("people", toys.gaussian_plan(0.1), "more")


def test_the_sum_filter_stays_in_force_once_chosen(ledger: Ledger) -> None:
    ledger.debit("people", toys.gaussian_plan(2.95, 8e-6), "large")
    assert ledger.left("people").filter == "sum"
    more, less_sure = toys.gaussian_plan(0.06), toys.gaussian_plan(0.01, 3e-6)
    assert not races.passes(ledger, more, "people", "ε would be 3.01")
    assert not races.passes(ledger, less_sure, "people", "δ would be 1.1e-5")
    ledger.debit("people", toys.gaussian_plan(0.02, 1e-6), "small")
    assert ledger.left("people").spent == pytest.approx(2.97, abs=1e-6)


def test_the_first_release_settles_the_filter(ledger: Ledger) -> None:
    ledger.debit("people", toys.gaussian_plan(0.2, 1e-6), "small first")
    ledger.debit("people", toys.gaussian_plan(2.0, 1e-6), "then a larger one")
    assert ledger.left("people").filter == "rdp"
    # adding would refuse a third of ε 0.9; the Rényi filter was chosen and has room
    ledger.debit("people", toys.gaussian_plan(0.9, 1e-6), "more than the sum allows")
    assert sum(e.limit for e in ledger.entries("people")[1:]) > 3.0

    ledger.register("others", 3.0, 1e-5, n=N)
    ledger.debit("others", toys.gaussian_plan(0.2, 9e-6), "first")
    # adding would allow exactly 2.8 at 1e-6 more; the Rényi filter has no room for it
    tight = toys.plan(N, [toys.phase(noise_multiplier=0.9, mechanism="laplace", count=2)])
    assert epsilon(tight.phases, 1e-6)[0] <= 2.8
    assert not races.passes(ledger, tight, "others", "tight")


def test_a_first_release_beyond_the_limit_is_refused(ledger: Ledger) -> None:
    with pytest.raises(OverBudgetError, match=r"needs ε 3\.10; about ε 3\.00 is left"):
        ledger.debit("people", toys.gaussian_plan(3.1), "too much")
    with pytest.raises(OverBudgetError, match="Nothing was spent"):
        ledger.debit("people", toys.gaussian_plan(2.999, 2e-5), "δ too large")
    assert len(ledger.entries("people")) == 1


def test_a_refusal_says_what_is_left_and_spends_nothing(ledger: Ledger) -> None:
    ledger.debit("people", toys.gaussian_plan(2.5), "run-1")
    before = ledger.left("people")
    with pytest.raises(OverBudgetError) as refused:
        ledger.debit("people", toys.gaussian_plan(2.5), "run-2")
    text = str(refused.value)
    assert "needs ε 2.50" in text and f"about ε {before.epsilon(1e-6):.2f} is left" in text
    assert "Nothing was spent" in text
    assert ledger.left("people") == before
    assert len(ledger.entries("people")) == 2


def test_the_charge_is_computed_here_whatever_the_plan_claims(ledger: Ledger) -> None:
    honest = toys.gaussian_plan(2.9)
    boasting = honest.model_copy(
        update={"guarantee": honest.guarantee.model_copy(update={"epsilon": 0.01})}
    )
    entry = ledger.debit("people", boasting, "run")
    assert entry.epsilon == pytest.approx(2.9, abs=1e-6)


# -- accounts and keys ----------------------------------------------------------------------------


def test_accounts_are_apart_and_fixed(ledger: Ledger) -> None:
    ledger.register("others", 1.0, 1e-6, n=N)
    ledger.debit("people", toys.gaussian_plan(2.0), "run-1")
    assert ledger.left("others").spent == 0.0
    first = ledger.register("people", 3.0, 1e-5, n=N)  # again with the same limit
    assert first == ledger.entries("people")[0]
    with pytest.raises(LedgerError, match="already have an account, with ε 3"):
        ledger.register("people", 30.0, 1e-5, n=N)
    assert [a.account_id for a in ledger.accounts()] == ["people", "others"]


def test_people_without_an_account_cannot_pay(ledger: Ledger) -> None:
    with pytest.raises(LedgerError, match="no account"):
        ledger.debit("nobody", toys.gaussian_plan(0.1), "run")
    with pytest.raises(LedgerError, match="no account"):
        ledger.left("nobody")


@pytest.mark.parametrize(("limit", "delta"), [(0.0, 0.1), (math.inf, 0.1), (1.0, 0.0), (1.0, 1.0)])
def test_a_limit_must_be_in_range(ledger: Ledger, limit: float, delta: float) -> None:
    with pytest.raises(ValueError, match="A limit needs"):
        ledger.register("others", limit, delta, n=N)


@pytest.mark.parametrize("delta", [1 / N, 2 / N, 0.5])
def test_a_limit_needs_delta_below_one_over_n(ledger: Ledger, delta: float) -> None:
    with pytest.raises(ValueError, match=f"below one over the number of records, 1/{N}"):
        ledger.register("others", 1.0, delta, n=N)
    opening = toys.gaussian_plan(0.5)
    with pytest.raises(ValueError, match="below one over"):
        ledger.debit("others", opening, "run", limit=(1.0, delta))
    assert ledger.entries("others") == ()
    ledger.register("others", 1.0, 0.99 / N, n=N)


def test_a_release_needs_delta_below_one_over_n(ledger: Ledger) -> None:
    with pytest.raises(LedgerError, match=f"1/{N}"):
        ledger.debit("people", toys.gaussian_plan(0.5, 1 / N), "run")
    assert len(ledger.entries("people")) == 1


def test_a_refused_first_release_opens_no_account(ledger: Ledger) -> None:
    with pytest.raises(OverBudgetError):
        ledger.debit("others", toys.gaussian_plan(2.0), "run", limit=(1.0, 1e-5))
    assert ledger.entries("others") == ()  # so the steward may still set a limit
    ledger.debit("others", toys.gaussian_plan(0.5), "run", limit=(1.0, 1e-5))
    assert (ledger.left("others").limit, ledger.left("others").releases) == (1.0, 1)
    ledger.debit("others", toys.gaussian_plan(0.1), "more", limit=(9.0, 1e-5))
    assert ledger.left("others").limit == 1.0  # a limit that is there stays


def test_one_key_pays_once(ledger: Ledger) -> None:
    plan = toys.gaussian_plan(1.0)
    first = ledger.debit("people", plan, "run-1")
    assert ledger.debit("people", plan, "run-1") == first
    assert ledger.left("people").releases == 1
    again = ledger.debit("people", plan, "run-1 from nothing")
    assert again.seq == first.seq + 1 and ledger.left("people").releases == 2
    with pytest.raises(LedgerError, match="already paid for another plan"):
        ledger.debit("people", toys.gaussian_plan(0.9), "run-1")
    ledger.register("others", 3.0, 1e-5, n=N)
    with pytest.raises(LedgerError, match="already paid for another plan"):
        ledger.debit("others", plan, "run-1")


def test_a_run_without_privacy_needs_leave_and_is_marked(ledger: Ledger) -> None:
    bare = toys.plan(N, [toys.phase(noise_multiplier=0.0)], private=False)
    with pytest.raises(LedgerError, match="no differential privacy") as refused:
        ledger.debit("people", bare, "bare")
    assert not isinstance(refused.value, OverBudgetError)
    assert len(ledger.entries("people")) == 1
    entry = ledger.debit("people", bare, "bare", allow_non_private=True)
    assert not entry.private and entry.epsilon is None and entry.limit == math.inf
    assert ledger.debit("people", bare, "bare") == entry  # going on needs no second leave
    left = ledger.left("people")
    assert (left.non_private, left.releases, left.spent) == (1, 0, 0.0)


def test_an_entry_says_what_was_paid_for(ledger: Ledger) -> None:
    plan = toys.gaussian_plan(1.0)
    entry = ledger.debit("people", plan, "run-1")
    assert (entry.kind, entry.account_id, entry.run, entry.model) == (
        "release",
        "people",
        "run-1",
        "toy",
    )
    assert entry.plan == plan.digest and entry.delta == 1e-6 and entry.private
    assert entry.id == f"2-{entry.hash[:12]}"
    assert ledger.entries("people")[-1] == entry
    assert ledger.entries() == ledger.entries("people")


@BOTH
def test_a_ledger_outlives_its_process(ledger: Ledger, database: str, tmp_path: Path) -> None:
    ledger.debit("people", toys.gaussian_plan(1.0), "run-1")
    engine = create_engine(database)
    again = Ledger(engine, ledger_files(tmp_path / "home"))
    assert again.entries() == ledger.entries()
    assert again.left("people") == ledger.left("people")
    assert again.verify().head == ledger.verify().head
    engine.dispose()


# -- two at once ----------------------------------------------------------------------------------


@BOTH
def test_two_processes_never_overspend(ledger: Ledger, database: str, tmp_path: Path) -> None:
    alone = 28  # what one process gets; see the golden test
    context = multiprocessing.get_context("spawn")
    barrier, results = context.Barrier(2), context.Queue()
    home = str(tmp_path / "home")
    plans = toys.gaussian_plan(0.5), toys.gaussian_plan(0.05)  # each one's own, and the common one
    people = [
        context.Process(target=races.spend, args=(database, home, name, *plans, barrier, results))
        for name in ("a", "b")
    ]
    for process in people:
        process.start()
    told = [results.get(timeout=120) for _ in people]
    for process in people:
        process.join(timeout=60)
        assert process.exitcode == 0
    assert sum(passed for passed, _ in told) in (alone - 1, alone)
    assert told[0][1] == told[1][1]  # the common key paid once, or not at all
    report = ledger.verify()
    assert report and report.entries == len(ledger.entries())
    left = ledger.left("people")
    assert left.spent <= left.capacity


@BOTH
def test_a_failure_inside_leaves_nothing_behind(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object, **__: object) -> float:
        raise RuntimeError("power cut")

    monkeypatch.setattr("core.privacy.accounting.accountant.renyi", fails)
    with pytest.raises(RuntimeError, match="power cut"):
        ledger.debit("people", toys.gaussian_plan(0.5), "run")
    monkeypatch.undo()
    assert len(ledger.entries()) == 1
    ledger.debit("people", toys.gaussian_plan(0.5), "run")  # and the lock is free
    assert ledger.verify()
