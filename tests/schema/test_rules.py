"""Rules as text and as JSON, and whom a schema protects."""

from __future__ import annotations

import pytest
from pydantic import TypeAdapter, ValidationError

from core.schema.column import Kind, SchemaColumn
from core.schema.person import Person
from core.schema.rules.rules import Combinations, Rule, parse_rule
from core.schema.schema import Schema

TEXTS = [
    "label <- code",
    "start <= end",
    "total = net + tax",
    "stay = end - start",
    "combinations a, b, c",
    "missing together a, b",
]


@pytest.mark.parametrize("text", TEXTS)
def test_a_rule_is_read_as_it_is_written(text):
    rule = parse_rule(f" {text} ")
    assert rule.text == text
    stored = TypeAdapter(Rule).dump_json(rule)
    assert TypeAdapter(Rule).validate_json(stored) == rule


def test_names_may_hold_spaces_and_hyphens():
    assert parse_rule("length of stay = last-day - first-day").columns == (
        "length of stay", "last-day", "first-day"
    )  # fmt: skip


@pytest.mark.parametrize("text", ["", "a", "a = b", "a < b", "combinations a", "-> b"])
def test_what_is_no_rule_is_refused_with_the_forms(text):
    with pytest.raises(ValueError):
        parse_rule(text)


def test_a_combination_names_one_label_of_each_column():
    with pytest.raises(ValidationError, match="one label of each"):
        Combinations(names=("a", "b"), allowed=(("x",),))


def test_roles_must_fit_together():
    with pytest.raises(ValidationError, match="two roles"):
        Person(columns=("id",), rows=2, constant=("id",))
    with pytest.raises(ValidationError, match="never changes"):
        Person(columns=("id",), rows=2, order="id")
    with pytest.raises(ValidationError, match="which person a row is about"):
        Person(rows=2, constant=("sex",))
    assert Person(columns=("id",), rows=5).words == "per person, at most 5 rows"


def test_a_schema_knows_the_columns_that_rules_and_persons_name():
    columns = (SchemaColumn(name="id", kind=Kind.IDENTIFIER), SchemaColumn(name="a", kind="text"))
    with pytest.raises(ValidationError, match="'b'"):
        Schema(columns=columns, rules=(parse_rule("a <= b"),))
    with pytest.raises(ValidationError, match="'b'"):
        Schema(columns=columns, person=Person(columns=("b",), rows=2))
