"""Small networks and gradient mechanisms shared by tests of the DP-SGD engine."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from core.privacy.dpsgd.dense import SLOPE, Dense, GradFactor
from core.privacy.dpsgd.gradient import ClippedGradient
from core.privacy.mechanisms.additive import Mechanism
from tests.privacy import toys

SHAPES = {"one": (3, 1), "deep": (3, 8, 5, 1), "wide": (3, 40, 4)}
FLOAT32 = 2e-5  # what float32 sums may carry a statistic beyond Δ; the engine's noise covers it


def dense(shape: Sequence[int], seed: int = 0) -> Dense:
    made = Dense({"net": shape}, generator=torch.Generator().manual_seed(seed))
    with torch.no_grad():  # biases other than zero
        made.flat.add_(torch.randn(made.size, generator=torch.Generator().manual_seed(9)) * 0.1)
    return made


def module(networks: Dense, name: str = "net") -> nn.Sequential:
    """The same network for autograd, with its own copies of the weights."""
    stack, layers = networks[name], []
    for i, layer in enumerate(stack.layers):
        weight, bias = layer.views(networks.flat.detach())
        linear = nn.Linear(layer.inputs, layer.outputs)
        with torch.no_grad():
            linear.weight.copy_(weight)
            linear.bias.copy_(bias)
        layers.append(linear)
        if i + 1 < len(stack.layers):
            layers.append(nn.LeakyReLU(SLOPE))
    return nn.Sequential(*layers)


def loss(out: Tensor) -> Tensor:
    """A loss with a gradient that differs between records: Σ log cosh, per batch."""
    return (out + functional.softplus(-2.0 * out)).sum()


def grad_factors(networks: Dense, name: str = "net") -> Callable[[Tensor], list[GradFactor]]:
    def found(x: Tensor) -> list[GradFactor]:
        tape = networks[name].forward(x)
        return networks[name].backward(tape, torch.tanh(tape.out))[0]

    return found


def per_record(networks: Dense, x: Tensor) -> Tensor:
    """Every record's own gradient of `loss` by plain autograd, [b, size]."""
    net, rows = module(networks), []
    for row in x:
        net.zero_grad()
        loss(net(row.unsqueeze(0))).backward()
        rows.append(torch.cat([p.grad.flatten().clone() for p in net.parameters()]))
    return torch.stack(rows) if rows else torch.zeros(0, networks.size)


def clipped(each: Tensor, clip_norm: float, mask: Tensor | None = None) -> Tensor:
    """Σ of rows scaled to norm ≤ C."""
    factor = (clip_norm / each.norm(dim=1)).clamp(max=1.0)
    return ((factor if mask is None else factor * mask).unsqueeze(1) * each).sum(0)


def gradient(shape: Sequence[int] = SHAPES["deep"], clip_norm: float = 0.5) -> ClippedGradient:
    networks = dense(shape)
    return ClippedGradient(
        networks=networks, grad_factors=grad_factors(networks), clip_norm=clip_norm
    )


@dataclass(frozen=True)
class OnCodes(Mechanism):
    """A gradient mechanism as the harness wants it: rows are codes of `toys.table`."""

    inner: ClippedGradient
    noise: Literal["gaussian"] = "gaussian"

    @property
    def sensitivity(self) -> float:
        return self.inner.sensitivity

    def statistic(self, rows: Any, mask: Tensor) -> Tensor:
        return whole(self.inner, view(rows), mask.float()).double()


def whole(mechanism: ClippedGradient, rows: Tensor, mask: Tensor) -> Tensor:
    """What one batch adds up to, [size + 1]: its records, and the term that looks at them all."""
    total = mechanism.statistic(rows, mask)
    once = mechanism.batch_term(rows[mask > 0])
    if once is not None:
        total[:-1] += once
    return total


def view(rows: Any) -> Tensor:
    return toys.values_of(rows).float()


def relative(a: Tensor, b: Tensor) -> float:
    return float((a - b).norm() / max(b.norm(), 1e-12)) if len(b) else 0.0


JOINT = math.hypot(1.0, 0.1)
