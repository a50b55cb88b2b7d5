"""What a steward should know of a table before a run, sorted by what follows from it; inside only.

A decision is one without which a run loses a column or publishes what it should not; a check, one
without which values may be read wrongly; all else is information.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from core.proposing import kinds, rare
from core.proposing.profile import ColumnProfile
from core.schema.column import Kind, SchemaColumn

INFORMATION = (*(kinds.EMPTY, kinds.ALWAYS_ONE, kinds.MANY_LABELS, kinds.CODED), *rare.MERGED)
GUESSED = (kinds.LOOKS_LIKE_KEY, kinds.LOOKS_LIKE_TEXT)
MOST_MISFITS = 0.5  # share of a column's values; of more that are lost, the column is
Urgency = Enum("Urgency", "DECIDE CHECK NOTE")


@dataclass(frozen=True)
class Remark:
    """A sentence or two on some columns; `named`: whether the words themselves name these."""

    urgency: Urgency
    words: str
    columns: tuple[str, ...]
    named: bool = False


def note_remarks(column: SchemaColumn, picture: ColumnProfile, n: int) -> list[Remark]:
    """What the proposal noted of a column of n rows, without a list that a run learns anew."""
    parts: dict[Urgency, list[str]] = {}
    for part in rare.note_parts(
        column.note if column.declared else rare.without_merged(column.note)
    ):
        parts.setdefault(_urgency(part, column, picture, n), []).append(part)
    return [Remark(urgency, rare.noted(*p), (column.name,)) for urgency, p in parts.items()]


def _urgency(part: str, column: SchemaColumn, picture: ColumnProfile, n: int) -> Urgency:
    template = getattr(part, "template", part)
    few = kinds.UNIQUE_SHARE if column.kind is Kind.TEXT else kinds.UNIQUE_KEYS
    unique = picture.distinct > few * n * (1.0 - picture.missing)
    if template in INFORMATION or (template in GUESSED and unique):
        return Urgency.NOTE
    return Urgency.DECIDE if column.kind.surrogate else Urgency.CHECK  # nothing of it is learned
