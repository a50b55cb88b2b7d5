"""Cells that a declared domain cannot hold: what encoding would change, counted and said.

The codec moves such cells inside by fixed rules, without a word, since a word could reveal them
outside. So they are counted before, inside, for the steward alone.
"""

from __future__ import annotations

import numpy as np

from core.encoding.codec import Line
from core.reading.tally import Tally
from core.schema.labels import code_places, to_labels, to_numbers
from core.schema.schema import Column

__all__ = ["INSIDE", "MISSING", "OTHER", "fates", "misfit_words", "misfits"]

INSIDE, MISSING, OTHER = "inside", "missing", "other"  # what becomes of a cell: a value, or none
GRID_SHARE = 1e-6  # of a step; nearer to the grid than this is on it


def misfits(tally: Tally, column: Column, unreadable: int = 0) -> int:
    """How many cells, of those whose values are here, would not come back from encoding alike.

    Numbers count as the same when they agree to twelve digits of the widest bound.

    Args:
      unreadable: how many of these cells say something and do not read as declared.
    """
    if not column.modelled or not column.declared:
        return 0
    values, unread = tally.values, 0
    if column.kind.listed:
        fits = to_labels(values).isin(column.categories or ()).to_numpy()
    else:
        numbers = to_numbers(values, column)
        line = Line.of(column)
        coded = code_places(values, column) >= 0
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
        place, unread = INSIDE, MISSING if missing else INSIDE
    else:
        place = unread = OTHER if column.other else MISSING if column.missing else INSIDE
    found = {place: cells - unreadable}
    found[unread] = found.get(unread, 0) + unreadable
    return {fate: count for fate, count in found.items() if count}


def misfit_words(column: Column, cells: int, unreadable: int = 0) -> str:
    """What would happen to cells that do not fit, in a sentence or two; empty without any."""
    sentences = []
    if unreadable:
        count, (fate,) = _counted(unreadable), fates(column, unreadable, unreadable)
        sentences.append(
            f"{count} not read as declared and would become missing."
            if fate == MISSING
            else f"{count} not read as declared and would become the lowest value. Tick that the "
            "column may be missing to have them missing instead."
        )
    if cells > unreadable:
        count, (fate,) = _counted(cells - unreadable), fates(column, cells - unreadable, 0)
        nearest = "move to the nearest value inside"
        inside = nearest if column.kind.numeric else "become another of its values"
        place = {OTHER: f"become {column.other}", MISSING: "become missing"}.get(fate, inside)
        sentences.append(
            f"{count} not fit what is declared here and would {place}. Widen the declaration to "
            "keep them as they are."
        )
    return " ".join(sentences)


def _counted(cells: int) -> str:
    return "1 cell does" if cells == 1 else f"{cells:,} cells do"
