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

from core.lmdp.discrepancy import (
    critical_value,
    linear_statistic,
    median_bandwidth,
    stein_pairs,
)
from core.models.ppem.column_group import ColumnGroup
from core.models.ppem.energy import Energy
from core.models.steps.training.heads import WAVES
from core.privacy.dpsgd.dense import GradFactor


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
