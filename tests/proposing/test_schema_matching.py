"""Next month's file: what was declared stands, what is new is proposed, nothing claims too much."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import numpy as np
import pandas as pd
import pytest

from core.proposing.propose import infer_schema
from core.proposing.schema_matching import adopted, best_match, compare
from core.reading.raw_cells import raw_frame
from core.reading.typed_cells import typed_rows
from core.schema.column import DomainSource, Kind, Learned, Provenance, SchemaColumn, SchemaError
from core.schema.form import Form
from core.schema.labels import to_labels
from core.schema.person import Person
from core.schema.rules.rules import parse_rule
from core.schema.schema import Schema
from core.services.sample_tables import sample_table
from tests import histories
from tests.encoding.layouts import PERSON, schema

JULY = infer_schema(sample_table(300))


def declared() -> Schema:
    """July's schema after the steward changed a bound and said more."""
    changed = JULY.replace(JULY["age"].model_copy(update={"low": 0.0, "high": 120.0}))
    return changed.model_copy(
        update={
            "target": "readmitted",
            "person": Person(columns=("visit_id",), rows=3),
            "rules": (parse_rule("age <= cost"), parse_rule("blood_pressure <= cost")),
            "sensitive": {"a": ("sex", "ward"), "b": ("smoker",)},
            "holdout": 0.2,
        }
    )


def august() -> pd.DataFrame:
    """Two columns are new, one is gone, one is written otherwise; the others have other bounds."""
    frame = (
        sample_table(420)
        .tail(120)
        .reset_index(drop=True)
        .drop(columns=["smoker", "blood_pressure"])
    )
    frame["age"] = frame["age"].astype("float64")
    return frame.assign(shift="day", beds=range(120))


def test_what_is_new_and_gone_is_said() -> None:
    comparison = compare(infer_schema(august()), declared())
    assert (comparison.new, comparison.gone) == (("shift", "beds"), ("blood_pressure", "smoker"))
    assert "high" in comparison.changed["age"]
    assert len(comparison.same) + len(comparison.changed) == len(JULY.names) - 2
    assert comparison.words == (
        "10 columns as last time; 2 are new: shift, beds; 2 are gone: blood_pressure, smoker."
    )
    assert compare(JULY, JULY).words == "12 columns as last time."


def test_declarations_are_adopted_for_matching_columns() -> None:
    proposed = infer_schema(august())
    taken = adopted(proposed, declared())
    assert taken.names == proposed.names
    assert (taken["age"].low, taken["age"].high) == (0.0, 120.0)
    assert taken["age"].dtype == JULY["age"].dtype != proposed["age"].dtype
    assert taken["beds"] == proposed["beds"] and taken["shift"] == proposed["shift"]
    assert (taken.target, taken.person, taken.holdout) == (
        "readmitted", Person(columns=("visit_id",), rows=3), 0.2,
    )  # fmt: skip
    assert [rule.text for rule in taken.rules] == ["age <= cost"]
    assert taken.sensitive == {"a": ("sex", "ward")}
    assert adopted(taken, declared()) == taken  # twice is once


def test_a_new_file_is_read_as_the_earlier_one_was() -> None:
    """Only its delimiter and encoding are its own; that it is written otherwise is said."""
    pay = SchemaColumn(
        name="pay", kind=Kind.NUMBER, low=0, high=9e4, dtype="float64",
        form=Form(decimal=",", suffix=" €", codes=("-99", "k. A.")),
    )  # fmt: skip
    plain = SchemaColumn(name="n", kind=Kind.INTEGER, low=0, high=9, dtype="int64")
    july = Schema(columns=(pay, plain), delimiter=";")
    other = {"form": Form(prefix="$", absent="k. A.", codes=("-9",)), "missing": True}
    gaps = plain.model_copy(update={"dtype": "Int64"})  # no other spelling of a number
    august = Schema(columns=(pay.model_copy(update=other), gaps), delimiter="\t", encoding="cp1252")
    assert compare(august, july).changed == {"pay": ("missing", "codes", "spelling")}
    taken = adopted(august, july)
    assert (taken.delimiter, taken.encoding) == ("\t", "cp1252")
    assert taken.columns == july.columns
    again = adopted(Schema.model_validate_json(taken.model_dump_json()), july)
    assert again == taken  # so it is not offered again


@pytest.mark.parametrize("gap_first", [False, True])
def test_whole_numbers_with_gaps_are_the_labels_of_last_time(gap_first: bool) -> None:
    """A gap makes a frame's whole numbers fractions: no row was of a declared label."""
    grade = np.resize([1.0, 2.0, 3.0], 300)
    gaps = np.where(np.arange(300) < 3, np.nan, grade)
    frames = [pd.DataFrame({"grade": g}) for g in (grade.astype("int64"), gaps)]
    first, second = reversed(frames) if gap_first else frames
    saved = infer_schema(first)
    column = adopted(infer_schema(second), saved)["grade"]
    assert column.categories == (("1.0", "2.0", "3.0") if gap_first else ("1", "2", "3"))
    cells = typed_rows(raw_frame(second), [column])["grade"]
    assert set(to_labels(cells).dropna()) == set(column.categories)


def test_bounds_read_from_earlier_rows_are_nobodys_choice() -> None:
    """Else the certificate would call bounds of July's rows the steward's own."""
    taken = adopted(infer_schema(august()), declared())
    assert taken["age"].provenance is Provenance.STEWARD
    for name in ("cost", "ward", "visit_date"):
        assert declared()[name].provenance is Provenance.PROPOSED
        assert taken[name].provenance is Provenance.PROPOSED
        assert taken[name].domain_digest != infer_schema(august())[name].proposal or (
            taken[name].categories == infer_schema(august())[name].categories
        )
    unstated = declared().replace(declared()["ward"].model_copy(update={"proposal": None}))
    assert adopted(infer_schema(august()), unstated)["ward"].provenance is Provenance.UNSTATED


def test_what_other_people_learned_is_learned_again() -> None:
    column = JULY["cost"].model_copy(update={"source": DomainSource.LEARNED})
    mark = Learned(entry="e", epsilon=0.1, domain=column.domain_digest)
    learned = JULY.replace(column.model_copy(update={"learned": mark}))
    assert learned["cost"].declared
    taken = adopted(infer_schema(sample_table(90)), learned)
    assert taken["cost"].source is DomainSource.LEARNED and not taken["cost"].declared


def test_the_most_alike_is_found_and_strangers_are_not() -> None:
    other = Schema(columns=tuple(JULY.columns[:7]))
    saved = [("other", other), ("july", declared()), ("ward", schema())]
    assert best_match(infer_schema(august()), saved) == "july"
    assert best_match(schema(), saved[:2]) is None
    assert best_match(JULY, []) is None


EXAMPLES = {
    "a proposal": JULY,
    "declared": declared(),
    "rules, people, gaps": schema(person=PERSON),
    "forms": Schema(
        columns=(
            SchemaColumn(name="a", kind=Kind.INTEGER, form=Form(absent="?", codes=("-9", "n/a"))),
        ),
        delimiter="\t",
    ),
    "hidden columns": JULY.model_copy(update={"sensitive": {"g": ("age", "sex")}}),
}
VALIDATOR = jsonschema.Draft202012Validator(Schema.model_json_schema())


@pytest.mark.parametrize("example", EXAMPLES.values(), ids=EXAMPLES)
def test_files_are_as_their_json_schema_says(example: Schema) -> None:
    VALIDATOR.check_schema(VALIDATOR.schema)
    stored = json.loads(example.model_dump_json())
    assert list(VALIDATOR.iter_errors(stored)) == []
    assert Schema.model_validate(stored) == example


def test_a_file_written_by_hand_is_checked_the_same_way_by_both() -> None:
    by_hand: dict[str, Any] = {
        "columns": [
            {"name": "age", "kind": "integer", "low": 0, "high": 120, "step": 1, "dtype": "int64"},
            {"name": "sex", "kind": "category", "categories": ["f", "m"], "missing": True},
        ],
        "target": "sex",
        "rules": [{"kind": "at_most", "low": "age", "high": "age"}],
    }
    assert list(VALIDATOR.iter_errors(by_hand)) == []
    assert Schema.model_validate(by_hand)["age"].kind is Kind.INTEGER
    wrong = (
        {**by_hand, "holdout": 0.7},
        {**by_hand, "colums": []},
        {"columns": []},
        {"columns": [{"name": "age", "kind": "whole"}]},
        {**by_hand, "person": {"columns": ["sex"]}},
    )
    for stored in wrong:
        assert list(VALIDATOR.iter_errors(stored)), stored
        with pytest.raises(ValueError):
            Schema.model_validate(stored)


def test_what_does_not_fit_together_is_refused_in_words() -> None:
    proposed = Schema(columns=(*JULY.columns,))
    saved = declared().model_copy(update={"holdout": 0.9})
    with pytest.raises(SchemaError, match="Nothing was changed"):
        adopted(proposed, saved)


def test_what_a_table_was_linked_from_is_not_adopted() -> None:
    linked, (who, *rest) = histories.schema(), histories.schema().columns
    flat = Schema(columns=(who, *(column for column in rest if column.name != "key")))
    taken = adopted(flat, linked).person
    assert taken is not None and linked.person is not None
    assert (taken.columns, taken.order, taken.event) == (("who",), "day", None) and taken.walked
    assert adopted(linked, flat).person == linked.person
    other = histories.schema(most=9, order=None)
    again = adopted(linked, other).person
    assert again is not None and again.rows == 9 and again.order is None
    assert again.history == linked.person.history
