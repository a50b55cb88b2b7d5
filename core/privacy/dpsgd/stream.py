"""Streams of secret randomness for thousands of small releases: batches, noise, records' draws.

All come from AES-128 in counter mode with a key from the operating system, drawn anew for every fit
and never kept, and are made on the processor: a graphics card's generator is not a cryptographic
one. Normals are made by Box–Muller from 32-bit words; the rare words that make large radii are
given 53 bits more, so that tails are neither cut nor coarse.

Draws for each record (a latent point, say) come from a stream of their own, keyed anew for every
batch: who knows the user's seed cannot foretell them, no checkpoint holds them, and how many a
batch needs moves no other stream.

Unlike `core.privacy.mechanisms.noise.add`, sums here are float32 and lie on no public grid: an
attacker who saw single noisy gradients to their last bit could in theory learn from those bits.
What leaves a fit are parameters after thousands of steps.
"""

from __future__ import annotations

import math
import secrets
from typing import NamedTuple

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from randomgen import AESCounter
from scipy.special import ndtri
from torch import Tensor

from core.privacy.mechanisms.noise import NoiseSource

_RARE = 256  # of 2³² words: radii beyond 5.8 standard deviations are refined


class Draws(NamedTuple):
    """How many normals and uniforms in [0, 1) a statistic draws for each record, public.

    A statistic never draws for itself: numbers drawn by position in a batch from a stream that
    anybody can foretell would tie every record to those before it.
    """

    normals: int = 0
    uniforms: int = 0


class SecretStream:
    """Poisson batches, normals and records' draws; repeatable where the source is not private."""

    def __init__(self, source: NoiseSource, *, device: str = "cpu"):
        if source.private:
            self._repeatable: int | None = None
            self._bits = AESCounter(key=secrets.randbits(128))
        else:
            self._repeatable = int(source.generator().integers(2**62))
            self._bits = AESCounter(key=self._repeatable)
        self._generator = np.random.Generator(self._bits)
        self._batches = 0
        self._device = device
        self._radius = self._angle = np.empty(0, dtype=np.float32)
        self._pairs = np.empty((2, 0), dtype=np.float32)

    def batch(self, n: int, rate: float) -> NDArray[np.int64]:
        """Each of n records independently with probability `rate`: their positions, ascending.

        Gaps between chosen records are geometric, so the work grows with the batch and not with n.
        """
        self._batches += 1
        if rate >= 1.0:
            return np.arange(n)
        mean = n * rate
        more = int(mean + 6.0 * math.sqrt(mean) + 16.0)
        indices = np.cumsum(self._gaps(rate, more)) - 1
        while indices[-1] < n:  # rarely: go on from the last one
            indices = np.concatenate([indices, indices[-1] + np.cumsum(self._gaps(rate, more))])
        return indices[: int(np.searchsorted(indices, n))]

    def draws(self, chosen: NDArray[np.int64], n: int, wanted: Draws) -> Tensor:
        """Numbers for the records of a batch, float32 [b, normals + uniforms], of nothing else.

        With a repeatable source (tests) they are a function of the batch's number and of the
        record's position, whoever else is in the batch.
        """
        normals, uniforms = wanted
        if self._repeatable is not None:
            first = (self._repeatable + self._batches * n + chosen) * (normals + uniforms)
            indices = first[:, None] + np.arange(normals + uniforms)  # [b, draws], each its own
            hashes = pd.util.hash_array(indices.astype(np.uint64).ravel()).reshape(indices.shape)
            repeated = (hashes >> np.uint64(11)) * 2.0**-53
            repeated[:, :normals] = ndtri(repeated[:, :normals] + 2.0**-54)
            return torch.from_numpy(repeated).to(self._device, torch.float32)
        keyed = np.random.Generator(AESCounter(key=secrets.randbits(128)))
        parts = [
            keyed.standard_normal((len(chosen), normals), dtype=np.float32),
            keyed.random((len(chosen), uniforms), dtype=np.float32),
        ]
        return torch.from_numpy(np.hstack(parts)).to(self._device)

    def _gaps(self, rate: float, count: int) -> NDArray[np.int64]:
        gaps: NDArray[np.int64] = self._generator.geometric(rate, size=count)
        return gaps

    def add_normals(self, out: Tensor, std: float) -> Tensor:
        """Add independent normals of that standard deviation ≥ 0 to a flat float32 tensor."""
        if std == 0.0:
            return out
        draws = torch.from_numpy(self._normals(len(out)))
        return out.add_(draws.to(out.device), alpha=std)

    def _normals(self, count: int) -> NDArray[np.float32]:
        """Standard normals, float32 [count], two from each radius and angle; overwritten later."""
        half = (count + 1) // 2
        if self._radius.shape[0] != half:  # kept, because fresh memory costs more than the normals
            self._radius = np.empty(half, dtype=np.float32)
            self._angle = np.empty(half, dtype=np.float32)
            self._pairs = np.empty((2, half), dtype=np.float32)
        radius, angle, pairs = self._radius, self._angle, self._pairs
        words = self._bits.random_raw(half).view(np.uint32)  # 32 bits a radius, 32 an angle
        radius[...] = words[:half]
        radius += np.float32(0.5)
        radius *= np.float32(2.0**-32)  # in (0, 1]
        np.log(radius, out=radius)
        radius *= np.float32(-2.0)
        np.sqrt(radius, out=radius)
        if words[:half].min() < _RARE:
            self._refine(radius, words[:half])
        angle[...] = words[half:].view(np.int32)  # signed converts faster
        angle *= np.float32(math.pi * 2.0**-31)
        np.cos(angle, out=pairs[0])
        np.sin(angle, out=pairs[1])
        pairs *= radius
        return pairs.reshape(-1)[:count]

    def _refine(self, radius: NDArray[np.float32], words: NDArray[np.uint32]) -> None:
        """Give the largest radii 53 bits more, so that no tail is cut or coarse."""
        rare = np.flatnonzero(words < _RARE)
        more = (self._bits.random_raw(len(rare)) >> np.uint64(11)) * 2.0**-53 + 2.0**-54
        radius[rare] = np.sqrt(-2.0 * np.log((words[rare] + more) * 2.0**-32))
