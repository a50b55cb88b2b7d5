"""Streams of secret randomness for thousands of small releases: batches and gradient noise.

On the CPU both come from AES-128 in counter mode with a key from the operating system, drawn anew
for every fit and never kept. Normals are made by Box–Muller with a radius of 54 bits, so their
tails reach 8.6 standard deviations before they end (a chance of 1e-17 a draw).

On a GPU noise comes from the device's own Philox generator, seeded by the operating system: it is
not a cryptographic generator. The privacy statement says so.

Unlike `core.privacy.noise.add`, sums here are float32 and lie on no public grid: an attacker who
saw single noisy gradients to their last bit could in theory learn from those bits. What leaves a
fit are parameters after thousands of steps.
"""

from __future__ import annotations

import math
import secrets

import numpy as np
import torch
from numpy.typing import NDArray
from randomgen import AESCounter
from torch import Tensor

from core.privacy.noise import NoiseSource

__all__ = ["SecretStream"]


class SecretStream:
    """Poisson batches and normals from one secret stream.

    Args:
      source: a source that is not private makes the stream repeatable (for tests).
      device: where normals are wanted; batches are always drawn on the CPU.
    """

    def __init__(self, source: NoiseSource, *, device: str = "cpu"):
        if source.private:
            self._bits = AESCounter(key=secrets.randbits(128))
            seed = secrets.randbits(63)
        else:
            seed = int(source.generator().integers(2**62))
            self._bits = AESCounter(key=seed)
        self._generator = np.random.Generator(self._bits)
        self._philox: torch.Generator | None = None
        if device != "cpu":
            self._philox = torch.Generator(device).manual_seed(seed)

    def batch(self, n: int, rate: float) -> NDArray[np.int64]:
        """Each of n records independently with probability `rate`: their positions, ascending.

        Gaps between chosen records are geometric, so the work grows with the batch and not with n.

        Args:
          n: records, ≥ 1.
          rate: in (0, 1].

        Returns:
          int64 [b], 0 ≤ b ≤ n, positions in 0 … n - 1.
        """
        if rate >= 1.0:
            return np.arange(n)
        mean = n * rate
        more = int(mean + 6.0 * math.sqrt(mean) + 16.0)
        places = np.cumsum(self._gaps(rate, more)) - 1
        while places[-1] < n:  # rarely: go on from the last one
            places = np.concatenate([places, places[-1] + np.cumsum(self._gaps(rate, more))])
        return places[: int(np.searchsorted(places, n))]

    def _gaps(self, rate: float, count: int) -> NDArray[np.int64]:
        gaps: NDArray[np.int64] = self._generator.geometric(rate, size=count)
        return gaps

    def add_normals(self, out: Tensor, std: float) -> Tensor:
        """Add independent normals of that standard deviation ≥ 0 to a flat float32 tensor."""
        if std == 0.0:
            return out
        if self._philox is not None:
            draws = torch.empty_like(out).normal_(generator=self._philox)
            return out.add_(draws, alpha=std)
        return out.add_(torch.from_numpy(self._normals(len(out))), alpha=std)

    def _normals(self, count: int) -> NDArray[np.float32]:
        """Standard normals, float32 [count], two from each radius and angle."""
        half = (count + 1) // 2
        words = self._bits.random_raw(half + (half + 1) // 2)  # 64 bits a radius, 32 an angle
        radius = words[:half].view(np.int64).astype(np.float64)  # signed converts faster
        radius *= 2.0**-64
        radius += 0.5 + 2.0**-54  # in (0, 1]
        np.log(radius, out=radius)
        radius *= -2.0
        np.sqrt(np.maximum(radius, 0.0, out=radius), out=radius)
        length = radius.astype(np.float32)
        angle = words[half:].view(np.int32)[:half].astype(np.float32)
        angle *= np.float32(math.pi * 2.0**-31)
        both = np.empty((2, half), dtype=np.float32)
        np.multiply(length, np.cos(angle), out=both[0])
        np.multiply(length, np.sin(angle), out=both[1])
        return both.reshape(-1)[:count]
