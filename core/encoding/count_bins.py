"""Numbers of events, and places among them, as the labels of an ordered list."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

_ENDS = (*range(1, 11), 15, 20, 30, 50, 70, 100, 150, 200, 300, 500, 700, 1000)
_EACH = 20  # up to so many events each number has a label of its own


@dataclass(frozen=True)
class CountBins:
    """Numbers from `least` to a most as labels; `bins` are the first and last of each."""

    bins: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, least: int, most: int) -> CountBins:
        """A label for each of a few, for more and more of many.

        >>> CountBins.of(0, 3).labels, CountBins.of(1, 40).labels[-3:]
        (('0', '1', '2', '3'), ('16–20', '21–30', '31–40'))
        """
        ends = range(1, most + 1) if most <= _EACH else [e for e in _ENDS if e < most] + [most]
        ends = [*([0] if least == 0 else []), *ends]
        firsts = [least, *(end + 1 for end in ends)]
        return cls(tuple(zip(firsts, ends, strict=False)))

    @property
    def labels(self) -> tuple[str, ...]:
        """One each."""
        return tuple(str(a) if a == b else f"{a}–{b}" for a, b in self.bins)

    def index(self, numbers: NDArray[np.integer[Any]]) -> NDArray[np.int64]:
        """The label of each; more than the most count as that."""
        lasts = np.array([last for _, last in self.bins])
        found = np.minimum(np.searchsorted(lasts, numbers), len(lasts) - 1)
        return np.asarray(found, dtype=np.int64)
