"""Hand-written passes agree with autograd; parameters are views of one vector."""

import pytest
import torch

from core.privacy.dpsgd.dense import Dense
from tests.privacy import nets

X = torch.randn(17, 3, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize("shape", nets.SHAPES.values())
def test_passes_agree_with_autograd(shape):
    networks = nets.dense(shape)
    x = X.clone().requires_grad_()
    net = nets.module(networks)
    out = net(x)
    nets.loss(out).backward()
    tape = networks["net"].forward(X)
    grad_factors, back = networks["net"].backward(tape, torch.tanh(tape.out), to_input=True)
    torch.testing.assert_close(tape.out, out)
    torch.testing.assert_close(back, x.grad)
    for factor, layer in zip(grad_factors, (m for m in net if hasattr(m, "weight")), strict=True):
        torch.testing.assert_close(factor.backprops.t() @ factor.activations, layer.weight.grad)
        torch.testing.assert_close(factor.backprops.sum(0), layer.bias.grad)


def test_calling_a_network_differentiates_its_input_only():
    networks = nets.dense(nets.SHAPES["deep"])
    x = X.clone().requires_grad_()
    networks["net"](x).sum().backward()
    assert x.grad is not None and networks.flat.grad is None


def test_stacks_share_one_vector():
    networks = Dense({"a": (2, 3), "b": (3, 2)})
    assert networks.size == 2 * 3 + 3 + 3 * 2 + 2
    before = networks["b"].forward(torch.ones(1, 3)).out
    with torch.no_grad():
        networks.flat.mul_(2.0)
    torch.testing.assert_close(networks["b"].forward(torch.ones(1, 3)).out, 2 * before)
    networks.load(torch.zeros(networks.size))
    assert not networks["b"].forward(torch.ones(1, 3)).out.any()


def test_one_seed_makes_one_start():
    made = [
        Dense({"a": (2, 3)}, generator=torch.Generator().manual_seed(s)).flat for s in (1, 1, 2)
    ]
    assert torch.equal(made[0], made[1]) and not torch.equal(made[0], made[2])


def test_wrong_sizes_are_refused():
    with pytest.raises(ValueError, match="two positive widths"):
        Dense({"a": (3,)})
    with pytest.raises(ValueError, match="5 parameters"):
        Dense({"a": (2, 3)}).load(torch.zeros(5))
