"""What a steward declares is kept, or refused as a whole."""

from __future__ import annotations

import pandas as pd
import pytest

from core.runs import declare, service
from core.runs.records import TableRecord
from core.runs.store import RunStore
from core.table.grid import grid_of
from core.table.sample import sample_table
from core.table.schema import DomainSource, Kind, SchemaError


@pytest.fixture
def table(store: RunStore) -> TableRecord:
    record = service.import_frame(store, sample_table(200), name="visits", source="test")
    return declare.change_target(store, record, "readmitted")


def edited(table: TableRecord, column: str, **cells: object) -> pd.DataFrame:
    grid = grid_of(table.schema)
    row = grid.index[grid["column"] == column][0]
    for name, cell in cells.items():
        grid.loc[row, name.rstrip("_")] = cell
    return grid


def test_an_unchanged_grid_writes_nothing(store, table):
    assert declare.change_grid(store, table, grid_of(table.schema)) is table


def test_bounds_are_kept_without_reading_rows(store, table, monkeypatch):
    monkeypatch.setattr(store, "load_frame", lambda _: pytest.fail("rows were read"))
    kept = declare.change_grid(store, table, edited(table, "age", from_="0", to="120"))
    assert (kept.schema["age"].low, kept.schema["age"].high) == (0.0, 120.0)
    assert store.table(table.id).schema == kept.schema
    assert kept.profile == table.profile


def test_a_wrong_cell_keeps_the_old_schema(store, table):
    with pytest.raises(SchemaError, match="age"):
        declare.change_grid(store, table, edited(table, "age", from_="young"))
    assert store.table(table.id).schema == table.schema


def test_a_new_scale_is_drawn_anew(store, table):
    kept = declare.change_grid(store, table, edited(table, "cost", scale="even"))
    assert kept.schema["cost"].scale == "linear"
    assert kept.profile != table.profile


@pytest.mark.parametrize("way", ["grid", "call"])
def test_a_new_kind_gets_a_domain_and_a_picture(store, table, way):
    if way == "grid":
        kept = declare.change_grid(store, table, edited(table, "earlier_visits", kind="ordered"))
    else:
        kept = declare.change_kind(store, table, "earlier_visits", Kind.ORDERED)
    column = kept.schema["earlier_visits"]
    assert column.kind is Kind.ORDERED and column.categories and column.categories[0] == "0"
    kinds = {c["name"]: c["kind"] for c in kept.profile["columns"]}
    assert kinds["earlier_visits"] == "ordered"


def test_a_kind_that_does_not_fit_changes_nothing(store, table):
    with pytest.raises(SchemaError, match="ward"):
        declare.change_kind(store, table, "ward", Kind.NUMBER)
    assert store.table(table.id).schema == table.schema


def test_the_target_goes_with_its_column(store, table):
    assert declare.change_kind(store, table, "readmitted", Kind.TEXT).schema.target is None
    table = declare.change_target(store, table, "ward")
    kept = declare.change_grid(store, table, edited(table, "ward", keep="leave out"))
    assert kept.schema.target is None
    assert kept.schema["ward"].source is DomainSource.DROP


def test_the_entity_key_goes_with_its_column(store, table):
    schema = table.schema.model_copy(update={"entity_key": "visit_id"})
    table = store.save_schema(table.id, schema)
    kept = declare.change_grid(store, table, edited(table, "age", from_="0"))
    assert kept.schema.entity_key == "visit_id"
    kept = declare.change_grid(store, kept, edited(kept, "visit_id", keep="leave out"))
    assert kept.schema.entity_key is None


def test_categories_and_target_are_kept(store, table):
    kept = declare.change_categories(store, table, "ward", "general\nsurgery")
    assert kept.schema["ward"].categories == ("general", "surgery", "OTHER")
    assert declare.change_target(store, kept, None).schema.target is None
    assert store.table(table.id).schema["ward"].other == "OTHER"
