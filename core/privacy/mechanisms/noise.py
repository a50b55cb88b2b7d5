"""Noise from a cryptographically secure generator, hardened against floating-point attacks.

What is covered
  Prediction: every call keys a fresh ChaCha20 with 256 bits from the operating system, so noise
    depends on no user seed, is never repeated after a fork, and its key is never kept.
  Porous support (Mironov 2012): one float64 draw plus a statistic can reveal the statistic through
    the low bits of the sum. Here statistic and noise are each rounded to a grid that depends only
    on public numbers, about 2⁻³⁰ standard deviations, and added as integers. So the output lies on
    the same grid whatever the data; it is a function of (rounded statistic + continuous noise), and
    `add` counts the rounding of the statistic in the noise it asks for.
  Reconstruction of one draw from its low bits (Holohan & Braghin 2021): each value mixes four
    independent normals, so that no single one can be solved for, and their sums fill every grid
    point within many standard deviations.

What is not covered
  The sampler itself: normals come from a ziggurat over 64-bit words, not from an exact discrete
    sampler; its distance to the ideal law is far below any δ in use but is not part of the claim.
  Timing, memory inspection, and a hostile machine or operating system.
"""

from __future__ import annotations

import math
import secrets
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray
from randomgen import ChaCha

Floats = NDArray[np.float64]
Shape = int | tuple[int, ...]
NoiseKind = Literal["gaussian", "laplace"]

GRID_BITS = 30  # a grid step is 2⁻³⁰ noise scales, rounded down to a power of two
FLOAT_MARGIN = 1e-6  # extra noise for the rounding of float64 sums, as a share of the sensitivity
_INTEGER_LIMIT = 2.0**62  # grid units beyond this are clamped: a contraction, so Δ does not grow


class NoiseSource(Protocol):
    """Where noise comes from; `private` says whether a privacy claim may rest on it."""

    private: bool

    def generator(self) -> np.random.Generator:
        """The generator for one draw."""


class SecureNoise:
    """ChaCha20 keyed by the operating system, anew for every draw."""

    private = True

    def generator(self) -> np.random.Generator:
        """A generator with a fresh 256-bit key."""
        return np.random.Generator(ChaCha(key=secrets.randbits(256), rounds=20))

    def __repr__(self) -> str:
        return "SecureNoise()"


_secure = SecureNoise()


def _scale_checked(scale: float) -> float:
    if not (math.isfinite(scale) and scale > 0.0):
        raise ValueError(f"A noise scale must be positive and finite, got {scale}.")
    return scale


def gaussian(shape: Shape, std: float, source: NoiseSource = _secure) -> Floats:
    """Normal draws, float64 of that shape, mean 0 and standard deviation std > 0.

    Each is the mean of four independent normals, times two.

    Source: Holohan & Braghin, "Secure random sampling in differential privacy", 2021, §5.
    """
    generator = source.generator()
    total = generator.standard_normal(shape)
    for _ in range(3):
        total += generator.standard_normal(shape)
    total *= _scale_checked(std) / 2.0
    return np.asarray(total)


def laplace(shape: Shape, scale: float, source: NoiseSource = _secure) -> Floats:
    """Laplace draws, float64 of that shape, mean 0 and scale > 0 (standard deviation √2·scale).

    Each is z₁z₂ + z₃z₄ of four independent normals, which is Laplace with scale 1: its
    characteristic function is (1 + t²)^(-1/2) squared.
    """
    generator = source.generator()
    total = generator.standard_normal(shape) * generator.standard_normal(shape)
    total += generator.standard_normal(shape) * generator.standard_normal(shape)
    total *= _scale_checked(scale)
    return np.asarray(total)


def grid_step(scale: float, largest: float = 0.0) -> float:
    """The grid for noise of that scale: the power of two in (2⁻³¹, 2⁻³⁰] · scale.

    Where noise is so small that values up to `largest` would not fit 61 bits, the grid is coarser.

    >>> grid_step(1.0) == 2.0**-30
    True
    """
    widest = max(scale, largest * 2.0 ** (GRID_BITS - 60))
    _, exponent = math.frexp(widest)  # widest = m · 2^exponent, ½ ≤ m < 1
    return math.ldexp(1.0, exponent - 1 - GRID_BITS)


def grid_and_scale(
    kind: NoiseKind, *, noise_multiplier: float, sensitivity: float, records: int, entries: int
) -> tuple[float, float]:
    """The grid that `add` rounds to, and the scale of the noise that it adds."""
    nominal = _scale_checked(noise_multiplier) * _scale_checked(sensitivity)
    step = grid_step(_scale_checked(nominal), largest=records * sensitivity)
    spread = math.sqrt(entries) if kind == "gaussian" else float(entries)
    widened = sensitivity * (1.0 + FLOAT_MARGIN) + step * spread
    return step, noise_multiplier * widened


def add(
    statistic: Floats,
    *,
    kind: NoiseKind,
    noise_multiplier: float,
    sensitivity: float,
    records: int,
    entries: int | None = None,
    source: NoiseSource = _secure,
) -> Floats:
    """The statistic with noise of scale noise_multiplier · Δ', rounded to a public grid.

    Rounding the statistic to a grid of step g moves neighbouring statistics apart by at most g per
    coordinate, so Δ' = Δ(1 + 10⁻⁶) + g√d for Gaussian noise (Δ in L2, scale is the standard
    deviation) and Δ(1 + 10⁻⁶) + g·d for Laplace noise (Δ in L1, scale is Laplace's). The 10⁻⁶ also
    pays for the rounding of float64 sums over up to about 10⁶ records.

    Args:
      statistic: float64 of any shape with d entries.
      noise_multiplier: > 0.
      sensitivity: Δ > 0, how far one record can move the statistic.
      records: n ≥ 1, public; no entry of the statistic can exceed nΔ, so the grid need not reach
        further.
      entries: a public bound on d where d itself depends on records; d when None.

    Returns:
      float64 of the same shape; every entry is a multiple of g.

    Raises:
      ValueError: a scale is not positive and finite, or there are more entries than allowed.
    """
    count = statistic.size if entries is None else entries
    if count < statistic.size:
        raise ValueError("A statistic has more entries than its public bound allows.")
    step, scale = grid_and_scale(
        kind,
        noise_multiplier=noise_multiplier,
        sensitivity=sensitivity,
        records=records,
        entries=count,
    )
    draw = gaussian if kind == "gaussian" else laplace
    noise = draw(statistic.shape, scale, source)
    return np.asarray((_on_grid(statistic, step) + _on_grid(noise, step)) * step, dtype=np.float64)


def _on_grid(x: Floats, step: float) -> NDArray[np.int64]:
    """Entries in grid units, as integers; sums of two of them cannot overflow."""
    units = np.rint(np.asarray(x, dtype=np.float64) / step)
    return np.clip(units, -_INTEGER_LIMIT, _INTEGER_LIMIT - 2**10).astype(np.int64)
