"""Snapshots: generators and critics kept along the way, and all of them at once, for boosting."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional

from core.models.steps.training.heads import Heads
from core.privacy.dpsgd.dense import SLOPE, Layer

NUMBERS_AT_ONCE = 2**23  # hidden values held at a time, whatever the number of rows and critics

Layers = tuple[tuple[Tensor, Tensor], ...]  # weights [N, out, in] and biases [N, out]


class Snapshots:
    """Keeps generator and critic now and then over the last quarter of training.

    When follows from the number of steps alone, never from data.

    Args:
      count: pairs to keep, evenly spaced; 0 keeps none.

    Attributes:
      pairs: flat parameters of the generator and of the critic, on the CPU.
    """

    def __init__(self, count: int, steps: int):
        self._count, self._steps = count, steps
        self.pairs: list[tuple[Tensor, Tensor]] = []

    def add_if_due(self, done: int, generator: nn.Module, critic: Tensor) -> None:
        """Keep both if it is time."""
        if not self._count or done * 4 <= 3 * self._steps:
            return
        every = max(1, math.ceil(self._steps / 4 / self._count))
        if (self._steps - done) % every == 0:
            self.pairs.append(_pair(generator, critic))

    def history(self, generator: nn.Module, critic: Tensor) -> dict[str, Tensor]:
        """Under "generators" and "critics", float32 [N, ·]; {} where none were asked for.

        A crash may have taken the steps of the last quarter, which are paid for and not redone;
        the networks as they are then stand for all that were lost.
        """
        if not self._count:
            return {}
        pairs = self.pairs or [_pair(generator, critic)]
        generators, critics = zip(*pairs, strict=True)
        return {"generators": torch.stack(generators), "critics": torch.stack(critics)}


def _pair(generator: nn.Module, critic: Tensor) -> tuple[Tensor, Tensor]:
    flat = nn.utils.parameters_to_vector(generator.parameters()).detach()
    return flat.cpu(), critic.detach().cpu().clone()


@dataclass(frozen=True)
class SnapshotEnsemble:
    """N generators and N critics.

    Attributes:
      heads: of the domain, on the CPU.
      generators: float32 [N, ·], flat parameters.
      emit: (flat parameters, rows, data-free randomness) → bin logits [rows, S].
      critics: of N fully connected networks, from records as critics see them to one number that
        is higher where a record looks real.
    """

    heads: Heads
    generators: Tensor
    emit: Callable[[Tensor, int, torch.Generator], Tensor]
    critics: Layers

    def __len__(self) -> int:
        return len(self.generators)

    @torch.no_grad()
    def draw(self, index: int, rows: int, random: torch.Generator) -> Tensor:
        """Records of one generator, as drawn bins (`Heads.sample_one_hot`), float32 [rows, S].

        Args:
          index: of the generator, from 0.
        """
        logits = self.emit(self.generators[index], rows, random)
        return self.heads.sample_one_hot(logits, uniform=torch.rand(logits.shape, generator=random))

    @torch.no_grad()
    def critic_outputs(self, records: Tensor) -> Tensor:
        """Every critic's output at records as critics see them, float32 [b, w] → [b, N]."""
        layers = [(w.to(records.device), bias.to(records.device)) for w, bias in self.critics]
        widest = max(weight.shape[1] for weight, _ in layers)
        rows = max(1, NUMBERS_AT_ONCE // (len(self) * widest))
        return torch.cat([_forward(chunk, layers) for chunk in torch.split(records, rows)])


def unpacked(flat: Tensor, widths: Sequence[int]) -> Layers:
    """Layers of N networks from their flat parameters.

    Args:
      flat: float32 [N, ·], each layer's weight [out, in] and then its bias.
    """
    layers, start = [], 0
    for inputs, outputs in pairwise(widths):
        layer = Layer(inputs, outputs, start)
        layers.append(layer.views(flat))
        start = layer.stop
    return tuple(layers)


def _forward(x: Tensor, layers: Sequence[tuple[Tensor, Tensor]]) -> Tensor:
    """[b, in] through N networks at once → [b, N]."""
    h = x.unsqueeze(0).expand(len(layers[0][0]), -1, -1)  # [N, b, in]
    for i, (weight, bias) in enumerate(layers):
        h = torch.baddbmm(bias.unsqueeze(1), h, weight.mT)
        if i + 1 < len(layers):
            h = functional.leaky_relu(h, SLOPE)
    return h[:, :, 0].t()
