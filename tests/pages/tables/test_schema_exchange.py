"""Tables: a new upload is offered last time's declarations; schemas are saved and loaded."""

from __future__ import annotations

import pytest

from core.schema.column import SchemaError
from core.schema.schema import Schema
from core.services import imports, schemas
from core.services.sample_tables import sample_table
from tests.pages.screen import buttons, press, whole, words

pytestmark = pytest.mark.slow


@pytest.fixture
def later(store, table):
    """Another month's table, in which a column is new and one is gone."""
    changed = table.schema["age"].model_copy(update={"low": 0.0, "high": 120.0})
    store.save_schema(table.id, table.schema.replace(changed))
    store.attest(table.id)
    frame = sample_table(500).tail(100).drop(columns="smoker").assign(shift="day")
    return imports.import_frame(store, frame, name="august", source="test")


def test_a_table_like_an_earlier_one_is_declared_as_last_time(store, table, later, show):
    at = whole(show("tables", table=later.id))
    assert f"Similar to {table.name}" in words(at)
    assert "11 columns as last time; 1 is new: shift; 1 is gone: smoker." in words(at)
    at = whole(press(at, "Reuse these declarations"))
    taken = store.table(later.id)
    assert taken.schema["age"].high == 120.0 and taken.schema.target == table.schema.target
    assert not store.attested(later.id)  # the steward still confirms
    assert "Reuse these declarations" not in buttons(at)


def test_nothing_is_offered_where_nothing_is_declared_or_alike(store, table, later, show):
    other = imports.import_frame(store, sample_table(50)[["age"]], name="ages", source="test")
    for shown in (table, other):
        assert "Reuse these declarations" not in buttons(whole(show("tables", table=shown.id)))
    changed = store.table(table.id).schema["age"].model_copy(update={"high": 121.0})
    store.save_schema(table.id, table.schema.replace(changed))  # no more as it was declared
    assert "Reuse these declarations" not in buttons(whole(show("tables", table=later.id)))


def test_a_schema_is_saved_compared_and_loaded(store, table, later, show, downloads):
    whole(show("tables", table=table.id))
    content = downloads["schema.json"]()
    assert Schema.model_validate_json(content) == store.table(table.id).schema
    at = show("tables", table=later.id)
    uploader = at.get("file_uploader")[0]
    at = whole(uploader.set_value(("schema.json", content, "application/json")).run())
    assert words(at).count("11 columns as last time") == 2  # offered, and of the file
    whole(press(at, "Apply this schema"))
    assert store.table(later.id).schema["age"].high == 120.0


def test_a_wrong_schema_file_changes_nothing(store, later):
    for content in (b"{}", b"[1]", b"{", b'{"columns": [{"name": "x", "kind": "secret word"}]}'):
        with pytest.raises(SchemaError, match="This is no schema") as refusal:
            schemas.read_schema_file(content)
        assert "secret word" not in str(refusal.value)
    other = Schema(columns=({"name": "x", "kind": "text"},))
    with pytest.raises(SchemaError, match="names no column of this table"):
        schemas.adopt(store, later, other)
    assert store.table(later.id).schema == later.schema
