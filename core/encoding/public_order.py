"""The order in which records are read: fixed by their number alone, so it reveals nothing.

Consecutive records are then random pairs, and the same order comes back on every reading.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

_KEY = 0x5EED  # public


def public_order(n: int) -> NDArray[np.int64]:
    """Which of n records comes first, second, …: a permutation of 0 … n - 1, int64 [n]."""
    return np.random.Generator(np.random.Philox(key=_KEY)).permutation(n)


def positions_in_order(n: int) -> NDArray[np.unsignedinteger[Any]]:
    """Where each of n records comes in `public_order`: its inverse, uint32 or uint64 [n]."""
    positions: NDArray[np.unsignedinteger[Any]]
    positions = np.empty(n, dtype=np.uint32 if n <= 2**32 else np.uint64)
    positions[public_order(n)] = np.arange(n, dtype=positions.dtype)
    return positions
