"""Deliberately broken twins of P3GM's mechanisms. Test-only: never imported by core."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from core.privacy.mechanisms.additive import clip_rows
from core.privacy.mechanisms.mixture import MixtureStep
from core.privacy.mechanisms.moments import Moments, svec


class PrintedEm(MixtureStep):
    """DP-EM as printed: means and spreads themselves, with a claimed sensitivity of 1.

    A mean divides by the records in its component; with few of them one record is all of it.
    """

    @property
    def sensitivity(self) -> float:
        return 1.0

    def statistic(self, rows: Any, mask: Tensor) -> Tensor:
        z = clip_rows(self.view(rows).double(), self.radius)
        share = self.current.responsibilities(z) * mask.double().unsqueeze(1)
        count = share.sum(0).clamp_min(1e-12).unsqueeze(1)
        means = share.t() @ z / count
        spread = share.t() @ z.square() / count - means.square()
        return torch.cat([share.sum(0) / len(z), means.flatten(), spread.flatten()])


class StaleResponsibilities(MixtureStep):
    """Responsibilities from an exact update on the very batch, not from released parameters."""

    def statistic(self, rows: Any, mask: Tensor) -> Tensor:
        z = clip_rows(self.view(rows).double(), self.radius)
        share = self.current.responsibilities(z) * mask.double().unsqueeze(1)
        means = share.t() @ z / share.sum(0).clamp_min(1e-9).unsqueeze(1)
        moved = type(self.current)(self.current.weights, means, self.current.variances)
        share = moved.responsibilities(z) * mask.double().unsqueeze(1)
        a, b, c = self.scales
        parts = (a * share.sum(0), b * (share.t() @ z), c * (share.t() @ z.square()))
        return torch.cat([part.flatten() for part in parts])


class UnclippedEm(MixtureStep):
    """Projections of any length."""

    def statistic(self, rows: Any, mask: Tensor) -> Tensor:
        z = self.view(rows).double()
        share = self.current.responsibilities(z) * mask.double().unsqueeze(1)
        a, b, c = self.scales
        parts = (a * share.sum(0), b * (share.t() @ z), c * (share.t() @ z.square()))
        return torch.cat([part.flatten() for part in parts])


class EmForgetsSquares(MixtureStep):
    """States √(a² + b²R²)."""

    @property
    def sensitivity(self) -> float:
        a, b, _ = self.scales
        return math.hypot(a, b * self.radius)


class PcaForgetsSquares(Moments):
    """States wR, as if second moments were free."""

    @property
    def sensitivity(self) -> float:
        return self.mean_weight * self.radius


class UnclippedPca(Moments):
    """Records of any length."""

    def statistic(self, rows: Any, mask: Tensor) -> Tensor:
        x = self.view(rows).double()
        kept = x * mask.double().unsqueeze(1)
        return torch.cat([self.mean_weight * kept.sum(0), svec(kept.t() @ x)])


class WithoutRootTwo(Moments):
    """The upper triangle twice over: off-diagonals count 2² instead of 2 in the norm."""

    def statistic(self, rows: Any, mask: Tensor) -> Tensor:
        x = clip_rows(self.view(rows).double(), self.radius)
        kept = x * mask.double().unsqueeze(1)
        matrix = kept.t() @ x
        row, column = torch.triu_indices(self.width, self.width)
        doubled = torch.where(row == column, matrix[row, column], 2.0 * matrix[row, column])
        return torch.cat([self.mean_weight * kept.sum(0), doubled])


class CentredOnTheMean(Moments):
    """Subtracts the exact mean of the rows there are, as the paper's own code does."""

    def statistic(self, rows: Any, mask: Tensor) -> Tensor:
        x = self.view(rows).double()
        present = mask.double().unsqueeze(1)
        centred = clip_rows(x - (x * present).sum(0) / present.sum().clamp_min(1.0), self.radius)
        kept = centred * present
        return torch.cat([self.mean_weight * kept.sum(0), svec(kept.t() @ centred)])
