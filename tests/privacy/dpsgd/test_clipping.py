"""Closed-form clipped sums are those of Opacus, of plain autograd and of torch.func."""

import math
import warnings

import pytest
import torch
from torch import nn

from core.privacy.dpsgd import clipping
from core.privacy.dpsgd.clipping import CANCELLING, clipped_sum, squared_norms
from core.privacy.dpsgd.dense import Dense, GradFactor
from core.privacy.dpsgd.gradient import ClippedGradient
from tests.privacy import nets
from tests.privacy.functional_gradient import functional_clipped_sum

CLIPS = (1e-3, 0.5, 1e3, math.inf)  # all, some, none, off


def rows(b, seed=1):
    return torch.randn(b, 3, generator=torch.Generator().manual_seed(seed))


def closed(networks, x, clip_norm, mask=None, grad_factors=None):
    out = torch.full((networks.size,), 7.0)  # whatever was there is overwritten
    mask = torch.ones(len(x)) if mask is None else mask
    found = nets.grad_factors(networks)(x) if grad_factors is None else grad_factors
    factor = clipped_sum(found, clip_norm=clip_norm, mask=mask, views=networks.views(out))
    return out, factor


def by_opacus(networks, x):
    """Per-sample gradients as Opacus has them, [b, size]."""
    from opacus.grad_sample import GradSampleModule

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        wrapped = GradSampleModule(nets.module(networks), loss_reduction="sum")
        nets.loss(wrapped(x)).backward()
    return torch.cat([p.grad_sample.flatten(1) for p in wrapped.parameters()], dim=1)


@pytest.mark.parametrize("clip_norm", CLIPS)
@pytest.mark.parametrize("b", [1, 2, 64])
@pytest.mark.parametrize("shape", nets.SHAPES.values())
def test_sums_are_those_of_opacus(shape, b, clip_norm):
    networks, x = nets.dense(shape), rows(b)
    due = nets.clipped(by_opacus(networks, x), clip_norm)
    assert nets.relative(closed(networks, x, clip_norm)[0], due) <= 1e-5


@pytest.mark.parametrize("clip_norm", CLIPS)
def test_an_empty_batch_sums_to_nothing(clip_norm):
    networks = nets.dense(nets.SHAPES["deep"])
    out, factor = closed(networks, rows(0), clip_norm)
    assert not out.any() and len(factor) == 0


def test_factors_and_masks():
    networks, x = nets.dense(nets.SHAPES["deep"]), rows(6)
    each = nets.per_record(networks, x)
    norms = each.norm(dim=1)
    clip_norm = float(norms.median())
    mask = torch.tensor([1.0, 0, 1, 1, 0, 1])
    out, factor = closed(networks, x, clip_norm, mask)
    torch.testing.assert_close(factor, (clip_norm / norms).clamp(max=1) * mask)
    assert nets.relative(out, nets.clipped(each, clip_norm, mask)) <= 1e-5
    torch.testing.assert_close(squared_norms(nets.grad_factors(networks)(x)), norms.square())


def test_several_stacks_are_clipped_together():
    networks = Dense(
        {"in": (3, 6, 2), "out": (2, 6, 3)}, generator=torch.Generator().manual_seed(3)
    )
    x = rows(20)
    into = networks["in"].forward(x)
    out = networks["out"].forward(into.out)
    decoded, back = networks["out"].backward(out, torch.tanh(out.out), to_input=True)
    grad_factors = networks["in"].backward(into, back)[0] + decoded
    both = nn.Sequential(nets.module(networks, "in"), nets.module(networks, "out"))
    each = []
    for row in x:
        both.zero_grad()
        nets.loss(both(row.unsqueeze(0))).backward()
        each.append(torch.cat([p.grad.flatten() for p in both.parameters()]))
    each = torch.stack(each)
    for clip_norm in CLIPS:
        found = closed(networks, x, clip_norm, grad_factors=grad_factors)[0]
        assert nets.relative(found, nets.clipped(each, clip_norm)) <= 1e-5


def test_layer_used_often_is_clipped_by_its_whole_gradient():
    """Loss f(x) + f(2x) - f(x²): every layer is passed three times; gradients cancel in part."""
    networks = nets.dense(nets.SHAPES["deep"])
    x, grad_factors, each = rows(20), [], []
    for change, sign in ((x, 1.0), (2 * x, 1.0), (x.square(), -1.0)):
        tape = networks["net"].forward(change)
        grad_factors += networks["net"].backward(tape, sign * torch.tanh(tape.out))[0]
        each.append(sign * nets.per_record(networks, change))
    gradients = sum(each)
    norms, one_way = gradients.norm(dim=1), sum(one.norm(dim=1) for one in each)
    for clip_norm in CLIPS:
        total, scale = closed(networks, x, clip_norm, grad_factors=grad_factors)
        most = (clip_norm / norms).clamp(max=1.0)
        least = (clip_norm / (norms.square() + CANCELLING * one_way.square()).sqrt()).clamp(max=1.0)
        assert (scale <= most * (1 + 1e-5)).all() and (scale >= least * (1 - 1e-5)).all()
        assert nets.relative(total, scale @ gradients) <= 1e-5


def beyond(gap, clip_norm):
    """How much more than C the worst record weighs: two passes that differ by `gap` cancel.

    Summed in float64, of the factors as they are.
    """
    networks = Dense({"net": (40, 128, 128, 128, 1)}, generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        networks.flat.mul_(1.5)
    random = torch.Generator().manual_seed(0)
    x = torch.rand(500, 40, generator=random)
    grad_factors = []
    for change, sign in ((x, 1.0), (x + gap * torch.randn(500, 40, generator=random), -1.0)):
        tape = networks["net"].forward(change)
        grad_factors += networks["net"].backward(tape, torch.full((500, 1), sign))[0]
    _, scale = closed(networks, x, clip_norm, grad_factors=grad_factors)
    norms = torch.zeros(500, dtype=torch.float64)
    for first, second in zip(grad_factors[:4], grad_factors[4:], strict=True):
        (g, h), (a, b) = [
            [getattr(one, name).double() for one in (first, second)]
            for name in ("backprops", "activations")
        ]
        norms += (
            (torch.einsum("ri,rj->rij", g, a) + torch.einsum("ri,rj->rij", h, b))
            .square()
            .sum(dim=(1, 2))
        )
        norms += (g + h).square().sum(dim=1)
    return float((norms.sqrt() * scale.double()).max() / clip_norm) - 1.0


HIDDEN = [(1e-2, 1e-2), (1e-3, 1e-3), (1e-4, 1e-3)]  # gaps and clip norms that float32 mistakes


@pytest.mark.parametrize(("gap", "clip_norm"), HIDDEN)
def test_cancelling_passes_weigh_no_more_than_others(gap, clip_norm):
    assert beyond(gap, clip_norm) <= 1e-6


def test_norms_as_float32_sees_them_are_caught(monkeypatch):
    monkeypatch.setattr(clipping, "CANCELLING", 0.0)
    assert max(beyond(*one) for one in HIDDEN) > 0.1


def test_passes_that_nobody_spoke_of_are_refused():
    networks = nets.dense(nets.SHAPES["one"])
    once = nets.grad_factors(networks)
    made = {"networks": networks, "grad_factors": lambda x: once(x) + once(-x), "clip_norm": 1.0}
    with pytest.raises(ValueError, match="several_passes"):
        ClippedGradient(**made).statistic(rows(2), torch.ones(2))
    ClippedGradient(**made, several_passes=True).statistic(rows(2), torch.ones(2))


def test_a_gradient_of_an_input_gradient_is_a_use_without_bias():
    """‖∂f/∂x‖² of a linear f = wx + b has gradient 2w, which leaves the bias alone."""
    networks = nets.dense((3, 1))
    layer = networks.layers[0]
    weight, _ = layer.views(networks.flat.detach())
    use = GradFactor(layer, torch.full((1, 1), 2.0), weight.clone(), bias=False)
    out, _ = closed(networks, rows(1), math.inf, grad_factors=[use])
    torch.testing.assert_close(out, torch.cat([2 * weight.flatten(), torch.zeros(1)]))
    assert squared_norms([use]).item() == pytest.approx(4 * float(weight.square().sum()))


@pytest.mark.parametrize("bad", [math.inf, math.nan, 1e38])
def test_record_without_finite_gradient_contributes_nothing(bad):
    networks, x = nets.dense(nets.SHAPES["wide"]), rows(5)
    x[2] = bad
    mask = torch.ones(5)
    out, factor = closed(networks, x, 0.5, mask)
    others = closed(networks, x[[0, 1, 3, 4]], 0.5)[0]
    assert factor[2] == 0 and torch.isfinite(out).all()
    torch.testing.assert_close(out, others)


def test_the_functional_route_agrees_and_chunks():
    networks, x = nets.dense(nets.SHAPES["deep"]), rows(11)
    due = nets.clipped(nets.per_record(networks, x), 0.5)
    for at_once in (1, 4, 64):
        found, factor = functional_clipped_sum(
            nets.module(networks),
            lambda call, row: nets.loss(call(row)),
            x,
            clip_norm=0.5,
            mask=torch.ones(11),
            at_once=at_once,
        )
        assert nets.relative(found, due) <= 1e-5 and len(factor) == 11


def test_layers_that_mix_records_are_refused():
    net = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 1))
    with pytest.raises((RuntimeError, ValueError)):
        functional_clipped_sum(
            net, lambda call, row: call(row).sum(), rows(3), clip_norm=1.0, mask=torch.ones(3)
        )
