"""Empirical-Bayes shrinkage of a released embedding: what is mostly noise is not worth matching.

The noise variance of every released number is public, so the energy of a band of like frequencies
tells how much of it is signal. One-column frequencies shrink towards 0, which is what a smooth
column's high frequencies are; two-column frequencies shrink towards independence within the class.
Only the release is read: this is post-processing and costs no privacy.

Source: James and Stein (1961), positive-part rule, applied band by band.
"""

from __future__ import annotations

import torch
from torch import Tensor

from core.models.parts.characteristic import Frequencies, Target

__all__ = ["shrink"]

ONE_WAY_BAND = 12  # frequencies that share a factor: enough to know their energy to about a third
PAIR_BAND = 24


def shrink(
    target: Target, frequencies: Frequencies, *, noise_level: float, one_way_weight: float
) -> Target:
    """The target with every band scaled by max(0, 1 - noise energy / energy).

    Args:
      target: as released, divided by n.
      frequencies: what it was measured at; tells which frequencies are alike.
      noise_level: standard deviation of one real coordinate of the target; 0 changes nothing.
      one_way_weight: λ of the embedding.
    """
    if noise_level == 0.0:
        return target
    noise = 2.0 * noise_level**2  # of one complex number
    height = torch.stack([_rank(line) for line in frequencies.lines], dim=1)  # [G, m]
    ones = target.ones.clone()
    for c in range(ones.shape[2]):
        for band in _bands(height[:, c], ONE_WAY_BAND):
            ones[:, band, c] *= _factor(ones[:, band, c], noise)
    pairs = target.pairs.clone()
    columns = ones.shape[2]
    upper = torch.triu_indices(columns, columns, offset=1)
    # within the class: E[φ_a φ_b 1{y}] ≈ E[φ_a 1{y}] E[φ_b 1{y}] / P(y)
    apart = ones[:, :, upper[0]] * ones[:, :, upper[1]]
    apart = apart / (one_way_weight**2 * target.shares.view(-1, 1, 1))  # [C, G, pairs]
    rest = pairs - apart
    for k in range(upper.shape[1]):
        both = height[:, upper[0, k]] + height[:, upper[1, k]]
        for band in _bands(both, PAIR_BAND):
            rest[:, band, k] *= _factor(rest[:, band, k], noise)
    return Target(apart + rest, ones, target.shares)


def _rank(line: Tensor) -> Tensor:
    """Rank of |t| in [0, 1]; 0 everywhere for a column without a line (all t are 0 or unused)."""
    return line.abs().argsort().argsort().float() / max(1, len(line) - 1)


def _bands(height: Tensor, size: int) -> list[Tensor]:
    """Groups of like height, `size` at a time."""
    return list(torch.split(height.argsort(), size))


def _factor(band: Tensor, noise: float) -> Tensor:
    """[C, 1] share of a band's energy that is signal, per class."""
    energy = band.abs().square().mean(dim=1, keepdim=True)
    return (1.0 - noise / energy.clamp_min(1e-30)).clamp_min(0.0)
