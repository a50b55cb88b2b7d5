"""A gradient with a batch-level penalty: records clipped one by one, the penalty clipped by itself.

A penalty that looks at a whole batch (a test statistic, say) makes every record's gradient depend
on every other record, so it must not sit inside the per-record clip. Here it is a term of its own,

    Σᵢ clip(gᵢ, C) + clip(∇Penalty, C_pen),

which moves by at most C + 2·C_pen when one record goes: C in the sum, and from one vector of length
at most C_pen to another in the penalty. The penalty is a term of the whole batch, computed once,
however many parts the sum is made in: k clipped parts would move by C + 2k·C_pen.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from core.privacy.dpsgd.clipping import clipped_sum
from core.privacy.dpsgd.dense import Dense, Use
from core.privacy.dpsgd.gradient import COUNT_WEIGHT, Uses, clipped_weight
from core.privacy.dpsgd.stream import Draws

__all__ = ["PenalisedGradient"]

Penalty = Callable[[Tensor], "list[Use]"]
_MARGIN = 1.0 - 1e-6  # keeps the clipped penalty below its bound when float32 rounds up


@dataclass(frozen=True, kw_only=True)
class PenalisedGradient:
    """See the module; a `GradientMechanism`.

    Attributes:
      networks: whose parameters the gradient is of.
      uses: as for `ClippedGradient`.
      penalty: the present rows of a batch [b, width] → uses whose sum is the penalty's gradient,
        in the unit of the sum over the batch; [] for none. May mix records as it likes.
      clip_norm: C > 0; inf for no privacy, then the penalty is not clipped either.
      penalty_clip: C_pen > 0.
      draws: how many random numbers follow a record in its row.
    """

    networks: Dense
    uses: Uses
    penalty: Penalty
    clip_norm: float
    penalty_clip: float
    draws: Draws = Draws()
    noise: Literal["gaussian"] = "gaussian"

    @property
    def sensitivity(self) -> float:
        """Δ = √((C + 2·C_pen)² + (C/10)²); see `GradientMechanism`."""
        if not (self.clip_norm > 0.0 and self.penalty_clip > 0.0):
            raise ValueError("Both clip norms must be positive.")
        return math.hypot(self.clip_norm + 2.0 * self.penalty_clip, COUNT_WEIGHT * self.clip_norm)

    @property
    def size(self) -> int:
        """See `GradientMechanism`."""
        return self.networks.size

    @torch.no_grad()
    def statistic(self, rows: Tensor, mask: Tensor, *, out: Tensor | None = None) -> Tensor:
        """The records' part, see `GradientMechanism`; the penalty is `batch_term`."""
        total = torch.zeros(self.size + 1, device=rows.device) if out is None else out
        views = self.networks.views(total)
        factor = clipped_sum(self.uses(rows), clip_norm=self.clip_norm, mask=mask, views=views)
        total[-1] = clipped_weight(factor, mask, self.clip_norm)
        return total

    @torch.no_grad()
    def batch_term(self, rows: Tensor) -> Tensor:
        """∇Penalty · min(1, C_pen/|∇Penalty|), float32 [size]; nothing where it is not finite."""
        found = torch.zeros(self.size, device=rows.device)
        views = {layer.start: layer.views(found) for layer in self.networks.layers}
        for use in self.penalty(rows):
            weight, bias = views[use.layer.start]
            weight.addmm_(use.left.t(), use.right)
            if use.bias:
                bias += use.left.sum(dim=0)
        if not math.isfinite(self.clip_norm):
            return found
        norm = torch.linalg.vector_norm(found)
        factor = (self.penalty_clip * _MARGIN / norm).clamp(max=1.0)
        return torch.where(torch.isfinite(norm), found * factor, torch.zeros_like(found))
