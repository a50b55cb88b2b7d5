"""The holdout: records kept out of training, chosen by their position in the file and nothing else.

A fixed shuffle that depends on the number of records and the share alone, so that the choice
reveals nothing and a file that is sorted or written in rounds is split evenly.

Where rows are put together by person, people are kept out with all their rows, each by a fixed
public hash of their own key, so that nobody's being there moves anybody else. How many are kept out
is then the share on average; the number of those trained on is public.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from core.encoding.person_rows import number_people
from core.schema.person import Person

SHARES = (0.0, 0.1, 0.2, 0.25)
_KEY = 0xFAC5  # public: the same split in every workspace


def training_count(n: int, share: float) -> int:
    """How many of n records are trained on; at least one.

    >>> training_count(1000, 0.2), training_count(3, 0.0), training_count(1, 0.5)
    (800, 3, 1)
    """
    return n - min(n - 1, round(n * share)) if n else 0


def held_out(n: int, share: float) -> NDArray[np.bool_]:
    """Which of n records are kept out of training, bool [n]."""
    order = np.random.Generator(np.random.Philox(key=_KEY)).permutation(n)
    out = np.zeros(n, dtype=np.bool_)
    out[order[training_count(n, share) :]] = True
    return out


def _people_held_out(hashes: NDArray[np.uint64], share: float) -> NDArray[np.bool_]:
    """Which people are kept out of training, by their keys' ascending hashes; never all of them."""
    out = hashes.astype(np.float64) < share * 2.0**64
    out[-1] = False
    return out


def people_trained_on(batches: Iterable[pd.DataFrame], share: float) -> int:
    """How many people are trained on, at least one; `batches` have the columns that say who."""
    hashes = np.zeros(0, dtype=np.uint64)
    for keys in batches:
        hashes = np.union1d(hashes, number_people(keys)[1])
    return int((~_people_held_out(hashes, share)).sum())


def training_batches(
    batches: Iterable[pd.DataFrame], n: int, share: float
) -> Iterator[pd.DataFrame]:
    """The rows that are trained on, some at a time: those of `split_rows`, in the same order."""
    out, start = held_out(n, share), 0
    for batch in batches:
        kept_out = out[start : start + len(batch)]
        start += len(batch)
        yield batch[~kept_out].reset_index(drop=True) if kept_out.any() else batch


def split_rows(
    frame: pd.DataFrame, share: float, person: Person | None = None
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The rows that are trained on and those kept out, each in file order, numbered from 0."""
    if not share or person is None or not person.grouped:
        out = held_out(len(frame), share)
    else:
        number, hashes = number_people(frame[list(person.columns)])
        out = _people_held_out(hashes, share)[number]
    if not out.any():
        return frame, frame.iloc[:0]
    return frame[~out].reset_index(drop=True), frame[out].reset_index(drop=True)
