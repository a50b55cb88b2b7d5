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


def whole_table(show, table):
    return show("tables", table=table.id)


def test_a_workbook_of_half_a_terabyte_is_one_sentence(store, show):
    corner = HEAD + '<row r="1048576"><c r="XFD1048576"><v>1</v></c></row>'
    at = upload(show("tables"), "corner.xlsx", book(corner))
    assert [error.value for error in at.error] and "too far to be read" in at.error[0].value
    assert not store.tables()
