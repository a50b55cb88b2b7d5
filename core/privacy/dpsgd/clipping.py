"""Sums of per-record gradients, each clipped to a norm, without laying out any of them.

Two ways to the same number: `clipped_sum` from the uses of linear layers
(`core.privacy.dpsgd.dense`), in closed form; `functional_clipped_sum` for any module, by vectorised
differentiation, which lays out every record's gradient and costs accordingly.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Tensor, nn

from core.privacy.dpsgd.dense import Use, Views

__all__ = ["clipped_sum", "functional_clipped_sum", "squared_norms"]


def squared_norms(uses: Sequence[Use]) -> Tensor:
    """‖∇‖² of every record over all layers together, float32 [b].

    A layer used once has ‖g aᵀ‖² + ‖g‖² = (‖a‖² + 1)‖g‖². A layer used several times has the sum of
    its outer products as gradient: Σ_rs ⟨g_r, g_s⟩⟨a_r, a_s⟩, and ‖Σ_r g_r‖² for its bias.
    """
    total: Tensor | None = None
    for together in _by_layer(uses).values():
        part = _once(together[0]) if len(together) == 1 else _several(together)
        total = part if total is None else total.add_(part)
    assert total is not None, "no layer was used"
    return total


def _once(use: Use) -> Tensor:
    right: Tensor = torch.linalg.vector_norm(use.right, dim=1).square_()
    if use.bias:
        right.add_(1.0)
    return right.mul_(torch.linalg.vector_norm(use.left, dim=1).square_())


def _several(uses: Sequence[Use]) -> Tensor:
    left = torch.stack([use.left for use in uses], dim=1)  # [b, uses, out]
    right = torch.stack([use.right for use in uses], dim=1)  # [b, uses, in]
    gram = torch.bmm(left, left.mT) * torch.bmm(right, right.mT)  # [b, uses, uses]
    total = gram.sum(dim=(1, 2)).clamp_min_(0.0)
    with_bias = [use.left for use in uses if use.bias]
    if with_bias:
        total += torch.stack(with_bias).sum(dim=0).square().sum(dim=1)
    return total


def _by_layer(uses: Sequence[Use]) -> dict[int, list[Use]]:
    found: dict[int, list[Use]] = {}
    for use in uses:
        found.setdefault(use.layer.start, []).append(use)
    return found


@torch.no_grad()
def clipped_sum(uses: Sequence[Use], *, clip_norm: float, mask: Tensor, views: Views) -> Tensor:
    """Σᵢ mᵢ ∇ᵢ · min(1, C/‖∇ᵢ‖), the norm taken over all layers together.

    Args:
      uses: of every layer in `views`.
      clip_norm: C > 0; inf clips nothing.
      mask: float [b], 1 = present, 0 = the record is ⊥ and contributes nothing.
      views: where each layer's part of the sum goes, see `Dense.views`; overwritten.

    Returns:
      Float32 [b], the factors min(1, C/‖∇ᵢ‖)·mᵢ. A record whose gradient is not finite has
      factor 0 and contributes exactly nothing.
    """
    square = squared_norms(uses)
    factor = square.rsqrt().mul_(clip_norm).clamp_(max=1.0) if clip_norm < float("inf") else None
    factor = mask.to(square.dtype) if factor is None else factor.mul_(mask)
    broken: Tensor | None = None
    if square.is_cuda or not math.isfinite(square.sum().item()):  # on the device, never ask back
        broken = ~torch.isfinite(square)
        factor = factor.masked_fill(broken, 0.0)
    column = factor.unsqueeze(1)
    for start, together in _by_layer(uses).items():
        weight, bias = views[start]
        left = [_without(use.left, broken) * column for use in together]
        right = [_without(use.right, broken) for use in together]
        if len(together) == 1:
            torch.mm(left[0].t(), right[0], out=weight)
        else:
            torch.mm(torch.cat(left).t(), torch.cat(right), out=weight)
        biases = [g for g, use in zip(left, together, strict=True) if use.bias]
        if biases:
            torch.sum(biases[0] if len(biases) == 1 else torch.cat(biases), 0, out=bias)
        else:
            bias.zero_()
    return factor


def _without(x: Tensor, broken: Tensor | None) -> Tensor:
    """`x` with the rows of broken records zero, since 0 · inf is not 0."""
    return x if broken is None else x.masked_fill(broken.unsqueeze(1), 0.0)


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
    """`clipped_sum` for any module: one gradient a record, `at_once` of them at a time.

    Args:
      module: without layers that mix records (batch norm raises in torch itself).
      loss: (call, record [1, w]) → scalar, where `call` is the module as a function.
      rows: float32 [b, w].
      clip_norm, mask: see `clipped_sum`.
      at_once: records whose gradients are held at a time, ≥ 1.

    Returns:
      Flat sum in the order of `module.named_parameters()` (those that require a gradient), and the
      factors.
    """
    weights = {n: p.detach() for n, p in module.named_parameters() if p.requires_grad}
    fixed = {n: p.detach() for n, p in module.named_parameters() if not p.requires_grad}
    fixed |= dict(module.named_buffers())

    def one(weights: Mapping[str, Tensor], row: Tensor) -> Tensor:
        def call(*arguments: Tensor) -> Tensor:
            state = {**weights, **fixed}
            answer: Tensor = torch.func.functional_call(module, state, arguments)
            return answer

        return loss(call, row.unsqueeze(0))

    each = torch.func.vmap(torch.func.grad(one), in_dims=(None, 0), randomness="different")
    total = torch.zeros(sum(w.numel() for w in weights.values()), device=rows.device)
    factors = [torch.zeros(0, device=rows.device)]
    for start in range(0, len(rows), at_once):
        found = each(weights, rows[start : start + at_once])
        flat = torch.cat([found[n].flatten(1) for n in weights], dim=1)  # [b, P]
        norm = torch.linalg.vector_norm(flat, dim=1)
        factor = (clip_norm / norm).clamp(max=1.0) * mask[start : start + at_once]
        broken = ~torch.isfinite(norm)
        factor = factor.masked_fill(broken, 0.0)
        total += factor @ flat.masked_fill(broken.unsqueeze(1), 0.0)
        factors.append(factor)
    return total, torch.cat(factors)
