"""Deliberately broken gradient steps. Test-only: nothing of this may ever be imported by core."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from core.privacy.dpsgd.clipping import clipped_sum
from core.privacy.dpsgd.dense import Dense, GradFactor
from core.privacy.dpsgd.gradient import ClippedGradient, NoisyGradient, SampledRelease
from core.privacy.dpsgd.stream import SecretStream


class ForgetsToClip(ClippedGradient):
    """Sums gradients as they are."""

    def statistic(self, rows: Tensor, mask: Tensor, *, out: Tensor | None = None) -> Tensor:
        total = torch.zeros(self.size + 1)
        views = self.networks.views(total)
        clipped_sum(self.grad_factors(rows), clip_norm=float("inf"), mask=mask, views=views)
        return total


class ClipsLayerByLayer(ClippedGradient):
    """Gives every layer the whole clip norm and claims it once for all of them."""

    def statistic(self, rows: Tensor, mask: Tensor, *, out: Tensor | None = None) -> Tensor:
        total = torch.zeros(self.size + 1)
        views = self.networks.views(total)
        for factor in self.grad_factors(rows):
            clipped_sum([factor], clip_norm=self.clip_norm, mask=mask, views=views)
        return total


class ClipsTheBatch(ClippedGradient):
    """Clips the sum over a micro-batch instead of each record."""

    def statistic(self, rows: Tensor, mask: Tensor, *, out: Tensor | None = None) -> Tensor:
        total = torch.zeros(self.size + 1)
        views = self.networks.views(total)
        clipped_sum(self.grad_factors(rows), clip_norm=float("inf"), mask=mask, views=views)
        return total * min(1.0, self.clip_norm / float(total.norm().clamp_min(1e-12)))


class CentresOnTheBatch(ClippedGradient):
    """Subtracts the batch mean from rows first, as batch norm does."""

    def statistic(self, rows: Tensor, mask: Tensor, *, out: Tensor | None = None) -> Tensor:
        centre = (rows * mask.unsqueeze(1)).sum(0) / mask.sum().clamp_min(1.0)
        return super().statistic(rows - centre, mask, out=out)


class ForgetsTheBias(ClippedGradient):
    """Leaves biases out of the norm and in the sum."""

    def statistic(self, rows: Tensor, mask: Tensor, *, out: Tensor | None = None) -> Tensor:
        grad_factors = self.grad_factors(rows)
        bare = [GradFactor(u.layer, u.backprops, u.activations, bias=False) for u in grad_factors]
        total = torch.zeros(self.size + 1)
        views = self.networks.views(total)
        factor = clipped_sum(bare, clip_norm=self.clip_norm, mask=mask, views=views)
        clipped_sum(grad_factors, clip_norm=float("inf"), mask=factor, views=views)
        return total


class TakesFactorsForLayers(ClippedGradient):
    """Adds up the norms of a layer's gradient factors as if they were different layers."""

    def statistic(self, rows: Tensor, mask: Tensor, *, out: Tensor | None = None) -> Tensor:
        grad_factors = self.grad_factors(rows)
        square = sum(
            (u.activations.square().sum(1) + 1.0) * u.backprops.square().sum(1)
            for u in grad_factors
        )
        factor = (self.clip_norm * torch.as_tensor(square).rsqrt()).clamp(max=1.0) * mask
        total = torch.zeros(self.size + 1)
        clipped_sum(
            grad_factors, clip_norm=float("inf"), mask=factor, views=self.networks.views(total)
        )
        return total


class QuietStep(SampledRelease):
    """Adds a fifth less noise than was planned."""

    def _std(self, mechanism: ClippedGradient) -> float:  # type: ignore[override]
        return 0.8 * super()._std(mechanism)


class RealisedDivisor(SampledRelease):
    """Divides by the size that the batch turned out to have."""

    def step(self, mechanism: ClippedGradient) -> NoisyGradient:  # type: ignore[override]
        chosen = self._stream.batch(self._n, self._rate)
        total = self._sum(mechanism, chosen).clone()
        SecretStream.add_normals(self._stream, total, self._std(mechanism))
        size = max(1, len(chosen))
        return NoisyGradient(total[:-1] / size, total[-1], self._std(mechanism) / size)


@dataclass
class PrintedAutoEncoder:
    """DP-auto-GAN as printed: decoder gradients clipped record by record, the encoder left alone.

    After a step the encoder holds an exact function of every record, and the next decoder gradient
    of each record goes through it.
    """

    networks: Dense
    clip_norm: float
    rate: float = 30.0

    def decoder_parts(self, rows: Tensor) -> Tensor:
        """Each record's clipped decoder gradient, float32 [b, decoder size]."""
        return torch.stack([self._decoder_sum(rows, i) for i in range(len(rows))])

    def step_encoder(self, rows: Tensor) -> None:
        """The exact, un-clipped, un-noised step of the encoder."""
        total = torch.zeros(self.networks.size)
        grad_factors = [
            u for u in self._grad_factors(rows) if u.layer in self.networks["encoder"].layers
        ]
        views = self.networks.views(total)
        clipped_sum(grad_factors, clip_norm=float("inf"), mask=torch.ones(len(rows)), views=views)
        with torch.no_grad():
            self.networks.flat.sub_(total, alpha=self.rate / len(rows))

    def _decoder_sum(self, rows: Tensor, record: int) -> Tensor:
        mask = torch.zeros(len(rows))
        mask[record] = 1.0
        grad_factors = [
            u for u in self._grad_factors(rows) if u.layer in self.networks["decoder"].layers
        ]
        total = torch.zeros(self.networks.size)
        views = self.networks.views(total)
        clipped_sum(grad_factors, clip_norm=self.clip_norm, mask=mask, views=views)
        return total

    def _grad_factors(self, rows: Tensor) -> Sequence[GradFactor]:
        return reconstruction(self.networks, rows)


def reconstruction(networks: Dense, rows: Tensor) -> list[GradFactor]:
    """Factors of encoder and decoder for half the squared error of a record's reconstruction."""
    into = networks["encoder"].forward(rows)
    out = networks["decoder"].forward(into.out)
    decoded, back = networks["decoder"].backward(out, out.out - rows, to_input=True)
    assert back is not None
    return networks["encoder"].backward(into, back)[0] + decoded
