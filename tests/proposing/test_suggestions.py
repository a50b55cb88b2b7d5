"""Rules that all rows keep and that may be true by definition: few, possible, not by chance."""

from __future__ import annotations

import numpy as np
import pandas as pd

from core.proposing.rule_suggestions import MOST, suggest_rules
from core.schema.column import Column, Kind, SchemaColumn
from core.schema.form import Form
from core.schema.rules.rules import parse_rule
from core.schema.schema import Schema
from tests.encoding.layouts import date, number

N = 4_000


def listed(name: str, *labels: str) -> Column:
    return Column(name=name, kind=Kind.CATEGORY, categories=labels)


def households() -> tuple[Schema, pd.DataFrame]:
    """Children have no income and no spouse; who lives in a home (2, 3) owns nothing (0)."""
    random = np.random.default_rng(0)
    age, housing = random.integers(0, 90, N), random.choice(["1", "2", "3"], N, p=[0.8, 0.1, 0.1])
    child, ward = age < 15, random.integers(0, 5, N)
    married = random.choice(["yes", "no"], N)
    began = pd.Timestamp("2020-01-01") + pd.to_timedelta(random.integers(0, 300, N), "D")
    frame = pd.DataFrame(
        {
            "age": age,
            "married": np.where(child, "N", married),
            "income": np.where(child, "N", random.integers(0, 900, N).astype(str)),
            "job": pd.Series(random.choice(["a", "b"], N)).mask(age > 69),
            "housing": housing,
            "own": np.where(housing == "1", random.choice(["1", "2"], N), "0"),
            "ward": pd.Series(ward).map(dict(enumerate("abcde"))),
            "density": pd.Series(ward).map({0: 0.5, 1: 8.25, 2: 8.25, 3: 10.0, 4: 77.0}),
            "began": began,
            "booked": began,
            "ended": began + pd.to_timedelta(random.integers(0, 40, N), "D"),
            "chance": random.choice(["x", "y"], N),
        }
    )
    columns = (
        number("age", 0, 100),
        listed("married", "N", "no", "yes"),
        number("income", 0, 1000, form=Form(codes=("N",)), dtype="str"),
        Column(name="job", kind=Kind.CATEGORY, categories=("a", "b"), missing=True),
        listed("housing", "1", "2", "3"),
        listed("own", "0", "1", "2"),
        listed("ward", *"abcde"),
        number("density", 0, 100, 0.25),
        date("began", 18000, 19000),
        date("booked", 18000, 19000),
        date("ended", 18000, 19000),
        listed("chance", "x", "y"),
    )
    return Schema(columns=columns), frame


def test_facts_of_the_rows_are_suggested() -> None:
    schema, frame = households()
    found = [rule.text for rule in suggest_rules(schema, frame)]
    assert found[:3] == ["density <- ward", "began = booked", "began <= ended"]
    assert len(found) <= MOST
    expected = {
        "if age < 15 then married = N",
        "if age < 15 then income = N",
        "if age > 14 then income != N",
        "if age > 69 then job is missing",
        "if housing in (2, 3) then own = 0",
    }
    assert expected <= set(found)
    turned = {"if own = 0 then housing in (2, 3)", "if housing = 1 then own in (1, 2)"}
    assert len(turned & set(found)) == 1  # each says what the other does
    assert not any("chance" in text for text in found)


def test_one_row_that_breaks_a_fact_is_enough() -> None:
    schema, frame = households()
    frame.loc[frame.index[frame["age"] == 3][0], "income"] = "7"
    found = [rule.text for rule in suggest_rules(schema, frame)]
    assert "if age < 15 then income = N" not in found and "if age < 15 then married = N" in found


def test_few_rows_and_rare_labels_suggest_nothing() -> None:
    schema, frame = households()
    assert not [
        rule.text for rule in suggest_rules(schema, frame.iloc[:90]) if " then " in rule.text
    ]
    rare = frame.assign(chance=np.where(frame.index == 7, "x", "y"))
    assert not any("chance" in rule.text for rule in suggest_rules(schema, rare))


def test_impossible_or_present_rules_are_not_suggested() -> None:
    schema, frame = households()
    own = (parse_rule("if age < 15 then income = N"), parse_rule("began <= ended"))
    found = suggest_rules(schema.model_copy(update={"rules": own}), frame)
    assert not {rule.text for rule in own} & {rule.text for rule in found}
    never = SchemaColumn(**{**schema["job"].fields(), "missing": False})
    texts = [rule.text for rule in suggest_rules(schema.replace(never), frame)]
    assert not any("job is missing" in text for text in texts)
