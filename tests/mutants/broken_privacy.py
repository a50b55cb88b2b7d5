"""Deliberately broken twins, used by tests only: each breaks privacy in one well-known way."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from core.privacy.ledger.ledger import Ledger
from core.privacy.mechanisms import noise
from core.privacy.mechanisms.additive import Rows
from core.privacy.meter import Meter
from core.privacy.plan import Phase
from tests.privacy.toys import ClippedSum, Waves, values_of


class ForgetsRootTwo(Waves):
    """Counts one wave per frequency and forgets that cosine and sine both move."""

    @property
    def sensitivity(self) -> float:
        return math.sqrt(len(self.frequencies) / 2)


class ForgetsToClip(ClippedSum):
    """States the clip radius and does not clip."""

    def statistic(self, rows: Rows, mask: Tensor) -> Tensor:
        return mask.double() @ values_of(rows)


class IgnoresMask(ClippedSum):
    """Counts absent records too."""

    def statistic(self, rows: Rows, mask: Tensor) -> Tensor:
        return super().statistic(rows, torch.ones_like(mask))


class ZeroIsNotNothing(Waves):
    """Multiplies the record by its mask instead of its contribution: cos 0 = 1 remains."""

    def statistic(self, rows: Rows, mask: Tensor) -> Tensor:
        angle = (mask.double()[:, None] * values_of(rows)) @ self.frequencies.double().T
        return torch.stack([angle.cos().sum(0), angle.sin().sum(0)])


class CentresOnTheMean(ClippedSum):
    """Subtracts the un-noised mean before clipping, so every record moves every other."""

    def statistic(self, rows: Rows, mask: Tensor) -> Tensor:
        x = values_of(rows)
        present = mask.double()[:, None]
        mean = (present * x).sum(0) / present.sum().clamp_min(1.0)
        y = x - mean
        norms = y.norm(dim=1, keepdim=True).clamp_min(1e-300)
        return mask.double() @ (y * (self.radius / norms).clamp_max(1.0))


class DividesByCount(ClippedSum):
    """Divides by the number of records present, which is private."""

    def statistic(self, rows: Rows, mask: Tensor) -> Tensor:
        count = mask.double().sum().clamp_min(1.0)
        return super().statistic(rows, mask) * len(rows) / count


class StatesTwice(ClippedSum):
    """A Δ twice what is needed: safe and wasteful; the tightness check must see it."""

    @property
    def sensitivity(self) -> float:
        return 2 * self.radius


@dataclass
class Quieter:
    """A secure source whose normals are scaled by a factor."""

    factor: float
    private: bool = True

    def generator(self) -> np.random.Generator:
        return _Scaled(noise.SecureNoise().generator(), self.factor)  # type: ignore[return-value]


@dataclass
class _Scaled:
    inner: np.random.Generator
    factor: float

    def standard_normal(self, shape: int | tuple[int, ...]) -> np.ndarray:
        return self.factor * self.inner.standard_normal(shape)


@dataclass
class SilentImaginaryPart:
    """Noise on the first row only: the imaginary parts go out as they are."""

    private: bool = True

    def generator(self) -> np.random.Generator:
        return _FirstRow(noise.SecureNoise().generator())  # type: ignore[return-value]


@dataclass
class _FirstRow:
    inner: np.random.Generator

    def standard_normal(self, shape: tuple[int, ...]) -> np.ndarray:
        draws = self.inner.standard_normal(shape)
        draws[1:] = 0.0
        return draws


@dataclass
class SharedImaginaryPart:
    """One draw used for real and imaginary part: subtracting them removes the noise."""

    private: bool = True

    def generator(self) -> np.random.Generator:
        return _Shared(noise.SecureNoise().generator())  # type: ignore[return-value]


@dataclass
class _Shared:
    inner: np.random.Generator

    def standard_normal(self, shape: tuple[int, ...]) -> np.ndarray:
        draws = self.inner.standard_normal(shape)
        draws[1:] = draws[0]
        return draws


class RefundingLedger(Ledger):
    """Takes a debit out again, as after a crash."""

    def refund(self, seq: int) -> None:
        from sqlalchemy import delete

        from core.privacy.ledger.entries import entries_table

        with self._engine.begin() as connection:
            connection.execute(delete(entries_table).where(entries_table.c.seq == seq))


class LaxMeter(Meter):
    """Counts only the first run of each phase."""

    def charge(self, name: str, times: int = 1) -> Phase:
        if self.runs(name):
            return self._plan.phase(name)
        return super().charge(name, times)
