"""Conditional rules of any kind, many at once: refused, or kept in every row there can be."""

from __future__ import annotations

import pandas as pd
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from core.encoding.layout.layout import Layout
from core.encoding.layout.violations import count_violations
from core.schema.column import Column, Kind, SchemaError
from core.schema.form import Form
from core.schema.rules.rules import IfThen, Statement
from core.schema.schema import Domain, Schema
from tests.encoding.layouts import date, drawn, number

LABELS = ("a", "b", "c", "d")
COLUMNS = (
    number("age", 0, 30),
    number("share", 0, 1, 0.0, missing=True),
    number("income", -5, 20, 0.25, form=Form(codes=("N", "-9")), dtype="str"),
    date("day", 0, 40, missing=True),
    Column(name="level", kind=Kind.ORDERED, categories=LABELS),
    Column(name="ward", kind=Kind.CATEGORY, categories=LABELS, missing=True),
    Column(name="job", kind=Kind.CATEGORY, categories=LABELS, other="d"),
    Column(name="flag", kind=Kind.BOOLEAN, categories=("False", "True"), dtype="bool"),
)
NAMED = {
    "age": ("0", "7", "15", "15.5", "30"),
    "share": ("0", "0.25", "0.5"),
    "income": ("-5", "0", "19.75", "N", "-9"),
    "day": ("1970-01-05", "1970-02-01"),
    "flag": ("True",),
}


@st.composite
def statements(draw: st.DrawFn) -> Statement:
    column = draw(st.sampled_from(COLUMNS))
    relations = ["in", "not in", "missing", "present"]
    relations += ["<", "<=", ">", ">="] if column.kind.numeric or column.name == "level" else []
    relation = draw(st.sampled_from(relations))
    values = st.sampled_from(NAMED.get(column.name, LABELS))
    most = 2 if relation in ("in", "not in") else 1
    said = (
        []
        if relation in ("missing", "present")
        else draw(st.lists(values, min_size=1, max_size=most, unique=True))
    )
    return Statement(column=column.name, relation=relation, values=tuple(said))


@st.composite
def domains(draw: st.DrawFn) -> Domain:
    rules = draw(
        st.lists(
            st.builds(IfThen, condition=statements(), consequence=statements()),
            min_size=1,
            max_size=9,
            unique_by=lambda rule: rule.text,
        )
    )
    target = draw(st.sampled_from([None, "age", "ward"]))
    try:
        return Schema(columns=COLUMNS, rules=tuple(rules), target=target).domain()
    except SchemaError:
        assume(False)
        raise


@settings(max_examples=60, deadline=None)
@given(domain=domains(), seed=st.integers(0, 10**6), rows=st.sampled_from([1, 40]))
def test_no_row_breaks_any_conditional_rules(domain: Domain, seed: int, rows: int) -> None:
    layout = Layout(domain)
    frame = drawn(domain.model_copy(update={"rules": ()}), rows, seed)
    kept, seen = layout.from_model(frame, 1), layout.to_model(frame)
    assert not any(count_violations(kept, domain).values())
    assert not any(count_violations(seen, domain).values())
    pd.testing.assert_frame_equal(layout.to_model(kept), kept)
    alone = layout.to_model(frame.iloc[[-1]])
    pd.testing.assert_frame_equal(alone, seen.iloc[[-1]].reset_index(drop=True))
