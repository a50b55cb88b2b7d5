"""DP-PCA: mean and second moment of clipped records, released together once.

The statistic is (w Σ x, Σ svec(x xᵀ)) with ‖x‖ ≤ R. svec lays the upper triangle out with √2 on
off-diagonal entries, so that ‖svec(x xᵀ)‖ = ‖x‖² exactly and noise on it is independent in every
entry. One record moves the statistic by at most √(w²R² + R⁴). Means, covariances, eigenvectors and
whatever is projected on them follow from the release for free.

Where this departs from the paper: there the mean is read without noise; here it is in the release.

Source: P3GM (ICDE 2021) §IV-B; Dwork et al., "Analyze Gauss", 2014.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from core.privacy.mechanisms.additive import Mechanism, RowView, clip_rows


def svec(matrix: Tensor) -> Tensor:
    """Symmetric [d, d] → [d(d+1)/2], off-diagonals times √2, so that norms are kept.

    >>> svec(torch.tensor([[1.0, 2.0], [2.0, 3.0]])).square().sum().round().item()  # 1 + 4 + 4 + 9
    18.0
    """
    d = len(matrix)
    row, column = torch.triu_indices(d, d, device=matrix.device)
    off_diagonal = matrix.new_tensor(math.sqrt(2.0))
    return matrix[row, column] * torch.where(row == column, 1.0, off_diagonal)


def smat(vector: Tensor, d: int) -> Tensor:
    """The inverse of `svec`: [d(d+1)/2] → symmetric [d, d]."""
    row, column = torch.triu_indices(d, d, device=vector.device)
    matrix = torch.zeros(d, d, dtype=vector.dtype, device=vector.device)
    off_diagonal = vector.new_tensor(math.sqrt(0.5))
    matrix[row, column] = vector * torch.where(row == column, 1.0, off_diagonal)
    matrix[column, row] = matrix[row, column]
    return matrix


@dataclass(frozen=True, kw_only=True)
class Moments(Mechanism):
    """The joint release of mean and second moment.

    `view` takes rows to float [b, width], each from its own record, scaled onto the ball of radius
    R > 0. The mean is one of d + 1 rows of numbers and needs less precision: its weight w = R/2
    makes Δ 12 % larger than R² and the mean four times noisier per R than an entry of the second
    moment per R², still far below sampling error.
    """

    view: RowView
    width: int
    radius: float
    mean_weight: float
    noise: Literal["gaussian"] = "gaussian"

    @classmethod
    def of(cls, view: RowView, *, width: int, radius: float) -> Moments:
        """With the weight of the mean that is explained above."""
        return cls(view=view, width=width, radius=radius, mean_weight=radius / 2.0)

    @property
    def sensitivity(self) -> float:
        """Δ₂ = √(w²R² + R⁴) under zero-out."""
        return self.radius * math.hypot(self.mean_weight, self.radius)

    def statistic(self, rows: Any, mask: Tensor) -> Tensor:
        """Float64 [d + d(d+1)/2]: w Σ x, then Σ svec(x xᵀ)."""
        x = clip_rows(self.view(rows).to(torch.float64), self.radius)  # [b, d]
        present = x * mask.to(torch.float64).unsqueeze(1)
        return torch.cat([self.mean_weight * present.sum(dim=0), svec(present.t() @ x)])


@dataclass(frozen=True)
class Principal:
    """What a release says of directions: mean [d], orthonormal columns [d, d'], variances [d']."""

    mean: Tensor
    components: Tensor
    variances: Tensor

    def project(self, x: Tensor) -> Tensor:
        """[b, d] → [b, d'], centred, in the type of `x`."""
        mean, components = self.mean.to(x), self.components.to(x)
        return (x - mean) @ components


def principal(release: Tensor, n: int, mechanism: Moments, components: int) -> Principal:
    """Eigenvectors of the released covariance M/n - μμᵀ; post-processing."""
    d = mechanism.width
    if not 1 <= components <= d:
        raise ValueError(f"{components} components were asked of {d} coordinates.")
    release = release.to("cpu", torch.float64)
    mean = release[:d] / (mechanism.mean_weight * n)
    covariance = smat(release[d:], d) / n - torch.outer(mean, mean)
    values, vectors = torch.linalg.eigh((covariance + covariance.t()) / 2.0)  # ascending
    values, vectors = values.flip(0)[:components], vectors.flip(1)[:, :components]
    largest = vectors.abs().argmax(dim=0, keepdim=True)
    # a sign that does not flip by chance
    vectors = vectors * torch.take_along_dim(vectors, largest, dim=0).sign()
    return Principal(mean, vectors.contiguous(), values.clamp_min(0.0))
