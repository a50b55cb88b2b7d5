"""Codes of more records than memory should hold: a file without a name, in the public order.

Batches come in file order and are dealt out into piles: records whose positions in the public order
are near each other go to one stretch of the file, which is then put in order by itself, in memory.
So everything is written and read in long runs.

The file holds private rows: it has no name from the start, its owner alone could open it, and the
system frees it however the process ends. Each number is kept as the float32 that statistics see, so
what is computed is the same to the last bit as from memory.
"""

from __future__ import annotations

import mmap
import os
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.encoding.codec import Codec, Codes
from core.encoding.key_groups import positions_in_order

PILE_BYTES = 64 * 2**20  # of a stretch of the file that is put in order at once
KEPT_BYTES = 64 * 2**20  # of the file that stay mapped, as a guess, before pages are given back
_FAULT = 65_536  # bytes that one look at a random place may map


class StoredCodes:
    """Encoded rows on disk in the public order, made by `store_codes`; parts come as `Codes`."""

    __slots__ = ("_map", "_mapped", "_rows")

    def __init__(self, file: int, row: np.dtype[Any], n: int):
        self._map = mmap.mmap(file, n * row.itemsize, access=mmap.ACCESS_READ)
        self._rows = np.frombuffer(self._map, dtype=row, count=n)
        self._mapped = 0

    def __len__(self) -> int:
        return len(self._rows)

    def slice(self, start: int, stop: int) -> Codes:
        """Rows start … stop - 1, copied."""
        part = _codes(self._rows[start:stop].copy())
        self._give_back(len(part) * self._rows.itemsize)
        return part

    def take(self, index: Any) -> Codes:
        """The rows at `index`, copied."""
        part = _codes(self._rows[index])
        self._give_back(len(part) * _FAULT)
        return part

    def to(self, device: str) -> Codes:
        """All rows as torch tensors on a device: in memory, so for small tables alone."""
        return _codes(self._rows.copy()).to(device)

    def _give_back(self, touched: int) -> None:
        """Unmap pages now and then: they count as this process's memory while they are mapped."""
        self._mapped += touched
        if self._mapped > KEPT_BYTES:
            self._mapped = 0
            if hasattr(mmap, "MADV_DONTNEED"):  # not on every system
                self._map.madvise(mmap.MADV_DONTNEED)


def bytes_needed(codec: Codec, n: int) -> int:
    """What `store_codes` takes on disk for n records."""
    return n * _row(codec).itemsize


def store_codes(parts: Iterable[Codes], codec: Codec, n: int, folder: Path) -> StoredCodes | None:
    """Write codes to a file without a name in the public order; None for another number of rows."""
    row = _row(codec)
    pile = max(1, PILE_BYTES // row.itemsize)
    with tempfile.TemporaryFile(dir=folder) as file:
        if not _deal(parts, row, n, pile, file.fileno()):
            return None
        _sort(row, n, pile, file.fileno())
        return StoredCodes(file.fileno(), row, n)  # the map keeps the file while it is needed


def _deal(parts: Iterable[Codes], row: np.dtype[Any], n: int, pile: int, file: int) -> bool:
    """Append each row to the pile that it belongs to; whether there are n."""
    positions = positions_in_order(n)
    filled = np.zeros(-(-n // pile), dtype=np.int64)
    os.truncate(file, n * row.itemsize)
    done = 0
    for codes in parts:
        if done + len(codes) > n:
            return False
        at = positions[done : done + len(codes)]
        done += len(codes)
        rows = np.empty(len(codes), dtype=row)
        piles = at // pile
        order = np.argsort(piles, kind="stable")
        rows["at"] = (at % pile)[order]
        rows["states"] = codes.states[order]
        rows["values"] = codes.values[order]
        ends = np.cumsum(np.bincount(piles, minlength=len(filled)))
        for one, (first, last) in enumerate(zip([0, *ends[:-1]], ends, strict=True)):
            _write(file, rows[first:last], (one * pile + filled[one]) * row.itemsize)
            filled[one] += last - first
    return done == n


def _sort(row: np.dtype[Any], n: int, pile: int, file: int) -> None:
    for first in range(0, n, pile):
        count = min(pile, n - first)
        read = os.pread(file, count * row.itemsize, first * row.itemsize)
        dealt = np.frombuffer(read, dtype=row)
        in_order = np.empty_like(dealt)
        in_order[dealt["at"]] = dealt
        _write(file, in_order, first * row.itemsize)


def _row(codec: Codec) -> np.dtype[Any]:
    most = max((len(block.states) for block in codec.blocks), default=1)
    state = next(kind for kind in (np.uint8, np.uint16, np.int32) if most - 1 <= np.iinfo(kind).max)
    return np.dtype(
        [
            ("at", np.uint32),
            ("states", state, (len(codec.blocks),)),
            ("values", np.float32, (codec.numbers,)),
        ]
    )


def _codes(rows: NDArray[Any]) -> Codes:
    return Codes(np.ascontiguousarray(rows["states"]), np.ascontiguousarray(rows["values"]))


def _write(file: int, rows: NDArray[Any], offset: int) -> None:
    left = memoryview(rows.tobytes())
    while left:
        written = os.pwrite(file, left, offset)
        left, offset = left[written:], offset + written
