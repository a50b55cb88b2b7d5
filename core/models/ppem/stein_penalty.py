"""The α-LMDP penalty: pushes an energy until a Stein test tells it from the records it sees.

The score of an energy E is -∇E at a record's own coordinates: states as ones and zeros, numbers as
positions. A number's waves are functions of its position, so their gradients flow into it.

Source: Tillman, Balch and Veloso, 2023, equation 18.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from core.encoding.codec import Codec, Codes
from core.lmdp.discrepancy import critical_value, linear_statistic, median_bandwidth, stein_pairs
from core.models.ppem.energy import Energy
from core.models.steps.training.column_bins import column_bins
from core.models.steps.training.heads import WAVES, Heads
from core.privacy.dpsgd.dense import GradFactor


class ColumnGroup:
    """Some of a domain's columns, with bins and heads of their own.

    Args:
      names: modelled columns, at least one; the group keeps this order.

    Attributes:
      positions: int64 [Σ bins], where each bin of the group lies among all bins of the domain.
      seen_at: int64 [width], where each column of its view lies in that of the whole record.
    """

    def __init__(self, codec: Codec, names: Sequence[str], *, device: str = "cpu"):
        self._blocks = tuple(codec.block(name) for name in names)
        self.heads = Heads(Codec(codec.domain.project(names)), device=device)
        self.width = self.heads.critic_width
        counts = [column.count for column in column_bins(codec)]
        by_column = torch.split(torch.arange(sum(counts)), counts)
        self.positions = torch.cat([by_column[block.index] for block in self._blocks])
        self.seen_at = _critic_columns(codec, names)

    def view(self, codes: Codes) -> Tensor:
        """Codes of whole records → float32 [b, width], the group's columns as critics see them."""
        return self.heads.critic_view(codes.project(self._blocks))

    def columns(self, names: Sequence[str]) -> Tensor:
        """Where some of the group's columns lie in its view, int64 [·]; see `seen_at`."""
        return _critic_columns(self.heads.codec, names)


def _critic_columns(codec: Codec, names: Sequence[str]) -> Tensor:
    """Where columns lie in a record as critics see it (`Heads.critic_view`), int64 [·].

    First as the codec lays them out, then the waves of their numbers.
    """
    blocks = [codec.block(name) for name in names]
    starts = [(block.start, block.width) for block in blocks]
    starts += [(codec.width + WAVES * b.number, WAVES) for b in blocks if b.number is not None]
    return torch.cat([torch.arange(start, start + width) for start, width in starts])


class SteinPenalty:
    """The statistic Ŝ of one group's energy, and its penalty λ·[critical value - Ŝ]₊.

    Args:
      energy: of these columns, in the layout of `ColumnGroup.columns`.
      alpha: level of the test, in (0, 1).

    Attributes:
      critical: what Ŝ must exceed.
      bandwidth: of the kernel; from generated records, see `update_bandwidth`.
    """

    def __init__(self, columns: ColumnGroup, names: Sequence[str], energy: Energy, *, alpha: float):
        self.critical = critical_value(alpha)
        self.bandwidth = 1.0
        device = energy.first.device
        self._energy = energy
        self._columns = columns.columns(names).to(device)
        codec = columns.heads.codec
        starts, on_line, width = [], [], 0
        for name in names:
            block = codec.block(name)
            if block.number is not None:
                starts.append(width)
                on_line.append(width + 1 if len(block.states) > 1 else -1)
            width += block.width
        self._width = width
        self._starts = torch.tensor(starts, dtype=torch.int64, device=device)
        self._on_line = on_line
        self._k = math.pi * torch.arange(1, WAVES + 1, device=device)

    def update_bandwidth(self, generated: Tensor) -> None:
        """Choose the bandwidth from generated rows of the group, which costs nothing."""
        if len(generated) > 1:
            self.bandwidth = median_bandwidth(self._own(generated))

    def statistic(self, rows: Tensor) -> float:
        """Ŝ of rows of the group, float32 [b, group width]."""
        gradient, _ = self._energy.input_gradient(self._energy.forward(rows))
        return float(self._statistic(rows, gradient))

    def grad_factors(self, rows: Tensor, weight: float) -> list[GradFactor]:
        """Gradient factors of the energy for weight · [critical - Ŝ]₊; [] when the test rejects."""
        if len(rows) < 4:
            return []
        tape = self._energy.forward(rows)
        gradient, factors = self._energy.input_gradient(tape)
        with torch.enable_grad():
            gradient.requires_grad_(True)
            missing = self.critical - self._statistic(rows, gradient)
            if not bool(missing > 0.0):
                return []
            (direction,) = torch.autograd.grad(weight * missing, gradient)
        return self._energy.double_backward(tape, factors, direction)

    def _own(self, rows: Tensor) -> Tensor:
        return rows.index_select(1, self._columns[: self._width])

    def _statistic(self, rows: Tensor, gradient: Tensor) -> Tensor:
        own = self._own(rows)
        u = stein_pairs(own, -self._own_gradient(own, gradient), bandwidth=self.bandwidth)
        return linear_statistic(u)

    def _own_gradient(self, own: Tensor, gradient: Tensor) -> Tensor:
        """The energy's gradient at a record's own coordinates, from that at all it reads."""
        direct = gradient[:, : self._width]
        if not len(self._starts):
            return direct
        position = own[:, self._starts]  # [b, numbers]
        bend = -self._k * (position.unsqueeze(2) * self._k).sin()  # [b, numbers, waves]
        waves = gradient[:, self._width :].reshape(bend.shape)
        more = (waves * bend).sum(dim=2)
        on = [own[:, i] if i >= 0 else torch.ones_like(own[:, 0]) for i in self._on_line]
        return direct.index_add(1, self._starts, more * torch.stack(on, dim=1))
