"""Rows that break a rule, counted for the steward: what encoding would move inside."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from core.schema.column import DomainColumn
from core.schema.labels import code_indices, is_absent, to_numbers
from core.schema.person import Person
from core.schema.rules.following import not_followed
from core.schema.rules.lists import Lookup, labels_of
from core.schema.rules.relations import breaks
from core.schema.rules.rules import Combinations, Determines, Follows, IfThen, MissingTogether, Rule
from core.schema.rules.statements import breaking
from core.schema.schema import Domain


def count_violations(frame: pd.DataFrame, domain: Domain) -> dict[str, int]:
    """How many rows break each rule, by its text; for eyes inside only."""
    columns = {column.name: column for column in domain.columns}
    person = domain.person
    return {rule.text: int(violates(rule, frame, columns, person).sum()) for rule in domain.rules}


def declared_from_batches(rule: Rule, batches: Iterable[pd.DataFrame]) -> Rule:
    """The rule with what most rows say of values, ties by alphabet; to be declared public."""
    if rule.settled:
        return rule
    counts = pd.Series(dtype="int64")
    for batch in batches:
        cells = {str(i): labels_of(batch[name]) for i, name in enumerate(rule.columns)}
        more = pd.DataFrame(cells).value_counts(sort=False)
        together = pd.concat([counts, more]) if len(counts) else more
        counts = together.groupby(level=list(cells), sort=False).sum()
    pairs = counts.rename("rows").reset_index()
    if isinstance(rule, Determines):
        pairs = pairs.sort_values(["0", "rows", "1"], ascending=[True, False, True])
        first = pairs.drop_duplicates("0")
        return rule.model_copy(update={"mapping": dict(zip(first["0"], first["1"], strict=True))})
    occurring = pairs.drop(columns="rows").sort_values([str(i) for i in range(len(rule.columns))])
    return rule.model_copy(update={"allowed": tuple(occurring.itertuples(index=False, name=None))})


def violates(
    rule: Rule,
    frame: pd.DataFrame,
    columns: Mapping[str, DomainColumn],
    person: Person | None = None,
) -> NDArray[np.bool_]:
    """Which rows break a rule, bool [n]; rows that it does not speak of keep it."""
    if isinstance(rule, Follows):
        if person is None or not {*person.columns, person.order} <= {*frame.columns}:
            return np.zeros(len(frame), dtype=bool)
        return not_followed(rule, frame, columns, person)
    if isinstance(rule, Determines):
        there, column = frame[rule.result], columns[rule.result]
        wanted = Lookup.of(rule, columns).decode(frame[rule.source], there)
        if column.kind.numeric:
            a, b = to_numbers(wanted, column), to_numbers(there, column)
            code = code_indices(wanted, column) != code_indices(there, column)
            return np.asarray(code | (np.nan_to_num(a, nan=np.inf) != np.nan_to_num(b, nan=np.inf)))
        return np.asarray(labels_of(wanted) != labels_of(there))
    if isinstance(rule, IfThen):
        return breaking(rule, frame, columns)
    if isinstance(rule, Combinations):
        allowed = pd.MultiIndex.from_tuples(rule.allowed or ())
        cells = {name: labels_of(frame[name]) for name in rule.names}
        return np.asarray(~pd.MultiIndex.from_frame(pd.DataFrame(cells)).isin(allowed))
    if isinstance(rule, MissingTogether):
        absent = np.stack([is_absent(frame[n], columns[n]) for n in rule.names], axis=1)
        return np.asarray(absent.any(axis=1) & ~absent.all(axis=1))
    return breaks(rule, [to_numbers(frame[name], columns[name]) for name in rule.columns], columns)
