"""Values that few rows hold: what a list of categories would publish, and a list without them.

A value that one row holds is known to be in the table once the list is declared, whatever ε is.
Counts made here are for the steward alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd

from core.message import Message, joined, to_say
from core.schema.column import Column, SchemaColumn
from core.schema.form import MOST_CODES
from core.schema.labels import to_labels

Rows: TypeAlias = npt.NDArray[np.int64]
Mask: TypeAlias = npt.NDArray[np.bool_]

FEW_ROWS = 10  # a value that fewer rows hold is not listed unless the steward says so
OTHER = "OTHER"
# what a proposal notes of its list, until somebody changes that list
ONE_MERGED = to_say("1 value of fewer than ten rows was merged into {label}.")
MANY_MERGED = to_say("{n:,} values of fewer than ten rows were merged into {label}.")
MERGED = (ONE_MERGED, MANY_MERGED)
MOST_RARE = 0.5  # share of rows that may be merged
MOST_ODD = 0.05  # share of the rows that may hold what reads as no number or date among others
# for "not applicable"; and a day that no calendar has, as data bases write it
CODE_WORD = re.compile(r"-+|\.+|\*+|[^\W\d][^\d\r\n\t\0]{0,31}|0[-/.:0 ]*0")


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


def danger(counts: RareCounts) -> str:
    """What declaring a list public would publish; empty when nothing.

    >>> danger(RareCounts(listed=2800, rare=1700, single=1545))[:74]
    'In fewer than ten rows: 1,700 of 2,800 values; in a single row only: 1,545'
    """
    if not counts.rare:
        return ""
    return Message(
        "In fewer than ten rows: {rare:,} of {listed:,} values; in a single row only: {single:,}. "
        "Declaring the list publishes them, unless it is public anyway.",
        **asdict(counts),
    )


def noted(*notes: str) -> str:
    """Sentences of a column's note after one another, empty ones left out."""
    said = [note for note in notes if note]
    return said[0] if len(said) == 1 else joined(said) if said else ""


def without_merged(note: str) -> str:
    """A note without its sentence on merged values, once their list was changed."""
    return noted(*(p for p in note_parts(note) if getattr(p, "template", p) not in MERGED))


def note_parts(note: str) -> list[str]:
    """The sentences that `noted` put together."""
    if isinstance(note, Message) and "part0" in note.values:
        return [part for whole in note.values.values() for part in note_parts(str(whole))]
    return [note] if note else []


def words_beside(values: list[str], rows: Rows, fits: Mask) -> dict[str, int] | None:
    """Words of ten rows or more beside values that fit, with their rows; None if few fit.

    The words are codes for "no value". Other values that do not fit may be in one row of twenty,
    and of fewer than ten each, as slips of the pen are: a column is not read for their sake in
    another way than all others.

    Args:
      values: k different ones; `rows` of each, int64 [k]; whether it `fits`, bool [k].
    """
    odd = np.flatnonzero(~fits)
    words = {values[i]: int(rows[i]) for i in odd if rows[i] >= FEW_ROWS}
    rest = int(rows[odd].sum()) - sum(words.values())
    there = int(rows[fits].sum())
    few = there < FEW_ROWS or (len(words) > 1 and there < sum(words.values()))
    if few or rest > MOST_ODD * (there + rest) or len(words) > MOST_CODES:
        return None
    return words if all(map(CODE_WORD.fullmatch, words)) else None


def common_labels(counts: pd.Series[Any]) -> list[str] | None:
    """The labels that at least ten rows hold; None where most rows hold others."""
    common = counts[counts >= FEW_ROWS]
    if common.sum() < (1.0 - MOST_RARE) * counts.sum():
        return None  # merging the rest would leave little to learn
    return [str(label) for label in common.index]


def count_labels(
    batches: Iterable[pd.DataFrame], name: str, people: Sequence[str] = ()
) -> pd.DataFrame:
    """How many rows and people hold each label of a column, the commonest first; inside only."""
    rows = pd.Series(dtype="int64")
    pairs = pd.DataFrame({"label": pd.Series(dtype="str"), "who": pd.Series(dtype="uint64")})
    for batch in batches:
        labels = to_labels(batch[name]).rename("label")
        rows = rows.add(labels.value_counts(sort=False), fill_value=0)
        if people:  # a person by the hash of their key: eight bytes
            keys = pd.DataFrame({person: to_labels(batch[person]) for person in people})
            who = pd.util.hash_pandas_object(keys, index=False)
            more = pd.DataFrame({"label": labels, "who": who.to_numpy()}).dropna()
            pairs = pd.concat([pairs, more]).drop_duplicates()
    counted = rows.astype("int64").rename("rows").to_frame()
    counted["people"] = pairs.groupby("label").size() if people else counted["rows"]
    counted = counted.sort_index().sort_values("rows", ascending=False, kind="stable")
    return counted.rename_axis("label").reset_index()


def falling(counts: pd.DataFrame, fewer: int) -> tuple[int, int]:
    """How many labels fewer rows than that hold, and how many rows hold one of these."""
    rare = counts[(counts["rows"] < fewer) & (counts["label"] != OTHER)]
    return len(rare), int(rare["rows"].sum())


def merged_below(column: SchemaColumn, counts: pd.DataFrame, fewer: int) -> SchemaColumn:
    """The column with every label listed that at least so many rows hold, the rest as "OTHER".

    Labels that were declared and no row holds stay. A proposed list still is one: a threshold is
    not the steward's own knowledge.
    """
    rows = dict(zip(counts["label"], counts["rows"], strict=True))
    before = [label for label in column.categories or () if label != column.other]
    new = sorted(set(rows) - set(before) - {OTHER})
    named = [label for label in (*before, *new) if rows.get(label, fewer) >= fewer]
    merged = set(rows) - set(named)  # with "OTHER" where rows hold that very word
    if merged:
        named = [*(label for label in named if label != OTHER), OTHER]
    change = {
        "categories": tuple(named),
        "other": OTHER if merged else None,
        "note": without_merged(column.note),
    }
    merged_column = column.model_copy(update=change)
    proposed = column.proposal is not None and column.proposal == column.domain_digest
    return merged_column.as_proposed() if proposed else merged_column


def labels_from(column: Column, ticked: Sequence[str], unticked: Sequence[str]) -> tuple[str, ...]:
    """The list after some labels were ticked and others not; those not shown stay as they are."""
    before = [label for label in column.categories or () if label not in set(unticked)]
    fixed = [label for label in before if label != column.other]
    new = [label for label in ticked if label not in before]
    return (*fixed, *new, *([column.other] if column.other in before and column.other else []))
