"""PEARL's mechanisms broken in the ways papers and code break them; tests only."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from core.encoding.codec import Codes
from core.models.pearl.characteristic_function import Embedding, PairDistance


class RealPartOnly(Embedding):
    """Counts the real part of each frequency and forgets that the imaginary part moves too."""

    @property
    def sensitivity(self) -> float:
        return super().sensitivity / math.sqrt(2)


class ForgetsTheClassCount(Embedding):
    """The class counts ride along for free."""

    @property
    def sensitivity(self) -> float:
        return math.sqrt(super().sensitivity ** 2 - self.design.class_weight**2)


class DividesByTheRealClass(Embedding):
    """Means over each class's un-noised count, at the scale of sums over an even share of records.

    In a rare class one record is most of the mean, and it moves what the others contribute.
    """

    def statistic(self, rows: Codes, mask: Tensor) -> Tensor:
        flat = super().statistic(rows, mask)
        sums, weighted = flat[: -self.design.classes], flat[-self.design.classes :]
        counts = (weighted / self.design.class_weight).clamp_min(1.0)
        groups, columns = self.design.groups, self.design.columns
        pairs = self.design.classes * groups * columns * (columns - 1)
        even = len(rows) / self.design.classes
        parts = [
            part.reshape(self.design.classes, -1) / counts[:, None] * even
            for part in (sums[:pairs], sums[pairs:])
        ]
        return torch.cat([*(part.flatten() for part in parts), weighted])


class CosineOfZero(Embedding):
    """Zeroes the code of an absent record instead of its contribution."""

    def statistic(self, rows: Codes, mask: Tensor) -> Tensor:
        blank = rows.to("cpu")
        keep = mask.bool()[:, None]
        moved = Codes(blank.states * keep, blank.values * keep)
        return super().statistic(moved, torch.ones_like(mask))


class PrintedDistance(PairDistance):
    """The printed distance: sensitivity for codes in [0, 1], distances of codes in [-1, 1]."""

    def statistic(self, rows: Codes, mask: Tensor) -> Tensor:
        honest = super().statistic(rows, mask)
        return torch.stack([2.0 * honest[0], honest[1]])


class OverlappingPairs(PairDistance):
    """Every record with its neighbour on both sides: a record is in two pairs, Δ says one."""

    def statistic(self, rows: Codes, mask: Tensor) -> Tensor:
        rolled = Codes(rows.states[1:], rows.values[1:])
        even = super().statistic(rows, mask)
        return even + super().statistic(rolled, mask[1:])
