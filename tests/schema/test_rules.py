"""Rules as text and as JSON, and whom a schema protects."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from core.schema.column import Column, Kind, SchemaColumn, SchemaError
from core.schema.person import Person
from core.schema.rules.rules import Combinations, IfThen, Rule, Statement, parse_rule
from core.schema.schema import Schema

TEXTS = [
    "label <- code",
    "start <= end",
    "booked = paid",
    "total = net + tax",
    "stay = end - start",
    "combinations a, b, c",
    "missing together a, b",
    "if age < 15 then income = N",
    "if own_rent = group then housing in (2, 3)",
    "if status = married then age >= 15",
    "if born >= 2010-01-01 then married is missing",
    'if "a then b" is present then c != "1, 2"',
    'if ward not in (a, "missing") then d <= -0.5',
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


def test_a_conditional_rule_has_several_spellings() -> None:
    spelled = (
        "status is married implies age >= 15",
        "if status = 'married' then age>=15",
        'if "status" in (married) then age >= "15"',
    )
    assert {parse_rule(text).text for text in spelled} == {"if status = married then age >= 15"}
    assert parse_rule("if a is not b then wife's age is N").columns == ("a", "wife's age")


NAMES = st.text(min_size=1, max_size=12).filter(lambda text: text == text.strip() and text)
STATEMENTS = st.one_of(
    st.builds(
        Statement,
        column=NAMES,
        relation=st.sampled_from(["<", "<=", ">", ">="]),
        values=st.tuples(NAMES),
    ),
    st.builds(
        Statement,
        column=NAMES,
        relation=st.sampled_from(["in", "not in"]),
        values=st.lists(NAMES, min_size=1, max_size=3).map(tuple),
    ),
    st.builds(Statement, column=NAMES, relation=st.sampled_from(["missing", "present"])),
)


@given(st.builds(IfThen, condition=STATEMENTS, consequence=STATEMENTS))
def test_whatever_a_conditional_rule_names_is_read_back(rule: IfThen) -> None:
    assert parse_rule(rule.text) == rule
    assert TypeAdapter(Rule).validate_json(rule.model_dump_json()) == rule


@pytest.mark.parametrize(
    "text",
    [
        "", "a", "a = = b", "a < b", "combinations a", "-> b", "if a then b", "if a < 3 then b",
        "if a in () then b = 3", "if a < 3, 4 then b = 3", "if a < then b = 3", "a implies b",
    ],
)  # fmt: skip
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


@pytest.mark.parametrize(("kind", "sorts"), [(Kind.CATEGORY, False), (Kind.ORDERED, True)])
def test_only_what_has_an_order_sorts_rows(kind, sorts):
    columns = (
        Column(name="id", kind=Kind.IDENTIFIER),
        Column(name="stage", kind=kind, categories=("late", "early")),
    )
    schema = Schema(columns=columns, person=Person(columns=("id",), rows=2, order="stage"))
    if sorts:
        assert schema.domain().person == schema.person
    else:
        with pytest.raises(SchemaError, match="'stage' cannot sort .* no order"):
            schema.domain()


def test_a_schema_knows_the_columns_that_rules_and_persons_name():
    columns = (SchemaColumn(name="id", kind=Kind.IDENTIFIER), SchemaColumn(name="a", kind="text"))
    with pytest.raises(ValidationError, match="'b'"):
        Schema(columns=columns, rules=(parse_rule("a <= b"),))
    with pytest.raises(ValidationError, match="'b'"):
        Schema(columns=columns, person=Person(columns=("b",), rows=2))
