"""Training goes on while a mixture lies farther from the counts than their noise, and no longer."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from core.models.events import FitPaused, Progress, Signal
from core.models.planning import plan_fit
from core.models.registry import synthesizer
from core.models.scan_focus import plan as plan_module
from core.models.scan_focus.discrepancy import clear_pair_unlearned, lacking, of_pairs, of_sets
from core.models.scan_focus.matching import MixtureMatcher, SetTarget, Targets
from core.models.step import FitContext
from core.models.steps.counting.counts import PairTarget
from core.privacy.guarded import PrivateTable
from core.privacy.plan import Budget
from tests.models.tables import coded
from tests.privacy.deterministic_noise import DeterministicNoise

pytestmark = pytest.mark.slow

SIZES = (2, 5, 7)  # of the class and of two columns
QUICK = {"preliminary_steps": 10, "components": 16, "hidden": 8, "latent": 4, "members": 2}
STEPS, ROWS = 20, 20_000


Mixtures = Callable[[], tuple[torch.Tensor, list[torch.Tensor]]]


def mixture(seed: int = 3) -> Mixtures:
    """Two mixtures of fifteen components."""
    random = torch.Generator().manual_seed(seed)
    weights = torch.softmax(torch.randn((2, 15), generator=random), dim=1)
    parts = [torch.softmax(2 * torch.randn((2, k, 15), generator=random), dim=1) for k in SIZES]
    return lambda: (weights, parts)


def joint(one: Mixtures, together: bool) -> np.ndarray:
    """Shares of the cells of both columns within each class, or of all classes, row by row."""
    weights, shares = one()
    cells = np.zeros((2, 5, 7))
    for m, k in np.ndindex(*weights.shape):
        classes, first, second = (share[m, :, k].numpy() for share in shares)
        product = np.multiply.outer(np.multiply.outer(classes, first), second)
        cells += float(weights[m, k]) / 2.0 * product
    return cells.sum(axis=0, keepdims=True) if together else cells


def released(shares: np.ndarray, noise: float) -> Targets:
    pair = PairTarget((1, 2), torch.from_numpy(shares), noise)
    return Targets(1_000_000, torch.ones(1), torch.ones(1), None, (), (pair,), (pair,))


DESIGN = SimpleNamespace(condition=0)


@pytest.mark.parametrize("together", [False, True])
def test_it_is_the_mean_squared_cell_in_units_of_noise(together):
    some, noise = mixture(), 0.004
    there = joint(some, together) + np.random.default_rng(1).normal(0.0, 0.01, (1, 5, 7))
    expected = np.square((there - joint(some, together)) / noise).mean()
    assert of_pairs(some, released(there, noise), DESIGN) == pytest.approx(expected, rel=1e-4)


def test_less_noise_than_is_ever_chased_counts_as_that_much():
    some = mixture()
    there = joint(some, False) + 3e-6
    assert of_pairs(some, released(there, 0.0), DESIGN) == pytest.approx(1.0, rel=1e-2)


@pytest.mark.parametrize(("short", "farther"), [(0.0, False), (2.0, True)])
def test_noise_alone_is_nothing_to_learn_and_what_is_missing_is(short, farther):
    some, noise = mixture(), 0.002
    random = np.random.default_rng(7)
    for _ in range(20):
        missing = short * noise * random.choice([-1.0, 1.0], (2, 5, 7))
        there = joint(some, False) + missing + random.normal(0.0, noise, (2, 5, 7))
        assert (lacking(some, released(there, noise), DESIGN) > 0.0) is farther


@pytest.mark.parametrize(("noise", "unlearned"), [(1e-3, True), (0.1, False)])
def test_a_clear_pair_that_goes_together_too_little_is_unlearned(noise, unlearned):
    """By mixtures in which columns are independent; what noise hides is not to be learned."""
    some = mixture()
    shown, (weights, shares) = released(joint(some, False), noise), some()
    alike = [share.mean(dim=2, keepdim=True).expand_as(share) for share in shares]
    assert clear_pair_unlearned(lambda: (weights, alike), shown, DESIGN) is unlearned
    assert not clear_pair_unlearned(some, shown, DESIGN)


GROUPS = (torch.tensor([0, 0, 1, 1, 2]), torch.tensor([0, 1, 1, 1, 0, 0, 1]))


def with_set(targets: Targets, near: float, seed: int = 5) -> Targets:
    """A counted set of both columns whose counts lie so many standard deviations off."""
    shares = np.zeros((2, 3, 2))
    folded = joint(mixture(), False)
    for i, a in enumerate(GROUPS[0].tolist()):
        for j, b in enumerate(GROUPS[1].tolist()):
            shares[:, a, b] += folded[:, i, j]
    off = near * 0.003 * np.random.default_rng(seed).choice([-1.0, 1.0], shares.shape)
    each = tuple(torch.from_numpy(shares + off) for _ in range(20))
    sets = tuple(SetTarget((1, 2), GROUPS, one.float(), 0.003) for one in each)
    return replace(targets, sets=sets)


def test_of_larger_sets_it_is_that_of_their_groups():
    some = mixture()
    off = with_set(released(joint(some, False), 0.1), near=1.5)
    assert of_sets(some, off, DESIGN) == pytest.approx(1.5**2, rel=1e-3)


@pytest.mark.parametrize(
    ("near", "short", "more"),
    [(0.3, 1.25, False), (1.0, 1.25, True), (2.0, 1.25, True), (0.3, 5.0, True)],
)
def test_sets_that_are_followed_into_their_noise_end_it(near, short, more):
    """Unless pairs lack more than sets have too much."""
    some = mixture()
    far = released(joint(some, False) + short * 0.002, 0.002)
    assert lacking(some, far, DESIGN) > 0.0
    assert (lacking(some, with_set(far, near), DESIGN) > 0.0) is more


def test_without_pairs_there_is_nothing_to_compare():
    nothing = replace(released(joint(mixture(), False), 0.1), counted=())
    assert not lacking(mixture(), nothing, DESIGN)


class Steps:
    """Keeps how far training came, and pauses it once there."""

    def __init__(self, pause: int | None = None):
        self.seen: list[tuple[int, int]] = []
        self.pause = pause

    def __call__(self, event: object) -> Signal:
        if isinstance(event, Progress) and event.phase == "training":
            self.seen.append((event.step, event.steps))
            if self.pause is not None and event.step >= self.pause:
                return Signal.PAUSE
        return Signal.GO_ON


def fit(tmp_path, epsilon: float, watch: Steps, *, resume: bool = False, **settings):
    codec, codes = coded(ROWS)
    model = synthesizer("scan_focus")
    budget = Budget(epsilon=epsilon, delta=1e-5)
    plan = plan_fit(model, codec.domain, ROWS, budget, QUICK | settings)
    table = PrivateTable(codes, codec.domain, plan, noise_source=DeterministicNoise(1))
    context = FitContext(on_event=watch, folder=tmp_path, seed=1, resume=resume)
    return model.fit(table, plan, context)


@pytest.fixture
def few_steps(monkeypatch):
    monkeypatch.setattr(plan_module, "STEPS", STEPS)


@pytest.mark.parametrize(
    ("epsilon", "settings", "trainings"),
    [
        (math.inf, {}, 6),  # ever nearer, and never there
        (0.02, {"members": 4}, 2),  # hardly more than noise
        (math.inf, {"steps": STEPS}, 1),  # as somebody asked for
        (math.inf, {"steps": STEPS, "trainings": 2}, 2),
    ],
)
def test_steps_are_taken_again_while_there_is_more_to_learn(
    epsilon, settings, trainings, tmp_path, few_steps
):
    watch = Steps()
    fit(tmp_path, epsilon, watch, **settings)
    assert watch.seen[-1] == (trainings * STEPS, trainings * STEPS)


def test_one_group_follows_the_noise_of_pairs_and_one_does_not(tmp_path, few_steps, monkeypatch):
    made = []

    class Kept(MixtureMatcher):
        def __init__(self, mixtures, targets, *design, **settings):
            made.append(targets)
            super().__init__(mixtures, targets, *design, **settings)

    monkeypatch.setattr("core.models.scan_focus.trainer.MixtureMatcher", Kept)
    fit(tmp_path, 1.0, Steps())
    *_, noisy, clean = made
    assert len(noisy.pairs) == len(noisy.counted) > 0
    for one, other, released in zip(noisy.pairs, clean.pairs, noisy.counted, strict=True):
        alike = len(one.shares) > len(released.shares)
        same = one.shares.sum(dim=0, keepdim=True) if alike else one.shares
        torch.testing.assert_close(same, released.shares.float(), rtol=1e-4, atol=1e-6)
        assert not torch.allclose(other.shares, one.shares, atol=released.noise / 10.0)


def test_where_noise_hides_all_a_quarter_of_the_steps_is_enough(tmp_path, monkeypatch):
    monkeypatch.setattr(plan_module, "STEPS", 240)
    watch = Steps()
    fit(tmp_path, 0.02, watch)
    assert watch.seen[-1] == (60, 240)  # of the usual steps


def test_a_training_paused_in_round_two_ends_the_same(tmp_path, few_steps, monkeypatch):
    straight = fit(tmp_path / "straight", math.inf, Steps())
    monkeypatch.setattr("core.models.steps.training.training_loop.EVENT_SECONDS", 0.0)
    with pytest.raises(FitPaused):
        fit(tmp_path / "paused", math.inf, Steps(pause=STEPS + 4))
    watch = Steps()
    resumed = fit(tmp_path / "paused", math.inf, watch, resume=True)
    assert watch.seen[0][0] == STEPS + 5 and watch.seen[-1][0] == 6 * STEPS
    assert straight.sample(50, seed=2).equals(resumed.sample(50, seed=2))
