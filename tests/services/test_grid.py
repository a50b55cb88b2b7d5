"""The grid a steward edits, and the way back to a schema."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from core.language.catalogue import language
from core.proposing.misfits import misfits
from core.proposing.propose import infer_schema
from core.reading.tally import Tally, count_cells
from core.reading.typed_cells import typed_tally
from core.schema.column import Column, DomainSource, Kind, SchemaError
from core.services.sample_tables import sample_table
from core.services.schema_grid import as_kind, grid_of, schema_of, with_categories

FRAME = sample_table(300)
SCHEMA = infer_schema(FRAME)


def test_an_untouched_grid_gives_the_same_schema():
    assert schema_of(grid_of(SCHEMA), SCHEMA) == SCHEMA


def test_a_grid_is_said_in_the_language_of_whoever_is_here():
    grid = grid_of(SCHEMA, None, language("de").render)
    assert grid["values"].str.contains("aufgeführt").any()
    assert not grid["values"].str.contains("listed").any()


def test_bounds_missing_and_keep_are_read_back():
    grid = grid_of(SCHEMA)
    row = grid.index[grid["column"] == "age"][0]
    grid.loc[row, ["from", "to", "keep"]] = ["0", "1,200", "leave out"]
    grid.loc[row, "missing"] = True
    age = schema_of(grid, SCHEMA)["age"]
    assert (age.low, age.high, age.missing) == (0.0, 1200.0, True)
    assert age.source is DomainSource.DROP


@pytest.mark.parametrize(
    ("cell", "word"),
    [("old", "a number"), ("200", "above"), ("17,5", "a number"), ("0,250", "a number")],
)
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


def test_a_date_with_an_offset_is_that_moment():
    grid = grid_of(SCHEMA)
    grid.loc[grid["column"] == "visit_date", "from"] = "2020-01-01T02:00+02:00"
    grid.loc[grid["column"] == "visit_date", "to"] = "2030-01-01"
    changed = schema_of(grid, SCHEMA)["visit_date"]
    assert changed.low == datetime(2020, 1, 1, tzinfo=UTC).timestamp()
    assert changed.high == datetime(2030, 1, 1, tzinfo=UTC).timestamp()


def test_removed_categories_are_merged_into_other():
    column = Column(name="x", kind=Kind.CATEGORY, categories=("a", "b", "c"))
    kept = with_categories(column, "a\nb\n")
    assert kept.categories == ("a", "b", "OTHER") and kept.other == "OTHER"
    assert with_categories(column, "a\nb\nc").other is None
    with pytest.raises(SchemaError, match="at least one"):
        with_categories(column, " \n")


def test_kinds_change_with_a_domain_from_the_rows():
    ages = FRAME["age"]
    listed = as_kind(Tally.of(ages), SCHEMA["age"], Kind.ORDERED)
    assert listed.categories == tuple(str(v) for v in sorted(ages.unique()))
    back = as_kind(Tally.of(ages), listed, Kind.INTEGER)
    assert (back.low, back.high, back.step) == (0.0, 100.0, 1.0)  # ages are 18 to 90
    assert as_kind(Tally.of(ages), listed, Kind.TEXT).categories is None


@pytest.mark.parametrize("kind", [Kind.NUMBER, Kind.DATETIME, Kind.BOOLEAN])
def test_a_kind_that_does_not_fit_is_refused(kind):
    words = pd.Series(["north", "south", "east"])
    column = Column(name="ward", kind=Kind.CATEGORY, categories=("north", "south", "east"))
    with pytest.raises(SchemaError, match="Nothing was changed"):
        as_kind(Tally.of(words), column, kind)


def spread(values: object) -> pd.DataFrame:
    return pd.DataFrame({"x": values})


@pytest.mark.parametrize(
    "values",
    [
        np.random.default_rng(0).normal(size=300),  # 17 digits
        np.repeat(1_700_000_000_123_456 + 137 * np.arange(50), 10),  # beyond 15 digits
        pd.to_datetime("2024-01-01") + pd.to_timedelta(np.arange(300) * 1_234_567_891, unit="us"),
        pd.to_datetime(["0800-01-02", "1200-02-03", "1999-01-01"] * 50, format="ISO8601"),
    ],
    ids=["float", "big integer", "microseconds", "old dates"],
)
def test_an_untouched_bound_does_not_move(values):
    schema = infer_schema(spread(values))
    assert schema["x"].kind.numeric
    assert schema_of(grid_of(schema), schema) == schema


def test_the_grid_is_plain_cells():
    grid = grid_of(SCHEMA).set_index("column")
    assert list(grid.index) == list(SCHEMA.names)
    assert grid.loc["visit_date", "from"] == "2022-01-01"
    assert grid.loc["visit_date", "to"] == "2023-12-31"
    assert grid.loc["ward", "values"] == "6 listed" and grid.loc["ward", "scale"] == "—"
    assert grid.loc["cost", "scale"] == "heavy tail"
    assert set(grid["keep"]) == {"declare", "make up"}


def test_an_emptied_bound_is_undeclared_and_scale_follows():
    grid = grid_of(SCHEMA)
    grid.loc[grid["column"] == "cost", ["to", "scale"]] = ["", "even"]
    cost = schema_of(grid, SCHEMA)["cost"]
    assert cost.high is None and cost.scale == "linear" and not cost.declared


def test_spikes_outside_the_bounds_go():
    assert SCHEMA["cost"].spikes == (0.0,)
    grid = grid_of(SCHEMA)
    grid.loc[grid["column"] == "cost", "from"] = "1"
    assert schema_of(grid, SCHEMA)["cost"].spikes == ()


@pytest.mark.parametrize("cell", ["nan", "inf", "1e999"])
def test_a_bound_that_is_no_finite_number_names_its_column(cell):
    grid = grid_of(SCHEMA)
    grid.loc[grid["column"] == "age", "to"] = cell
    with pytest.raises(SchemaError, match="'age', to: write a number"):
        schema_of(grid, SCHEMA)


def test_an_unchanged_list_of_categories_changes_nothing():
    column = Column(name="x", kind=Kind.CATEGORY, categories=(" a", "b ", "c\u2028d"))
    assert with_categories(column, "\n".join(column.categories)) == column


def test_categories_can_be_added_but_not_twice():
    column = Column(name="x", kind=Kind.ORDERED, categories=("a", "b"))
    assert with_categories(column, "a\n b \r\nc").categories == ("a", "b", "c")
    with pytest.raises(SchemaError, match="twice.*Nothing was changed"):
        with_categories(column, "a\na")


def test_other_stays_when_more_is_merged():
    column = Column(name="x", kind=Kind.CATEGORY, categories=("a", "b", "OTHER"), other="OTHER")
    assert with_categories(column, "a\nOTHER").categories == ("a", "OTHER")
    merged = with_categories(column, "a")  # OTHER cannot be removed while something falls into it
    assert merged.categories == ("a", "OTHER") and merged.other == "OTHER"


def cells_of(*cells: str) -> Tally:
    return count_cells(pa.array(cells), written=True)


@pytest.mark.parametrize(
    ("cells", "kind"),
    [
        (["1,5", "2,5", "k. A."], Kind.NUMBER),
        (["1.234,50 €", "2.234,50 €", "unbekannt"], Kind.NUMBER),
        (["31.01.2024", "28.02.2024", "bald"], Kind.DATETIME),
    ],
)
def test_cells_that_do_not_read_as_the_new_kind_are_missing(cells, kind):
    tally, text = cells_of(*cells), Column(name="x", kind=Kind.TEXT)
    column, complete = as_kind(tally, text, kind), as_kind(cells_of(*cells[:2]), text, kind)
    assert column == complete.model_copy(update={"missing": True}).as_proposed()
    typed, unreadable = typed_tally(tally, column)
    assert unreadable == 1 == misfits(typed, column, unreadable)


def test_a_kind_that_most_cells_do_not_read_as_is_refused():
    for kind in (Kind.NUMBER, Kind.DATETIME):
        with pytest.raises(SchemaError, match=f"Most values of 'x' do not read as {kind.value}"):
            as_kind(
                cells_of("12", "2024-01-01", "x", "y", "z"), Column(name="x", kind=Kind.TEXT), kind
            )


def test_an_empty_column_has_no_bounds_to_propose():
    column = Column(name="x", kind=Kind.TEXT)
    with pytest.raises(SchemaError, match="no value"):
        as_kind(Tally.of(pd.Series([None, None], dtype="str")), column, Kind.NUMBER)


def test_dates_keep_their_time_of_day():
    column = Column(name="x", kind=Kind.TEXT)
    for cells, step in [
        (["2024-01-01", "2024-02-01"], 86_400.0),
        (["2024-01-01 10:00", "2024-01-03 11:30"], 60.0),
    ]:
        assert as_kind(Tally.of(pd.Series(cells, dtype="str")), column, Kind.DATETIME).step == step


def test_numbers_as_categories_stand_by_size():
    column = Column(name="x", kind=Kind.INTEGER, low=2, high=10, step=1, dtype="int64")
    listed = as_kind(Tally.of(pd.Series([10, 9, 2])), column, Kind.ORDERED)
    assert listed.categories == ("2", "9", "10")
