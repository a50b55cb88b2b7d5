"""Tables: uploads, the grid, categories, the way to the plan, deleting."""

from __future__ import annotations

import gzip
import io
from unittest.mock import Mock

import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from core.schema.column import DomainSource, Kind
from core.services import imports
from core.services.sample_tables import sample_table
from pages.shared import visible
from tests.pages.screen import (
    button,
    buttons,
    forget_statement,
    in_tab,
    press,
    running,
    said,
    whole,
    words,
)

pytestmark = pytest.mark.slow


def upload(at: AppTest, name: str, data: bytes) -> AppTest:
    return whole(at.file_uploader[0].set_value((name, data, "application/octet-stream")).run())


def edit(at: AppTest, table, column: str, **cells: object) -> AppTest:
    """Type into the grid."""
    row = table.schema.names.index(column)
    key = f"grid_{table.id}_{abs(hash(table.schema.model_dump_json()))}"
    change = {name.rstrip("_"): cell for name, cell in cells.items()}
    at.session_state[key] = {"edited_rows": {row: change}, "added_rows": [], "deleted_rows": []}
    return whole(at.run())


def parquet() -> bytes:
    buffer = io.BytesIO()
    sample_table(50).astype({"ward": "category"}).to_parquet(buffer)
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("visits.csv", sample_table(50).to_csv(index=False).encode()),
        ("visits.tsv.gz", gzip.compress(sample_table(50).to_csv(index=False, sep="\t").encode())),
        ("visits.parquet", parquet()),
    ],
)
def test_an_upload_becomes_a_table(store, show, name, data):
    at = upload(show("tables"), name, data)
    assert not at.error
    (record,) = store.tables()
    assert (record.n, record.name, record.schema.target) == (50, name, None)
    assert at.title[0].value == name
    assert len(at.dataframe) == 3  # the grid, labels, the first rows
    assert len(in_tab(at, "Hidden distributions").dataframe) == 4  # and the tags


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("empty.csv", b""),
        ("header.csv", b"a,b\n"),
        ("page.csv", b"<!DOCTYPE html><html></html>"),
        ("picture.png", b"\x89PNG\r\n\x1a\n\x00\x00"),
        ("broken.parquet", b"PAR1 is not all"),
        ("broken.xlsx", b"PK\x03\x04 no workbook"),
        ("broken.csv.gz", b"\x1f\x8b and then nothing"),
        ("nul.csv", b"a,b\n1,\x00\n"),
    ],
)
def test_a_malformed_upload_leaves_the_page_alive(store, show, name, data):
    at = upload(show("tables"), name, data)
    assert len(at.error) == 1, words(at)
    assert at.error[0].value.strip() and "Traceback" not in at.error[0].value
    assert not store.tables()
    at = press(at, "Try the sample table")  # and the way on is open
    assert not at.error and len(store.tables()) == 1


def test_no_network_is_a_plain_error(store, show, monkeypatch):
    def offline(**_):
        raise OSError

    monkeypatch.setattr("sklearn.datasets.fetch_openml", offline)
    at = whole(press(show("tables"), "UCI Adult from OpenML"))
    assert "network" in at.error[0].value and not store.tables()


def test_bounds_typed_into_the_grid_are_kept(store, table, show):
    at = edit(show("tables", table=table.id), table, "age", from_="0", to="120")
    assert not at.error
    age = store.table(table.id).schema["age"]
    assert (age.low, age.high) == (0.0, 120.0)


def test_a_wrong_bound_is_a_plain_error_and_nothing_is_kept(store, table, show):
    at = edit(show("tables", table=table.id), table, "age", from_="young")
    assert "age" in at.error[0].value and "Nothing was changed" in at.error[0].value
    assert store.table(table.id).schema == table.schema


def test_a_kind_and_a_left_out_column_are_kept(store, table, show):
    at = edit(show("tables", table=table.id), table, "earlier_visits", kind="ordered")
    kept = store.table(table.id)
    assert kept.schema["earlier_visits"].kind is Kind.ORDERED and not at.error
    at = edit(at, kept, "readmitted", keep="leave out")
    kept = store.table(table.id).schema
    assert kept["readmitted"].source is DomainSource.DROP and kept.target is None
    assert "readmitted" not in at.selectbox[0].options


def test_a_kind_that_does_not_fit_is_refused_in_words(store, table, show):
    at = edit(show("tables", table=table.id), table, "ward", kind="number")
    assert "ward" in at.error[0].value
    assert store.table(table.id).schema == table.schema


def test_a_target_is_chosen(store, table, show):
    at = show("tables", table=table.id)
    whole(at.selectbox[0].select("ward").run())
    assert store.table(table.id).schema.target == "ward"


def test_categories_are_merged(store, table, show):
    at = show("tables", table=table.id)
    at.selectbox(key=f"categories_of_{table.id}").select("ward").run()
    at.text_area[0].set_value("general\nsurgery").run()
    whole(press(at, "Save list"))
    assert store.table(table.id).schema["ward"].categories == ("general", "surgery", "OTHER")
    at = show("tables", table=table.id)
    at.text_area[0].set_value(" ").run()
    assert "at least one category" in whole(press(at, "Save list")).error[0].value


def test_pictures_come_nine_at_a_time(table, show):
    at = whole(show("tables", table=table.id))
    assert not at.get("plotly_chart")  # nothing is drawn before its tab is open
    at = in_tab(at, "Pictures")
    assert len(at.get("plotly_chart")) == 9
    assert all(chart.proto.alt for chart in at.get("plotly_chart"))


def test_undeclared_bounds_stop_the_way_to_the_plan(store, table, show):
    at = edit(show("tables", table=table.id), table, "age", to="")
    at = whole(at.checkbox[0].check().run())
    assert button(at, "Plan a synthetic table").disabled and "age" in at.error[0].value


def question(table_id: str) -> None:
    """The open question about a table, as a browser asks for it: without its page."""
    from pages.shared import widgets as shared
    from pages.tables import page as tables

    if table_id in [table.id for table in shared.store().tables()]:  # else the page comes anew
        tables._ask_deletion(table_id)


def deleted(at, table):
    """What the question about a table says once it was answered."""
    asked = at.button(key=f"ask_{table.id}").click().run()
    assert f"Delete **{table.name}** permanently?" in words(asked)
    assert buttons(asked).count("Delete permanently") == 1
    return press(AppTest.from_function(question, args=(table.id,)).run(), "Delete permanently")


def test_a_second_click_deletes_no_other_table(store, table, show, monkeypatch):
    other = imports.import_frame(store, sample_table(60), name="other", source="test")
    after = deleted(show("tables"), other)
    assert not buttons(after) and not after.error
    assert [t.id for t in store.tables()] == [table.id]
    assert "Delete permanently" not in buttons(show("tables"))

    class Anew(Exception):
        """The page is drawn anew."""

    monkeypatch.setattr(visible.st, "rerun", Mock(side_effect=Anew))
    with pytest.raises(Anew):  # a late answer finds its own table gone, and asks no further
        visible.current_table(other.id, "steward")


def test_tables_are_opened_and_deleted(store, table, show):
    other = imports.import_frame(store, sample_table(60), name="other", source="test")
    at = whole(show("tables"))
    assert buttons(at).count("Open") == 2
    at = at.button(key=f"open_{other.id}").click().run()
    assert whole(at).title[0].value == "other"
    at = whole(press(at, "All tables"))
    assert not at.query_params and at.title[0].value == "Tables"
    deleted(at, other)
    assert [t.id for t in store.tables()] == [table.id]
    assert not (store.workspace.tables_dir / other.id).exists()


def test_a_table_whose_run_is_running_is_not_deleted(store, table, start, show):
    running(store, start())
    at = deleted(show("tables"), table)
    assert "running" in at.error[0].value and "Cancel it first" in at.error[0].value
    assert store.tables()


def test_the_same_upload_twice_has_one_account(store, show):
    data = pd.DataFrame({"a": range(40), "b": ["x", "y"] * 20}).to_csv(index=False).encode()
    upload(show("tables"), "one.csv", data)
    upload(show("tables"), "two.csv", data)
    assert len({t.account_id for t in store.tables()}) == 1 and len(store.tables()) == 2


def test_the_declaration_is_asked_for(store, table, show):
    forget_statement(store, table)
    at = show("tables", table=table.id)
    assert button(at, "Plan a synthetic table").disabled
    assert "Tick the box to continue." in words(at)


def test_a_change_after_the_declaration_asks_for_it_again(table, show):
    at = show("tables", table=table.id)
    at.checkbox[0].check().run()
    at = edit(at, table, "age", from_="10")
    assert not at.checkbox[0].value and button(at, "Plan a synthetic table").disabled


def test_origin_and_danger_stand_where_the_steward_decides(store, table, show):
    at = show("tables", table=table.id)
    grid = at.dataframe[0].value.set_index("column")
    assert grid.loc["age", "origin"] == "as proposed from the rows"
    assert not [w for w in at.warning if "fewer than ten rows" in w.value]
    at = edit(at, table, "age", to="120")
    grid = whole(show("tables", table=table.id)).dataframe[0].value.set_index("column")
    assert grid.loc["age", "origin"] == "set by the steward"
    edit(at, store.table(table.id), "visit_id", kind="category")
    forget_statement(store, table)
    at = whole(show("tables", table=table.id))
    (warning,) = [said(w.value) for w in at.warning if "fewer than ten rows" in w.value]
    assert "**visit_id**: In fewer than ten rows: 400 of 400 values" in warning
    grid = show("tables", table=table.id).dataframe[0].value.set_index("column")
    assert grid.loc["visit_id", "rare"] == "400 of 400, 400 of one row"


def test_long_lists_are_searched_merged_and_ticked(store, show):
    labels = [f"common {i}" for i in range(20) for _ in range(30)] + [
        f"once {i}" for i in range(20)
    ]
    frame = pd.DataFrame({"d": pd.Series(labels, dtype="str"), "n": range(len(labels))})
    table = imports.import_frame(store, frame, name="long", source="test")
    at = show("tables", table=table.id)
    assert "20 categories in 20 rows become OTHER. 20 categories occur for one person" in words(at)
    assert "20 of 40 categories would become OTHER: 20 rows (3.2%)" in words(at)
    at.text_input(key=f"search_{table.id}_d").set_value("once 1").run()
    shown = next(one.value for one in at.dataframe if "listed" in one.value)
    assert len(shown) == 11 and not shown["listed"].any()
    assert set(shown["warning"]) == {"one person only"}
    column = table.schema["d"]
    key = f"labels_{table.id}_d_once 1_{abs(hash(column.model_dump_json()))}"
    at.session_state[key] = {
        "edited_rows": {0: {"listed": True}},
        "added_rows": [],
        "deleted_rows": [],
    }
    whole(at.run())
    listed = store.table(table.id).schema["d"]
    assert set(listed.categories) == {*column.categories, "once 1"} and listed.other == "OTHER"
    at = show("tables", table=table.id)
    at.number_input(key=f"fewer_{table.id}_d").set_value(1).run()
    whole(at.button(key=f"merge_{table.id}_d").click().run())
    merged = store.table(table.id).schema["d"]
    assert len(merged.categories) == 40 and merged.other is None
    assert "were merged into" not in merged.note  # that was true before


def test_codes_for_missing_are_edited_in_the_grid(store, show):
    frame = pd.DataFrame({"age": [*range(18, 90), *[999] * 12] * 2, "n": range(168)})
    table = imports.import_frame(store, frame, name="codes", source="test")
    edit(show("tables", table=table.id), table, "age", codes="999", absent="?")
    column = store.table(table.id).schema["age"]
    assert (column.codes, column.form.absent, column.high) == (("999",), "?", 100.0)
    at = edit(show("tables", table=table.id), store.table(table.id), "age", codes="=1+1")
    assert "formula" in at.error[0].value
    assert store.table(table.id).schema["age"] == column
