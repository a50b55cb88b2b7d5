"""Invariants: what holds in every row of a table and would not by chance; for eyes inside only.

One column may follow from another, two may be equal or in order, one may be the sum of two, or the
days between two dates. A rule counts only if many rows would break it were its columns shuffled.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, permutations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from core.schema.column import Column, Kind
from core.schema.date_text import is_clock
from core.schema.labels import to_numbers
from core.schema.person import Person
from core.schema.rules.following import next_rows
from core.schema.rules.lists import labels_of
from core.schema.rules.relations import breaks
from core.schema.rules.rules import AnyRule, AtMost, Determines, Difference, Equal, Follows, Sum

ENOUGH = 20  # rows that would break a rule by chance
FEW_ROWS = 2_000  # on which candidates are tried first
MOST_COLUMNS = 40  # of lists, and of numbers
MOST_SUMMED = 15  # numbers that are tried for sums

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Invariant:
    """A rule that every row keeps."""

    rule: AnyRule
    mapping: Mapping[str, str] | None = None

    def broken(self, frame: pd.DataFrame, columns: Mapping[str, Column]) -> Mask:
        """Which of n rows break it, bool [n]; unknown sources and missing cells break nothing."""
        rule = self.rule
        if isinstance(rule, Determines):
            expected = pd.Series(labels_of(frame[rule.source])).map(self.mapping or {})
            wrong = expected.to_numpy() != labels_of(frame[rule.result])
            return np.asarray(wrong & expected.notna().to_numpy())
        values = [to_numbers(frame[name], columns[name]) for name in rule.columns]
        return breaks(rule, values, columns)


def invariants(
    frame: pd.DataFrame, columns: Sequence[Column], *, seed: int = 0
) -> tuple[Invariant, ...]:
    """What holds in every row and would not by chance."""
    random = np.random.default_rng(seed)
    take = np.sort(random.permutation(len(frame))[:FEW_ROWS])
    few = frame.iloc[take]
    by_name = {column.name: column for column in columns}
    rules = [*_followed(few, columns), *_numeric(few, columns)]
    return tuple(
        one for rule in rules if (one := _holding(rule, frame, by_name, random)) is not None
    )


def invariants_of_sequence(
    frame: pd.DataFrame, columns: Sequence[Column], person: Person
) -> Iterator[Follows]:
    """Dates from which on each next event of a person begins, and numbers that never fall."""
    by_name, random = {column.name: column for column in columns}, np.random.default_rng(0)
    order = by_name.get(person.order or "")
    if order is None or not order.kind.numeric or not {*person.columns} <= {*frame.columns}:
        return
    others = (c for c in columns if c.kind.numeric and c.name not in (*person.constant, order.name))
    for column in others:
        dated = column.kind is order.kind is Kind.DATETIME
        rule = Follows(low=column.name, high=order.name if dated else column.name)
        low, high = (to_numbers(frame[name], by_name[name]) for name in rule.columns)
        earlier, later = next_rows(frame, person, order, low)
        low, high = low[earlier], high[later]
        by_chance = int((random.permutation(low) > high).sum())
        if not (low > high).any() and int((low < high).sum()) >= ENOUGH <= by_chance:
            yield rule


def _followed(few: pd.DataFrame, columns: Sequence[Column]) -> Iterator[Determines]:
    """Columns that may follow from another, by a few rows; of two that name each other, one."""
    plain = [c.name for c in columns if c.kind in (Kind.NUMBER, Kind.INTEGER)][:MOST_COLUMNS]
    listed = [column.name for column in columns if column.kind.listed][:MOST_COLUMNS]
    codes = {n: pd.factorize(labels_of(few[n]))[0] for n in (*listed, *plain)}
    counts = {name: len(np.unique(code)) for name, code in codes.items()}
    order = {name: rank for rank, name in enumerate(codes)}
    for source, result in permutations(codes, 2):
        if source in plain or counts[result] < 2:
            continue
        pairs = len(np.unique(codes[source] * (counts[result] + 1) + codes[result]))
        one_to_one = pairs == counts[source] == counts[result]
        both = one_to_one and result in listed and order[result] < order[source]
        if pairs == counts[source] and not both:
            yield Determines(source=source, result=result)


def _numeric(few: pd.DataFrame, columns: Sequence[Column]) -> Iterator[AnyRule]:
    by_name = {column.name: column for column in columns}
    numbers = [c.name for c in columns if c.kind.numeric and few[c.name].nunique() > 1]
    values = {name: to_numbers(few[name], by_name[name]) for name in numbers[:MOST_COLUMNS]}
    moments = [name for name in values if by_name[name].kind is Kind.DATETIME]
    clocks = [name for name in moments if is_clock(by_name[name].date_format)]
    dates = [name for name in moments if name not in clocks]
    plain = [name for name in values if name not in moments]
    candidates: list[AnyRule] = [
        Equal(first=first, second=second)
        for same in (dates, clocks, plain)
        for first, second in combinations(same, 2)
    ]
    candidates += [
        AtMost(low=low, high=high)
        for same in (dates, clocks, plain)
        for low, high in permutations(same, 2)
    ]
    some = plain[:MOST_SUMMED]
    candidates += [
        Sum(total=total, left=left, right=right)
        for total in some
        for left, right in combinations([name for name in some if name != total], 2)
    ]
    candidates += [
        Difference(result=result, left=left, right=right)
        for result in some
        for left, right in permutations(dates, 2)
    ]
    for rule in candidates:
        if not breaks(rule, [values[name] for name in rule.columns], by_name).any():
            yield rule


def _holding(
    rule: AnyRule, frame: pd.DataFrame, columns: Mapping[str, Column], random: np.random.Generator
) -> Invariant | None:
    if isinstance(rule, Determines):
        source, result = (labels_of(frame[name]) for name in rule.columns)
        pairs = pd.DataFrame({"source": source, "result": result}).drop_duplicates()
        if pairs["source"].duplicated().any():
            return None
        by_chance = pd.DataFrame({"source": source, "result": random.permutation(result)})
        most_common = by_chance.value_counts().groupby("source").max()
        if len(frame) - int(most_common.sum()) < ENOUGH:
            return None
        return Invariant(rule, dict(zip(pairs["source"], pairs["result"], strict=True)))
    values = [to_numbers(frame[name], columns[name]) for name in rule.columns]
    if breaks(rule, values, columns).any():
        return None
    shuffled = [random.permutation(values[0]), *values[1:]]
    return Invariant(rule) if int(breaks(rule, shuffled, columns).sum()) >= ENOUGH else None
