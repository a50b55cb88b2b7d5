"""Values that few rows hold: what a list of categories would publish, and a list without them.

A category list is public once it is declared. A value that one row holds is then known to be in the
table, whatever ε is. Counts made here depend on rows: they are for the steward alone.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import pandas as pd

from core.schema.schema import Column

__all__ = [
    "FEW_ROWS",
    "MERGED_NOTE",
    "OTHER",
    "RareCounts",
    "common_labels",
    "danger",
    "rare_counts",
]

FEW_ROWS = 10  # a value that fewer rows hold is not listed unless the steward says so
OTHER = "OTHER"
# what a proposal notes of its list, until somebody changes that list
MERGED_NOTE = re.compile(rf"[\d,]+ values of fewer than ten rows are merged into {OTHER}\.")
MOST_RARE = 0.5  # share of rows that may be merged


@dataclass(frozen=True)
class RareCounts:
    """Of a column's listed categories (without the one that stands for all others).

    Attributes:
      rare: how many of them 1 to 9 rows hold.
      single: how many exactly one row holds.
    """

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
        verb = "belongs" if counts.single == 1 else "belong"
        words = f"{counts.single:,} of {counts.listed:,} values {verb} to one row each"
        words += f" and {counts.rare:,} to fewer than ten"
    else:
        verb = "belongs" if counts.rare == 1 else "belong"
        words = f"{counts.rare:,} of {counts.listed:,} values {verb} to fewer than ten rows each"
    return (
        f"`{name}`: {words}; listing them as public would publish them, unless the list is public "
        "anyway."
    )


def common_labels(counts: pd.Series[Any]) -> list[str] | None:
    """The labels that at least ten rows hold; None where most rows hold others."""
    common = counts[counts >= FEW_ROWS]
    if common.sum() < (1.0 - MOST_RARE) * counts.sum():
        return None  # merging the rest would leave little to learn
    return [str(label) for label in common.index]
