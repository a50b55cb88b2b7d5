"""Suggestions: rules that hold in every row and may be true by definition, for eyes inside."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

import pandas as pd

from core.encoding.layout.invariants import invariants
from core.schema.column import Kind, SchemaError
from core.schema.rules.rules import AnyRule, AtMost, Determines
from core.schema.schema import Schema

MOST = 16
MOST_ROWS = 50_000  # that are looked at


def suggest_rules(schema: Schema, frame: pd.DataFrame) -> tuple[AnyRule, ...]:
    """Rules that no typed row breaks and a steward may know to be true, the strongest first."""
    columns = [c for c in schema.columns if c.modelled and c.name in frame.columns]
    dates = {c.name for c in columns if c.kind is Kind.DATETIME}
    found = [one.rule for one in invariants(frame.iloc[:MOST_ROWS], columns)]
    # of numbers, one is below another too often without a reason
    return possible(schema, [r for r in found if not isinstance(r, AtMost) or r.low in dates])


def possible(schema: Schema, rules: Sequence[AnyRule]) -> tuple[AnyRule, ...]:
    """Those that the schema could have beside its own, once what they say of values is declared."""
    known = {rule.text for rule in schema.rules}
    chosen: list[AnyRule] = []
    for rule in (one for one in rules if one.text not in known):
        assumed = tuple(
            one.model_copy(update={"mapping": {}}) if isinstance(one, Determines) else one
            for one in (*schema.rules, *chosen, rule)
        )
        with suppress(SchemaError):
            schema.as_proposed().model_copy(update={"rules": assumed}).domain()
            chosen.append(rule)
    return tuple(chosen[:MOST])
