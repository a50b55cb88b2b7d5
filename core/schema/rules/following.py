"""Rules from one event of a person to the next: rows that keep them.

An event that begins too early is moved as far as the rule needs, with all that is measured from it,
so it keeps its length. Where the bounds leave it no room, it goes.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from core.schema.column import Column, DomainColumn, SchemaError
from core.schema.labels import category_indices, from_numbers, to_numbers
from core.schema.person import Person
from core.schema.rules.relations import breaks, outer, relations_of, tied
from core.schema.rules.rules import AtMost, Determines, Follows, IfThen, NumberRule, Rule

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Indices = NDArray[np.integer[Any]]


@dataclass(frozen=True)
class Following:
    """Columns that rules tie to the next event's.

    Attributes:
      columns: that may move, and those of rules they are in.
      moved: groups of columns that move together, with what ties them to the event before.
      within: rules about numbers of one row.
    """

    columns: Mapping[str, DomainColumn]
    moved: tuple[tuple[frozenset[str], tuple[Follows, ...]], ...]
    within: tuple[NumberRule, ...]

    @classmethod
    def of(
        cls,
        rules: Sequence[Rule],
        columns: Mapping[str, DomainColumn],
        *,
        constant: Collection[str],
        order: str | None,
    ) -> Self | None:
        """What is tied; None without such rules.

        Raises:
          SchemaError: nothing sorts events, or a column of a rule cannot be moved.
        """
        own = [rule for rule in rules if isinstance(rule, Follows)]
        if not own:
            return None
        numbers = tuple(rule for rule in rules if isinstance(rule, NumberRule))
        pairs = [{r.low, r.high} - {*constant} for r in relations_of(numbers, columns)]
        groups = [set().union(*each) for each in tied(pairs, lambda pair: pair)]
        alone = {rule.high for rule in own}.difference(*groups)
        moved = []
        for group in [frozenset(group) for group in (*groups, *({name} for name in alone))]:
            ties = [rule for rule in own if rule.high in group]
            if ties and order is not None and order in group:
                ties.append(Follows(low=order, high=order))
            moved += [(group, tuple(dict.fromkeys(ties)))] if ties else []
        for rule in own:
            others = [one for one in rules if isinstance(one, IfThen | Determines)]
            _check(rule, others, columns, sorted_by=order)
        named = {name for rule in (*own, *numbers) for name in rule.columns}
        return cls({name: columns[name] for name in named}, tuple(moved), numbers)

    def settle(self, table: pd.DataFrame, who: Indices) -> tuple[dict[str, pd.Series[Any]], Bools]:
        """Cells that keep every rule, by column, and which rows stay, bool [n].

        Args:
          table: keeps the rules of one row; a person after the other, events in order.
          who: whose each row is, 0, 1, …
        """
        values = {name: to_numbers(table[name], one) for name, one in self.columns.items()}
        stay, place = np.ones(len(who), dtype=bool), pd.Series(who).groupby(who).cumcount()
        steps = np.split(np.argsort(place, kind="stable"), np.bincount(place).cumsum()[:-1])
        before = np.zeros(int(who.max(initial=0)) + 1, dtype=np.int64)  # each one's last that stays
        before[who[steps[0]]] = steps[0]
        for rows in steps[1:]:
            for group, ties in self.moved:
                late = [values[r.low][before[who[rows]]] - values[r.high][rows] for r in ties]
                by = np.nan_to_num(late, nan=0.0).max(axis=0).clip(min=0.0)
                step = max(self.columns[name].step for name in group)
                by = np.ceil(by / step - 1e-6) * step if step else by
                for name in group:
                    values[name][rows] += by
            here = {name: x[rows] for name, x in values.items()}
            fits = ~np.any(
                [breaks(r, [here[n] for n in r.columns], self.columns) for r in self.within]
                + [here[n] > outer(self.columns[n])[1] for g, _ in self.moved for n in g],
                axis=0,
            )
            stay[rows] = fits
            before[who[rows[fits]]] = rows[fits]
        return {name: from_numbers(values[name], one) for name, one in self.columns.items()}, stay


def next_rows(
    frame: pd.DataFrame, person: Person, column: Column, ties: Floats
) -> tuple[Indices, Indices]:
    """Rows of a person that follow on one another at known times: the earlier and the later ones.

    Args:
      column: the one that sorts.
      ties: float64 [n], what sorts events at the same time.
    """
    keys, cells = list(person.columns), frame[column.name]
    who = frame.groupby(keys, sort=False, dropna=False, observed=True).ngroup().to_numpy()
    if column.kind.numeric:
        times = to_numbers(cells, column)
    else:
        times = np.where((ranks := category_indices(cells, column)) < 0, np.nan, ranks)
    rows = np.lexsort((np.nan_to_num(ties, nan=-np.inf), times, who))
    same = (who[rows[1:]] == who[rows[:-1]]) & ~np.isnan(times[rows[1:]])
    return rows[:-1][same], rows[1:][same]


def not_followed(
    rule: Follows, frame: pd.DataFrame, columns: Mapping[str, Any], person: Person
) -> Bools:
    """Which rows break a rule with the row before, bool [n]."""
    low, high = (to_numbers(frame[name], columns[name]) for name in rule.columns)
    earlier, later = next_rows(frame, person, columns[person.order or ""], low)
    broken = np.zeros(len(frame), dtype=bool)
    both = AtMost(low=rule.low, high=rule.high)
    broken[later] = breaks(both, [low[earlier], high[later]], columns)
    return broken


def _check(
    rule: Follows,
    others: Sequence[Rule],
    columns: Mapping[str, DomainColumn],
    *,
    sorted_by: str | None,
) -> None:
    if sorted_by is None:
        raise SchemaError(
            "Rule '{rule}' speaks of a person's next row, so say first which column says who a row "
            "is about and which one sorts their rows.",
            rule=rule.text,
        )
    relations_of((AtMost(low=rule.low, high=rule.high),), columns, twice=True)
    for other in (one for one in others if {*one.columns} & {*rule.columns}):
        raise SchemaError(
            "Rules '{rule}' and '{other}' cannot both be kept in every row. Remove one of them.",
            rule=rule.text,
            other=other.text,
        )
