"""Suggestions: rules that the names and kinds of columns speak for; no row is looked at."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from core.schema.column import Column, Kind, SchemaError
from core.schema.rules.rules import AtMost, Determines, Difference, Rule, Sum
from core.schema.schema import Schema

_NAMED = (("code", "label"), ("code", "name"), ("id", "name"), ("code", "description"))
_ENDS = (
    ("start", "end"),
    ("from", "to"),
    ("min", "max"),
    ("first", "last"),
    ("begin", "end"),
    ("admission", "discharge"),
    ("admitted", "discharged"),
    ("birth", "death"),
)
_PARTS = (("net", "tax"), ("net", "vat"), ("net", "fee"))
_WHOLE = ("total", "gross")
_LENGTHS = {"stay", "length", "duration", "days", "los"}


def suggest_rules(schema: Schema) -> tuple[Rule, ...]:
    """Rules that a steward may want to declare, few; they must be checked, rows may break them."""
    columns = [column for column in schema.columns if column.modelled]
    own = {rule.text for rule in schema.rules}
    suggested: list[Rule] = []
    for rule in (*_lookups(columns), *_ends(columns), *_sums(columns)):
        if rule.text not in own and _possible(schema, (*suggested, rule)):
            suggested.append(rule)
    return tuple(suggested)


def _possible(schema: Schema, rules: tuple[Rule, ...]) -> bool:
    """Whether the schema could have them, once what they say of values is declared."""
    assumed = [
        rule.model_copy(update={"mapping": {}}) if isinstance(rule, Determines) else rule
        for rule in rules
    ]
    try:
        schema.as_proposed().model_copy(update={"rules": (*schema.rules, *assumed)}).domain()
    except SchemaError:
        return False
    return True


def _words(column: Column) -> list[str]:
    """A name's words in small letters.

    >>> _words(Column(name="wardCode_2", kind=Kind.TEXT))
    ['ward', 'code', '2']
    """
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", column.name)
    return [word for word in re.split(r"[^a-z0-9]+", spaced.lower()) if word]


def _partner(columns: Sequence[Column], words: list[str], old: str, new: str) -> Column | None:
    wanted = [new if word == old else word for word in words]
    return next((column for column in columns if _words(column) == wanted), None)


def _lookups(columns: Sequence[Column]) -> Iterator[Rule]:
    listed = [column for column in columns if column.kind.listed]
    for code, label in _NAMED:
        for column in listed:
            words = _words(column)
            other = _partner(listed, words, code, label) if code in words else None
            if other is not None:
                yield Determines(source=column.name, result=other.name)


def _ends(columns: Sequence[Column]) -> Iterator[Rule]:
    """Two ends, and what is as long as they are apart where just one column is called so."""
    lines = [column for column in columns if column.kind.numeric]
    lengths = [c for c in lines if _LENGTHS.intersection(_words(c)) and _is_number(c)]
    for first, last in _ENDS:
        for column in lines:
            words = _words(column)
            other = _partner(lines, words, first, last) if first in words else None
            if other is None or _is_number(other) != _is_number(column):
                continue
            yield AtMost(low=column.name, high=other.name)
            if len(lengths) == 1 and not _is_number(column):
                yield Difference(result=lengths[0].name, left=other.name, right=column.name)


def _is_number(column: Column) -> bool:
    return column.kind is not Kind.DATETIME


def _sums(columns: Sequence[Column]) -> Iterator[Rule]:
    numbers = [c for c in columns if c.kind.numeric and _is_number(c)]
    for left, right in _PARTS:
        for column in numbers:
            words = _words(column)
            other = _partner(numbers, words, left, right) if left in words else None
            for whole in _WHOLE if other is not None else ():
                total = _partner(numbers, words, left, whole)
                if total is not None and other is not None:
                    yield Sum(total=total.name, left=column.name, right=other.name)
