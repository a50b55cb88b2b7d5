"""Deliberately broken ways to choose among runs, which the suite must catch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from torch import Tensor

from core.privacy.mechanisms.additive import Mechanism, Rows
from core.privacy.mechanisms.noise import NoiseKind
from core.quality.metrics.noisy import NoisyCells, SyntheticCells, ranked

__all__ = ["LooksAtRealRows", "PaysForOneMarginal"]


class LooksAtRealRows:
    """Picks by exact counts, as a person does who compares inside views."""

    def __init__(self, exact: NoisyCells):
        self._exact = exact

    def __call__(self, _released: NoisyCells, made: Mapping[str, SyntheticCells]) -> str:
        return next(iter(ranked(self._exact, made)))


@dataclass
class PaysForOneMarginal(Mechanism):
    """Releases all marginals with the noise of one: Δ = 1."""

    inner: Mechanism
    noise: NoiseKind = "gaussian"

    @property
    def sensitivity(self) -> float:
        return 1.0

    def statistic(self, rows: Rows, mask: Tensor) -> Tensor:
        return self.inner.statistic(rows, mask)
