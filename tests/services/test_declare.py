"""What a steward declares is kept, or refused as a whole."""

from __future__ import annotations

import pandas as pd
import pytest

from core.proposing.remarks import Urgency
from core.runs.execution.privacy_certificate import conditions
from core.runs.records import TableRecord
from core.runs.storage.store import RunStore
from core.schema.column import DomainSource, Kind, Provenance, SchemaError
from core.schema.person import Person
from core.schema.rules.rules import parse_rule
from core.services import imports, tables
from core.services.sample_tables import sample_table
from core.services.schema_grid import grid_of


@pytest.fixture
def table(store: RunStore) -> TableRecord:
    record = imports.import_frame(store, sample_table(200), name="visits", source="test")
    return tables.change_target(store, record, "readmitted")


def edited(table: TableRecord, column: str, **cells: object) -> pd.DataFrame:
    grid = grid_of(table.schema)
    row = grid.index[grid["column"] == column][0]
    for name, cell in cells.items():
        grid.loc[row, name.rstrip("_")] = cell
    return grid


def change_kind(store: RunStore, table: TableRecord, column: str, kind: Kind) -> TableRecord:
    return tables.change_grid(store, table, edited(table, column, kind=kind.value))


def test_an_unchanged_grid_writes_nothing(store, table):
    assert tables.change_grid(store, table, grid_of(table.schema)) is table


def test_bounds_are_kept_without_reading_other_columns(store, table, monkeypatch):
    monkeypatch.setattr(store, "load_frame", lambda _: pytest.fail("rows were read"))
    plain, read = store.raw_batches, []
    monkeypatch.setattr(
        store, "raw_batches", lambda *a, **more: read.append(more["columns"]) or plain(*a, **more)
    )
    kept = tables.change_grid(store, table, edited(table, "age", from_="0", to="120"))
    assert (kept.schema["age"].low, kept.schema["age"].high) == (0.0, 120.0)
    assert store.table(table.id).schema == kept.schema
    assert kept.profile == table.profile and read == [["age"]]


def test_a_wrong_cell_keeps_the_old_schema(store, table):
    with pytest.raises(SchemaError, match="age"):
        tables.change_grid(store, table, edited(table, "age", from_="young"))
    assert store.table(table.id).schema == table.schema


def test_a_new_scale_is_drawn_anew(store, table):
    kept = tables.change_grid(store, table, edited(table, "cost", scale="even"))
    assert kept.schema["cost"].scale == "linear"
    assert kept.profile != table.profile


def test_a_new_kind_gets_a_domain_and_a_picture(store, table):
    kept = change_kind(store, table, "earlier_visits", Kind.ORDERED)
    column = kept.schema["earlier_visits"]
    assert column.kind is Kind.ORDERED and column.categories and column.categories[0] == "0"
    kinds = {c["name"]: c["kind"] for c in kept.profile["columns"]}
    assert kinds["earlier_visits"] == "ordered"


def test_a_kind_that_does_not_fit_changes_nothing(store, table):
    with pytest.raises(SchemaError, match="ward"):
        change_kind(store, table, "ward", Kind.NUMBER)
    assert store.table(table.id).schema == table.schema


def test_the_target_goes_with_its_column(store, table):
    assert change_kind(store, table, "readmitted", Kind.TEXT).schema.target is None
    table = tables.change_target(store, table, "ward")
    kept = tables.change_grid(store, table, edited(table, "ward", keep="leave out"))
    assert kept.schema.target is None
    assert kept.schema["ward"].source is DomainSource.DROP


def test_who_a_row_is_of_stays_when_the_column_goes(store, table):
    person = Person(columns=("visit_id",), rows=3, constant=("sex", "age"), order="visit_date")
    rules = (parse_rule("ward <- triage"), parse_rule("missing together bmi, cost"))
    schema = table.schema.model_copy(update={"person": person, "rules": rules})
    table = store.save_schema(table.id, schema)
    kept = tables.change_grid(store, table, edited(table, "age", from_="0"))
    assert kept.schema.person == person and kept.schema.rules == rules
    for name in ("visit_id", "sex", "visit_date", "ward"):
        kept = tables.change_grid(store, kept, edited(kept, name, keep="leave out"))
    assert kept.schema.person == Person(columns=("visit_id",), rows=3, constant=("age",))
    assert kept.schema.rules == rules[1:]


def test_categories_and_target_are_kept(store, table):
    kept = tables.change_categories(store, table, "ward", "general\nsurgery")
    assert kept.schema["ward"].categories == ("general", "surgery", "OTHER")
    assert tables.change_target(store, kept, None).schema.target is None
    assert store.table(table.id).schema["ward"].other == "OTHER"


def test_a_change_is_the_stewards_and_stays_so(store, table):
    kept = tables.change_grid(store, table, edited(table, "age", to="120"))
    assert store.table(table.id).schema["age"].provenance is Provenance.STEWARD
    assert kept.schema["ward"].provenance is Provenance.PROPOSED
    lines = conditions(kept.schema, n=200)
    assert (
        "age: integer from 0 to 120 in steps of 1, never missing (set by the steward)" in lines[2]
    )
    assert (
        "heavy-tail scale, often exactly 0, never missing (as proposed from the rows)" in lines[2]
    )
    assert "ε does not cover what they reveal" in lines[3]


def dangers(table):
    """What the steward must decide of the categories of visits."""
    found = [one for one in tables.remarks(table) if one.urgency is Urgency.DECIDE]
    return [str(one.words) for one in found if "publishes" in one.words]


def test_rare_values_are_counted_where_they_are_declared(store, table):
    assert dangers(table) == [] and tables.rare_words(table) == {}
    names = store.load_frame(table.id)["visit_id"].tolist()
    lone = change_kind(store, table, "visit_id", Kind.CATEGORY)  # each names one visit
    assert dangers(lone) == []  # a run learns the list, and finds none of them
    lone = tables.declare_all(store, lone)
    (words,) = dangers(lone)
    assert "200 of 200 values; in a single row only: 200" in words
    assert tables.rare_words(lone) == {"visit_id": "200 of 200, 200 of one row"}
    fewer = tables.change_categories(store, lone, "visit_id", "\n".join(names[:5]))
    assert tables.rare_words(fewer) == {"visit_id": "5 of 5, 5 of one row"}
    assert dangers(store.table(table.id)) == dangers(fewer)
    none = change_kind(store, fewer, "visit_id", Kind.IDENTIFIER)
    assert dangers(none) == []
    assert not any("one row" in line for line in conditions(fewer.schema, n=200))
