"""DP-EM: a mixture of Gaussians with diagonal covariances, each step one Gaussian release.

With responsibilities r from the *previous, released* parameters and ‖z‖ ≤ R, a step's statistic is
(a Σ r_k, b Σ r_k z, c Σ r_k z∘z) over components k. A record's share of it has squared norm
Σ_k r_k² (a² + b²‖z‖² + c²‖z∘z‖²) ≤ a² + b²R² + c²R⁴, whatever the parameters are.

Where this departs from the paper: there noise goes onto means and covariances, whose sensitivity
is claimed to be 1; it grows without bound when a component holds few records. Here sums are
released and divided by floored noisy counts afterwards.

Source: P3GM (ICDE 2021) §IV-B, Park et al., "DP-EM", 2017, for the procedure.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from core.privacy.mechanisms.additive import Mechanism, RowView, clip_rows

_LEAST_WEIGHT = 0.01  # of a component, before weights are made to sum to 1
_LEAST_VARIANCE = 1e-3  # as a share of R²/d


@dataclass(frozen=True)
class Mixture:
    """Σ_k weights_k N(means_k, diag(variances_k)): float64 [K], [K, d] and [K, d]."""

    weights: Tensor
    means: Tensor
    variances: Tensor

    @classmethod
    def start(cls, components: int, width: int, radius: float) -> Mixture:
        """Where EM begins, from public numbers alone: equal weights, means spread inside the ball.

        Mean k lies along coordinate k//2 modulo d, to either side in turn, so that every component
        sees another part of projections sorted by variance.
        """
        means = torch.zeros(components, width, dtype=torch.float64)
        typical = radius / math.sqrt(width)
        for k in range(components):
            side = 1.0 if k % 2 == 0 else -1.0
            means[k, (k // 2) % width] = side * typical * (0.7 + 0.5 * (k // (2 * width)))
        weights = torch.full((components,), 1.0 / components, dtype=torch.float64)
        return cls(weights, means, torch.full_like(means, typical**2 / 2.0))

    def log_joint(self, z: Tensor) -> Tensor:
        """log(weight_k N(z | k)), float64 [b, K], for z [b, d]."""
        weights, means, variances = (
            x.to(z.device) for x in (self.weights, self.means, self.variances)
        )
        gap = (z.to(means).unsqueeze(1) - means).square() / variances  # [b, K, d]
        scale = (2.0 * math.pi * variances).log().sum(dim=1)
        return weights.log() - 0.5 * (gap.sum(dim=2) + scale)

    def responsibilities(self, z: Tensor) -> Tensor:
        """P(k | z), float64 [b, K], rows sum to 1."""
        return torch.softmax(self.log_joint(z), dim=1)

    def sample(self, rows: int, generator: torch.Generator) -> Tensor:
        """Float64 [rows, d]; data-free randomness on the CPU."""
        k = torch.multinomial(self.weights, rows, replacement=True, generator=generator)
        normal = torch.randn((rows, self.means.shape[1]), generator=generator, dtype=torch.float64)
        return self.means[k] + self.variances[k].sqrt() * normal


@dataclass(frozen=True, kw_only=True)
class MixtureStep(Mechanism):
    """One step of DP-EM, from a mixture that is public or released.

    `view` takes rows to float [b, d], each from its own record, scaled onto the ball of radius R >
    0; `scales` are (a, b, c) of counts, sums and sums of squares.
    """

    view: RowView
    current: Mixture
    radius: float
    scales: tuple[float, float, float]
    noise: Literal["gaussian"] = "gaussian"

    @classmethod
    def balanced(cls, view: RowView, current: Mixture, radius: float) -> MixtureStep:
        """Scales for which errors of a component's mean and spread matter alike.

        In units of σ/N_k the error of a mean is Δ/b a coordinate, of a second moment Δ/c and of the
        weight Δ/a. Coordinates are about r = R/√d wide, so b = 1/r and c = 1/(2r²), and a = √d
        makes the counts, which are divided by, sharper.
        """
        width = current.means.shape[1]
        typical = radius / math.sqrt(width)
        scales = (math.sqrt(width), 1.0 / typical, 0.5 / typical**2)
        return cls(view=view, current=current, radius=radius, scales=scales)

    @property
    def sensitivity(self) -> float:
        """Δ₂ = √(a² + b²R² + c²R⁴) under zero-out."""
        a, b, c = self.scales
        return math.sqrt(a**2 + (b * self.radius) ** 2 + (c * self.radius**2) ** 2)

    def statistic(self, rows: Any, mask: Tensor) -> Tensor:
        """Float64 [K + 2Kd]: a Σ r_k, then b Σ r_k z, then c Σ r_k z∘z."""
        z = clip_rows(self.view(rows).to(torch.float64), self.radius)  # [b, d]
        share = self.current.responsibilities(z) * mask.to(torch.float64).unsqueeze(1)  # [b, K]
        a, b, c = self.scales
        parts = (a * share.sum(dim=0), b * (share.t() @ z), c * (share.t() @ z.square()))
        return torch.cat([part.flatten() for part in parts])


def update(release: Tensor, step: MixtureStep, n: int) -> Mixture:
    """The next mixture from a released step; post-processing, and safe for pure noise."""
    components, width = step.current.means.shape
    a, b, c = step.scales
    release = release.to("cpu", torch.float64)
    sizes = [components, components * width, components * width]
    counts, sums, squares = torch.split(release, sizes)
    count = (counts / a).clamp_min(_LEAST_WEIGHT * n)  # [K]
    means = clip_rows(sums.view(components, width) / b / count.unsqueeze(1), step.radius)
    spread = squares.view(components, width) / c / count.unsqueeze(1) - means.square()
    typical = step.radius**2 / width
    variances = spread.clamp(_LEAST_VARIANCE * typical, typical * width)
    return Mixture(count / count.sum(), means, variances)
