"""Players: the generators and critics that a game kept along the way, all of them at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor
from torch.nn import functional

from core.models.shared.fitted import SlotFitted
from core.models.shared.heads import Heads
from core.privacy.dpsgd.dense import Layer

__all__ = ["Layers", "Players", "unpacked"]

NUMBERS_AT_ONCE = 2**23  # hidden values held at a time, whatever the number of rows and critics
SLOPE = 0.2


Layers = tuple[tuple[Tensor, Tensor], ...]  # weights [N, out, in] and biases [N, out]


@dataclass(frozen=True)
class Players:
    """N generators and N critics.

    Attributes:
      heads: of the domain.
      generators: float32 [N, ·], flat parameters.
      emit: (flat parameters, rows, data-free randomness) → slot logits [rows, S].
      critics: of N fully connected networks, from records as critics see them to one number that
        is higher where a record looks real.
    """

    heads: Heads
    generators: Tensor
    emit: Callable[[Tensor, int, torch.Generator], Tensor]
    critics: Layers

    def __len__(self) -> int:
        return len(self.generators)

    @classmethod
    def of(
        cls,
        fitted: SlotFitted,
        emit: Callable[[Tensor, int, torch.Generator], Tensor],
        critic_hidden: int,
    ) -> Players:
        """The snapshots that a `shared.gan_trainer.Game` left in a fitted model."""
        heads, history = fitted.heads, fitted.history
        widths = (heads.critic_width, critic_hidden, max(1, critic_hidden // 2), 1)
        return cls(heads, history["generators"], emit, unpacked(history["critics"], widths))

    @torch.no_grad()
    def draw(self, index: int, rows: int, random: torch.Generator) -> Tensor:
        """Records of one generator, as drawn slots (`Heads.chosen`), float32 [rows, S]."""
        logits = self.emit(self.generators[index], rows, random)
        return self.heads.chosen(logits, uniform=torch.rand(logits.shape, generator=random))

    @torch.no_grad()
    def judge(self, seen: Tensor) -> Tensor:
        """What every critic says of records as critics see them, float32 [b, w] → [b, N]."""
        layers = [(w.to(seen.device), bias.to(seen.device)) for w, bias in self.critics]
        widest = max(weight.shape[1] for weight, _ in layers)
        rows = max(1, NUMBERS_AT_ONCE // (len(self) * widest))
        return torch.cat([_pass(part, layers) for part in torch.split(seen, rows)])


def unpacked(flat: Tensor, widths: Sequence[int]) -> Layers:
    """Layers of N networks from their flat parameters.

    Args:
      flat: float32 [N, ·], each layer's weight [out, in] and then its bias.
      widths: from input to output.
    """
    found, start = [], 0
    for inputs, outputs in pairwise(widths):
        layer = Layer(inputs, outputs, start)
        found.append(layer.views(flat))
        start = layer.stop
    return tuple(found)


def _pass(x: Tensor, layers: Sequence[tuple[Tensor, Tensor]]) -> Tensor:
    """[b, in] through N networks at once → [b, N]."""
    h = x.unsqueeze(0).expand(len(layers[0][0]), -1, -1)  # [N, b, in]
    for i, (weight, bias) in enumerate(layers):
        h = torch.baddbmm(bias.unsqueeze(1), h, weight.mT)
        if i + 1 < len(layers):
            h = functional.leaky_relu(h, SLOPE)
    return h[:, :, 0].t()
