"""Data-free draws of training: from a generator on the CPU, then moved to where they are wanted.

So one seed gives the same numbers on every device, and a checkpoint of one device goes on on
another: the state of a graphics card's generator means nothing to a processor's.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

Device = torch.device | str


def normals(shape: Sequence[int], random: torch.Generator, device: Device) -> Tensor:
    """Standard normals, float32.

    Args:
      random: on the CPU, seeded by the user's seed; nothing private may rest on it.
    """
    return torch.randn(tuple(shape), generator=random).to(device, non_blocking=True)


def uniforms(shape: Sequence[int], random: torch.Generator, device: Device) -> Tensor:
    """Numbers in [0, 1), float32; see `normals`."""
    return torch.rand(tuple(shape), generator=random).to(device, non_blocking=True)
