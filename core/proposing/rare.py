"""Values that few rows hold: what a list of categories would publish, and a list without them.

A value that one row holds is known to be in the table once the list is declared, whatever ε is.
Counts made here are for the steward alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pandas as pd

from core.message import Message, joined, plural, to_say
from core.schema.column import Column

FEW_ROWS = 10  # a value that fewer rows hold is not listed unless the steward says so
OTHER = "OTHER"
# what a proposal notes of its list, until somebody changes that list
ONE_MERGED = to_say("1 value of fewer than ten rows was merged into {label}.")
MANY_MERGED = to_say("{n:,} values of fewer than ten rows were merged into {label}.")
MOST_RARE = 0.5  # share of rows that may be merged


@dataclass(frozen=True)
class RareCounts:
    """How many listed categories 1 to 9 rows hold, and exactly one, without `other`."""

    listed: int
    rare: int
    single: int


def rare_counts(labels: pd.Series[int], column: Column) -> RareCounts:
    """Count the categories that few rows hold; zeros for kinds without a list."""
    if not column.kind.listed or not column.categories:
        return RareCounts(0, 0, 0)
    names = [name for name in column.categories if name != column.other]
    rows = labels.reindex(names, fill_value=0)
    rare = int(((rows > 0) & (rows < FEW_ROWS)).sum())
    return RareCounts(len(names), rare, int((rows == 1).sum()))


def danger(name: str, counts: RareCounts) -> str:
    """What declaring the list public would publish, in a sentence; empty when nothing.

    >>> danger("name", RareCounts(listed=2800, rare=1700, single=1545))[:57]
    '`name`: 1,545 of 2,800 values belong to one row each and '
    """
    if not counts.rare:
        return ""
    if counts.single:
        words = plural(
            counts.single,
            "{n:,} of {listed:,} values belongs to one row each and {rare:,} to fewer than ten",
            "{n:,} of {listed:,} values belong to one row each and {rare:,} to fewer than ten",
            listed=counts.listed,
            rare=counts.rare,
        )
    else:
        words = plural(
            counts.rare,
            "{n:,} of {listed:,} values belongs to fewer than ten rows each",
            "{n:,} of {listed:,} values belong to fewer than ten rows each",
            listed=counts.listed,
        )
    return Message(
        "`{name}`: {words}; declaring the list public publishes them, unless it is public anyway.",
        name=name,
        words=words,
    )


def noted(*notes: str) -> str:
    """Sentences of a column's note after one another, empty ones left out."""
    said = [note for note in notes if note]
    return said[0] if len(said) == 1 else joined(said) if said else ""


def without_merged(note: str) -> str:
    """A note without its sentence on merged values, once their list was changed."""
    if not isinstance(note, Message):
        return note
    parts = [str(part) for part in note.values.values()] if "part0" in note.values else [note]
    return noted(*(p for p in parts if getattr(p, "template", p) not in (ONE_MERGED, MANY_MERGED)))


def common_labels(counts: pd.Series[Any]) -> list[str] | None:
    """The labels that at least ten rows hold; None where most rows hold others."""
    common = counts[counts >= FEW_ROWS]
    if common.sum() < (1.0 - MOST_RARE) * counts.sum():
        return None  # merging the rest would leave little to learn
    return [str(label) for label in common.index]
