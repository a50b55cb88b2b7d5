"""The grid tells the truth: refused edits are named and gone, bounds come back with their kind."""

from __future__ import annotations

import pytest

from core.services.schema_grid import grid_of
from tests.pages.screen import button, press, whole, words
from tests.pages.tables.test_tables_page import edit

pytestmark = pytest.mark.slow


def edited(at):
    """What the grid of columns shows."""
    return next(frame.value for frame in at.dataframe if "origin" in frame.value)


@pytest.fixture
def at(table, show):
    return whole(show("tables", table=table.id))


def test_a_refused_edit_names_its_cell_and_keeps_the_grid(store, table, at):
    before = store.table(table.id).schema
    at = edit(at, table, "age", from_="a few")
    assert store.table(table.id).schema == before
    (error,) = at.error
    said = words(at)
    assert "**age**: “a few”." in said and "write a number" in said
    beside = edited(at).set_index("column").at["age", "remark"]
    assert beside.startswith("⚠ “a few”: 'age', from: write a number")
    kept = edited(at).drop(columns="remark")
    assert kept.equals(grid_of(before, None).assign(rare=kept["rare"]))
    at = whole(at.run())  # nothing of it comes back with the next look
    assert len(at.error) == 1 and edited(at).set_index("column").at["age", "from"] != "a few"


def test_no_plan_while_an_edit_stands_refused(store, table, at):
    assert not button(at, "Plan a synthetic table").disabled
    at = edit(at, table, "age", from_="200")  # above the upper bound
    assert button(at, "Plan a synthetic table").disabled
    at = whole(press(at, "Discard the change"))
    assert not at.error and not button(at, "Plan a synthetic table").disabled


def test_a_good_edit_ends_the_refusal(store, table, at):
    at = edit(at, table, "age", from_="a few")
    key = f"grid_{table.id}_{abs(hash(table.schema.model_dump_json()))}_1"
    row = table.schema.names.index("age")
    change = {"edited_rows": {row: {"from": "5"}}, "added_rows": [], "deleted_rows": []}
    at.session_state[key] = change
    at = whole(at.run())
    assert store.table(table.id).schema["age"].low == 5.0 and not at.error


def test_no_plan_without_bounds(store, table, show):
    age = table.schema["age"].model_copy(update={"low": None})
    store.save_schema(table.id, table.schema.replace(age))
    store.attest(table.id)
    at = whole(show("tables", table=table.id))
    assert button(at, "Plan a synthetic table").disabled and "age" in at.error[0].value


def test_a_bound_survives_a_change_of_kind_and_back(store, table, at):
    at = edit(at, table, "age", to="97", missing=True)
    mine = store.table(table.id).schema["age"]
    assert mine.high == 97.0
    at = edit(at, store.table(table.id), "age", kind="ordered")
    assert store.table(table.id).schema["age"].high is None
    edit(at, store.table(table.id), "age", kind="integer")
    assert store.table(table.id).schema["age"] == mine


def test_what_was_decided_since_comes_along(store, table, at):
    at = edit(at, table, "age", to="97")
    at = edit(at, store.table(table.id), "age", kind="ordered")
    at = edit(at, store.table(table.id), "age", keep="leave out")
    edit(at, store.table(table.id), "age", kind="integer")
    age = store.table(table.id).schema["age"]
    assert age.high == 97.0 and not age.modelled


def test_how_missing_is_written_outlives_a_change_of_kind(store, table, at):
    at = edit(at, table, "age", codes="999")
    at = edit(at, store.table(table.id), "age", kind="ordered")
    at = edit(at, store.table(table.id), "age", absent="n.a.")
    edit(at, store.table(table.id), "age", kind="integer")
    age = store.table(table.id).schema["age"]
    assert (age.codes, age.form.absent) == (("999",), "n.a.")


def test_a_refused_code_for_missing_is_named_like_any_cell(table, at):
    said = words(edit(at, table, "age", codes="=1+1"))
    assert "**age**: “=1+1”." in said
