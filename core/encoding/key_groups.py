"""In which order records are read, and pairs and groups of people, made by each one's own key.

Rows are read in an order fixed by their number alone: consecutive ones are random pairs, and one
that is replaced keeps its position and its pair.

Were people paired in the order of their keys' hashes, one who came in place of another would
re-form all pairs between. So the people of a group come from one bucket: the public hash of a
person's key, modulo the number of buckets, which follows from the public number of people. Those
with the smallest hashes in a bucket form its one group; a bucket of fewer has none. Whoever leaves
changes one bucket and whoever joins another, and nothing else moves.
"""

from __future__ import annotations

import math
from functools import cache
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


def bucket_count(n: int, size: int) -> int:
    """How many buckets n ≥ 1 people fall into, ≥ 1, so that most of them fill a group.

    Most are full on average, were their sizes Poisson-distributed.

    >>> bucket_count(1000, 2), bucket_count(32_561, 128), bucket_count(1, 2)
    (555, 219, 1)
    """
    return max(1, int(n / _people_of_a_bucket(size)))


def share_filled(n: int, size: int) -> float:
    """About which share of the buckets holds a whole group, in [0, 1]; of n and `size` alone.

    >>> round(share_filled(1000, 2), 2), round(share_filled(32_561, 128), 2), share_filled(99, 128)
    (0.54, 0.96, 0.0)
    """
    if n < size:
        return 0.0
    buckets = bucket_count(n, size)
    return 1.0 if buckets == 1 else _reached(size, n / buckets)


def positions_by_key(hashes: NDArray[np.uint64], size: int, buckets: int) -> NDArray[np.int64]:
    """Who stands at which position of which group.

    Args:
      hashes: uint64 [n], n ≥ 1, of people's keys, which are sorted by key where they are equal.

    Returns:
      int64 [buckets · size], a group after the other: a position in `hashes`, or -1 for nobody. A
        bucket that has too few is filled from its first position on.
    """
    bucket = (hashes % np.uint64(buckets)).astype(np.int64)
    order = np.lexsort((hashes, bucket))  # stable
    counts = np.bincount(bucket, minlength=buckets)
    within = np.arange(len(hashes)) - np.repeat(np.cumsum(counts) - counts, counts)
    stand = within < size
    positions = np.full(buckets * size, -1, dtype=np.int64)
    positions[bucket[order][stand] * size + within[stand]] = order[stand]
    return positions


@cache
def _people_of_a_bucket(size: int) -> float:
    """On average, where most buckets are full: among half to twice the size of a group."""
    means = [size * percent / 100.0 for percent in range(50, 201)]
    return max(means, key=lambda mean: _reached(size, mean) / mean)


def _reached(size: int, mean: float) -> float:
    """P(Poisson(mean) ≥ size)."""
    below = (k * math.log(mean) - mean - math.lgamma(k + 1) for k in range(size))
    return max(0.0, 1.0 - math.fsum(map(math.exp, below)))
