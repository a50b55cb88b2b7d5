"""Energies: hand-written passes against autograd, Stein penalties, groups of columns."""

import math

import pytest
import torch
from torch import nn

from core.encoding.codec import Codec
from core.lmdp.discrepancy import linear_statistic, stein_pairs
from core.models.ppem.energy import Energy, lipschitz, shapes
from core.models.ppem.plan import column_groups
from core.models.ppem.stein_penalty import ColumnGroup, SteinPenalty
from core.privacy.dpsgd import clipping
from core.privacy.dpsgd.clipping import clipped_sum
from core.privacy.dpsgd.dense import Dense
from core.schema.schema import Domain
from tests.models.tables import coded, domain

CODEC, CODES = coded(40)
TAGGED = ("age", "cost", "ward")


def random(seed):
    return torch.Generator().manual_seed(seed)


def energy(parts, hidden=12, seed=0):
    networks = Dense(shapes("e", parts, hidden), generator=random(seed))
    starts = [sum(parts[:i]) for i in range(len(parts))]
    columns = [torch.arange(s, s + w) for s, w in zip(starts, parts, strict=True)]
    with torch.no_grad():
        networks.flat.add_(torch.randn(networks.size, generator=random(3)) * 0.05)
    return networks, Energy(networks, "e", columns)


class Module(nn.Module):
    """The same energy for autograd, its parameters one flat vector."""

    def __init__(self, networks, parts):
        super().__init__()
        self.flat = nn.Parameter(networks.flat.detach().clone())
        self.layers, self.parts, self.slope = networks.layers, parts, 0.2

    def forward(self, x):
        first = self.layers[: len(self.parts)]
        pieces = torch.split(x, self.parts, dim=1)
        hidden = []
        for layer, piece in zip(first, pieces, strict=True):
            weight, bias = layer.views(self.flat)
            hidden.append(nn.functional.linear(piece, weight, bias))
        h = nn.functional.leaky_relu(torch.cat(hidden, dim=1), self.slope)
        for i, layer in enumerate(self.layers[len(self.parts) :]):
            weight, bias = layer.views(self.flat)
            h = nn.functional.linear(h, weight, bias)
            if i < 2:
                h = nn.functional.leaky_relu(h, self.slope)
        return h


def summed(networks, grad_factors, rows):
    total = torch.zeros(networks.size)
    clipped_sum(
        grad_factors, clip_norm=math.inf, mask=torch.ones(rows), views=networks.views(total)
    )
    return total


@pytest.mark.parametrize("parts", [(7,), (5, 4)])
def test_energies_score_as_autograd_does(parts):
    networks, own = energy(parts)
    x = torch.randn((9, sum(parts)), generator=random(1))
    module = Module(networks, parts)
    assert torch.allclose(own(x), module(x), atol=1e-6)
    assert torch.allclose(own.forward(x).out, module(x), atol=1e-6)


@pytest.mark.parametrize("parts", [(7,), (5, 4)])
def test_gradients_of_scores_and_penalties_match_autograd(parts):
    networks, own = energy(parts)
    x = torch.randn((9, sum(parts)), generator=random(1))
    between = torch.randn((9, sum(parts)), generator=random(2)).requires_grad_(True)
    module = Module(networks, parts)
    (slope,) = torch.autograd.grad(module(between).sum(), between, create_graph=True)
    slope = slope[:, : parts[0]]
    loss = module(x).sum() + 3.0 * (slope.norm(dim=1) - 1).square().sum()
    loss.backward()
    tape = own.forward(x)
    inner = own.forward(between.detach())
    gradient, factors = own.input_gradient(inner)
    assert torch.allclose(gradient, slope, atol=1e-6)
    grad_factors = own.backward(tape, torch.ones_like(tape.out))
    grad_factors += own.double_backward(inner, factors, lipschitz(gradient, 3.0))
    assert torch.allclose(summed(networks, grad_factors, 9), module.flat.grad, atol=2e-5)


@pytest.mark.parametrize("parts", [(7,), (5, 4)])
def test_clipped_penalised_gradients_match_autograd_per_record(parts, monkeypatch):
    monkeypatch.setattr(clipping, "CANCELLING", 0.0)  # what is clipped more for rounding's sake
    networks, own = energy(parts)
    x = torch.randn((9, sum(parts)), generator=random(1))
    between = torch.randn((9, sum(parts)), generator=random(2))
    want, clip = torch.zeros(networks.size), 0.7
    for i in range(9):
        module = Module(networks, parts)
        here = between[i : i + 1].clone().requires_grad_(True)
        (slope,) = torch.autograd.grad(module(here).sum(), here, create_graph=True)
        loss = module(x[i : i + 1]).sum() + (slope[:, : parts[0]].norm() - 1).square()
        loss.backward()
        want += module.flat.grad * min(1.0, clip / float(module.flat.grad.norm()))
    tape, inner = own.forward(x), own.forward(between)
    slope, factors = own.input_gradient(inner)
    grad_factors = own.backward(tape, torch.ones_like(tape.out)) + own.double_backward(
        inner, factors, lipschitz(slope, 1.0)
    )
    total = torch.zeros(networks.size)
    clipped_sum(grad_factors, clip_norm=clip, mask=torch.ones(9), views=networks.views(total))
    assert torch.allclose(total, want, atol=2e-5)


def stein(names=TAGGED):
    group = ColumnGroup(CODEC, names)
    columns = group.columns(names)
    networks = Dense(shapes("e", (len(columns),), 12), generator=random(0))
    own = Energy(networks, "e", [columns])
    return group, networks, own, SteinPenalty(group, names, own, alpha=0.05)


def by_hand(group, own, rows, bandwidth):
    """Ŝ with the score by autograd through positions, states and waves."""
    width = group.heads.codec.width
    expanded = rows[:, :width].clone().requires_grad_(True)
    extra = []
    for block in group.heads.codec.blocks:
        if block.number is not None:
            k = torch.arange(1, 9)
            on = expanded[:, block.start + 1 : block.start + 2].detach()
            if len(block.states) == 1:
                on = torch.ones_like(on)
            extra.append((math.pi * expanded[:, block.start : block.start + 1] * k).cos() * on)
    whole = torch.cat([expanded, *extra], dim=1)
    assert torch.allclose(whole, rows, atol=1e-5)
    (gradient,) = torch.autograd.grad(own(whole).sum(), expanded)
    return linear_statistic(stein_pairs(rows[:, :width], -gradient, bandwidth=bandwidth))


def test_the_stein_statistic_sees_through_waves_and_states():
    group, _, own, penalty = stein()
    rows = group.view(CODES.to("cpu"))
    penalty.update_bandwidth(rows)
    want = float(by_hand(group, own, rows, penalty.bandwidth))
    assert penalty.statistic(rows) == pytest.approx(want, rel=1e-3)


def test_the_penalty_raises_the_statistic_to_the_critical_value():
    group, networks, _, penalty = stein()
    rows = group.view(CODES.to("cpu"))
    penalty.update_bandwidth(rows)
    for _ in range(400):
        grad_factors = penalty.grad_factors(rows, 1.0)
        if not grad_factors:
            break
        assert penalty.statistic(rows) < penalty.critical
        with torch.no_grad():
            step = summed(networks, grad_factors, len(rows))
            networks.flat.sub_(0.02 * step / step.norm().clamp_min(1e-9))
    assert penalty.statistic(rows) >= penalty.critical
    assert penalty.grad_factors(rows, 1.0) == []


def test_a_batch_too_small_for_a_test_has_no_penalty():
    group, _, _, penalty = stein()
    assert penalty.grad_factors(group.view(CODES.to("cpu"))[:3], 1.0) == []


def test_groups_follow_the_tags():
    plain = Domain(columns=domain().columns)
    assert column_groups(plain) == (("age", "cost", "ward", "day", "ill"), ())
    tagged = Domain(columns=plain.columns, sensitive={"a": ("ward",), "b": ("age", "ill")})
    assert column_groups(tagged) == (("ward", "age", "ill"), ("cost", "day"))


def test_a_group_sees_its_own_columns_alone():
    group = ColumnGroup(CODEC, ("ward", "age"))
    changed = coded(40)[1]
    changed.states[:, Codec(domain()).block("ill").index] = 0
    assert torch.equal(group.view(CODES.to("cpu")), group.view(changed.to("cpu")))
    places = {int(i) for i in group.columns(("age",))} | {int(i) for i in group.columns(("ward",))}
    assert places == set(range(group.width))
