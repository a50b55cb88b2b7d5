"""The grid a steward edits, and the way back to a schema."""

from __future__ import annotations

import pandas as pd
import pytest

from core.table.grid import as_kind, grid_of, schema_of, with_categories
from core.table.infer import infer_schema
from core.table.sample import sample_table
from core.table.schema import Column, DomainSource, Kind, SchemaError

FRAME = sample_table(300)
SCHEMA = infer_schema(FRAME)


def test_an_untouched_grid_gives_the_same_schema():
    assert schema_of(grid_of(SCHEMA), SCHEMA) == SCHEMA


def test_bounds_missing_and_keep_are_read_back():
    grid = grid_of(SCHEMA)
    row = grid.index[grid["column"] == "age"][0]
    grid.loc[row, ["from", "to", "keep"]] = ["0", "1,200", "leave out"]
    grid.loc[row, "missing"] = True
    age = schema_of(grid, SCHEMA)["age"]
    assert (age.low, age.high, age.missing) == (0.0, 1200.0, True)
    assert age.source is DomainSource.DROP


@pytest.mark.parametrize(("cell", "word"), [("old", "a number"), ("200", "above")])
def test_a_wrong_cell_is_named(cell, word):
    grid = grid_of(SCHEMA)
    grid.loc[grid["column"] == "age", "from"] = cell
    with pytest.raises(SchemaError, match=f"age.*{word}"):
        schema_of(grid, SCHEMA)


def test_a_wrong_date_asks_for_a_date():
    grid = grid_of(SCHEMA)
    grid.loc[grid["column"] == "visit_date", "to"] = "soon"
    with pytest.raises(SchemaError, match="2024-01-31"):
        schema_of(grid, SCHEMA)


def test_removed_categories_are_merged_into_other():
    column = Column(name="x", kind=Kind.CATEGORY, categories=("a", "b", "c"))
    kept = with_categories(column, "a\nb\n")
    assert kept.categories == ("a", "b", "OTHER") and kept.other == "OTHER"
    assert with_categories(column, "a\nb\nc").other is None
    with pytest.raises(SchemaError, match="at least one"):
        with_categories(column, " \n")


def test_kinds_change_with_a_domain_from_the_rows():
    ages = FRAME["age"]
    listed = as_kind(ages, SCHEMA["age"], Kind.ORDERED)
    assert listed.categories == tuple(str(v) for v in sorted(ages.unique()))
    back = as_kind(ages, listed, Kind.INTEGER)
    assert (back.low, back.high, back.step) == (ages.min(), ages.max(), 1.0)
    assert as_kind(ages, listed, Kind.TEXT).categories is None


@pytest.mark.parametrize("kind", [Kind.NUMBER, Kind.DATETIME, Kind.BOOLEAN])
def test_a_kind_that_does_not_fit_is_refused(kind):
    words = pd.Series(["north", "south", "east"])
    column = Column(name="ward", kind=Kind.CATEGORY, categories=("north", "south", "east"))
    with pytest.raises(SchemaError, match="Nothing was changed"):
        as_kind(words, column, kind)
