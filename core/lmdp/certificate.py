"""The private certificate: a noisy count of groups of real records that notice the difference.

Whether a test rejects depends strongly on single records (its statistic can move by about half the
number of records), so neither it nor its p-value may leave a private fit. Instead the real records
are cut into K groups of 128 (rows by their public place, people by their own keys), each group is
tested by itself against released records, and the number of groups that reject, which one record
moves by at most one, is released with Laplace noise. The certificate is granted when the noisy
count exceeds a threshold that it would exceed with probability at most α if the real columns did
follow the released ones.

The groups' test: the MMD between a group and released records, against its distribution over
groups of released records. It is calibrated on released records alone, which costs nothing; groups
are rejected at 5 % there, and 6 % is what the threshold allows for (`core.lmdp.level`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import torch
from torch import Tensor

from core.encoding.codec import Codec, Codes
from core.lmdp.discrepancy import KernelPoints, median_bandwidth, rbf
from core.lmdp.level import GROUP
from core.privacy.mechanisms.additive import Mechanism

_AIM = 0.05  # what the calibration aims at; the rest is for its own error
_REFERENCE = 2048  # released records that groups are compared with
_CALIBRATION = 2000  # groups of released records
NEEDED = _REFERENCE + 16_384  # released records that a calibration takes


@dataclass(frozen=True)
class GroupTest:
    """A calibrated test of a few records against released ones.

    Attributes:
      reference: float64 [r, d], released records.
      limit: statistic above which a group rejects.
    """

    points: KernelPoints
    reference: Tensor
    bandwidth: float
    limit: float

    @classmethod
    def calibrate(cls, codec: Codec, names: Sequence[str], released: Codes) -> GroupTest:
        """Fix the limit on released records, which costs nothing.

        Args:
          released: NumPy codes of whole records, as many as `NEEDED` to be exact; at least 512.
        """
        if len(released) < 4 * GROUP:
            raise ValueError(f"A group test needs {4 * GROUP} released records at least.")
        random = torch.Generator().manual_seed(0)  # of subsets
        order = torch.randperm(len(released), generator=random).numpy()
        cut = min(_REFERENCE, len(released) // 2)
        points = KernelPoints.of(codec, names, released)
        reference, rest = points(released.take(order[:cut])), points(released.take(order[cut:]))
        test = cls(points, reference, median_bandwidth(reference), math.inf)
        near = rbf(rest, reference, bandwidth=test.bandwidth).mean(dim=1)
        null = []
        for _ in range(_CALIBRATION):
            group = torch.randperm(len(rest), generator=random)[:GROUP]
            null.append(test._distance(rest[group], near[group]))
        return replace(test, limit=float(torch.stack(null).quantile(1.0 - _AIM)))

    def _distance(self, group: Tensor, near: Tensor) -> Tensor:
        """MMD² between a group and the reference, less a constant."""
        within = rbf(group, group, bandwidth=self.bandwidth).mean()
        # records compare with themselves once
        return within - 1.0 / len(group) - 2.0 * near.mean()

    def rejects(self, codes: Codes) -> bool:
        """Whether one group of `GROUP` records is told apart."""
        group = self.points(codes).cpu()
        near = rbf(group, self.reference, bandwidth=self.bandwidth).mean(dim=1)
        return bool(self._distance(group, near) > self.limit)


@dataclass(frozen=True)
class RejectionCount(Mechanism):
    """How many groups of `GROUP` consecutive records are told apart from released ones.

    A `core.privacy.mechanisms.additive.Mechanism`: one record lies in one group, so it moves the
    count by at most 1.
    """

    test: GroupTest
    noise: Literal["laplace"] = "laplace"
    group_size: int = GROUP

    @property
    def sensitivity(self) -> float:
        """Δ₁ = 1."""
        return 1.0

    def statistic(self, rows: Any, mask: Tensor) -> Tensor:
        """Float64 [1]; a group in which anybody is missing is told apart from nothing.

        Chunks must hold whole groups; `PrivateTable` reads 8,192 rows at a time, which are 64.
        """
        count = 0
        for start in range(0, len(rows) - GROUP + 1, GROUP):
            stop = start + GROUP
            if bool(mask[start:stop].all()):
                count += self.test.rejects(rows.slice(start, stop))
        return torch.tensor([float(count)], dtype=torch.float64)
