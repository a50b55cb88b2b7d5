"""Audits: bounds that hold, attacks that see what is there, and do not see what is not."""

import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from dp_accounting.gaussian_mechanism import get_epsilon_gaussian, get_sigma_gaussian
from scipy import stats

from core.audit.audit import WEAK, Audit, Finding, Sizes, Trial, run_audit
from core.audit.bounds import (
    LARGEST,
    Guesses,
    Rates,
    bound_from_gaussians,
    bound_from_guesses,
    bound_from_rates,
    chance_of_guesses,
    clopper_pearson,
    guess,
    rates,
)
from core.audit.canary_attack import audit_table, one_run
from core.cli.main import main
from core.encoding.person_rows import PersonRows
from core.models.planning import plan_fit
from core.models.registry import cards, synthesizer
from core.privacy.plan import Budget

pytestmark = pytest.mark.slow

IDS = [card.id for card in cards()]
# An audit's power is measured where nobody else is there, which is repeated the most; a claim that
# holds has to stand the other attacks at any size.
SMALL = Sizes(canaries=32, records=128, repeats=30, alone_repeats=240, sampled_repeats=30)
# What PPEM's records draw hides more of the one that is left out.
MORE = replace(SMALL, alone_repeats=400)
SIZES = {"ppem": MORE}
TRIES = 4  # at little noise: one that chooses a bad rule by bad luck is no failure
DELTA, SURE = 1e-5, 0.95


# --- statistics ---


def test_the_papers_own_example():
    """1,000 canaries, 75 of 100 guesses right, δ = 1e-4: printed in its appendix D as 0.673."""
    found = bound_from_guesses(Guesses(1000, 100, 75), delta=1e-4, confidence=SURE)
    assert found == pytest.approx(0.673, abs=5e-4)


def test_chance_is_the_binomial_tail_and_grows_with_the_claim():
    seen = Guesses(50, 20, 16)
    right = np.exp(0.7) / (1 + np.exp(0.7))
    tail = stats.binom.sf(15, 20, right)
    assert chance_of_guesses(seen, epsilon=0.7, delta=0.0) == pytest.approx(tail)
    assert chance_of_guesses(seen, epsilon=0.7, delta=1e-3) > tail
    grid = [chance_of_guesses(seen, epsilon=e, delta=0.0) for e in np.linspace(0, 5, 30)]
    assert all(a < b for a, b in zip(grid, grid[1:], strict=False))


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 3.0])
def test_randomised_response_is_never_overstated(epsilon):
    """It is the worst case: each coin comes out right with probability e^ε/(1 + e^ε)."""
    m = 300
    right = np.exp(epsilon) / (1 + np.exp(epsilon))
    at = [bound_from_guesses(Guesses(m, m, v), delta=0.0, confidence=SURE) for v in range(m + 1)]
    over = sum(stats.binom.pmf(v, m, right) for v in range(m + 1) if at[v] > epsilon)
    assert over <= 1.0 - SURE
    assert over > 0.001  # and the bound is not so low that it could never be wrong


@pytest.mark.parametrize("share", [0.02, 0.3, 0.9])
def test_clopper_pearson_covers(share):
    k = 80
    bounds = [clopper_pearson(v, k, confidence=SURE) for v in range(k + 1)]
    chance = stats.binom.pmf(np.arange(k + 1), k, share)
    assert sum(c for c, b in zip(chance, bounds, strict=True) if b[0] > share) <= 1.0 - SURE
    assert sum(c for c, b in zip(chance, bounds, strict=True) if b[1] < share) <= 1.0 - SURE


def gaussian_canaries(m, sigma, rng):
    """Scores of m canaries, each released by itself with noise σ (Δ = 1), and their coins."""
    coins = rng.random(m) < 0.5
    return coins + sigma * rng.standard_normal(m), coins


def test_the_exact_gaussian_is_not_refuted_and_a_quiet_one_is():
    rng = np.random.default_rng(1)
    for sigma in (2.0, 0.6):
        true = get_epsilon_gaussian(sigma, DELTA)
        found = []
        for _ in range(20):
            seen = guess(*gaussian_canaries(1000, sigma, rng), 200)
            found.append(bound_from_guesses(seen, delta=DELTA, confidence=SURE))
        assert max(found) < true
        assert np.median(found) > 0.2 * true  # it sees something
    seen = guess(*gaussian_canaries(1000, 0.2, rng), 200)  # a tenth of the noise of σ = 2
    assert bound_from_guesses(seen, delta=DELTA, confidence=SURE) > get_epsilon_gaussian(2, DELTA)


def test_rates_of_the_exact_gaussian():
    rng = np.random.default_rng(2)
    for sigma, least in ((3.0, 0.0), (0.7, 0.35)):
        true = get_epsilon_gaussian(sigma, DELTA)
        inside, outside = 1 + sigma * rng.standard_normal(8000), sigma * rng.standard_normal(8000)
        seen = rates(inside, outside, delta=DELTA, confidence=SURE)
        bound = bound_from_rates(seen, delta=DELTA, confidence=SURE)
        assert least * true < bound < true


def test_nothing_is_found_where_nothing_is():
    rng = np.random.default_rng(3)
    over = 0
    for _ in range(60):
        seen = rates(rng.standard_normal(200), rng.standard_normal(200), delta=0.0, confidence=SURE)
        over += bound_from_rates(seen, delta=0.0, confidence=SURE) > 0.0
    assert stats.binom.sf(over - 1, 60, 1.0 - SURE) > 1e-5


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 4.0])
def test_the_bound_of_a_gaussian_fit_holds_and_is_near(epsilon):
    """Of 400 audits of an honest Gaussian at most as many pass the claim as the confidence says."""
    sigma, rng = get_sigma_gaussian(epsilon, DELTA), np.random.default_rng(6)
    found = np.array(
        [
            bound_from_gaussians(
                1.0 + sigma * rng.standard_normal(2400),
                sigma * rng.standard_normal(2400),
                delta=DELTA,
                confidence=SURE,
            )
            for _ in range(400)
        ]
    )
    assert stats.binom.sf((found > epsilon).sum() - 1, 400, 1.0 - SURE) > 1e-4
    assert np.median(found) > 0.6 * epsilon


def test_a_gaussian_fit_finds_nothing_where_nothing_is():
    rng = np.random.default_rng(7)
    none, certain = rng.standard_normal((2, 300)), np.ones(10)
    assert bound_from_gaussians(none[0], none[0], delta=DELTA, confidence=SURE) == 0.0
    assert bound_from_gaussians(certain, 0.0 * certain, delta=DELTA, confidence=SURE) == LARGEST
    assert bound_from_gaussians(certain, certain, delta=DELTA, confidence=SURE) == 0.0


def test_a_rule_is_judged_on_draws_that_it_was_not_chosen_on():
    """A threshold that the first half makes perfect is worth nothing where the second differs."""
    first, second = np.arange(100.0), np.zeros(100)
    seen = rates(np.concatenate([first + 1e3, second]), np.concatenate([first, second]),
                 delta=0.0, confidence=SURE)  # fmt: skip
    assert bound_from_rates(seen, delta=0.0, confidence=SURE) == 0.0


def test_what_cannot_be_is_refused():
    with pytest.raises(ValueError, match="cannot be"):
        chance_of_guesses(Guesses(5, 6, 2), epsilon=1.0, delta=0.0)
    with pytest.raises(ValueError, match="cannot be"):
        clopper_pearson(3, 2, confidence=SURE)
    with pytest.raises(ValueError, match="between 0 and 1"):
        bound_from_rates(Rates(1, 2, 0, 2), delta=0.0, confidence=1.0)
    with pytest.raises(ValueError, match="finite"):
        Trial("pearl", float("inf"))
    with pytest.raises(KeyError, match="no model"):
        Trial("nothing", 1.0)


# --- models ---


@pytest.fixture(scope="module", params=IDS)
def trial(request):
    """One model at claimed ε = 1; plans and preparations are shared by the tests of it."""
    return Trial(request.param, 1.0, seed=5, sizes=SIZES.get(request.param, SMALL))


def test_no_model_is_refuted_and_a_tenth_of_the_noise_is(trial):
    attacks = list(trial.attacks())
    if trial.model in ("pearl", "scan_focus"):  # which sample nothing: the same attack once more
        attacks.remove(trial.random_batches)
    assert all(is_kept(trial, attack) for attack in attacks)
    assert is_caught(trial)


def is_kept(trial, attack=None):
    """Whether an attack stays below the claim, at the second try if need be: 1 in 80 do not."""
    attack = attack or trial.nobody_else
    return any(attack(1.0).lower_bound <= trial.budget.epsilon for _ in range(2))


def is_caught(trial):
    """Whether a tenth of the noise refutes the claim."""
    bounds = (trial.nobody_else(WEAK).lower_bound for _ in range(TRIES))
    return any(bound > trial.budget.epsilon for bound in bounds)


@pytest.mark.parametrize("model", IDS)
def test_a_tenth_of_the_noise_is_caught_at_two(model):
    trial = Trial(model, 2.0, seed=5, sizes=SIZES.get(model, SMALL))
    assert is_caught(trial)


def test_the_audit_sees_a_decent_share_of_what_is_there():
    """An honest mechanism at ε = 8 shows at least three tenths of it: the audit is not blind."""
    trial = Trial("dp_gan", 8.0, delta=1e-3, seed=5, sizes=Sizes(alone_repeats=6000))
    assert trial.nobody_else().lower_bound > 0.3 * 8.0 and is_kept(trial)


def test_three_tenths_are_seen_of_a_plain_gaussian_at_one():
    """Scan and focus adds nothing but Gaussian noise to sums over all rows."""
    trial = Trial("scan_focus", 1.0, delta=1e-6, seed=5)
    assert trial.nobody_else().lower_bound > 0.3 and is_kept(trial)


def test_coins_are_guessed_from_one_run_with_little_noise():
    """At ε = 8 with a tenth of the noise coins are read off; with 100 times it, half come right."""
    attacked = audit_table(64, 8)
    settings = {"frequencies": 400, "steps": 20, "batch": 32, "hidden": 8, "latent": 4}
    plan = plan_fit(
        synthesizer("pearl"), attacked.domain, 72, Budget(epsilon=8.0, delta=1e-5), settings
    )
    assert one_run(plan, attacked, seed=0, noise=0.1, guessed=32).right >= 30
    blind = [one_run(plan, attacked, seed=0, noise=100.0, guessed=64).right for _ in range(6)]
    assert 6 * 32 - 60 < sum(blind) < 6 * 32 + 60  # 384 fair coins, six standard deviations


# --- the command ---


def test_the_command_says_what_it_found(capsys, monkeypatch):
    monkeypatch.setattr("core.cli.audit.QUICK", MORE)
    sizes = ["--canaries", "16", "--seed", "3"]
    assert main(["audit", "--model", "pearl", "--epsilon", "1", "--json", *sizes]) == 0
    spoken = capsys.readouterr().out
    found = json.loads(spoken.splitlines()[-1])
    assert found["lower_bound"] <= found["claimed"] == 1.0 < found["power"]
    assert found["confidence"] == 0.95 and found["model"] == "pearl" and found["canaries"] == 16
    assert {"method", "seconds", "delta", "seed"} <= found.keys()
    assert found["lower_bound"] == max(part["lower_bound"] for part in found["parts"])
    for part in found["parts"]:
        assert part["confidence"] == pytest.approx(1 - 0.05 / len(found["parts"]))  # Bonferroni
    assert "proves nothing" in spoken


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("p3gm", True),
        ("pgb", True),
        ("p3gm --long", False),
        ("pearl", False),
        ("scan_focus", False),
    ],
)
def test_counts_that_are_left_out_are_named(capsys, monkeypatch, asked, said):
    result = SimpleNamespace(
        parts=(), lower_bound=0.0, delta=1e-6, confidence=0.95, claimed=1.0, power=None,
        refuted=False, model="",
    )  # fmt: skip
    monkeypatch.setattr("core.cli.audit.run_audit", lambda *_, **__: result)
    assert main(["audit", "--epsilon", "1", "--model", *asked.split()]) == 0
    assert ("were left out" in capsys.readouterr().out) is said


def test_a_refuted_claim_ends_with_one(capsys, monkeypatch):
    """The command's own words and exit code when the bound is above the claim."""
    trial = Trial("pearl", 1.0, seed=3, sizes=MORE)
    broken = type(
        "Broken", (Trial,), {"attacks": lambda self: (lambda _: trial.nobody_else(WEAK),)}
    )
    monkeypatch.setattr("core.cli.audit.Trial", broken)
    monkeypatch.setattr(
        "core.cli.audit.run_audit", lambda trial, tell: run_audit(trial, power=False, tell=tell)
    )
    assert main(["audit", "--model", "pearl", "--epsilon", "1", "--json"]) == 1
    spoken = capsys.readouterr().out
    assert "REFUTED" in spoken and json.loads(spoken.splitlines()[-1])["refuted"] is True


@pytest.mark.parametrize(
    "wrong",
    [["--model", "none", "--epsilon", "1"], ["--model", "pearl", "--epsilon", "inf"],
     ["--model", "pearl", "--epsilon", "1", "--canaries", "2"],
     ["--model", "pearl", "--epsilon", "1", "--rows-per-person", "0"]],
)  # fmt: skip
def test_what_cannot_be_audited_is_one_line(wrong, capsys):
    assert main(["audit", *wrong]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_people_of_several_rows_are_attacked_as_people(monkeypatch):
    trial = Trial("pearl", 1.0, seed=3, sizes=replace(SMALL, rows=10))
    assert is_kept(trial)
    assert trial._prepared["nobody else"].plan.unit.rows == 10
    weights = property(lambda people: np.ones(people.offsets[-1], "f4"))
    monkeypatch.setattr(PersonRows, "weights", weights)  # broken: each row counts as one
    trial._prepared.clear()
    assert trial.nobody_else().lower_bound > 1.0


def test_people_are_attacked_with_all_their_windows(monkeypatch):
    sizes = replace(SMALL, rows=6)
    trial = Trial("scan_focus", 1.0, seed=3, sizes=sizes)
    assert is_kept(trial) and is_kept(trial, trial.one_run)
    attacked = trial._table(1, 15)
    assert attacked.people.counts.tolist() == [5] * 16  # windows of people with six events
    canary, _ = attacked.part(0, 1)
    assert len(canary) == 5 and attacked.domain.roles
    weights = property(lambda people: np.ones(people.offsets[-1], "f4"))
    monkeypatch.setattr(PersonRows, "weights", weights)  # broken: each window counts as one
    trial._prepared.clear()
    assert trial.nobody_else().lower_bound > 1.0


def test_an_audit_is_refuted_only_above_its_claim():
    part = Finding("x", 1.0, 0.95, {})
    at = Audit("m", 1.0, 1e-6, 0.95, 1.0, None, "x", 8, 0, 0.0, (part,))
    assert not at.refuted and at.as_json()["parts"][0]["lower_bound"] == 1.0
