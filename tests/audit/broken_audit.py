"""A table whose records draw by place in the batch. Test-only: never to be imported by core."""

from __future__ import annotations

from weakref import WeakKeyDictionary

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from core.privacy.dpsgd.stream import Draws, SecretStream


def by_place(seed: int):
    """`SecretStream.draws` as it was: the next numbers of a stream that the user's seed fixes."""
    streams: WeakKeyDictionary[SecretStream, torch.Generator] = WeakKeyDictionary()

    def draws(self: SecretStream, chosen: NDArray[np.int64], n: int, wanted: Draws) -> Tensor:
        stream = streams.setdefault(self, torch.Generator().manual_seed(seed + 1))
        normals = torch.randn((len(chosen), wanted.normals), generator=stream)
        uniforms = torch.rand((len(chosen), wanted.uniforms), generator=stream)
        return torch.cat([normals, uniforms], dim=1)

    return draws
