"""What is proposed of raw cells reads these cells: none is lost by the proposal itself."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.proposing.profile import Profile
from core.proposing.propose import Counts, profile_rows, propose
from core.reading.raw_cells import as_written
from core.reading.typed_cells import typed_rows
from core.schema.column import Kind
from core.schema.labels import to_labels
from core.schema.schema import Schema

pytestmark = pytest.mark.slow

SPELLINGS = (
    st.integers(-(10**6), 10**6).map(str),
    st.floats(-1e6, 1e6).map(lambda x: f"{x:.2f}"),
    st.floats(-1e6, 1e6).map(lambda x: f"{x:.1f}".replace(".", ",")),
    st.integers(0, 10**7).map(lambda x: f"{x:,}"),
    st.integers(0, 10**7).map(lambda x: f"{x:,} €".replace(",", ".")),
    st.integers(0, 100).map(lambda x: f"{x} %"),
    st.dates().map(lambda day: day.isoformat()),
    st.sampled_from(["NA", "DE", "FR", "Na", "null", "", "?", " ", "N/A", "True", "False", "yes"]),
    st.sampled_from(["inf", "1e400", "1e3", "007", "+47", "1.10", "-0", ".5", "5.", "1_000"]),
    st.text(max_size=6),
)


def proposed(**columns: Sequence[str]) -> tuple[Schema, Profile, pd.DataFrame, tuple[str, ...]]:
    """Proposal, picture, typed rows and doubts of written columns."""
    rows = as_written(pa.table({n: pa.array(list(c), pa.string()) for n, c in columns.items()}))
    counts = Counts.of([rows])
    schema, doubts, _ = propose(counts, lambda names: [rows.select(list(names))])
    picture = profile_rows(counts, schema, lambda names: [rows.select(list(names))])
    return schema, picture, typed_rows(rows, schema.columns), doubts


@given(st.sampled_from(SPELLINGS), st.sampled_from(SPELLINGS), st.data())
@settings(max_examples=80, deadline=None)
def test_a_proposal_reads_the_cells_that_it_is_made_of(one, other, data) -> None:  # type: ignore[no-untyped-def]
    some = data.draw(st.lists(one, min_size=1, max_size=40))
    more = data.draw(st.lists(st.one_of(one, other), min_size=len(some), max_size=len(some)))
    repeats = data.draw(st.sampled_from([1, 12]))
    schema, picture, frame, doubts = proposed(a=some * repeats, b=more * repeats)
    for column, found in zip(schema.columns, picture.columns, strict=True):
        if not column.modelled:
            continue
        said = " ".join(doubts)
        known = f"'{column.name}' has infinite" in said or f"'{column.name}' has numbers" in said
        assert found.unreadable == 0 or known
        assert column.other or found.misfit == found.unreadable, column
        if column.kind.listed:
            labels = set(to_labels(frame[column.name]).dropna())
            assert labels <= set(column.categories or ()) or column.other
        if not column.missing:
            assert frame[column.name].notna().all()


def test_words_that_are_values_stay_so_by_the_proposal() -> None:
    schema, _, frame, _ = proposed(country=["DE", "NA", "FR"] * 10, name=["Null", "Ann"] * 15)
    assert schema["country"].categories == ("DE", "FR", "NA")
    assert frame.notna().all(axis=None)
    few = ["DE"] * 40 + ["NA"] * 3 + ["FR"] * 20  # too few rows to be listed
    schema, picture, frame, _ = proposed(country=few)
    assert schema["country"].missing and frame["country"].isna().sum() == 3
    assert picture["country"].misfit == 0
    schema, _, frame, _ = proposed(surname=["Null", *(f"Ms {chr(65 + i)}" for i in range(25))])
    assert schema["surname"].kind.surrogate and frame["surname"].notna().all()


def test_a_scale_with_marks_is_read_under_its_own_list() -> None:
    cells = ["0,5 €", "1,0 €", "1,5 €"] * 12
    schema, picture, frame, _ = proposed(step=cells)
    assert schema["step"].kind is Kind.ORDERED
    assert schema["step"].categories == ("0.5", "1.0", "1.5")
    assert picture["step"].misfit == 0 and frame["step"].tolist()[:3] == [0.5, 1.0, 1.5]


def test_labels_with_a_code_stay_as_they_are_written() -> None:
    schema, picture, _, _ = proposed(a=["1 €", "2 €"] * 20 + ["?"] * 30 + ["N/A"] * 12)
    assert set(schema["a"].categories or ()) == {"1 €", "2 €", "N/A"}
    assert picture["a"].misfit == 0


@pytest.mark.parametrize("late", ["512345678 kg", "512345678.5"])
def test_what_one_row_of_a_large_table_holds_is_counted(
    late: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of 30,000 different cells 2,500 are kept; this one is none of them."""
    cells = [str(number) for number in np.random.default_rng(0).integers(0, 10**9, 30_000)]
    cells[17] = late
    rows = as_written(pa.table({"x": cells}))
    batches = [rows.slice(first, 2_000) for first in range(0, 30_000, 2_000)]
    monkeypatch.setattr("core.proposing.propose.VALUES", 2_500)
    counts = Counts.of(batches)
    assert late not in set(counts.tallies()["x"].values)
    schema, *_ = propose(counts, lambda names: batches)
    picture = profile_rows(counts, schema, lambda names: batches)
    word = late.endswith("kg")
    assert (schema["x"].kind, schema["x"].dtype, schema["x"].missing) == (
        (Kind.INTEGER, "Int64", True) if word else (Kind.NUMBER, "float64", False)
    )
    assert schema["x"].step == (1.0 if word else 0.1)
    assert picture["x"].unreadable == picture["x"].misfit == int(word)
    assert sum(picture["x"].counts) == 30_000 - int(word)


def test_a_late_cell_that_is_no_date_makes_room_for_absent_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    days = pd.Series(np.datetime64("1900-01-01") + np.arange(30_000)).dt.strftime("%d.%m.%Y")
    days[[8, 9]] = "31.02.1950", "15.05.1950 early"
    batches = [as_written(pa.table({"x": days[i : i + 2_000]})) for i in range(0, 30_000, 2_000)]
    monkeypatch.setattr("core.proposing.propose.VALUES", 2_500)
    counts = Counts.of(batches)
    assert not set(days[[8, 9]]) & set(counts.tallies()["x"].values)
    schema, *_ = propose(counts, lambda names: batches)
    assert (schema["x"].kind, schema["x"].missing) == (Kind.DATETIME, True)
    assert profile_rows(counts, schema, lambda names: batches)["x"].unreadable == 2
