"""Heads: from a network's outputs to mixed-type records, and what one record says about them.

A network emits logits over slots (`shared.column_bins`): every column is a distribution, numbers
included, so spikes, gaps and spread survive where a single predicted value would shrink to the
mean. Three
ways to use them: cross-entropy against a record's slots, written out as a gradient per record for
private training; a relaxed record in the codec's own [0, 1] layout, for critics, which is a linear
map of slot probabilities; and drawn records.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional

from core.models.shared.column_bins import ColumnSlots, column_slots, draw_codes
from core.table.codec import Codec, Codes

__all__ = ["Heads"]

WAVES = 8  # what critics see of each number beside its position
CERTAIN = 1e4  # a logit that leaves no other slot a chance
_LARGEST_LOGIT = 30.0  # keeps every exponential finite without a maximum per column


class Heads:
    """The slot heads of a domain.

    Args:
      codec: where columns lie.
      device: where the tensors live.

    Attributes:
      slots: one a modelled column, in file order.
      total: Σ slots, the width of logits.
      width: of the codec's expanded vector.
      critic_width: of records as critics see them.
    """

    def __init__(self, codec: Codec, *, device: str = "cpu"):
        self.codec = codec
        self.slots = column_slots(codec)
        self.counts = [column.count for column in self.slots]
        self.total = sum(self.counts)
        self.width = codec.width
        column = torch.arange(len(self.slots)).repeat_interleave(torch.tensor(self.counts))
        self._member = functional.one_hot(column, len(self.slots)).float().to(device)  # [S, m]
        starts = torch.tensor([0, *self.counts[:-1]]).cumsum(0)
        self._starts = starts.to(device)
        self.critic_width = codec.width + WAVES * codec.numbers
        self._layout = _layout(codec, self.slots).to(device)  # [S, critic_width]

    def view(self, codes: Codes) -> Tensor:
        """Codes on a device → float32 [b, width + m]: the expanded record, then its slots.

        A slot is written as its place among all S logits; each row depends on its record alone.
        """
        places = [_slot_of(column, codes) for column in self.slots]
        slots = torch.stack(places, dim=1) + self._starts.to(codes.states.device)
        return torch.cat([self.codec.expand(codes), slots.to(torch.float32)], dim=1)

    def critic_view(self, codes: Codes) -> Tensor:
        """Codes on a device → float32 [b, critic_width]: the expanded record, then its waves.

        The waves of a number at position v are cos(πkv), k = 1 … 8, and nothing where it is a spike
        or missing. They show a critic the shape of a distribution, of which it would see little
        more than the mean in v itself. Each row depends on its record alone.
        """
        parts = [self.codec.expand(codes)]
        for column in self.slots:
            block = column.block
            if block.number is not None:
                on_line = (codes.states[:, block.index] == 0).unsqueeze(1)
                parts.append(_waves(codes.values[:, block.number]) * on_line)
        return torch.cat(parts, dim=1)

    def rounded(self, codes: Codes) -> Tensor:
        """Codes on a device → what critics see of the records after rounding to slots.

        So a real record lies where a generator could have put it. Each row depends on its record
        alone. Float32 [b, critic_width], laid out as `critic_view` does.
        """
        slots = self.view(codes)[:, self.width :].to(torch.int64)
        hot = torch.zeros((len(slots), self.total), device=slots.device)
        return self.seen(hot.scatter_(1, slots, 1.0))

    def split(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """What `view` made → expanded float32 [b, width] and slots int64 [b, m]."""
        return rows[:, : self.width], rows[:, self.width :].to(torch.int64)

    def probabilities(self, logits: Tensor) -> Tensor:
        """Softmax within each column, float32 [b, S]."""
        raised = logits.clamp(-_LARGEST_LOGIT, _LARGEST_LOGIT).exp()
        return raised / ((raised @ self._member) @ self._member.t())

    def gradient(self, logits: Tensor, slots: Tensor) -> Tensor:
        """∂/∂logits of Σ_columns cross-entropy, per record, float32 [b, S]: p - e_slot."""
        found = self.probabilities(logits)
        return found.scatter_add_(1, slots, torch.full_like(slots, -1.0, dtype=found.dtype))

    def cross_entropy(self, logits: Tensor, slots: Tensor) -> Tensor:
        """Σ_columns -log p(slot), per record, nats, float32 [b]."""
        return -self.probabilities(logits).gather(1, slots).log().sum(dim=1)

    def relaxed(self, logits: Tensor, *, temperature: float, generator: torch.Generator) -> Tensor:
        """A record a row as critics see them, by straight-through Gumbel-softmax.

        Forwards it is a drawn record; backwards the gradient is that of the soft one.

        Args:
          logits: float32 [b, S].
          temperature: > 0, of the soft one.
          generator: data-free randomness on the logits' device.

        Returns:
          float32 [b, critic_width], laid out as `critic_view` does.
        """
        uniform = torch.rand(logits.shape, generator=generator, device=logits.device)
        pushed = self._pushed(logits, uniform)
        parts = []
        for part in torch.split(pushed, self.counts, dim=1):
            soft = functional.softmax(part / temperature, dim=1)
            parts.append(_strongest(part) - soft.detach() + soft)
        return torch.cat(parts, dim=1) @ self._layout

    def _pushed(self, logits: Tensor, uniform: Tensor) -> Tensor:
        """Logits plus Gumbel noise: the strongest slot of a column is a draw from its softmax."""
        gumbel = -(-(uniform.clamp(1e-9, 1.0 - 1e-7)).log()).log()
        return logits.clamp(-_LARGEST_LOGIT, _LARGEST_LOGIT) + gumbel

    @torch.no_grad()
    def chosen(self, logits: Tensor, *, uniform: Tensor) -> Tensor:
        """One drawn slot a column, as ones among zeros, float32 [b, S].

        Args:
          logits: float32 [b, S].
          uniform: float32 [b, S] in [0, 1), what is drawn with.
        """
        pushed = self._pushed(logits, uniform)
        parts = torch.split(pushed, self.counts, dim=1)
        return torch.cat([_strongest(part) for part in parts], dim=1)

    def seen(self, slots: Tensor) -> Tensor:
        """Slots as `chosen` gives them → float32 [b, critic_width], laid out as `critic_view`."""
        return slots @ self._layout

    def draw(self, logits: Tensor, *, generator: torch.Generator) -> Codes:
        """One record a row; `generator` is data-free randomness on the CPU."""
        return draw_codes(self.codec, self.slots, logits, generator=generator)

    def written(self, slots: Tensor, *, generator: torch.Generator) -> Codes:
        """Slots as `chosen` gives them → codes; `generator` places numbers inside their cells."""
        return self.draw((slots - 1.0) * CERTAIN, generator=generator)


def _strongest(part: Tensor) -> Tensor:
    """One where a row is largest, zero elsewhere."""
    return torch.zeros_like(part).scatter_(1, part.argmax(dim=1, keepdim=True), 1.0)


def _slot_of(column: ColumnSlots, codes: Codes) -> Tensor:
    """Which slot each record's cell lies in, int64 [b]."""
    block = column.block
    state: Tensor = codes.states[:, block.index]
    if block.number is None:
        return state
    value = codes.values[:, block.number]
    centres = torch.as_tensor(column.centres, dtype=value.dtype, device=value.device)
    middles = (centres[1:] + centres[:-1]) / 2.0
    cell = torch.bucketize(value.contiguous(), middles)
    return torch.where(state == 0, cell, column.cells + state - 1)


def _waves(position: Tensor) -> Tensor:
    """cos(πkv) for k = 1 … WAVES, float32 [b, WAVES], of positions v [b] in [0, 1]."""
    k = torch.arange(1, WAVES + 1, dtype=torch.float32, device=position.device)
    return (math.pi * position.to(torch.float32).unsqueeze(1) * k).cos()


def _layout(codec: Codec, slots: tuple[ColumnSlots, ...]) -> Tensor:
    """The linear map from slot probabilities to what critics see, float32 [S, critic_width]."""
    out = torch.zeros(sum(c.count for c in slots), codec.width + WAVES * codec.numbers)
    row = 0
    for column in slots:
        block = column.block
        if block.number is None:
            out[row : row + column.count, block.slice] = torch.eye(column.count)
        else:
            centres = torch.as_tensor(column.centres, dtype=torch.float32)
            out[row : row + column.cells, block.start] = centres
            first = codec.width + WAVES * block.number
            out[row : row + column.cells, first : first + WAVES] = _waves(centres)
            if len(block.states) > 1:
                out[row : row + column.cells, block.start + 1] = 1.0
                for atom in range(column.atoms):
                    out[row + column.cells + atom, block.start + 2 + atom] = 1.0
        row += column.count
    return out
