"""Dense: fully connected networks that give every record's gradient as its two factors.

The gradient of a linear layer's weight for one record is an outer product g aᵀ of what came back
(backprops) and what went in (activations). So its norm is ‖g‖·‖a‖, and the sum over a batch with a
factor a record is one matrix product: no single gradient is ever laid out. The passes below are
written out by hand, with no autograd. All weights of all networks lie in one flat vector: one clip,
one noise draw, one optimiser step.

Source of the closed form: Goodfellow, "Efficient per-example gradient computations", 2015.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise

import torch
from torch import Tensor
from torch.nn import functional

SLOPE = 0.2  # of the leaky ReLU below zero
Views = dict[int, tuple[Tensor, Tensor]]  # start of a layer → weight and bias in some flat vector

_leaky_back = torch.ops.aten.leaky_relu_backward


@dataclass(frozen=True)
class Layer:
    """One linear layer in the flat vector: its weight [outputs, inputs] from `start`, its bias."""

    inputs: int
    outputs: int
    start: int

    @property
    def stop(self) -> int:
        """One past its last parameter."""
        return self.start + (self.inputs + 1) * self.outputs

    def views(self, flat: Tensor) -> tuple[Tensor, Tensor]:
        """Weight […, outputs, inputs] and bias […, outputs] inside flat vectors […, ·]."""
        middle = self.start + self.inputs * self.outputs
        weights = flat[..., self.start : middle]
        shape = (*flat.shape[:-1], self.outputs, self.inputs)
        return weights.view(shape), flat[..., middle : self.stop]


@dataclass(frozen=True)
class GradFactor:
    """What one pass through a layer gives each record's gradient: backprops ⊗ activations.

    Float32 [b, outputs] and [b, inputs]; `bias` says whether it took part, with gradient
    `backprops`.
    """

    layer: Layer
    backprops: Tensor
    activations: Tensor
    bias: bool = True


@dataclass(frozen=True)
class Tape:
    """What a forward pass saves: each layer's input, then the output; float32 [b, width] each."""

    activations: tuple[Tensor, ...]

    @property
    def out(self) -> Tensor:
        """The output, float32 [b, last width]."""
        return self.activations[-1]


class MLP:
    """Linear layers with a leaky ReLU in between; the last layer is linear."""

    def __init__(self, flat: Tensor, layers: Sequence[Layer]):
        self.layers = tuple(layers)
        self._views = [layer.views(flat) for layer in layers]
        self._transposed = [weight.t() for weight, _ in self._views]

    def weight(self, index: int) -> Tensor:
        """The weight of a layer, float32 [outputs, inputs], a view of the flat vector."""
        return self._views[index][0]

    def __call__(self, x: Tensor) -> Tensor:
        """Float32 [b, in] → [b, out] under autograd with respect to x; weights are constants."""
        for i, (weight, bias) in enumerate(self._views):
            x = functional.linear(x, weight, bias)
            if i + 1 < len(self._views):
                x = functional.leaky_relu(x, SLOPE)
        return x

    @torch.no_grad()
    def forward(self, x: Tensor) -> Tape:
        """Float32 [b, in] → a tape; no autograd."""
        activations = [x]
        for i, (_, bias) in enumerate(self._views):
            x = torch.addmm(bias, x, self._transposed[i])
            if i + 1 < len(self._views):
                functional.leaky_relu_(x, SLOPE)
            activations.append(x)
        return Tape(tuple(activations))

    @torch.no_grad()
    def backward(
        self, tape: Tape, gradient: Tensor, *, to_input: bool = False
    ) -> tuple[list[GradFactor], Tensor | None]:
        """Gradient factors of an output gradient from input to output, and the input's gradient."""
        grad_factors: list[GradFactor] = []
        g = gradient
        for i in reversed(range(len(self.layers))):
            grad_factors.append(GradFactor(self.layers[i], g, tape.activations[i]))
            if i or to_input:
                g = torch.mm(g, self._views[i][0])
            if i:  # the leaky ReLU keeps signs, so its output tells on which side it was
                g = _leaky_back(g, tape.activations[i], SLOPE, True)
        return grad_factors[::-1], g if to_input else None

    @torch.no_grad()
    def double_backward(
        self, tape: Tape, factors: Sequence[GradFactor], direction: Tensor
    ) -> list[GradFactor]:
        """The gradient of any function of input gradients, as bias-free factors of the layers.

        Let v be the input gradient that `backward` gave, and let a loss depend on the weights
        through v alone. Leaky ReLUs are linear around almost every point, so the gradient of the
        loss is found by sending ∂loss/∂v forwards through the same slopes, without biases.

        Args:
          direction: ∂loss/∂v, float32 [b, in], per record.
        """
        grad_factors: list[GradFactor] = []
        q = direction
        for i, factor in enumerate(factors):
            if i:
                q = torch.mm(q, self._transposed[i - 1])
                q = _leaky_back(q, tape.activations[i], SLOPE, True)
            grad_factors.append(GradFactor(factor.layer, factor.backprops, q, bias=False))
        return grad_factors


class Dense:
    """Networks that share one flat parameter vector.

    Args:
      generator: data-free randomness on the CPU for the start: Kaiming-uniform weights, zero bias.
    """

    def __init__(
        self,
        widths: Mapping[str, Sequence[int]],
        *,
        generator: torch.Generator | None = None,
        device: str = "cpu",
    ):
        layers: dict[str, list[Layer]] = {}
        start = 0
        for name, sizes in widths.items():
            if len(sizes) < 2 or min(sizes) < 1:
                raise ValueError(f"'{name}' needs at least two positive widths, got {list(sizes)}.")
            layers[name] = []
            for inputs, outputs in pairwise(sizes):
                layers[name].append(Layer(inputs, outputs, start))
                start = layers[name][-1].stop
        flat = torch.zeros(start)
        for layer in chain.from_iterable(layers.values()):
            bound = _init_bound(layer)
            weight, _ = layer.views(flat)
            weight.uniform_(-bound, bound, generator=generator)
        self.flat = torch.nn.Parameter(flat.to(device))
        self._mlps = {n: MLP(self.flat.detach(), ls) for n, ls in layers.items()}
        self._viewed: tuple[Tensor, Views] | None = None

    @property
    def size(self) -> int:
        """How many parameters there are."""
        return len(self.flat)

    def __getitem__(self, name: str) -> MLP:
        """The network of that name; KeyError when there is none."""
        return self._mlps[name]

    @property
    def layers(self) -> tuple[Layer, ...]:
        """All layers, in the order of the flat vector."""
        return tuple(layer for mlp in self._mlps.values() for layer in mlp.layers)

    def init_bounds(self) -> Tensor:
        """Float32 [size], for every parameter the largest absolute weight its layer starts with."""
        out = torch.empty(self.size)
        for layer in self.layers:
            out[layer.start : layer.stop] = _init_bound(layer)
        return out.to(self.flat.device)

    def views(self, flat: Tensor) -> Views:
        """Weight and bias of each layer, by its start, inside a flat vector; the last is kept."""
        if self._viewed is None or self._viewed[0] is not flat:
            self._viewed = flat, {layer.start: layer.views(flat) for layer in self.layers}
        return self._viewed[1]

    def load(self, flat: Tensor) -> None:
        """Take over parameters, in place."""
        if flat.shape != self.flat.shape:
            raise ValueError(f"{len(flat)} parameters were given, the networks have {self.size}.")
        with torch.no_grad():
            self.flat.copy_(flat)


def _init_bound(layer: Layer) -> float:
    """The Kaiming-uniform bound, which keeps the spread of values from layer to layer."""
    return math.sqrt(6.0 / ((1.0 + SLOPE**2) * layer.inputs))
