"""Surrogates: made-up values of identifier and text columns, which no model ever sees.

They come from the declaration alone; which value comes when is fixed by the column's name.
"""

from __future__ import annotations

import hashlib
import math
import string
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from core.schema.column import Column, Kind, SchemaError, is_whole
from core.schema.labels import from_labels

SLOTS = {
    "#": string.digits,
    "@": string.ascii_uppercase,
    "a": string.ascii_lowercase,
    "*": string.ascii_uppercase + string.digits,
}
LONGEST = 64  # letters of a pattern
AMPLE = 100  # values of a proposed pattern for each that is there, so that larger tables have room
_MOST = 2**31  # values that are put in another order by one product of 64 bits


def room(column: Column) -> float:
    """How many different values the column's pattern has; inf without a pattern.

    >>> room(Column(name="ward", kind=Kind.IDENTIFIER, pattern="W-##"))
    100.0
    """
    if column.pattern is None:
        return math.inf
    return float(math.prod(len(letters) for letters in _alphabets(column)))


def shape_of(labels: Sequence[str], most: int = 0) -> str | None:
    """The pattern that all values have; None where they differ in it, or it has little room.

    A letter stands for any of its kind, unless it is the same capital in every value (P-004711): it
    tells of no value more than what all have in common.

    >>> shape_of(["P-004711", "P-000815"]), shape_of(["4711", "12"])
    ('P-######', None)
    """
    lengths = {len(label) for label in labels}
    if len(lengths) > 1 or not 0 < max(lengths, default=0) <= LONGEST:
        return None
    shape = []
    for letters in map(set, zip(*labels, strict=True)):
        slot = next((s for s in ("#", "@", "a", "*") if letters <= set(SLOTS[s])), None)
        if len(letters) == 1 and slot in (None, "@"):
            (slot,) = letters
        if slot is None or not letters <= set(SLOTS.get(slot, slot)):  # a sign that stands for more
            return None
        shape.append(slot)
    sizes = [len(SLOTS.get(slot, slot)) for slot in shape]
    return "".join(shape) if math.prod(sizes) >= AMPLE * max(most, len(labels)) else None


def check_room(columns: Iterable[Column], rows: int) -> None:
    """Refuse a pattern that has fewer values than an identifier could need."""
    for column in columns:
        if column.kind is Kind.IDENTIFIER and room(column) < rows:
            raise SchemaError(
                "Column '{name}': the pattern '{pattern}' has {room:,.0f} different values and "
                "{rows:,} rows may need one each. Make the pattern longer.",
                name=column.name,
                pattern=column.pattern,
                room=room(column),
                rows=rows,
            )


def surrogate(
    column: Column, rows: int, *, start: int = 0, of: int | None = None
) -> pd.Series[Any]:
    """Fresh values of the column's type: in its pattern, or 1, 2, 3 … or "name-000001" ….

    Some are missing, as many as the column declares.
    """
    labels = _made_up(column, rows, start, start + rows if of is None else of)
    if column.absent:
        seed = (_key(column), start, 1)
        labels = labels.mask(np.random.default_rng(seed).random(rows) < column.absent)
    return from_labels(labels, column)


def _made_up(column: Column, rows: int, start: int, of: int) -> pd.Series[Any]:
    if column.pattern is not None:
        check_room([column], of)
        return pd.Series(_patterned(column, rows, start), dtype="str")
    count = pd.Series(np.arange(start + 1, start + rows + 1)).astype("str")
    if column.dtype.lower().startswith(("int", "uint", "float")):
        return count
    word = column.name if column.kind is Kind.IDENTIFIER else f"synthetic {column.name}"
    return f"{word}-" + count.str.zfill(max(6, len(str(of))))


def _key(column: Column) -> int:
    """A number that the column's name fixes."""
    return int.from_bytes(hashlib.sha256(column.name.encode()).digest()[:4], "big")


def _alphabets(column: Column) -> list[str]:
    """What each letter may be; a whole number does not begin with 0, or it would shrink."""
    alphabets = [SLOTS.get(letter, letter) for letter in column.pattern or ""]
    if is_whole(column.dtype) and len(alphabets[0]) > 1:
        alphabets[0] = alphabets[0].lstrip("0")
    return alphabets


def _patterned(column: Column, rows: int, start: int) -> list[str]:
    """Different values as long as the pattern has some, in an order fixed by the column's name."""
    alphabets = _alphabets(column)
    sizes = [len(letters) for letters in alphabets]
    # the last letters count through every value once, in another order; those before are scattered
    first, counted = len(sizes), 1
    while first and counted * sizes[first - 1] < _MOST:
        first -= 1
        counted *= sizes[first]
    key = _key(column) % _MOST
    factor = max(1, round(counted * 0.6180339887))  # golden: neighbours end up far apart
    while math.gcd(factor, counted) > 1:
        factor += 1
    number = (np.arange(start, start + rows, dtype=np.int64) * factor + key) % counted
    scattered = np.random.default_rng((key, start) if start else key)
    letters_at: list[NDArray[np.str_]] = []
    for at in range(len(sizes) - 1, -1, -1):
        if at >= first:
            number, digit = np.divmod(number, sizes[at])
        else:
            digit = scattered.integers(sizes[at], size=rows)
        letters_at.append(np.array(list(alphabets[at]))[digit])
    columns = np.stack(letters_at[::-1], axis=1) if rows else np.empty((0, len(sizes)), dtype="U1")
    return ["".join(letters) for letters in columns.tolist()]
