"""Statistics whose sums show the order in which they were added, and broken ways to add them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from core.cluster import ray_summation
from core.encoding.codec import Codes
from core.privacy.mechanisms import noise
from core.privacy.mechanisms.additive import Rows, Statistic
from core.privacy.summation import ChunkedStatistic
from tests.privacy import toys


def table(n: int) -> Codes:
    """Numbers of very different size; the first of a record is its place, from 0 to 1."""
    values = np.random.default_rng(3).normal(scale=2.0, size=(n, toys.WIDTH))
    values[:, 0] = np.arange(n) / n
    return toys.table(values)


@dataclass
class Uneven(toys.ClippedSum):
    """Each order of addition rounds another way; the earlier a record, the longer it may take."""

    slow: float = 0.0  # seconds of a chunk at the beginning

    def statistic(self, rows: Rows, mask: Tensor) -> Tensor:
        x = toys.values_of(rows) * mask.double()[:, None]
        time.sleep(self.slow * (1.0 - float(x[0, 0])))
        return torch.cat([x.sum(dim=0), (x.exp() * x * 1e3).sum(dim=0)])


def noisy_block(statistic: Statistic, part: ChunkedStatistic) -> NDArray[np.float64]:
    """A broken task: adds noise of its own."""
    total = replace(part, statistic=statistic).block(0).numpy()
    return np.asarray(total + noise.gaussian(total.shape, 1.0))


class LastFirst(ray_summation._Shared):
    """Broken: adds sums as they come, and the last block's comes first."""

    def sums(self, tick: Any) -> Iterator[Tensor]:
        parts = [ray_summation.part_of(self.work, block) for block in range(self.work.blocks)]
        answers = [self.block_of.remote(self.statistic, part) for part in reversed(parts)]
        for answer in answers:
            yield torch.from_numpy(np.array(self.ray.get(answer)))


class Mean(toys.ClippedSum):
    """No sum over records."""

    def statistic(self, rows: Rows, mask: Tensor) -> Tensor:
        return super().statistic(rows, mask) / mask.sum() * 1e3
