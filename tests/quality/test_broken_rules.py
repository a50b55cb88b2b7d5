"""Rows that cannot be: what holds in every real row is found, chance is not, and breaks counted."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from core.encoding.layout.invariants import ENOUGH, invariants
from core.export.findings import findings
from core.quality.comparison import Comparison
from core.quality.metrics.broken_rules import (
    impossible_rows,
    inconsistent_rows,
    never_together,
)
from core.quality.report.outside import outside_report
from core.quality.report.types import Report
from core.schema.column import Column, Kind
from core.schema.person import Person
from core.schema.rules.rules import AtMost
from core.schema.schema import Schema
from tests.quality.conftest import score_of

N = 3_000
DAY = 86_400.0


def number(name: str, high: float, step: float = 1.0, **more: object) -> Column:
    return Column(name=name, kind=Kind.INTEGER, low=0, high=high, step=step, dtype="int64", **more)


def date(name: str) -> Column:
    ends = {"low": 0, "high": 9e8, "step": DAY}
    return Column(name=name, kind=Kind.DATETIME, dtype="datetime64[us]", **ends)


SCHEMA = Schema(
    columns=(
        Column(
            name="score",
            kind=Kind.ORDERED,
            categories=tuple(map(str, range(11))),
            dtype="int64",
        ),
        Column(name="grade", kind=Kind.CATEGORY, categories=("poor", "fair", "good")),
        number("net", 1000),
        number("tax", 300),
        number("total", 1300),
        date("admitted"),
        date("left"),
        number("stay", 30, missing=True),
        number("noise", 500),
        Column(name="who", kind=Kind.CATEGORY, categories=tuple(f"p{i}" for i in range(N))),
    )
)  # fmt: skip
EXPECTED_RULES = {
    "grade <- score", "total = net + tax", "net <= total", "tax <= total", "admitted <= left",
    "stay = left - admitted",
}  # fmt: skip


def real(seed: int = 0) -> pd.DataFrame:
    random = np.random.default_rng(seed)
    score, net, tax = (
        random.integers(0, 11, N),
        random.integers(0, 900, N),
        random.integers(1, 300, N),
    )
    admitted = pd.Timestamp("1980-01-01") + pd.to_timedelta(random.integers(0, 900, N), "D")
    stay = random.integers(0, 30, N)
    return pd.DataFrame(
        {
            "score": score,
            "grade": np.array(["poor", "fair", "good"])[np.digitize(score, (4, 8))],
            "net": net,
            "tax": tax,
            "total": net + tax,
            "admitted": admitted,
            "left": admitted + pd.to_timedelta(stay, "D"),
            "stay": pd.Series(stay).astype("Int64").mask(random.random(N) < 0.1),
            "noise": random.integers(0, 500, N),
            "who": [f"p{i}" for i in range(N)],
        }
    )  # fmt: skip


def measured(synthetic: pd.DataFrame, schema: Schema = SCHEMA, rows: pd.DataFrame | None = None):
    tables = Comparison.open(real() if rows is None else rows, synthetic, schema)
    return impossible_rows(tables, lambda *_: None)


def test_what_holds_in_every_row_is_found_and_nothing_else() -> None:
    assert {one.rule.text for one in invariants(real(), SCHEMA.columns)} == EXPECTED_RULES


def test_one_row_that_breaks_a_rule_ends_it() -> None:
    frame = real()
    frame.loc[frame.index[frame["score"] == 0][0], "grade"] = "good"
    frame.loc[N - 2, "total"] += 1
    found = {one.rule.text for one in invariants(frame, SCHEMA.columns)}
    assert found == EXPECTED_RULES - {"grade <- score", "total = net + tax"}


def test_what_a_few_rows_keep_by_chance_is_no_rule() -> None:
    few = real().head(ENOUGH - 1)
    assert invariants(few, SCHEMA.columns) == ()


def test_synthetic_rows_that_break_rules_are_counted() -> None:
    synthetic = real(1)
    wrong = synthetic.index[:300]
    synthetic.loc[wrong, "grade"] = np.where(
        synthetic.loc[wrong, "grade"] == "poor", "good", "poor"
    )
    synthetic.loc[synthetic.index[200:450], "total"] += 1
    result = measured(synthetic)
    (score,) = result.scores
    assert score.value == pytest.approx(450 / N)  # 300 and 250 rows, 100 of them both
    rows = {one.text: one.rows for one in result.parts["broken_rules"]}
    assert rows == {"grade <- score": 300, "total = net + tax": 250}


def test_rows_like_the_real_ones_break_no_rule() -> None:
    result = measured(real(7))
    assert [score.value for score in result.scores] == [0.0] and not result.parts["broken_rules"]
    unrelated = measured(real(7)[["noise"]], rows=real()[["noise", "score"]])
    assert unrelated.scores == [] and unrelated.parts == {}


def test_hidden_columns_and_keys_are_not_spoken_of() -> None:
    synthetic = real(1).assign(grade="poor", total=0)
    hidden = SCHEMA.model_copy(update={"sensitive": {"g": ("grade", "total")}})
    assert measured(synthetic, hidden).parts["broken_rules"] == []
    keyed = SCHEMA.model_copy(update={"person": Person(columns=("score",), rows=2)})
    texts = [one.text for one in measured(synthetic, keyed).parts["broken_rules"]]
    assert "grade <- score" not in texts and "total = net + tax" in texts


def test_it_is_the_first_sentence_inside_and_nothing_outside() -> None:
    synthetic = real(1).assign(grade="poor")
    result = measured(synthetic)
    report = Report(rows_real=N, rows_synthetic=N, scores=result.scores, **result.parts)
    first = findings(report.model_dump())[0]
    wrong = int((real(1)["grade"] != "poor").sum())
    assert first.kind == "lost" and f"grade <- score ({wrong:,} rows)" in first.text
    assert first.text.startswith(
        f"{wrong / N:.0%} of the synthetic rows break rules that every real row"
    )
    outside = outside_report(synthetic, SCHEMA)
    assert outside.broken_rules == [] and score_of(outside, "impossible_rows") is None


# -- pairs of values that never go together -------------------------------------------------------


def test_never_together_by_hand() -> None:
    counts = np.array(
        [
            [0, 50, 50, 0],  # none of 100 · 50 / 200 = 25 expected: too few
            [50, 0, 0, 0],  # nothing but the first, of 100 · ¾ … others expected
            [0, 0, 50, 0],
            [0, 0, 0, 0],  # values that no real row has
        ]
    )
    expected = np.zeros((4, 4), dtype=bool)
    expected[1, 1:3] = True  # 50 · 150/200 = 37.5 rows of other values
    expected[1:3, 0] = False
    # the first column: only the second row, of 50 · 150/200 = 37.5 expected others
    expected[0, 0] = expected[2, 0] = True
    # 50 · 100/200 = 25 each: below 30; the third row holds one value, 50 · ½ = 25 others
    assert never_together(counts).tolist() == expected.tolist()
    many = np.array([[0, 80, 0], [80, 40, 0], [0, 0, 0]])  # 80 · 80 / 200 = 32 expected
    assert never_together(many).tolist() == [[True, False, False], [False] * 3, [False] * 3]


def test_inconsistent_rows_are_counted_and_the_worst_named() -> None:
    age = np.tile(np.arange(60), 50)
    married = np.where((age > 15) & (np.arange(N) % 2 == 0), "yes", "no")
    frame = pd.DataFrame({"age": age, "married": married, "low": 1, "high": 2})
    synthetic = frame.assign(married=np.where(age < 10, "yes", married))
    synthetic.loc[:49, "high"] = 0
    columns = (
        number("age", 90),
        Column(name="married", kind=Kind.CATEGORY, categories=("yes", "no")),
        number("low", 9),
        number("high", 9),
    )
    schema = Schema(columns=columns, rules=(AtMost(low="low", high="high"),))
    result = inconsistent_rows(Comparison.open(frame, synthetic, schema), lambda *_: None)
    # 50 rows an age: 50 · 22.5/60 = 18 married by chance, so ages are too few by themselves
    (score,) = result.scores
    assert score.value == pytest.approx(50 / N) and score.note == ""
    twice = [pd.concat([one] * 2, ignore_index=True) for one in (frame, synthetic)]
    (score,) = inconsistent_rows(Comparison.open(*twice, schema), lambda *_: None).scores
    either = (age < 10) | (np.arange(N) < 50)
    assert score.value == pytest.approx(either.mean()) and score.ceiling == 0.0
    assert "by age and married, in 1,000 rows: for example age = 0 with married = yes" in score.note


def test_real_rows_set_the_ceiling_of_inconsistency() -> None:
    frame = pd.DataFrame({"a": ["x", "y"] * 500, "b": ["p", "q"] * 500})
    other = pd.DataFrame({"a": ["x"] * 10, "b": ["p"] * 9 + ["q"]})
    columns = tuple(Column(name=name, kind=Kind.CATEGORY) for name in "ab")
    tables = Comparison.open(frame, frame, Schema(columns=columns), test=other)
    (score,) = inconsistent_rows(tables, lambda *_: None).scores
    assert (score.value, score.ceiling) == (0.0, 0.1)
