"""Cells that a declared domain cannot hold: what encoding would change, counted and said.

The codec moves such cells inside without a word, since a word could reveal them outside. So they
are counted before, inside, for the steward alone.
"""

from __future__ import annotations

import numpy as np

from core.encoding.codec import Line
from core.message import Message, joined, plural, to_say
from core.reading.tally import Tally
from core.schema.column import Column
from core.schema.labels import category_indices, code_indices, to_numbers
from core.schema.round_bounds import GRID_SHARE

INSIDE, MISSING, OTHER = "inside", "missing", "other"  # what becomes of a cell: a value, or none
_BECOME = {
    INSIDE: Message("become another of its values"),
    MISSING: Message("become missing"),
    OTHER: to_say("become {label}"),
}
_LOWEST = Message("become the lowest value")
_NEAREST = to_say("move to the nearest value that fits")


def misfits(tally: Tally, column: Column, unreadable: int = 0) -> int:
    """How many cells would not come back from encoding alike, to twelve digits of a bound."""
    if not column.modelled:
        return 0
    if not column.declared:
        return unreadable  # a run learns which values there are
    values, unread = tally.values, 0
    if column.kind.listed:
        fits = category_indices(values, column) >= 0
    else:
        numbers = to_numbers(values, column)
        line = Line.of(column)
        coded = code_indices(values, column) >= 0
        unread = int(tally.rows[np.isnan(numbers) & ~coded].sum())
        filled = np.where(np.isnan(numbers), line.low, numbers)
        near = max(GRID_SHARE * column.step, 1e-12 * max(abs(line.low), abs(line.high)))
        fits = (np.abs(line.snap(filled) - filled) <= near) & ~np.isnan(numbers) | coded
    gone = max(0, unreadable - unread) if column.missing else tally.absent
    return int(tally.rows[~fits].sum()) + gone


def fates(column: Column, cells: int, unreadable: int) -> dict[str, int]:
    """What becomes of cells that do not fit, and of how many."""
    missing = column.missing or bool(column.codes)
    if column.kind.numeric:
        fate, unread = INSIDE, MISSING if missing else INSIDE
    else:
        fate = unread = OTHER if column.other else MISSING if column.missing else INSIDE
    found = {fate: cells - unreadable}
    found[unread] = found.get(unread, 0) + unreadable
    return {fate: count for fate, count in found.items() if count}


def misfit_words(column: Column, cells: int, unreadable: int = 0) -> str:
    """What would happen to cells that do not fit, in a sentence or two; empty without any."""
    sentences: list[str] = []
    if unreadable:
        (fate,) = fates(column, unreadable, unreadable)
        sentences.append(
            plural(
                unreadable,
                "1 cell does not read as declared and would {become}.",
                "{n:,} cells do not read as declared and would {become}.",
                become=_BECOME[fate] if fate == MISSING else _LOWEST,
            )
        )
        if fate != MISSING:
            sentences.append(
                Message("To have such cells missing, tick that the column may be missing.")
            )
    if cells > unreadable:
        (fate,) = fates(column, cells - unreadable, 0)
        become = _NEAREST if fate == INSIDE and column.kind.numeric else _BECOME[fate]
        sentences.append(
            plural(
                cells - unreadable,
                "1 cell does not fit this declaration and would {become}.",
                "{n:,} cells do not fit this declaration and would {become}.",
                become=Message(become, label=column.other or ""),
            )
        )
        sentences.append(Message("To keep such cells, widen the declaration or choose “learn”."))
    return joined(sentences) if sentences else ""
