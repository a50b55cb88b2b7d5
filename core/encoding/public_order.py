"""The order in which records are read: fixed by their number alone, so it reveals nothing.

Consecutive records are then random pairs that were chosen without looking at the data, and the same
order comes back whenever the same number of records is read again.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

_KEY = 0x5EED  # public


def public_order(n: int) -> NDArray[np.int64]:
    """Which of n records comes first, second, …: a permutation of 0 … n - 1, int64 [n]."""
    return np.random.Generator(np.random.Philox(key=_KEY)).permutation(n)


def places_in_order(n: int) -> NDArray[np.unsignedinteger[Any]]:
    """Where each of n records comes in `public_order`: its inverse, uint32 or uint64 [n]."""
    places: NDArray[np.unsignedinteger[Any]]
    places = np.empty(n, dtype=np.uint32 if n <= 2**32 else np.uint64)
    places[public_order(n)] = np.arange(n, dtype=places.dtype)
    return places
