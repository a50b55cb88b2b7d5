"""NIST's yardstick: scores by hand, published scores of real subsamples, groups, sets, bins."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from core.quality.aligned_tables import Features
from core.quality.comparison import Comparison
from core.quality.metrics.yardstick import (
    MOST_SETS,
    column_sets,
    k_marginal,
    subsample_share,
    yardsticks,
)
from core.quality.value_codes import coded
from core.schema.column import Column, Kind
from core.schema.schema import Schema

DATA = Path(os.environ.get("FACSIMILE_DATA", "none")) / "nist" / "national2019.csv"
NUMBERS = ("AGEP", "NOC", "NPF", "DENSITY", "INDP", "PINCP", "POVPIP", "PWGTP", "WGTP")
LISTS = Schema(columns=tuple(Column(name=name, kind=Kind.CATEGORY) for name in "gab"))


def rows(text: str) -> pd.DataFrame:
    return pd.DataFrame([list(row) for row in text.split()], columns=list("gab"))


def columns(schema: Schema, *frames: pd.DataFrame, own: int = 0):
    features, tables = Features.fit(schema, *frames)
    return {feature.name: coded(feature, tables, own=own) for feature in features.items}


REAL = rows("1xx 1xy 2yx 2yx")
MADE = rows("1xx 1xx 1yx 2yx")


def test_score_of_one_pair_by_hand():
    # (a, b): real xx ¼, xy ¼, yx ½; made xx ½, yx ½: Σ|p − q| = ½ → 500 · 1.5
    # (g, a): 1x ½, 2y ½; made 1x ½, 1y ¼, 2y ¼: ½. (g, b): 1x ¼, 1y ¼, 2x ½; ¾, 0, ¼: 1
    scores, _ = k_marginal(columns(LISTS, REAL, MADE))
    assert scores.tolist() == pytest.approx([500 * (2 - np.mean([0.5, 0.5, 1.0]))])


def test_grouped_score_by_hand():
    # within g, cells are shares of all rows: 1xx ¼ → ½, 1xy ¼ → 0, 1yx 0 → ¼; 2yx ½ → ¼
    scores, within = k_marginal(columns(LISTS, REAL, MADE), group="g")
    assert scores.tolist() == pytest.approx([500 * (2 - 1.0)])
    # group 1 holds ½ of real rows and differs by ¾, which counts as all of it; group 2 by ¼ of ½
    named = columns(LISTS, REAL)["g"].names
    assert dict(zip(named, within[:, 0], strict=True)) == pytest.approx({"1": 0.0, "2": 500.0})


@pytest.mark.parametrize("k", [1, 2, 3])
def test_score_against_pandas(k):
    rng = np.random.default_rng(k)
    a, b = (
        pd.DataFrame(rng.integers(0, 3, (n, 3)).astype(str), columns=list("gab")) for n in (90, 70)
    )
    gaps = []
    for some in {1: ["g", "a", "b"], 2: [list("ga"), list("gb"), list("ab")], 3: [list("gab")]}[k]:
        p, q = (frame.value_counts(some, normalize=True) for frame in (a, b))
        gaps.append(p.sub(q, fill_value=0).abs().sum())
    assert k_marginal(columns(LISTS, a, b), k=k)[0][0] == pytest.approx(500 * (2 - np.mean(gaps)))


def test_equal_tables_score_1000_and_strangers_0():
    other = rows("3pp 3pq 4qp 4qp")
    for group in (None, "g"):
        scores, _ = k_marginal(columns(LISTS, REAL, REAL, other), group=group)
        assert scores.tolist() == pytest.approx([1000.0, 0.0])


def test_cells_in_use_give_the_same_score(monkeypatch):
    rng = np.random.default_rng(0)
    frames = [pd.DataFrame(rng.integers(0, 9, (60, 3)).astype(str), columns=list("gab"))] * 2
    frames[1] = frames[0].sample(40, random_state=1)
    dense = k_marginal(columns(LISTS, *frames), group="g", subsamples=(0.1, 0.5))
    monkeypatch.setattr("core.quality.metrics.yardstick.DENSE_CELLS", 1)
    monkeypatch.setattr("core.quality.metrics.yardstick.SPARSE", 1e9)
    monkeypatch.setattr("core.quality.metrics.yardstick.MOST_CELLS", 1)
    for ours, theirs in zip(
        dense, k_marginal(columns(LISTS, *frames), group="g", subsamples=(0.1, 0.5)), strict=True
    ):
        assert ours == pytest.approx(theirs)


def test_sets_of_many_columns_are_a_fixed_few():
    assert column_sets(4, 2) == [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]
    assert column_sets(2, 3) == [(0, 1)]
    many = column_sets(500, 3)
    assert many == column_sets(500, 3) and len(set(many)) == MOST_SETS


def test_numbers_are_binned_by_real_quantiles():
    schema = Schema(columns=(Column(name="x", kind=Kind.NUMBER, missing=True),))
    real = pd.DataFrame({"x": [*np.arange(100.0), np.nan]})
    other = pd.DataFrame({"x": [0.0, 4.9, 5.0, 99.0, 100.0, -1.0, np.nan]})
    one = columns(schema, real, other)["x"]
    assert np.bincount(one.codes[0])[:3].tolist() == [5, 5, 5] and one.names[0] == "0 – 5"
    unknown = len(one.names)
    assert one.names[-2:] == ("99", "(missing)")
    assert one.codes[1].tolist() == [0, 0, 1, 19 + 1, unknown, unknown, unknown - 1]


def test_two_numbers_are_never_one_bin():
    schema = Schema(columns=(Column(name="x", kind=Kind.INTEGER, dtype="int64"),))
    one = columns(schema, pd.DataFrame({"x": [0] * 99 + [1]}), pd.DataFrame({"x": [1, 0, 2]}))["x"]
    assert one.codes[1].tolist() == [1, 0, 2] and one.size == 3


def test_long_list_of_codes_is_binned_and_its_words_stay():
    schema = Schema(columns=(Column(name="x", kind=Kind.CATEGORY),))
    real = pd.DataFrame({"x": [str(i) for i in range(100)] + ["N"] * 7})
    one = columns(schema, real, pd.DataFrame({"x": ["3", "N", "Z", "250"]}))["x"]
    assert len(one.names) == 22 and one.names[-1] == "N"
    assert one.codes[1].tolist() == [0, 21, 22, 22]
    short = columns(schema, real.tail(25), real.tail(1))["x"]
    assert sorted(short.names) == sorted(set(real.tail(25)["x"])), "18 codes are a list"


def test_as_close_as_a_subsample():
    scale = [(0.05, 700.0), (0.1, 800.0), (0.4, 900.0)]
    assert [subsample_share(score, scale) for score in (650.0, 800.0, 850.0, 1000.0)] == (
        pytest.approx([0.05, 0.1, 0.2, 1.0])
    )


def test_subsamples_recover_their_own_size():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.integers(0, 6, (4000, 3)).astype(str), columns=list("gab"))
    part = frame.sample(400, random_state=3)
    measured = yardsticks(Comparison.open(frame, part, LISTS, grouping=("g", 2)), lambda *_: None)
    first = measured.parts["yardsticks"][0]
    assert first.group == "g" and first.as_close_as == pytest.approx(0.1, rel=0.25)
    values = {score.key: score for score in measured.scores}
    assert values["worst_group"].value == first.groups[0][1] == min(s for _, s in first.groups)
    assert first.groups[0][0] in values["worst_group"].note
    assert [one.group for one in measured.parts["yardsticks"]] == ["g", None, "a", "b"]


def test_target_with_few_values_groups_first():
    schema = LISTS.model_copy(update={"target": "b"})
    measured = yardsticks(Comparison.open(REAL, MADE, schema), lambda *_: None)
    assert [one.group for one in measured.parts["yardsticks"]] == ["b", None, "g", "a"]


@pytest.mark.skipif(not DATA.exists(), reason="FACSIMILE_DATA names no folder with nist/")
def test_published_scores_of_real_subsamples():
    frame = pd.read_csv(DATA, dtype=str, keep_default_na=False)
    for name in NUMBERS:
        frame[name] = pd.to_numeric(frame[name], errors="coerce")
    schema = Schema(
        columns=tuple(
            Column(name=name, kind=Kind.NUMBER, missing=True)
            if name in NUMBERS
            else Column(name=name, kind=Kind.CATEGORY)
            for name in frame
        )
    )
    scores, _ = k_marginal(columns(schema, frame), group="PUMA", subsamples=(0.05, 0.1, 0.2, 0.4))
    # single draws there, of which one of 5 % has a standard deviation of 3 points
    assert scores[0] == pytest.approx(771, abs=4)
    assert scores[1:].tolist() == pytest.approx([834, 888, 932], abs=3)
    # NIST's own reports (2.5), ten demographic columns without groups
    ten = "AGEP SEX MSP RAC1P HOUSING_TYPE OWN_RENT EDU PINCP_DECILE DVET DEYE".split()
    few = {name: one for name, one in columns(schema, frame).items() if name in ten}
    scores, _ = k_marginal(few, subsamples=(0.05, 0.1, 0.2, 0.4))
    assert scores.tolist() == pytest.approx([950, 969, 977, 987], abs=5)
