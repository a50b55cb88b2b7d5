"""Suggestions: rules that hold in every row and may be true by definition, for eyes inside."""

from __future__ import annotations

from contextlib import suppress

import pandas as pd

from core.encoding.layout.conditional_facts import conditional_facts
from core.encoding.layout.invariants import MOST_COLUMNS, invariants, invariants_of_sequence
from core.schema.column import Kind, SchemaError, changed
from core.schema.person import Person
from core.schema.rules.rules import AnyRule, AtMost, Determines, Follows
from core.schema.schema import Schema

MOST = 32
MOST_ROWS = 50_000  # that are looked at


def sequence_rules(schema: Schema, frame: pd.DataFrame) -> list[AnyRule]:
    """Rules from one row of a person to the next, or to the last, that no typed row breaks."""
    person = schema.person
    if person is None or person.order is None:
        return []
    columns = [c for c in schema.columns if c.modelled and c.name in frame.columns]
    frame = frame.iloc[:MOST_ROWS]
    ends = {*person.walked_by, *person.constant}
    numeric = [c for c in columns if c.name in ends and c.kind.numeric]
    found = [
        *invariants_of_sequence(frame, columns, person),
        *(one.rule for one in invariants(frame, numeric)),
    ]
    return [rule for rule in found if rule not in schema.rules and _of_sequence(rule, person)]


def _of_sequence(rule: AnyRule, person: Person) -> bool:
    """Whether it speaks of a person's next row, or by what of the person rows end."""
    if isinstance(rule, AtMost):
        return rule.low in person.walked_by and rule.high in person.constant
    return isinstance(rule, Follows)


def suggest_rules(schema: Schema, frame: pd.DataFrame) -> tuple[AnyRule, ...]:
    """Rules that no typed row breaks and a steward may know to be true, the strongest first."""
    columns = [c for c in schema.columns if c.modelled and c.name in frame.columns]
    dates = {c.name for c in columns if c.kind is Kind.DATETIME}
    frame = frame.iloc[:MOST_ROWS]
    found: list[AnyRule] = [one.rule for one in invariants(frame, columns)]
    given = {rule.result for rule in found if isinstance(rule, Determines)}
    ordered = sequence_rules(schema, frame)
    found = [rule for rule in found if rule not in ordered] + ordered
    found += conditional_facts(frame, [c for c in columns if c.name not in given][:MOST_COLUMNS])
    own, chosen = list(schema.rules), list[AnyRule]()
    for rule in found:
        if isinstance(rule, AtMost) and rule.low not in dates and rule not in ordered:
            continue  # of numbers, one is below another too often without a reason
        assumed = [  # once what they say of values is declared
            one.model_copy(update={"mapping": {}}) if isinstance(one, Determines) else one
            for one in (*own, rule)
        ]
        with suppress(SchemaError):
            proposed = schema.as_proposed().model_copy(update={"rules": tuple(assumed)})
            changed(proposed).domain()
            chosen, own = [*chosen, rule], [*own, rule]
        if len(chosen) == MOST:
            break
    return tuple(chosen)
