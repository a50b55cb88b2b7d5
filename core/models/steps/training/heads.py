"""Heads: from a network's outputs to mixed-type records, and what one record says about them.

A network emits logits over bins (`column_bins`): every column is a distribution, numbers
included, so spikes, gaps and spread survive where a single predicted value would shrink to the
mean. Three ways to use them: cross-entropy against a record's bins, written out as a gradient per
record for private training; a relaxed record in the codec's own [0, 1] layout, for critics, which
is a linear map of bin probabilities; and drawn records.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional

from core.encoding.codec import Codec, Codes
from core.models.steps.training.column_bins import ColumnBins, column_bins, draw_codes
from core.models.steps.training.draws import uniforms

Emit = Callable[[int, torch.Generator], Tensor]  # rows, randomness on the CPU → [rows, S]
WAVES = 8  # what critics see of each number beside its position
CERTAIN = 1e4  # a logit that leaves no other bin a chance
_LARGEST_LOGIT = 30.0  # keeps every exponential finite without a maximum per column


class Heads:
    """The bin heads of a domain.

    Attributes:
      bins: one a modelled column, in file order.
      total: Σ bins, the width of logits.
      width: of the codec's expanded vector.
      critic_width: of records as critics see them.
    """

    def __init__(self, codec: Codec, *, device: str = "cpu"):
        self.codec = codec
        self.bins = column_bins(codec)
        self.counts = [column.count for column in self.bins]
        self.total = sum(self.counts)
        self.width = codec.width
        column = torch.arange(len(self.bins)).repeat_interleave(torch.tensor(self.counts))
        self._member = functional.one_hot(column, len(self.bins)).float().to(device)  # [S, m]
        starts = torch.tensor([0, *self.counts[:-1]]).cumsum(0)
        self._starts = starts.to(device)
        self.critic_width = codec.width + WAVES * codec.numbers
        self._layout = _layout(codec, self.bins).to(device)  # [S, critic_width]

    def view(self, codes: Codes) -> Tensor:
        """Codes on a device → float32 [b, width + m]: the expanded record, then its bins.

        A bin is written as its index among all S logits; each row depends on its record alone.
        """
        own = torch.stack([column.index(codes) for column in self.bins], dim=1)
        bins = own + self._starts.to(codes.states.device)
        return torch.cat([self.codec.expand(codes), bins.to(torch.float32)], dim=1)

    def critic_view(self, codes: Codes) -> Tensor:
        """Codes on a device → float32 [b, critic_width]: the expanded record, then its waves.

        The waves of a number at position v are cos(πkv), k = 1 … 8, and nothing where it is a spike
        or missing. They show a critic the shape of a distribution, of which it would see little
        more than the mean in v itself. Each row depends on its record alone.
        """
        parts = [self.codec.expand(codes)]
        for column in self.bins:
            block = column.block
            if block.number is not None:
                on_line = (codes.states[:, block.index] == 0).unsqueeze(1)
                parts.append(_waves(codes.values[:, block.number]) * on_line)
        return torch.cat(parts, dim=1)

    def binned_view(self, codes: Codes) -> Tensor:
        """Codes on a device → what critics see of the records after rounding to bins.

        So a real record lies where a generator could have put it. Each row depends on its record
        alone. Float32 [b, critic_width], laid out as `critic_view` does.
        """
        bins = self.view(codes)[:, self.width :].to(torch.int64)
        one_hot = torch.zeros((len(bins), self.total), device=bins.device)
        return self.critic_input(one_hot.scatter_(1, bins, 1.0))

    def split(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """What `view` made → expanded float32 [b, width] and bins int64 [b, m]."""
        return rows[:, : self.width], rows[:, self.width :].to(torch.int64)

    def probabilities(self, logits: Tensor) -> Tensor:
        """Softmax within each column, float32 [b, S]."""
        raised = logits.clamp(-_LARGEST_LOGIT, _LARGEST_LOGIT).exp()
        return raised / ((raised @ self._member) @ self._member.t())

    def gradient(self, logits: Tensor, bins: Tensor) -> Tensor:
        """∂/∂logits of Σ_columns cross-entropy, per record, float32 [b, S]: p - e_bin."""
        p = self.probabilities(logits)
        return p.scatter_add_(1, bins, torch.full_like(bins, -1.0, dtype=p.dtype))

    def relaxed(self, logits: Tensor, *, temperature: float, generator: torch.Generator) -> Tensor:
        """A record a row as critics see them, by straight-through Gumbel-softmax.

        Forwards it is a drawn record; backwards the gradient is that of the soft one.

        Args:
          logits: float32 [b, S].
          temperature: > 0, of the soft one.

        Returns:
          float32 [b, critic_width], laid out as `critic_view` does.
        """
        uniform = uniforms(logits.shape, generator, logits.device)
        noisy = self._with_gumbel(logits, uniform)
        parts = []
        for part in torch.split(noisy, self.counts, dim=1):
            soft = functional.softmax(part / temperature, dim=1)
            parts.append(_strongest(part) - soft.detach() + soft)
        return torch.cat(parts, dim=1) @ self._layout

    def _with_gumbel(self, logits: Tensor, uniform: Tensor) -> Tensor:
        """Logits plus Gumbel noise: the strongest bin of a column is a draw from its softmax."""
        gumbel = -(-(uniform.clamp(1e-9, 1.0 - 1e-7)).log()).log()
        return logits.clamp(-_LARGEST_LOGIT, _LARGEST_LOGIT) + gumbel

    @torch.no_grad()
    def sample_one_hot(self, logits: Tensor, *, uniform: Tensor) -> Tensor:
        """One drawn bin a column, as ones among zeros, float32 [b, S].

        Args:
          logits: float32 [b, S].
          uniform: float32 [b, S] in [0, 1), what is drawn with.
        """
        noisy = self._with_gumbel(logits, uniform)
        parts = torch.split(noisy, self.counts, dim=1)
        return torch.cat([_strongest(part) for part in parts], dim=1)

    def sample_critic_input(self, logits: Tensor, *, generator: torch.Generator) -> Tensor:
        """Drawn records as critics see them, [b, critic_width]; see `sample_one_hot`."""
        uniform = uniforms(logits.shape, generator, logits.device)
        return self.critic_input(self.sample_one_hot(logits, uniform=uniform))

    def critic_input(self, one_hot: Tensor) -> Tensor:
        """What `sample_one_hot` gave → float32 [b, critic_width], laid out as `critic_view`."""
        return one_hot @ self._layout

    def draw(self, logits: Tensor, *, generator: torch.Generator) -> Codes:
        """One record a row; `generator` is data-free randomness on the CPU."""
        return draw_codes(self.codec, self.bins, logits, generator=generator)

    def drawing(self, emit: Emit) -> Callable[[int, torch.Generator], Codes]:
        """What draws records by the logits that `emit` gives; see `draw`."""
        return lambda rows, random: self.draw(emit(rows, random), generator=random)

    def to_codes(self, one_hot: Tensor, *, generator: torch.Generator) -> Codes:
        """What `sample_one_hot` gave → codes; `generator` places numbers inside their cells."""
        return self.draw((one_hot - 1.0) * CERTAIN, generator=generator)


def _strongest(part: Tensor) -> Tensor:
    return torch.zeros_like(part).scatter_(1, part.argmax(dim=1, keepdim=True), 1.0)


def _waves(position: Tensor) -> Tensor:
    """cos(πkv) for k = 1 … WAVES, float32 [b, WAVES], of positions v [b] in [0, 1]."""
    k = torch.arange(1, WAVES + 1, dtype=torch.float32, device=position.device)
    return (math.pi * position.to(torch.float32).unsqueeze(1) * k).cos()


def _layout(codec: Codec, bins: tuple[ColumnBins, ...]) -> Tensor:
    """The linear map from bin probabilities to what critics see, float32 [S, critic_width]."""
    out = torch.zeros(sum(c.count for c in bins), codec.width + WAVES * codec.numbers)
    row = 0
    for column in bins:
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
