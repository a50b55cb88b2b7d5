"""The holdout: records kept out of training, chosen by their place in the file and nothing else.

Which places are kept depends on the number of records and the share alone, so the choice reveals
nothing about anyone. A fixed shuffle of the places, not every k-th one, so that a file sorted or
written in rounds is split evenly.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

__all__ = ["SHARES", "held_out", "split_rows", "training_count"]

SHARES = (0.0, 0.1, 0.2, 0.25)
_KEY = 0xFAC5  # public: the same split in every workspace


def training_count(n: int, share: float) -> int:
    """How many of n records are trained on; at least one.

    >>> training_count(1000, 0.2), training_count(3, 0.0), training_count(1, 0.5)
    (800, 3, 1)
    """
    return n - min(n - 1, round(n * share)) if n else 0


def held_out(n: int, share: float) -> NDArray[np.bool_]:
    """Which of n records are kept out of training, bool [n].

    Args:
      n: number of records, public.
      share: in [0, ½].
    """
    order = np.random.Generator(np.random.Philox(key=_KEY)).permutation(n)
    out = np.zeros(n, dtype=np.bool_)
    out[order[training_count(n, share) :]] = True
    return out


def split_rows(frame: pd.DataFrame, share: float) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The rows that are trained on and those kept out, each in file order, numbered from 0."""
    out = held_out(len(frame), share)
    if not out.any():
        return frame, frame.iloc[:0]
    return frame[~out].reset_index(drop=True), frame[out].reset_index(drop=True)
