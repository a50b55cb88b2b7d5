"""Mixtures trained apart and put together: what that is, and that nothing is lost on the way."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import TypeVar

import pytest
import torch

from core.models.base_sampler import read_generator
from core.models.planning import plan_fit
from core.models.registry import synthesizer
from core.models.scan_focus.discrepancy import ensemble_weights
from core.models.scan_focus.fitted import FILE
from core.models.scan_focus.groups import NOISY, MixtureGroups
from core.models.scan_focus.matching import MixtureMatcher, Targets
from core.models.scan_focus.mixture import LatentMixtures
from core.models.step import FitContext
from core.models.steps.counting.counts import PairTarget
from core.models.steps.counting.design import Design
from core.privacy.guarded import PrivateTable
from core.privacy.plan import Budget
from tests.models.scan_focus.test_scan_focus import flags
from tests.models.tables import Watcher, coded
from tests.privacy.deterministic_noise import DeterministicNoise

SIZES = (3, 4)
M = TypeVar("M", MixtureMatcher, MixtureGroups)
QUICK = {"steps": 20, "preliminary_steps": 10, "components": 16, "hidden": 8, "latent": 4}


def matcher(count: int, targets: Targets | None = None, steps: int = 12) -> MixtureMatcher:
    """Mixtures that follow noisy counts of two columns and of the pair."""
    random = torch.Generator().manual_seed(1)
    torch.manual_seed(1)
    mixtures = LatentMixtures(
        torch.randn((count, 4, 8), generator=random),
        torch.zeros(7),
        torch.zeros((count, 7, 8)),
        anchored=(),
        sizes=SIZES,
        hidden=8,
    )
    design = Design.of(coded(4, target=None)[0], 2)
    return MixtureMatcher(
        mixtures, targets or counted(), design, steps=steps, rate=0.02, seed=1, device="cpu"
    )


def counted() -> Targets:
    columns = torch.tensor([0.2, 0.3, 0.5, 0.1, 0.2, 0.3, 0.4])
    pair = PairTarget((0, 1), torch.full((1, 3, 4), 1.0 / 12), 0.01)
    return Targets(1000, columns, torch.full((7,), 0.01), None, (), (pair,), (pair,))


def after(model: M, steps: int) -> M:
    while model.done < steps:
        model.step()
    return model


def components_of(fitted, folder: Path) -> int:
    fitted.save(folder / "saved")
    return len(read_generator(folder / "saved", FILE)[2]["weights"])


def combined(*models: MixtureMatcher) -> tuple[torch.Tensor, torch.Tensor]:
    return MixtureGroups(models).combined()


def test_every_mixture_weighs_the_same():
    weights, shares = combined(after(matcher(2), 5), after(matcher(1), 5))
    assert len(weights) == len(shares) == 24 and float(weights.sum()) == pytest.approx(1.0)
    marginals = [weights[part] @ shares[part] * 3 for part in torch.arange(24).split(8)]
    assert torch.allclose(weights @ shares, torch.stack(marginals).mean(dim=0), atol=1e-6)
    assert not torch.allclose(marginals[0], marginals[1], atol=1e-4)


DESIGN = Design.of(coded(4, target=None)[0], 2)


def released(model: MixtureGroups, apart: float) -> Targets:
    """A pair whose counts lie so many standard deviations of their noise from what it shows."""
    weights, (first, second) = model()
    shares = (weights[:, None] * first) @ second.transpose(1, 2)
    off = 0.01 * apart * torch.tensor([1.0, -1.0]).repeat(6).view(1, 3, 4)
    pair = PairTarget((0, 1), shares.mean(dim=0, keepdim=True).detach() + off, 0.01)
    return Targets(1000, counted().columns, torch.full((7,), 0.01), None, (), (pair,), (pair,))


@pytest.mark.parametrize(("apart", "weight"), [(1.2, 1.0), (1.0, 1.0), (0.9, 0.3), (0.0, 0.1)])
def test_mixtures_that_took_noise_in_weigh_less(apart: float, weight: float) -> None:
    groups = MixtureGroups([after(matcher(2), 5), after(matcher(1), 5)])
    targets = released(groups.part(NOISY), apart)
    noisy, others = ensemble_weights(groups, targets, DESIGN)
    assert noisy + others == pytest.approx(1.0)
    assert noisy == pytest.approx(weight, abs=0.03)
    assert ensemble_weights(MixtureGroups([matcher(2)]), targets, DESIGN) == (1.0,)


def test_groups_weigh_as_much_as_they_are_given() -> None:
    groups = MixtureGroups([after(matcher(2), 5), after(matcher(1), 5)])
    one, two = (groups.part(i).combined() for i in range(2))
    groups.group_weights = (0.25, 0.75)
    weights, shares = groups.combined()
    expected = 0.25 * one[0] @ one[1] + 0.75 * two[0] @ two[1]
    assert torch.allclose(weights @ shares, expected, atol=1e-6)
    each, _ = groups()
    assert torch.allclose(each.mean(dim=0).sum(), torch.tensor(1.0))


def test_mixtures_of_a_step_do_not_touch_one_another():
    together, alone = matcher(3), matcher(1)
    with torch.no_grad():
        for one, all_three in zip(
            alone.mixtures.parameters(), together.mixtures.parameters(), strict=True
        ):
            one.copy_(all_three.view(3, -1)[1].view_as(one))
        alone.mixtures.get_buffer("latents").copy_(together.mixtures.get_buffer("latents")[1:2])
    weights, shares = combined(after(together, 12))
    own_weights, own_shares = combined(after(alone, 12))
    torch.testing.assert_close(3 * weights[8:16], own_weights)
    torch.testing.assert_close(shares[8:16], own_shares)


def test_training_goes_on_from_where_it_was():
    straight, stopped = after(matcher(2), 12), after(matcher(2), 5)
    resumed = matcher(2)
    resumed.load_state_dict(copy.deepcopy(stopped.state_dict()))
    assert resumed.done == 5
    for one, other in zip(combined(after(resumed, 12)), combined(straight), strict=True):
        assert torch.equal(one, other)


def test_groups_that_threads_train_are_those_trained_one_by_one():
    """And a second training goes on from a checkpoint."""
    apart = [matcher(2, steps=6), matcher(1, steps=6)]
    threads = MixtureGroups([matcher(2, steps=6), matcher(1, steps=6)])
    processors = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        with threads.threads():
            assert torch.get_num_threads() == 1
            after(threads, 4)
            resumed = MixtureGroups([matcher(2, steps=6), matcher(1, steps=6)])
            resumed.load_state_dict(copy.deepcopy(threads.state_dict()))
            after(threads, 6)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(processors)
    for model in (*apart, resumed):
        after(model, 6)
    assert resumed.done == threads.done == 6
    for groups in (resumed, MixtureGroups(apart)):
        for one, other in zip(groups.combined(), threads.combined(), strict=True):
            assert torch.equal(one, other)


@pytest.mark.parametrize(("settings", "components"), [({"members": 3}, 48), ({}, 192)])
def test_a_model_holds_the_components_of_all(settings, components, tmp_path):
    codec, codes = coded(400)
    model = synthesizer("scan_focus")
    plan = plan_fit(model, codec.domain, 400, Budget(epsilon=1.0, delta=1e-5), QUICK | settings)
    table = PrivateTable(codes, codec.domain, plan, noise_source=DeterministicNoise(1))
    fitted = model.fit(table, plan, FitContext(on_event=Watcher(), folder=tmp_path, seed=1))
    assert components_of(fitted, tmp_path) == components


@pytest.mark.parametrize(("columns", "steps", "members"), [(4, 600, 12), (400, 300, 6)])
def test_wide_tables_get_fewer_steps_and_mixtures(columns, steps, members):
    domain = flags(columns)
    budget = Budget(epsilon=1.0, delta=1e-6)
    plan = plan_fit(synthesizer("scan_focus"), domain, 40_000, budget, {})
    assert plan.settings["steps"] == steps and plan.settings["members"] == members
