"""Rules about lists: results that are looked up, and combinations that become one column."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from core.message import Message
from core.schema.column import (
    MAX_CATEGORIES,
    Column,
    DomainColumn,
    Kind,
    RuleDomainError,
    SchemaError,
)
from core.schema.labels import (
    category_indices,
    code_indices,
    from_labels,
    from_numbers,
    to_labels,
    to_numbers,
    with_codes,
)
from core.schema.rules.rules import Combinations, Determines

MISSING = ""  # stands for a missing cell in mappings and combinations


def labels_of(series: pd.Series[Any]) -> NDArray[np.object_]:
    """The labels of a column's cells, n of them, `MISSING` where there is none."""
    return to_labels(series).astype(object).fillna(MISSING).to_numpy()


def _series(labels: NDArray[np.object_], column: Column) -> pd.Series[Any]:
    cells = pd.Series(labels, dtype="str")
    if column.kind.numeric:  # whatever its bounds and steps are
        code, free = code_indices(cells, column), {"low": None, "high": None, "step": 0.0}
        numbers = to_numbers(cells, column)
        return with_codes(from_numbers(numbers, column.model_copy(update=free)), column, code)
    if MISSING not in (column.categories or ()):
        cells = cells.mask(cells == MISSING)
    return from_labels(cells, column)


def _check_label(label: str, column: Column, rule: str) -> None:
    cell = pd.Series([label], dtype="str")
    known = column.kind.numeric and (label in column.codes or to_numbers(cell, column)[0] < np.inf)
    if known or label in (column.categories or ()) or (label == MISSING and column.missing):
        return
    raise RuleDomainError(
        "Rule '{rule}': it gives '{name}' {what} that its declaration does not have. Add it to "
        "the declaration, or change the rule.",
        rule=rule,
        name=column.name,
        what=Message("a missing value") if label == MISSING else Message("a value"),
    )


@dataclass(frozen=True)
class Lookup:
    """A result column that is not modelled: each source label has its result.

    A source without an entry gives a missing result where that may be, else the result's `other`,
    else its first label. An open one has a label for all that are not listed: models see the result
    too, which counts for these.
    """

    source: str
    result: Column
    mapping: Mapping[str, str]
    open: bool

    @classmethod
    def of(cls, rule: Determines, columns: Mapping[str, Column]) -> Lookup:
        """From a declared rule."""
        if rule.mapping is None:
            raise SchemaError(
                "Rule '{rule}': declare or learn which label each code has, that is, which "
                "'{result}' each '{source}' has.",
                rule=rule.text,
                result=rule.result,
                source=rule.source,
            )
        for label in dict.fromkeys(rule.mapping.values()):
            _check_label(label, columns[rule.result], rule.text)
        other = columns[rule.source].other
        open_ = other is not None and other not in rule.mapping
        return cls(rule.source, columns[rule.result], rule.mapping, open_)

    @property
    def default(self) -> str:
        """The result of a source that has no entry."""
        if self.result.missing:
            return MISSING
        if self.result.kind.numeric:  # the one in the middle
            numbers = [label for label in self.mapping.values() if label not in self.result.codes]
            return sorted(numbers, key=float)[len(numbers) // 2] if numbers else "0"
        return self.result.other or (self.result.categories or (MISSING,))[0]

    def decode(self, source: pd.Series[Any], drawn: pd.Series[Any] | None = None) -> pd.Series[Any]:
        """The result column for the source's cells; as drawn where an open one has no entry."""
        codes, labels = pd.factorize(pd.Series(labels_of(source), dtype=object))
        results = np.array([self.mapping.get(str(label), self.default) for label in labels], object)
        cells = _series(results[codes], self.result).set_axis(source.index)
        if not self.open or drawn is None:
            return cells
        known = np.array([str(label) in self.mapping for label in labels], dtype=bool)
        return cells.where(known[codes], drawn)


@dataclass(frozen=True)
class Joint:
    """Several listed columns that models see as one; `allowed`: labels [combinations, columns]."""

    columns: tuple[Column, ...]
    allowed: NDArray[np.object_]
    column: DomainColumn

    @classmethod
    def of(cls, rule: Combinations, columns: Mapping[str, Column], name: str) -> Joint:
        """From a declared rule."""
        own = tuple(columns[one] for one in rule.names)
        combinations = tuple(dict.fromkeys(rule.allowed or ()))
        if not combinations:
            raise SchemaError(
                "Rule '{rule}': declare or learn which combinations exist.", rule=rule.text
            )
        if len(combinations) > MAX_CATEGORIES:
            raise RuleDomainError(
                "Rule '{rule}' has {n:,} combinations, more than {most:,}. Name fewer columns, "
                "or merge values that few rows have.",
                rule=rule.text,
                n=len(combinations),
                most=MAX_CATEGORIES,
            )
        for labels in combinations:
            for label, column in zip(labels, own, strict=True):
                _check_label(label, column, rule.text)
        shown = [" · ".join(labels) for labels in combinations]
        if len(set(shown)) < len(shown):
            shown = [f"{i}: {labels}" for i, labels in enumerate(shown, start=1)]
        column = DomainColumn(name=name, kind=Kind.CATEGORY, categories=tuple(shown))
        return cls(own, np.array(combinations, dtype=object), column)

    def encode(self, frame: pd.DataFrame) -> pd.Series[Any]:
        """The joint column of real rows; what is not allowed becomes what is most alike."""
        cells = pd.DataFrame(
            {i: labels_of(frame[column.name]) for i, column in enumerate(self.columns)}
        )
        keys = pd.MultiIndex.from_frame(cells)
        distinct = keys.unique()
        index = {tuple(labels): i for i, labels in enumerate(self.allowed.tolist())}
        nearest = [index.get(labels, -1) for labels in distinct]
        for i, labels in enumerate(distinct):
            if nearest[i] < 0:
                same = self.allowed == np.array(labels, dtype=object)
                nearest[i] = int(same.sum(axis=1).argmax())
        shown = np.array(self.column.categories, dtype=object)
        return pd.Series(shown[np.array(nearest, int)[distinct.get_indexer(keys)]], dtype="str")

    def decode(self, joint: pd.Series[Any]) -> dict[str, pd.Series[Any]]:
        """The columns that a joint one stands for, by name."""
        labels = self.allowed[np.maximum(category_indices(joint, self.column), 0)]
        return {
            column.name: _series(labels[:, i], column).set_axis(joint.index)
            for i, column in enumerate(self.columns)
        }


def check_lists(
    names: Sequence[str], columns: Mapping[str, Column], rule: str, numbers: Collection[str] = ()
) -> None:
    """Refuse a rule about labels that names a column without a list; some may be numbers."""
    for name in names:
        kind = columns[name].kind
        if not kind.listed and not (name in numbers and kind in (Kind.NUMBER, Kind.INTEGER)):
            raise SchemaError(
                "Rule '{rule}': '{name}' has no list of values. Make it a category, ordered or "
                "boolean column, or remove the rule. What depends on a number can be written as "
                "'if age < 15 then income is missing'.",
                rule=rule,
                name=name,
            )
