"""The gradient of any module by vectorised differentiation: what closed forms are held against.

It lays out every record's gradient and costs accordingly.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from core.privacy.dpsgd.gradient import COUNT_WEIGHT, clipped_weight
from core.privacy.dpsgd.stream import Draws
from core.privacy.mechanisms.additive import Mechanism

RecordLoss = Callable[[Callable[..., Tensor], Tensor], Tensor]


def functional_clipped_sum(
    module: nn.Module,
    loss: RecordLoss,
    rows: Tensor,
    *,
    clip_norm: float,
    mask: Tensor,
    at_once: int = 64,
) -> tuple[Tensor, Tensor]:
    """`core.privacy.dpsgd.clipping.clipped_sum` for any module, `at_once` gradients at a time.

    Args:
      module: without layers that mix records (batch norm raises in torch itself).
      loss: (call, record [1, w]) → scalar, where `call` is the module as a function.
      rows: float32 [b, w].
      clip_norm, mask: see `clipped_sum`.
      at_once: records whose gradients are held at a time, ≥ 1.

    Returns:
      Flat sum in the order of `module.named_parameters()` (those that require a gradient), and the
      scales.
    """
    weights = {n: p.detach() for n, p in module.named_parameters() if p.requires_grad}
    fixed = {n: p.detach() for n, p in module.named_parameters() if not p.requires_grad}
    fixed |= dict(module.named_buffers())

    def one(weights: Mapping[str, Tensor], row: Tensor) -> Tensor:
        def call(*arguments: Tensor) -> Tensor:
            return torch.func.functional_call(module, {**weights, **fixed}, arguments)

        return loss(call, row.unsqueeze(0))

    each = torch.func.vmap(torch.func.grad(one), in_dims=(None, 0), randomness="different")
    total = torch.zeros(sum(w.numel() for w in weights.values()), device=rows.device)
    scales = [torch.zeros(0, device=rows.device)]
    for start in range(0, len(rows), at_once):
        by_name = each(weights, rows[start : start + at_once])
        gradients = torch.cat([by_name[n].flatten(1) for n in weights], dim=1)  # [b, P]
        norm = torch.linalg.vector_norm(gradients, dim=1)
        scale = (clip_norm / norm).clamp(max=1.0) * mask[start : start + at_once]
        broken = ~torch.isfinite(norm)
        scale = scale.masked_fill(broken, 0.0)
        total += scale @ gradients.masked_fill(broken.unsqueeze(1), 0.0)
        scales.append(scale)
    return total, torch.cat(scales)


@dataclass(frozen=True, kw_only=True)
class FunctionalGradient(Mechanism):
    """A `ClippedGradient` of any module.

    Attributes:
      module: without layers that mix records.
      loss: (call, record [1, width]) → scalar.
      clip_norm: C > 0; inf for no privacy.
    """

    module: nn.Module
    loss: RecordLoss
    clip_norm: float
    draws: Draws = Draws()
    noise: Literal["gaussian"] = "gaussian"

    @property
    def rounded_entries(self) -> int:
        return 1

    @property
    def sensitivity(self) -> float:
        return self.clip_norm * (1.0 + COUNT_WEIGHT**2) ** 0.5

    @property
    def size(self) -> int:
        return sum(p.numel() for p in self.module.parameters() if p.requires_grad)

    def statistic(self, rows: Tensor, mask: Tensor, *, out: Tensor | None = None) -> Tensor:
        gradient, scale = functional_clipped_sum(
            self.module, self.loss, rows, clip_norm=self.clip_norm, mask=mask
        )
        weight = clipped_weight(scale, mask, self.clip_norm)
        total = torch.cat([gradient, weight.reshape(1)])
        return total if out is None else out.copy_(total)

    def batch_term(self, rows: Tensor) -> Tensor | None:
        return None
