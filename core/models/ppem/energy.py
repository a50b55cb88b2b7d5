"""Energy: a network that scores records, with hand-written passes through its own input gradient.

An energy is low at real records and high elsewhere. Training one needs gradients of ordinary
scores and of functions of its input gradient (a Lipschitz penalty, a Stein discrepancy); both come
out as gradient factors of linear layers (`core.privacy.dpsgd.dense`), so that a record's gradient
can be clipped without laying it out.

First layers are apart for each part of the input, the rest is joint.

Source: Tillman, Balch and Veloso, 2023, figure 1; Gulrajani et al., "Improved training of
Wasserstein GANs", 2017 (the Lipschitz penalty).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from core.privacy.dpsgd.dense import SLOPE, Dense, GradFactor, Tape

_leaky_back = torch.ops.aten.leaky_relu_backward


def shapes(name: str, parts: Sequence[int], hidden: int) -> dict[str, tuple[int, ...]]:
    """Widths for `Dense`: first layers of equal width for each part, then 2 × hidden → 1.

    Args:
      parts: widths of the parts of its input.
    """
    first = {f"{name}.{i}": (w, -(-hidden // len(parts))) for i, w in enumerate(parts)}
    joint = sum(widths[1] for widths in first.values())
    return {**first, name: (joint, hidden, hidden, 1)}


@dataclass(frozen=True)
class EnergyTape:
    """What a forward pass saves: the parts of the input, and the tape of the joint layers."""

    parts: tuple[Tensor, ...]
    joint: Tape

    @property
    def out(self) -> Tensor:
        """Energies, float32 [b, 1]."""
        return self.joint.out


class Energy:
    """One energy whose layers live in a `Dense`.

    Args:
      columns: for each part, int64 [·]: which columns of a row it reads.

    Attributes:
      first: the first part's columns: those that the input gradient is of.
    """

    def __init__(self, networks: Dense, name: str, columns: Sequence[Tensor]):
        self._columns = tuple(column.to(networks.flat.device) for column in columns)
        self._first = [networks[f"{name}.{i}"] for i in range(len(columns))]
        self._joint = networks[name]
        self.first = self._columns[0]
        self._widths = [mlp.layers[0].outputs for mlp in self._first]

    def __call__(self, rows: Tensor) -> Tensor:
        """Float32 [b, w] → [b, 1], under autograd with respect to the rows."""
        first = [s(rows[:, c]) for s, c in zip(self._first, self._columns, strict=True)]
        out: Tensor = self._joint(functional.leaky_relu(torch.cat(first, 1), SLOPE))
        return out

    @torch.no_grad()
    def forward(self, rows: Tensor) -> EnergyTape:
        """Float32 [b, w] → a tape; no autograd."""
        parts = tuple(rows.index_select(1, column) for column in self._columns)
        first = [s.forward(x).out for s, x in zip(self._first, parts, strict=True)]
        hidden = functional.leaky_relu_(torch.cat(first, dim=1), SLOPE)
        return EnergyTape(parts, self._joint.forward(hidden))

    @torch.no_grad()
    def backward(self, tape: EnergyTape, gradient: Tensor) -> list[GradFactor]:
        """Gradient factors of every layer for an output gradient, float32 [b, 1] per record."""
        grad_factors, g = self._joint.backward(tape.joint, gradient, to_input=True)
        assert g is not None
        for mlp, backprops, x in zip(self._first, self._split(tape, g), tape.parts, strict=True):
            grad_factors.append(GradFactor(mlp.layers[0], backprops, x))
        return grad_factors

    @torch.no_grad()
    def input_gradient(self, tape: EnergyTape) -> tuple[Tensor, list[GradFactor]]:
        """The input gradient v, float32 [b, first part], and the gradient factors that made it.

        Only the first part's: further parts are what the energy is conditioned on.
        """
        grad_factors, g = self._joint.backward(tape.joint, torch.ones_like(tape.out), to_input=True)
        assert g is not None
        backprops, mlp = self._split(tape, g)[0], self._first[0]
        first = GradFactor(mlp.layers[0], backprops, tape.parts[0])
        return torch.mm(backprops, mlp.weight(0)), [first, *grad_factors]

    @torch.no_grad()
    def double_backward(
        self, tape: EnergyTape, factors: Sequence[GradFactor], direction: Tensor
    ) -> list[GradFactor]:
        """Gradient factors for a loss that depends on `input_gradient` alone.

        Args:
          direction: ∂loss/∂v, float32 [b, first part], per record.
        """
        first = GradFactor(factors[0].layer, factors[0].backprops, direction, bias=False)
        q = torch.mm(direction, self._first[0].weight(0).t())
        hidden = tape.joint.activations[0]
        if len(self._widths) > 1:
            q = functional.pad(q, (0, hidden.shape[1] - q.shape[1]))
        q = _leaky_back(q, hidden, SLOPE, True)
        return [first, *self._joint.double_backward(tape.joint, factors[1:], q)]

    def as_layers(self, flats: Tensor, positions: Tensor) -> list[tuple[Tensor, Tensor]]:
        """Its layers under several parameter vectors, as plain layers of one input.

        Args:
          flats: float32 [N, ·], each laid out as its `Dense`.
          positions: int64 [w], for each column of the rows, its position in a wider input.

        Returns:
          Weights [N, out, in] and biases [N, out]; the first layer reads the wider input.
        """
        first, bias = [], []
        for mlp, columns in zip(self._first, self._columns, strict=True):
            own, shift = mlp.layers[0].views(flats)
            wide = own.new_zeros((*own.shape[:2], int(positions.max()) + 1))
            wide[:, :, positions[columns]] = own
            first.append(wide)
            bias.append(shift)
        joint = [layer.views(flats) for layer in self._joint.layers]
        return [(torch.cat(first, dim=1), torch.cat(bias, dim=1)), *joint]

    def _split(self, tape: EnergyTape, g: Tensor) -> tuple[Tensor, ...]:
        """The gradient behind each first layer, from that of what they feed."""
        behind = _leaky_back(g, tape.joint.activations[0], SLOPE, True)
        return torch.split(behind, self._widths, dim=1)


def as_critics(
    energies: Sequence[Energy], flats: Tensor, positions: Tensor
) -> tuple[tuple[Tensor, Tensor], ...]:
    """Minus the sum of energies, as one fully connected network side by side.

    Args:
      energies, flats, positions: see `Energy.as_layers`; of one `Dense`.

    Returns:
      Weights [N, out, in] and biases [N, out] of each layer, higher where a record looks real.
    """
    each = [energy.as_layers(flats, positions) for energy in energies]
    layers = []
    for depth, parts in enumerate(zip(*each, strict=True)):
        weights, biases = zip(*parts, strict=True)
        if depth == 0:
            layers.append((torch.cat(weights, dim=1), torch.cat(biases, dim=1)))
        elif depth == len(each[0]) - 1:
            layers.append((-torch.cat(weights, dim=2), -torch.stack(biases).sum(dim=0)))
        else:
            layers.append((_diagonal(weights), torch.cat(biases, dim=1)))
    return tuple(layers)


def _diagonal(blocks: Sequence[Tensor]) -> Tensor:
    """Blocks [N, out, in] along the diagonal of one matrix each, float32 [N, Σ out, Σ in]."""
    outs, ins = zip(*(block.shape[1:] for block in blocks), strict=True)
    whole = blocks[0].new_zeros((len(blocks[0]), sum(outs), sum(ins)))
    row = column = 0
    for block, out, width in zip(blocks, outs, ins, strict=True):
        whole[:, row : row + out, column : column + width] = block
        row, column = row + out, column + width
    return whole


def lipschitz(gradient: Tensor, weight: float) -> Tensor:
    """∂/∂v of weight · (|v| - 1)², per record, float32 [b, w]; zero where v is zero."""
    norm = torch.linalg.vector_norm(gradient, dim=1, keepdim=True)
    direction: Tensor = gradient * (2.0 * weight * (norm - 1.0) / norm.clamp_min(1e-12))
    return direction
