"""Surrogates: made-up values of identifier and text columns, which no model ever sees.

So are the endings of codes in lists, and placeholders for labels too rare to be listed. All of them
come from the declaration alone; which value comes when is fixed by the column's name.
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
from core.schema.labels import REST, beginnings, category_indices, code_levels, from_labels
from core.schema.person import Person

SLOTS = {
    "#": string.digits,
    "@": string.ascii_uppercase,
    "a": string.ascii_lowercase,
    "*": string.ascii_uppercase + string.digits,
}
LONGEST = 64  # letters of a pattern
AMPLE = 100  # values of a proposed pattern for each that is there, so that larger tables have room
_TRIES = 20  # to complete a code as none in its list is
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
        if slot in (None, "|") or not letters <= set(SLOTS.get(slot, slot)):  # it stands for more
            return None
        shape.append(slot)
    sizes = [len(SLOTS.get(slot, slot)) for slot in shape]
    return "".join(shape) if math.prod(sizes) >= AMPLE * max(most, len(labels)) else None


def check_room(columns: Iterable[Column], rows: int, person: Person | None = None) -> None:
    """Refuse a pattern that has fewer values than an identifier could need.

    Args:
      rows: of people whose events are drawn one by one, the people; each needs one of what is
        theirs, and one for each event of what is an event's.
    """
    people, events = set[str](), 1
    if person is not None and person.walked:
        people = {*person.columns, *person.constant}
        events = sum(map(person.most_of, person.files))
    for column in columns:
        rows_of_it = rows if column.name in people else rows * events
        if column.kind is Kind.IDENTIFIER and room(column) < rows_of_it:
            raise SchemaError(
                "Column '{name}': the pattern '{pattern}' has {room:,.0f} different values and "
                "{rows:,} rows may need one each. Make the pattern longer.",
                name=column.name,
                pattern=column.pattern,
                room=room(column),
                rows=rows_of_it,
            )


def renewed_links(
    keys: pd.Series[Any], owners: pd.Series[Any], renewed: pd.Series[Any], part: Any = 0
) -> pd.Series[Any]:
    """Keys of rows that others belong to, as these have them now; missing where one is gone.

    Args:
      keys: of the rows that belong to others, missing in all other rows.
      owners, renewed: each row's own key before and now, missing in all other rows.
      part: of each row, within which keys were made.
    """
    index = pd.DataFrame({"part": part, "key": owners})[owners.notna()]
    known = pd.Series(renewed[owners.notna()].to_numpy(), pd.MultiIndex.from_frame(index))
    asked = pd.MultiIndex.from_frame(pd.DataFrame({"part": part, "key": keys}))
    return pd.Series(known.reindex(asked).to_numpy(), dtype=renewed.dtype)


def surrogate(
    column: Column,
    rows: int,
    *,
    start: int = 0,
    of: int | None = None,
    there: pd.Series[bool] | None = None,
) -> pd.Series[Any]:
    """Fresh values of the column's type: in its pattern, or 1, 2, 3 … or "name-000001" ….

    Args:
      there: which are not missing; None for as many as the column declares.
    """
    labels = _made_up(column, rows, start, start + rows if of is None else of)
    if there is not None:
        labels = labels.where(there.to_numpy())
    elif column.absent:
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
    letters = (column.pattern or "").replace("|", "")
    alphabets = [SLOTS.get(letter, letter) for letter in letters]
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


def with_made_up_rest(labels: pd.Series[Any], column: Column) -> pd.Series[Any]:
    """Labels of a list with made-up ones for those that stand for many.

    The beginning of a code is completed in the column's pattern, to none that is listed itself. For
    `other` stand as many placeholders as were learned, or codes that begin like none in the list.
    """
    learned = getattr(column, "learned", None)
    coded, others = bool(code_levels(column)), 0 if learned is None else learned.placeholders
    many = [*beginnings(column), *([column.other] if others and column.other else [])]
    if not many:
        return labels
    random = np.random.default_rng(_key(column))
    made_up = labels.to_numpy(dtype=object, copy=True)
    for label in many:
        rows = np.flatnonzero(labels == label)
        if coded:
            start = "" if label == column.other else label.removesuffix(REST)
            made_up[rows] = _completed(start, len(rows), column, label, random)
        else:
            numbers = random.integers(1, others + 1, len(rows))
            made_up[rows] = [f"{label} {number}" for number in numbers.tolist()]
    return pd.Series(made_up, index=labels.index, dtype="str")


def _completed(
    start: str, count: int, column: Column, label: str, random: np.random.Generator
) -> NDArray[np.object_]:
    """Codes that begin so, object [count], made up anew while a list has another place for them."""
    alphabets = _alphabets(column)[len(start) :]
    codes, index = np.full(count, start, dtype=object), (column.categories or ()).index(label)
    wanted = index if label != column.other else -1
    left = np.arange(count)
    for _ in range(_TRIES):
        if not len(left) or not alphabets:
            break
        drawn = [
            np.array(list(letters))[random.integers(len(letters), size=len(left))]
            for letters in alphabets
        ]
        codes[left] = [start + "".join(ending) for ending in zip(*drawn, strict=True)]
        left = left[category_indices(pd.Series(codes[left], dtype="str"), column) != wanted]
    return codes
