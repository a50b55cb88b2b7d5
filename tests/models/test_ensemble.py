"""Mixtures trained apart and put together: what that is, and that nothing is lost on the way."""

from __future__ import annotations

import copy
from pathlib import Path

import pytest
import torch

from core.models.base_sampler import read_generator
from core.models.planning import plan_fit
from core.models.registry import synthesizer
from core.models.scan_focus.ensemble import MixtureEnsemble
from core.models.scan_focus.fitted import FILE
from core.models.scan_focus.matching import MixtureMatcher, Targets
from core.models.scan_focus.mixture import LatentMixture
from core.models.step import FitContext
from core.models.steps.counting.counts import PairTarget
from core.models.steps.counting.design import Design
from core.privacy.guarded import PrivateTable
from core.privacy.mechanisms.noise import DeterministicNoise
from core.privacy.plan import Budget
from tests.models.scan_focus.test_scan_focus import flags
from tests.models.tables import Watcher, coded

SIZES = (3, 4)
QUICK = {"steps": 20, "preliminary_steps": 10, "components": 16, "hidden": 8, "latent": 4}


def member(seed: int, steps: int = 12) -> MixtureMatcher:
    """One that follows noisy counts of two columns and of the pair."""
    random = torch.Generator().manual_seed(seed)
    columns = torch.tensor([0.2, 0.3, 0.5, 0.1, 0.2, 0.3, 0.4])
    pair = PairTarget((0, 1), torch.full((1, 3, 4), 1.0 / 12), 0.01)
    targets = Targets(1000, columns, torch.full((7,), 0.01), None, (), (pair,), (pair,))
    torch.manual_seed(seed)
    mixture = LatentMixture(
        torch.randn((8, 4), generator=random),
        torch.zeros(7),
        torch.zeros((8, 7)),
        anchored=(),
        sizes=SIZES,
        hidden=8,
    )
    codec = coded(4, target=None)[0]
    design = Design.of(codec, 2)
    return MixtureMatcher(mixture, targets, design, steps=steps, rate=0.02, seed=seed, device="cpu")


def ensemble(*seeds: int) -> MixtureEnsemble:
    return MixtureEnsemble([member(seed) for seed in seeds])


def components_of(fitted, folder: Path) -> int:
    fitted.save(folder / "saved")
    return len(read_generator(folder / "saved", FILE)[2]["weights"])


def marginals(weights: torch.Tensor, shares: torch.Tensor) -> torch.Tensor:
    return weights @ shares


def test_every_member_has_the_same_say():
    some = ensemble(1, 2, 3)
    for _ in range(5):
        some.step()
    weights, shares = some.mixture()
    assert len(weights) == len(shares) == 24 and float(weights.sum()) == pytest.approx(1.0)
    each = [MixtureEnsemble([one]).mixture() for one in some.members]
    mean = torch.stack([marginals(*one) for one in each]).mean(dim=0)
    assert torch.allclose(marginals(weights, shares), mean, atol=1e-6)
    assert not torch.allclose(marginals(*each[0]), marginals(*each[1]), atol=1e-4)


def test_members_trained_in_parallel_equal_those_in_turn(monkeypatch):
    apart, in_turn = ensemble(1, 2, 3), ensemble(1, 2, 3)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 2)
    restored: list[int] = []
    monkeypatch.setattr(torch, "set_num_threads", restored.append)
    with apart.side_by_side():
        for _ in range(12):
            apart.step()
    for _ in range(12):
        in_turn.step()
    for one, other in zip(apart.mixture(), in_turn.mixture(), strict=True):
        assert torch.equal(one, other)
    assert restored == [1, 1, 2]  # one processor a thread, then as before


def test_one_goes_on_from_where_it_was():
    straight, stopped = ensemble(1, 2), ensemble(1, 2)
    for _ in range(12):
        straight.step()
    for _ in range(5):
        stopped.step()
    resumed = ensemble(1, 2)
    resumed.load_state_dict(copy.deepcopy(stopped.state_dict()))
    assert resumed.done == 5
    while resumed.done < 12:
        resumed.step()
    assert torch.equal(resumed.mixture()[1], straight.mixture()[1])


@pytest.mark.parametrize(("settings", "components"), [({"members": 3}, 48), ({}, 128)])
def test_a_model_holds_the_components_of_all(settings, components, tmp_path):
    codec, codes = coded(400)
    model = synthesizer("scan_focus")
    plan = plan_fit(model, codec.domain, 400, Budget(epsilon=1.0, delta=1e-5), QUICK | settings)
    table = PrivateTable(codes, codec.domain, plan, noise_source=DeterministicNoise(1))
    fitted = model.fit(table, plan, FitContext(on_event=Watcher(), folder=tmp_path, seed=1))
    assert components_of(fitted, tmp_path) == components


@pytest.mark.parametrize(("columns", "steps", "members"), [(4, 600, 8), (400, 300, 4)])
def test_wide_tables_get_fewer_steps_and_mixtures(columns, steps, members):
    domain = flags(columns)
    budget = Budget(epsilon=1.0, delta=1e-6)
    plan = plan_fit(synthesizer("scan_focus"), domain, 40_000, budget, {})
    assert plan.settings["steps"] == steps and plan.settings["members"] == members
