"""Sums of per-record gradients, each clipped to a norm, without laying out any of them.

They come in closed form from the gradient factors of linear layers (`core.privacy.dpsgd.dense`).

A record may pass a layer several times: a person with m rows does, and a record whose loss compares
it with something made from it. Its gradient is then a sum of outer products with a norm in closed
form. Where these pull against each other that norm is small and float32 does not see it well, so a
share `CANCELLING` of what it would be if they all pulled one way is counted in.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from core.privacy.dpsgd.dense import GradFactor, Views

CANCELLING = 1e-3  # of squared norms; no pass of a record can then weigh over 32 C


def squared_norms(grad_factors: Sequence[GradFactor], rows: int = 1) -> Tensor:
    """‖∇‖² of every record over all layers together, float32 [b]; more where passes cancel.

    A layer passed once has ‖g aᵀ‖² + ‖g‖² = (‖a‖² + 1)‖g‖². One passed several times has the sum of
    its outer products as gradient: Σ_rs ⟨g_r, g_s⟩⟨a_r, a_s⟩, and ‖Σ_r g_r‖² for its bias.

    Args:
      grad_factors: of b·m rows, a person's together and weighted.
    """
    total: Tensor | None = None
    for factors in _by_layer(grad_factors).values():
        once = len(factors) == rows == 1
        square = _passed_once(factors[0]) if once else _passed_often(factors, rows)
        total = square if total is None else total.add_(square)
    assert total is not None, "no layer was used"
    return total


def _passed_once(factor: GradFactor) -> Tensor:
    square: Tensor = torch.linalg.vector_norm(factor.activations, dim=1).square_()
    if factor.bias:
        square.add_(1.0)
    return square.mul_(torch.linalg.vector_norm(factor.backprops, dim=1).square_())


def _passed_often(factors: Sequence[GradFactor], rows: int) -> Tensor:
    """One layer's part, never below the truth."""
    layer = factors[0].layer
    passes = [factor.backprops.reshape(-1, rows, layer.outputs) for factor in factors]
    inputs = [factor.activations.reshape(-1, rows, layer.inputs) for factor in factors]
    backprops, activations = torch.cat(passes, dim=1), torch.cat(inputs, dim=1)  # [b, passes·m, ·]
    gram = torch.bmm(backprops, backprops.mT) * torch.bmm(activations, activations.mT)
    square = gram.sum(dim=(1, 2)).clamp_min_(0.0)
    lengths = gram.diagonal(dim1=1, dim2=2).clamp_min(0.0).sqrt().sum(dim=1)
    one_way = lengths.square_()  # if all outer products pulled one way
    with_bias = [g for g, factor in zip(passes, factors, strict=True) if factor.bias]
    if with_bias:
        biases = torch.cat(with_bias, dim=1)
        square += biases.sum(dim=1).square().sum(dim=1)
        one_way += torch.linalg.vector_norm(biases, dim=2).sum(dim=1).square_()
    return square.lerp_(torch.maximum(one_way, square), CANCELLING)


def _weighted(grad_factors: Sequence[GradFactor], weights: Tensor) -> list[GradFactor]:
    """Factors of b·m rows, each gradient times its row's weight; padding becomes exactly 0."""
    column = weights.reshape(-1, 1)
    padding = column == 0.0
    return [
        GradFactor(
            factor.layer,
            (factor.backprops * column).masked_fill_(padding, 0.0),
            factor.activations.masked_fill(padding, 0.0),
            factor.bias,
        )
        for factor in grad_factors
    ]


def _by_layer(grad_factors: Sequence[GradFactor]) -> dict[int, list[GradFactor]]:
    by_start: dict[int, list[GradFactor]] = {}
    for factor in grad_factors:
        by_start.setdefault(factor.layer.start, []).append(factor)
    return by_start


@torch.no_grad()
def clipped_sum(
    grad_factors: Sequence[GradFactor], *, clip_norm: float, mask: Tensor, views: Views
) -> Tensor:
    """Σᵢ mᵢ ∇ᵢ · min(1, C/‖∇ᵢ‖), the norm taken over all layers together.

    Args:
      clip_norm: C > 0; inf clips nothing.
      mask: float [b], 0 = the record is ⊥ and contributes nothing. Or [b, m] for factors of b·m
        rows: what each row of a person counts for; ∇ᵢ is then the weighted sum over a person's
        rows.
      views: where each layer's part of the sum goes, see `Dense.views`; overwritten.

    Returns:
      Float32 [b], the scales min(1, C/‖∇ᵢ‖)·mᵢ with ‖∇ᵢ‖² from `squared_norms`; 0 for a gradient
        that is not finite, which contributes exactly nothing.
    """
    rows = mask.shape[1] if mask.dim() == 2 else 1
    if mask.dim() == 2:
        grad_factors, mask = _weighted(grad_factors, mask), (mask > 0).any(dim=1)
    square = squared_norms(grad_factors, rows)
    scale = square.rsqrt().mul_(clip_norm).clamp_(max=1.0) if clip_norm < float("inf") else None
    scale = mask.to(square.dtype) if scale is None else scale.mul_(mask)
    broken: Tensor | None = None
    if square.is_cuda or not math.isfinite(square.sum().item()):  # on the device, never ask back
        broken = ~torch.isfinite(square)
        scale = scale.masked_fill(broken, 0.0)
    column = scale.repeat_interleave(rows).unsqueeze(1) if rows > 1 else scale.unsqueeze(1)
    if broken is not None and rows > 1:
        broken = broken.repeat_interleave(rows)
    for start, factors in _by_layer(grad_factors).items():
        weight, bias = views[start]
        scaled = [_without(factor.backprops, broken) * column for factor in factors]
        activations = [_without(factor.activations, broken) for factor in factors]
        if len(factors) == 1:
            torch.mm(scaled[0].t(), activations[0], out=weight)
        else:
            torch.mm(torch.cat(scaled).t(), torch.cat(activations), out=weight)
        biases = [g for g, factor in zip(scaled, factors, strict=True) if factor.bias]
        if biases:
            torch.sum(biases[0] if len(biases) == 1 else torch.cat(biases), 0, out=bias)
        else:
            bias.zero_()
    return scale


def _without(x: Tensor, broken: Tensor | None) -> Tensor:
    """`x` with the rows of broken records zero, since 0 · inf is not 0."""
    return x if broken is None else x.masked_fill(broken.unsqueeze(1), 0.0)
