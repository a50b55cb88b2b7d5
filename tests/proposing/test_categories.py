"""Long lists of categories: counts, merging, ticking."""

from __future__ import annotations

import pandas as pd

from core.proposing.kinds import infer_tally
from core.proposing.rare import OTHER, count_labels, falling, labels_from, merged_below
from core.reading.tally import Tally
from core.schema.column import Column, Kind, Provenance, SchemaColumn

LABELS = [f"common {i:03d}" for i in range(200) for _ in range(20)] + [
    f"once {i:03d}" for i in range(200)
]
FRAME = pd.DataFrame({"diagnosis": pd.Series(LABELS, dtype="str")})


def test_four_hundred_labels_half_of_them_once_are_categories() -> None:
    column = infer_tally(Tally.of(FRAME["diagnosis"]), "diagnosis")
    assert column.kind is Kind.CATEGORY and column.other == OTHER
    assert len(column.categories or ()) == 201 and "200 values of fewer than ten" in column.note


def test_counts_are_of_rows_and_of_people() -> None:
    frame = pd.DataFrame(
        {"who": [1, 1, 2, 3, 3], "c": pd.Series(["a", "a", "a", "b", "b"], dtype="str")}
    )
    rows = count_labels([frame], "c")
    assert rows.to_dict("list") == {"label": ["a", "b"], "rows": [3, 2], "people": [3, 2]}
    people = count_labels([frame], "c", ["who"])
    assert people["people"].tolist() == [2, 1]  # b: two rows, one person
    gone = frame.assign(c=frame["c"].where(frame["c"] == "a"))
    assert count_labels([gone], "c")["label"].tolist() == ["a"]


def test_merging_below_k_keeps_labels_of_k_rows() -> None:
    counts = count_labels([FRAME], "diagnosis")
    assert falling(counts, 1) == (0, 0)
    assert falling(counts, 2) == (200, 200) == falling(counts, 20)
    assert falling(counts, 21) == (400, 4200)
    proposed = infer_tally(Tally.of(FRAME["diagnosis"]), "diagnosis")
    for fewer, listed in ((1, 400), (2, 200), (20, 200)):
        merged = merged_below(proposed, counts, fewer)
        assert len(set(merged.categories or ()) - {OTHER}) == listed
        assert merged.other == (None if listed == 400 else OTHER)
        assert "were merged into" in proposed.note and "were merged into" not in merged.note
        # a threshold over rows is no knowledge of the steward's own
        assert merged.provenance is Provenance.PROPOSED
    back = merged_below(merged_below(proposed, counts, 1), counts, 10)
    assert set(back.categories or ()) == set(proposed.categories or ())


def test_what_the_steward_declared_without_rows_stays() -> None:
    counts = count_labels([FRAME], "diagnosis")
    column = SchemaColumn(
        name="diagnosis", kind=Kind.CATEGORY, categories=("none yet", "once 001"), proposal="none"
    )
    merged = merged_below(column, counts, 20)
    assert (merged.categories or ())[0] == "none yet" and merged.provenance is Provenance.STEWARD
    assert "once 001" not in (merged.categories or ())


def test_rows_that_hold_the_very_word_keep_it() -> None:
    labels = ["a"] * 30 + [OTHER] * 20 + ["b"] * 15 + ["c"] * 5
    frame = pd.DataFrame({"x": pd.Series(labels, dtype="str")})
    counts = count_labels([frame], "x")
    proposed = infer_tally(Tally.of(frame["x"]), "x")
    assert (proposed.categories, proposed.other) == (("a", "b", OTHER), OTHER)
    everything = merged_below(proposed, counts, 1)
    assert (everything.categories, everything.other) == (("a", "b", "c", OTHER), OTHER)
    plain = proposed.model_copy(update={"categories": (OTHER, "a", "b", "c"), "other": None})
    assert merged_below(plain, counts, 1).categories == plain.categories
    merged = merged_below(plain, counts, 10)  # OTHER is listed once
    assert (merged.categories, merged.other) == (("a", "b", OTHER), OTHER)


def test_ticks_change_what_is_shown_and_nothing_else() -> None:
    column = Column(name="c", kind=Kind.CATEGORY, categories=("a", "b", OTHER), other=OTHER)
    assert labels_from(column, ["z"], []) == ("a", "b", "z", OTHER)
    assert labels_from(column, [], ["a"]) == ("b", OTHER)
    assert labels_from(column, ["a"], []) == ("a", "b", OTHER)
    assert labels_from(column.model_copy(update={"other": None}), [], [OTHER]) == ("a", "b")
