"""The stored picture of a table: counts that add up, JSON that comes back, a bounded size."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.proposing.profile import MAX_BINS, PREVIEW_ROWS, TOP_LABELS, Profile
from core.proposing.propose import Counts, infer_schema, profile_rows
from core.reading.raw_cells import raw_frame
from core.schema.column import Kind
from core.schema.schema import Schema
from core.services.sample_tables import sample_table


def picture(frame: pd.DataFrame, schema: Schema | None = None) -> Profile:
    rows = raw_frame(frame)
    schema = infer_schema(frame) if schema is None else schema
    return profile_rows(Counts.of([rows]), schema, lambda names: [rows.select(list(names))])


def test_the_sample_is_pictured_whole() -> None:
    frame = sample_table()
    found = picture(frame)
    assert found.n == len(frame) and len(found.preview) == PREVIEW_ROWS
    for column in found.columns:
        present = frame[column.name].notna().sum()
        assert column.missing == pytest.approx(1 - present / len(frame))
        shown = sum(column.counts) + column.other
        assert shown == (column.distinct if column.kind.surrogate else present)
        assert (column.edges is None) != (column.labels is None)
    assert Profile.model_validate_json(found.model_dump_json()) == found
    assert len(found.model_dump_json()) < 100_000


def test_ordered_labels_stay_in_order_and_categories_go_by_count() -> None:
    frame = sample_table()
    found = picture(frame)
    assert found["triage"].labels == ("low", "moderate", "high", "critical")
    counts = found["ward"].counts
    assert list(counts) == sorted(counts, reverse=True) and found["ward"].labels is not None
    assert found["ward"].labels[0] == frame["ward"].mode()[0]


def test_dates_and_tails_are_pictured_on_their_scale() -> None:
    found = picture(sample_table())
    assert found["cost"].edges is not None and found["visit_date"].low is not None
    assert len(found["cost"].edges) == MAX_BINS + 1 and found["cost"].edges[0] == 0
    widths = np.diff(found["cost"].edges)
    assert (np.diff(widths) > 0).all()  # ever wider bins
    assert pd.Timestamp(found["visit_date"].low, unit="s").hour == 0


def test_many_labels_are_cut_to_the_most_frequent() -> None:
    labels = [f"w{i:02d}" for i in range(30) for _ in range(i + 1)] * 3
    found = picture(pd.DataFrame({"w": labels}))["w"]
    assert found.labels is not None and len(found.labels) == TOP_LABELS
    assert found.labels[0] == "w29" and found.distinct == 30
    assert found.other == 3 * sum(range(1, 19))  # the 18 rarest


def test_identifiers_show_no_values() -> None:
    found = picture(pd.DataFrame({"key": [f"k{i}" for i in range(50)] + ["k0"]}))["key"]
    assert found.kind is Kind.IDENTIFIER
    assert found.counts == (49, 1) and found.labels == ("appear once", "appear more often")


def test_integer_bins_hold_equally_many_integers() -> None:
    found = picture(pd.DataFrame({"n": np.arange(100).repeat(3)}))["n"]
    assert set(found.counts[:-1]) == {found.counts[0]}
    few = picture(pd.DataFrame({"n": [*range(20)] * 2}))["n"]
    assert few.counts == (2,) * 20


def test_a_column_without_values_has_no_picture() -> None:
    found = picture(pd.DataFrame({"e": pd.Series([None, None], dtype="str"), "n": [1, 2]}))["e"]
    assert (found.missing, found.distinct, found.counts) == (1.0, 0, ())


def test_the_preview_is_plain_json() -> None:
    frame = pd.DataFrame(
        {
            "i": pd.array([1, None], dtype="Int64"),
            "f": [np.nan, 0.5],
            "inf": [np.inf, 1.0],
            "b": pd.array([None, True], dtype="boolean"),
            "d": pd.to_datetime(["2024-02-29", None]),
            "s": ["x" * 1000, None],
        }
    )
    first, second = json.loads(picture(frame).model_dump_json())["preview"]
    assert (first["i"], first["f"], first["inf"], first["b"]) == (1, None, None, None)
    assert first["d"] == "2024-02-29 00:00:00" and len(first["s"]) == 200
    assert second == {"i": None, "f": 0.5, "inf": 1.0, "b": True, "d": None, "s": None}


@given(
    st.lists(st.none() | st.floats(-1e12, 1e12), min_size=1, max_size=60),
    st.sampled_from(["linear", "log"]),
    st.sampled_from([0.0, 1.0]),
)
@settings(max_examples=80, deadline=None)
def test_every_number_falls_in_a_bin(values: list[float | None], scale: str, step: float) -> None:
    frame = pd.DataFrame({"x": pd.Series(values, dtype="float64").round(0 if step else 9)})
    column = infer_schema(pd.DataFrame({"x": [0.5, 1.5, 2.5]}))["x"]
    schema = infer_schema(frame)
    column = column.model_copy(update={"scale": scale, "step": step})
    found = picture(frame, schema.replace(column))["x"]
    assert sum(found.counts) == frame["x"].notna().sum()
    assert len(found.counts) <= MAX_BINS
