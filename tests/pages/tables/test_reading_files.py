"""A text file is read as somebody says or as it suggests; what does not read is counted."""

from __future__ import annotations

import pandas as pd
import pytest

from core.schema.column import Kind
from core.schema.person import Person
from core.services import declarations, imports, tables
from tests.pages.screen import press, whole, words
from tests.pages.tables.test_tables_page import edit, parquet, upload

pytestmark = pytest.mark.slow

TOWNS = ["Zürich", "Genève", "Köln"]


def with_unknown(rows: range) -> str:
    """A file in which these rows have no weight."""
    lines = (f"{TOWNS[i % 3]};{i},50 €;{'k. A.' if i in rows else f'{i},5'}\n" for i in range(90))
    return "town;cost;weight\n" + "".join(lines)


TEXT = with_unknown(range(7, 8))
WESTERN, UNSURE = TEXT.encode("cp1252"), with_unknown(range(9)).encode("cp1252")


def test_one_line_says_how_a_text_file_was_read(store, show):
    at = upload(show("tables"), "towns.csv", WESTERN)
    line = "Read as a text file: Windows-1252 (Western European), cells separated by semicolons"
    assert f"{line}, decimal commas." in words(at)
    assert set(store.tables()[0].schema["town"].categories) == set(TOWNS)
    at = upload(show("tables"), "visits.parquet", parquet())
    assert "Read as a text file" not in words(at)


def test_what_is_chosen_before_an_upload_is_how_it_is_read(store, show):
    at = show("tables")
    at.selectbox(key="upload_encoding").select("cp1251").run()
    at = upload(at, "towns.csv", WESTERN)
    (table,) = store.tables()
    assert set(table.schema["town"].categories) == {
        town.encode("cp1252").decode("cp1251") for town in TOWNS
    }
    assert "Windows-1251 (Cyrillic), cells separated by semicolons" in words(at)


def test_a_chosen_delimiter_stays_after_a_refused_upload(store, show):
    at = show("tables")
    at.selectbox(key="upload_delimiter").select("|").run()
    at = upload(at, "ragged.csv", b"a|b,c,d\n1,2|3\n4|5|6\n")
    assert "line 3" in at.error[0].value.lower() and not store.tables()
    at = upload(at, "whole.csv", b"a|b,c,d\n1,2|3\n4|5\n")
    assert store.tables()[0].schema.names == ("a", "b,c,d")
    assert "cells separated by vertical bars" in words(at)


def test_cells_that_do_not_read_are_counted_before_going_on(store, show):
    at = upload(show("tables"), "towns.csv", UNSURE)
    (table,) = store.tables()
    assert table.schema["weight"].kind is not Kind.NUMBER
    assert "Most values fit the kind number" in words(at)
    at = edit(at, table, "weight", kind="number")
    weight = store.table(table.id).schema["weight"]
    assert (weight.kind, weight.missing, weight.form.decimal) == (Kind.NUMBER, True, ",")
    assert "**9 values do not fit your declarations.**" in words(at)
    assert "9 cells do not read as declared and would become missing" in words(at)
    at = edit(at, store.table(table.id), "weight", missing=False)
    assert "would become the lowest value" in words(at)


def test_one_odd_cell_does_not_keep_a_column_from_being_learned(store, show):
    at = upload(show("tables"), "towns.csv", WESTERN)
    weight = store.tables()[0].schema["weight"]
    assert (weight.kind, weight.missing, weight.form.decimal) == (Kind.NUMBER, True, ",")
    assert "'weight' has values that do not read like most others" in words(at)


def test_cells_are_counted_after_as_last_time(store, show):
    upload(show("tables"), "july.csv", WESTERN)
    (july,) = store.tables()
    edit(show("tables", table=july.id), july, "weight", kind="number")
    tables.declare_all(store, store.table(july.id))
    store.attest(july.id)
    later = TEXT.replace("Genève;3", "Nowhere;3").replace("9,50 €", "unpaid").encode("cp1252")
    at = upload(show("tables"), "august.csv", later)
    august = store.tables()[0]
    at = whole(press(at, "Reuse these declarations"))
    counted = store.table(august.id)
    gone = later.count(b"Nowhere") + later.count(b"unpaid")
    assert tables.misfit_cells(counted) == gone + 1
    assert "values do not fit your declarations" in words(at)
    assert "Most values fit the kind number" not in words(at)  # it was chosen last time


@pytest.mark.parametrize("gaps", [1, 3])
def test_rows_without_a_key_of_a_person_are_counted(store, show, gaps):
    keys = [None if i < gaps else f"p{i % 30}" for i in range(90)]
    frame = pd.DataFrame({"patient": pd.Series(keys, dtype="str"), "n": [1, 2, 3] * 30})
    table = imports.import_frame(store, frame, name="visits", source="test")
    assert "no patient" not in words(show("tables", table=table.id))
    declarations.change_person(store, table, Person(columns=("patient",), rows=5))
    rows = "1 row has no patient" if gaps == 1 else "3 rows have no patient"
    assert rows in words(whole(show("tables", table=table.id)))
