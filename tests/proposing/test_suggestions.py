"""Rules that names speak for: few, possible, and found without a row."""

from __future__ import annotations

from core.proposing.rule_suggestions import suggest_rules
from core.schema.column import Column, Kind
from core.schema.rules.rules import parse_rule
from core.schema.schema import Schema
from tests.encoding.layouts import date, number


def listed(name: str) -> Column:
    return Column(name=name, kind=Kind.CATEGORY, categories=("a", "b"))


def suggested(*columns: Column) -> list[str]:
    return [rule.text for rule in suggest_rules(Schema(columns=columns))]


def test_pairs_ends_lengths_and_sums_are_found() -> None:
    ends = (date("Admission day", 0, 10), date("Discharge day", 0, 10), number("stay", 0, 10))
    assert suggested(*ends) == [
        "Admission day <= Discharge day",
        "stay = Discharge day - Admission day",
    ]
    assert suggested(listed("wardCode"), listed("wardLabel"), listed("code")) == [
        "wardLabel <- wardCode"
    ]
    money = [number(name, 0, 99) for name in ("net", "tax", "total", "min_rate", "max_rate")]
    assert suggested(*money) == ["min_rate <= max_rate", "total = net + tax"]


def test_impossible_or_present_rules_are_not_suggested() -> None:
    assert suggested(number("start", 20, 30), number("end", 0, 10)) == []
    assert suggested(listed("start"), listed("end"), number("from", 0, 9), date("to", 0, 9)) == []
    columns = (number("from", 0, 9), number("to", 0, 9))
    assert suggest_rules(Schema(columns=columns, rules=(parse_rule("from <= to"),))) == ()


def test_undeclared_columns_get_no_suggestion_that_hangs_on_them() -> None:
    assert suggested(listed("code"), Column(name="label", kind=Kind.CATEGORY)) == []
