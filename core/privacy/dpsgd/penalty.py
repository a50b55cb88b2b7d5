"""A gradient with a batch-level penalty: records clipped one by one, the penalty clipped by itself.

A penalty that looks at a whole batch makes every record's gradient depend on every other, so it
must not sit inside the per-record clip. It is a term of its own,

    Σᵢ clip(gᵢ, C) + clip(∇Penalty, C_pen),

which moves by at most C + 2·C_pen when one record goes: C in the sum, and from one vector of length
at most C_pen to another in the penalty. It is computed once, however many parts the sum is made in:
k clipped parts would move by C + 2k·C_pen.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from core.privacy.dpsgd.dense import GradFactor
from core.privacy.dpsgd.gradient import COUNT_WEIGHT, ClippedGradient

_MARGIN = 1.0 - 1e-6  # keeps the clipped penalty below its bound when float32 rounds up


@dataclass(frozen=True, kw_only=True)
class PenalisedGradient(ClippedGradient):
    """See the module; with clip_norm = inf (no privacy) the penalty is not clipped either.

    `penalty` takes the present rows of a batch [b, width] to factors whose sum is its gradient, in
    the unit of the sum over the batch; it may mix records as it likes. `penalty_clip` is C_pen > 0.
    """

    penalty: Callable[[Tensor], list[GradFactor]]
    penalty_clip: float

    @property
    def sensitivity(self) -> float:
        """Δ = √((C + 2·C_pen)² + (C/10)²)."""
        if not (self.clip_norm > 0.0 and self.penalty_clip > 0.0):
            raise ValueError("Both clip norms must be positive.")
        return math.hypot(self.clip_norm + 2.0 * self.penalty_clip, COUNT_WEIGHT * self.clip_norm)

    @torch.no_grad()
    def batch_term(self, rows: Tensor) -> Tensor:
        """∇Penalty · min(1, C_pen/|∇Penalty|), float32 [size]; nothing where it is not finite."""
        gradient = torch.zeros(self.size, device=rows.device)
        views = {layer.start: layer.views(gradient) for layer in self.networks.layers}
        for factor in self.penalty(rows):
            weight, bias = views[factor.layer.start]
            weight.addmm_(factor.backprops.t(), factor.activations)
            if factor.bias:
                bias += factor.backprops.sum(dim=0)
        if not math.isfinite(self.clip_norm):
            return gradient
        norm = torch.linalg.vector_norm(gradient)
        scale = (self.penalty_clip * _MARGIN / norm).clamp(max=1.0)
        return torch.where(torch.isfinite(norm), gradient * scale, torch.zeros_like(gradient))
