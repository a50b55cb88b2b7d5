"""What is to be bought of a schema, and what is public of a column before it is.

A steward confirms what a column *is*: its kind, how it is written and its step. What values it
takes is read from the rows, so it is forgotten here and released with noise.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from core.message import Message, to_say
from core.schema.column import (
    BOOLEAN_PAIRS,
    DomainSource,
    Kind,
    Provenance,
    Purchase,
    SchemaColumn,
    SchemaError,
    unpaid,
)
from core.schema.rules.rules import AnyRule, Combinations, Determines
from core.schema.schema import Schema

DAY = 86_400.0
_FROM_ROWS = (Provenance.PROPOSED, Provenance.UNSTATED)


@dataclass(frozen=True)
class Unbought:
    """What of a schema nobody has bought or declared.

    Attributes:
      numeric, listed: columns to be bought, in file order.
      rules: those whose mapping or combinations are open.
    """

    numeric: tuple[SchemaColumn, ...]
    listed: tuple[SchemaColumn, ...]
    rules: tuple[Determines | Combinations, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The columns that something would be released of, each once."""
        ruled = (name for rule in self.rules for name in rule.columns)
        columns = (column.name for column in (*self.numeric, *self.listed))
        return tuple(dict.fromkeys((*columns, *ruled)))


def as_bought(schema: Schema, names: Collection[str] | None = None) -> Schema:
    """The schema with domains to be bought where they were read from the rows.

    Columns that say whose a row is are made up anew, so nothing of them is bought. What the rows
    proposed of the others is forgotten; the step becomes the kind's public one (1 for integers, a
    day or a second for dates, none for numbers) and may be set anew.

    Args:
      names: of the columns to buy, whoever set their domains; None for all whose domain was
        proposed from the rows or is of unknown origin.
    """
    tagged = {name for columns in schema.sensitive.values() for name in columns}
    chosen, keys = set(names or ()), _keys(schema)
    if wrong := [n for n in chosen if n not in schema.names or not schema[n].modelled or n in keys]:
        raise SchemaError(
            Message(
                "Nothing can be bought for {columns}. Identifiers, text, key columns of people and "
                "columns that are left out need no bounds or lists.",
                columns=", ".join(sorted(wrong)),
            )
        )
    if hidden := sorted(chosen & tagged):
        raise SchemaError(
            Message(
                "A purchase shows something about a column's distribution, and {columns} is tagged "
                "as hidden. Declare its domain public, or remove the tag.",
                columns=", ".join(hidden),
            )
        )
    for column in schema.columns:
        read = column.modelled and column.provenance in _FROM_ROWS
        read = read and column.name not in tagged and column.name not in keys
        if column.name in chosen or (names is None and read and not unpaid(column)):
            schema = schema.replace(_bare(column))
    return schema


def unbought(schema: Schema) -> Unbought:
    """What of a schema is to be bought and was not; what the rows proposed is forgotten."""
    open_columns = [
        _bare(column) if column.provenance in _FROM_ROWS else column
        for column in schema.columns
        if unpaid(column) and column.name not in _keys(schema)
    ]
    return Unbought(
        numeric=tuple(column for column in open_columns if column.kind.numeric),
        listed=tuple(column for column in open_columns if column.kind.listed),
        rules=tuple(
            rule
            for rule in schema.rules
            if isinstance(rule, Determines | Combinations) and _open_rule(rule, schema)
        ),
    )


def stand_in(schema: Schema) -> Schema:
    """The schema with made-up domains where they are still to be bought, to try a plan on."""
    wanted = unbought(schema)
    for column in (*wanted.numeric, *wanted.listed):
        made_up: dict[str, object] = {"low": 0.0, "high": 1.0, "step": 0.0}
        if column.kind.listed:
            made_up = {"categories": ("a", "b")}
        column = column.model_copy(update=made_up)
        paid = Purchase(
            entry="", epsilon=0.0, epsilon_replace=0.0, delta=0.0, domain=column.domain_digest
        )
        schema = schema.replace(column.model_copy(update={"purchase": paid}))

    def first(name: str) -> str:
        return (schema[name].categories or ("",))[0]

    def tried(rule: AnyRule) -> AnyRule:
        if rule not in wanted.rules:
            return rule
        if isinstance(rule, Determines):
            return rule.model_copy(update={"mapping": {first(rule.source): first(rule.result)}})
        return rule.model_copy(update={"allowed": (tuple(map(first, rule.columns)),)})

    return schema.model_copy(update={"rules": tuple(map(tried, schema.rules))})


def at_stake(schema: Schema) -> tuple[str, ...]:
    """What falls away if nothing is found in a column, a sentence each; from public facts alone."""
    wanted, person = unbought(schema), schema.person
    found = []
    for column in (*wanted.numeric, *wanted.listed):
        if known_labels(column):
            continue  # something of it is known, so it is not left out
        name = column.name
        found += [
            Message(
                "If nothing is found in '{column}', it is left out and the rule “{rule}” is not "
                "kept.",
                column=name,
                rule=rule.text,
            )
            for rule in schema.rules
            if name in rule.columns
        ]
        lost = {
            to_say("If nothing is found in '{column}', it is left out and is no target."): (
                name == schema.target
            ),
            to_say(
                "If nothing is found in '{column}', it is left out and is not kept the same for a "
                "person."
            ): person is not None and name in person.constant,
            to_say(
                "If nothing is found in '{column}', it is left out and does not sort the rows of a "
                "person."
            ): person is not None and name == person.order,
        }
        found += [Message(text, column=name) for text, applies in lost.items() if applies]
    return tuple(found)


def _keys(schema: Schema) -> tuple[str, ...]:
    return () if schema.person is None else schema.person.columns


def known_labels(column: SchemaColumn) -> tuple[str, ...]:
    """The labels of a column to be bought that the steward knows without the rows; often none."""
    return tuple(label for label in column.categories or () if label != column.other)


def _open_rule(rule: Determines | Combinations, schema: Schema) -> bool:
    tagged = {name for columns in schema.sensitive.values() for name in columns}
    listed = all(schema[name].modelled and schema[name].kind.listed for name in rule.columns)
    if not listed or tagged.intersection(rule.columns):
        return False
    said = rule.mapping if isinstance(rule, Determines) else rule.allowed
    return said is None


def _bare(column: SchemaColumn) -> SchemaColumn:
    """What the kind says, as its own proposal: what is set later counts as the steward's."""
    labels = column.categories or ()
    pair = column.kind is Kind.BOOLEAN and {x.lower() for x in labels} in BOOLEAN_PAIRS
    bare = column.model_copy(
        update={
            "source": DomainSource.BOUGHT,
            "missing": False,
            "low": None,
            "high": None,
            "step": _public_step(column),
            "scale": "linear",
            "spikes": (),
            "categories": labels if pair else None,
            "other": None,
            "note": "",
            "purchase": None,
            "form": column.form and column.form.model_copy(update={"codes": ()}),
        }
    )
    return bare.as_proposed()


def _public_step(column: SchemaColumn) -> float:
    if column.kind is Kind.INTEGER:
        return 1.0
    if column.kind is not Kind.DATETIME:
        return 0.0
    written = column.date_format or ""
    clock = any(part in written for part in ("%H", "%I", "%X", "%c", "%T"))
    return DAY if written and not clock else 1.0
