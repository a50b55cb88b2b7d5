"""What reading a file lost, and what a declaration would change, is shown beside the columns."""

from __future__ import annotations

import pytest

from core.services import tables
from tests.hostile.workbook_files import HEAD, book
from tests.pages.tables.test_tables_page import edit, upload

pytestmark = pytest.mark.slow

CSV = b"name,n,flag\n" + b"Ann,1,Yes\nBob,NA,No\nEve,3,yes\nJoe,40,unknown\n" * 10


def doubts(at) -> str:
    return " ".join(one.value for one in at.info)


def test_what_reading_lost_is_shown_and_stays(store, show):
    at = upload(show("tables"), "people.csv", CSV)
    (table,) = store.tables()
    assert "10 cells saying na were read as missing, in 'n'" in doubts(at)
    assert table.schema["flag"].categories == ("No", "Yes", "unknown", "yes")
    at = edit(at, table, "flag", kind="text")  # counts the whole table anew
    assert not at.error and "10 cells saying na" in doubts(at)


def test_what_a_declaration_would_change_is_counted(store, show):
    at = upload(show("tables"), "people.csv", CSV)
    (table,) = store.tables()
    assert "do not fit" not in doubts(at)
    kept = tables.change_categories(store, table, "flag", "Yes\nNo\nyes")
    assert "10 cells do not fit" in tables.misfit_doubts(kept)["flag"]
    at = whole_table(show, table)
    assert "**flag**: 10 cells do not fit this declaration and would become OTHER." in doubts(at)
    declared = kept.schema.as_proposed()["n"].model_copy(update={"missing": False})
    complete = tables.confirm_schema(store, table.id, kept.schema.replace(declared))
    assert tables.misfit_doubts(complete)["n"].startswith("10 cells do not fit")


def test_remarks_stand_sorted_in_lists_and_beside_their_columns(store, show):
    levels = ["low", "medium", "high"]
    rows = [f"G{i % 30:03},{i},{i % 5},{levels[i % 3]},same" for i in range(400)]
    file = "\n".join(["person_id,no,score,level,one", *rows]).encode()
    at = upload(show("tables"), "t.csv", file)
    (decide,), (check,) = [one.value for one in at.warning], [one.value for one in at.info]
    assert "Must decide (1)" in decide and "**person_id**: Looks like an identifier" in decide
    assert "Should check (2)" in check and "**score**: Few different numbers" in check
    assert "**level**: Taken as ordered" in check
    (notes,) = [one for one in at.expander if "Notes (2)" in one.label]
    assert "**one**: Always the same value." in notes.markdown[0].value
    assert "**no**: Looks like an identifier: 400 of 400" in notes.markdown[0].value
    grid = at.dataframe[0].value.set_index("column")["remark"]
    assert grid["person_id"].startswith("Decide: Looks like an identifier")
    assert grid["score"].startswith("Check: Few") and grid["one"] == "Always the same value."
    (table,) = store.tables()
    at = edit(whole_table(show, table), table, "person_id", keep="leave out")
    assert not at.warning


def test_nothing_is_said_of_lists_that_a_run_learns(store, show):
    cells = [f"c{i % 20}" for i in range(400)] + [f"rare {i}" for i in range(30)]
    upload(show("tables"), "t.csv", "\n".join(["code,", *(f"{c},1" for c in cells)]).encode())
    (table,) = store.tables()
    assert tables.misfit_doubts(table) == {} and not tables.misfit_cells(table)
    assert not any("merged" in one.words for one in tables.remarks(table))
    declared = tables.declare_all(store, table)
    assert tables.misfit_cells(declared) == 30
    assert any("merged" in one.words for one in tables.remarks(declared))


def whole_table(show, table):
    return show("tables", table=table.id)


def test_a_workbook_of_half_a_terabyte_is_one_sentence(store, show):
    corner = HEAD + '<row r="1048576"><c r="XFD1048576"><v>1</v></c></row>'
    at = upload(show("tables"), "corner.xlsx", book(corner))
    assert [error.value for error in at.error] and "too far to be read" in at.error[0].value
    assert not store.tables()
