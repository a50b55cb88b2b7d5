"""Expanded rows back to codes, which no model needs: each has heads of its own."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from core.encoding.codec import Codec, Codes


def collapse(codec: Codec, x: NDArray[np.floating]) -> Codes:
    """[b, width] in [0, 1] → codes: the strongest state of each block, positions clipped."""
    states = np.zeros((len(x), len(codec.blocks)), dtype=np.int32)
    values = np.zeros((len(x), codec.numbers), dtype=np.float64)
    for block in codec.blocks:
        part = x[:, block.slice]
        if block.number is None:
            states[:, block.index] = part.argmax(axis=1)
            continue
        if len(block.states) > 1:
            states[:, block.index] = part[:, 1:].argmax(axis=1)
        on_line = states[:, block.index] == 0
        values[:, block.number] = np.where(on_line, np.clip(part[:, 0], 0.0, 1.0), 0.0)
    return Codes(states, values)
