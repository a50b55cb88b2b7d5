"""Figures by groups: by hand, the worst named beyond chance alone, and the columns to group by."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from core.quality.comparison import Comparison
from core.quality.metrics.groups import LEAST, by_groups
from core.quality.report.types import Grouping
from core.quality.verdict import verdict
from core.schema.column import Column, Kind
from core.schema.schema import Schema

SCHEMA = Schema(
    columns=(
        Column(name="ward", kind=Kind.CATEGORY, missing=True),
        Column(name="age", kind=Kind.INTEGER),
        Column(name="smoker", kind=Kind.CATEGORY),
        Column(name="ill", kind=Kind.CATEGORY),
    ),
    target="ill",
)


def people(n: int, seed: int, *, rate: float = 0.3) -> pd.DataFrame:
    """Wards of equal size; `ill` follows age, and falls on 3 in 10, in ward c on `rate`."""
    rng = np.random.default_rng(seed)
    ward, age = rng.choice(list("abc"), n), rng.integers(20, 80, n)
    level = np.where(ward == "c", rate, 0.3) * (age - 20) / 30.0
    ill = np.where(rng.random(n) < level, "yes", "no")
    smoker = rng.choice(["n", "y"], n)
    return pd.DataFrame({"ward": ward, "age": age, "smoker": smoker, "ill": ill})


def measured(
    synthetic: pd.DataFrame, *, schema: Schema = SCHEMA, group: tuple[str, ...] = (), seed: int = 0
) -> dict[tuple[str, ...], Grouping]:
    real, test = people(3_000, 100 + seed), people(1_500, 200 + seed)
    tables = Comparison.open(real, synthetic, schema, test=test, grouping=(group, 2))
    groupings = by_groups(tables, lambda *_: None).parts["groupings"]
    return {one.columns: one for one in groupings}


def test_the_ward_whose_rate_is_off_is_named():
    found = measured(people(3_000, 1, rate=0.6))[("ward",)]
    by_name = {group.name: group for group in found.groups}
    assert set(by_name) == {"a", "b", "c"} and found.outcome == "ill = yes"
    real, synthetic = by_name["c"].rate
    assert real == pytest.approx(0.3, abs=0.04) and synthetic == pytest.approx(0.52, abs=0.04)
    assert f"differs most for “c”: {real:.1%} of real rows" in found.sentences[1]
    assert by_name["a"].single[1] < 0.06 < by_name["c"].single[1]


def test_no_rate_is_named_where_both_tables_are_alike():
    named = [
        "In no group does" not in measured(people(3_000, 50 + i), seed=i)[key].sentences[1]
        for i in range(20)
        for key in (("ward",), ("age",))
    ]
    assert sum(named) <= 6  # 1 in 20 is expected


def test_cases_a_model_no_longer_finds_are_named_by_group():
    made = people(3_000, 3)
    made.loc[made["ward"] == "b", "ill"] = "no"
    found = measured(made)[("ward",)]
    by_name = {group.name: group for group in found.groups}
    assert by_name["b"].found[1] < 0.2 < 0.5 < by_name["b"].found[0]
    assert "a model trained on synthetic rows finds" in found.sentences[2]
    assert "for “b”" in found.sentences[3]


def test_distance_within_a_group_is_that_of_its_own_rows():
    real = pd.DataFrame({"g": ["a"] * 100 + ["b"] * 100, "x": ["0"] * 150 + ["1"] * 50})
    made = pd.DataFrame({"g": ["a"] * 50 + ["b"] * 100, "x": ["0"] * 75 + ["1"] * 75})
    schema = Schema(columns=tuple(Column(name=n, kind=Kind.CATEGORY) for n in "gx"))
    tables = Comparison.open(real, made, schema)
    one, *_ = by_groups(tables, lambda *_: None).parts["groupings"]
    a, b = one.groups
    assert (a.single[1], b.single[1]) == pytest.approx((0.0, 0.25))  # ½ (|.5 − .25| + |.5 − .75|)
    assert a.share == pytest.approx((0.5, 1 / 3), abs=1e-5) and a.rate is None


def test_groups_of_two_columns_and_their_order():
    every = measured(people(3_000, 1))
    assert list(every)[:3] == [("smoker",), ("ward",), ("age",)] and ("smoker", "ward") in every
    asked = measured(people(3_000, 1), group=("age", "ward"))
    assert next(iter(asked)) == ("age", "ward")
    names = [group.name for group in asked["age", "ward"].groups]
    assert len(names) == 12 and names[0].startswith("< ") and ", " in names[0]
    assert asked["age", "ward"].unseen == 0


def test_small_and_missing_groups():
    real = people(400, 5)
    real.loc[:39, "ward"] = None
    real.loc[40:49, "ward"] = "rare"
    tables = Comparison.open(real, real[real["ward"] != "a"], SCHEMA)
    by_name = {one.columns: one for one in by_groups(tables, lambda *_: None).parts["groupings"]}
    ward = by_name[("ward",)]
    names = {group.name: group for group in ward.groups}
    assert set(names) == {"a", "b", "c", "(missing)"} and ward.unseen == 1 and LEAST == 30
    assert names["a"].pairs[1] == 1.0 and names["a"].rate is None  # no synthetic row is in it


def test_a_number_to_predict_has_means_and_r2():
    schema = SCHEMA.model_copy(update={"target": "age"})
    made = people(3_000, 1)
    made.loc[made["ward"] == "c", "age"] += 10
    found = measured(made, schema=schema)[("ward",)]
    assert found.score == "R²" and found.outcome == "age"
    assert "The mean of “age” differs most for “c”" in found.sentences[1]
    assert all(group.score is not None and group.found is None for group in found.groups)


def test_a_rate_that_is_off_in_a_group_is_in_the_verdict():
    groupings = [one.model_dump() for one in measured(people(3_000, 1, rate=0.9)).values()]
    report = {
        "scores": [],
        "columns": {},
        "associations": None,
        "attacks": [],
        "view": "inside",
        "target": "ill",
        "groupings": groupings,
    }
    told = verdict(report, SCHEMA, private=True, hidden=())
    assert told.uses["unfit"][0].startswith("ill = yes by groups of ward")
