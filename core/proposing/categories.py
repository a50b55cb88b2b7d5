"""Lists of categories that are long: how many rows hold each label, and merging the rare ones.

Counts depend on rows. They are for the steward alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pandas as pd

from core.proposing.rare import OTHER, without_merged
from core.schema.column import Column, SchemaColumn
from core.schema.labels import to_labels


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
