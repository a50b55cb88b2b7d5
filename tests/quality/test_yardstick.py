"""NIST's yardstick: scores by hand, published scores of real subsamples, groups, sets, bins."""

from __future__ import annotations

import os
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from core.quality.aligned_tables import Coded, Features
from core.quality.comparison import Comparison
from core.quality.metrics.yardstick import SUBSAMPLES, k_marginal, subsample_share, yardsticks
from core.schema.column import Column, Kind
from core.schema.schema import Schema

DATA = Path(os.environ.get("FACSIMILE_DATA", "none")) / "nist" / "national2019.csv"
NUMBERS = ("AGEP", "NOC", "NPF", "DENSITY", "INDP", "PINCP", "POVPIP", "PWGTP", "WGTP")
TEN = "AGEP SEX MSP RAC1P HOUSING_TYPE OWN_RENT EDU PINCP_DECILE DVET DEYE".split()
LISTS = Schema(columns=tuple(Column(name=name, kind=Kind.CATEGORY) for name in "gab"))


def rows(text: str) -> pd.DataFrame:
    return pd.DataFrame([list(row) for row in text.split()], columns=list("gab"))


def columns(schema: Schema, *frames: pd.DataFrame, own: int = 0) -> dict[str, Coded]:
    features, tables = Features.fit(schema, *frames)
    return {one.name: Coded.of(one, tables, own=own) for one in features.items}


def score(*frames: pd.DataFrame, group: str | None = None, k: int = 2) -> list[float]:
    """Of all tables but the first, the real one."""
    scores, _ = k_marginal(columns(LISTS, *frames), group=group, k=k)
    assert len(scores) == len(frames) - 1 + len(SUBSAMPLES)
    return scores[: len(frames) - 1].tolist()


REAL = rows("1xx 1xy 2yx 2yx")
MADE = rows("1xx 1xx 1yx 2yx")


def test_score_of_pairs_by_hand():
    # (a, b): real xx ¼, xy ¼, yx ½; made xx ½, yx ½: Σ|p − q| = ½
    # (g, a): 1x ½, 2y ½; made 1x ½, 1y ¼, 2y ¼: ½. (g, b): 1x ¼, 1y ¼, 2x ½; ¾, 0, ¼: 1
    assert score(REAL, MADE) == pytest.approx([500 * (2 - np.mean([0.5, 0.5, 1.0]))])


def test_grouped_score_by_hand():
    # within g, cells are shares of all rows: 1xx ¼ → ½, 1xy ¼ → 0, 1yx 0 → ¼; 2yx ½ → ¼
    assert score(REAL, MADE, group="g") == pytest.approx([500 * (2 - 1.0)])
    # group 1 holds ½ of real rows and differs by ¾, which counts as all of it; group 2 by ¼ of ½
    coded = columns(LISTS, REAL, MADE)
    within = k_marginal(coded, group="g")[1][:, 0]
    found = {name: one for name, one in zip(coded["g"].names, within, strict=True) if one == one}
    assert found == pytest.approx({"1": 0.0, "2": 500.0})


@pytest.mark.parametrize("k", [1, 2, 3])
def test_score_against_pandas(k):
    rng = np.random.default_rng(k)
    a, b = (
        pd.DataFrame(rng.integers(0, 3, (n, 3)).astype(str), columns=list("gab")) for n in (90, 70)
    )
    gaps = []
    for some in combinations("gab", k):
        p, q = (frame.value_counts(list(some), normalize=True) for frame in (a, b))
        gaps.append(p.sub(q, fill_value=0).abs().sum())
    assert score(a, b, k=k) == pytest.approx([500 * (2 - np.mean(gaps))])


def test_equal_tables_score_1000_and_strangers_0():
    other = rows("3pp 3pq 4qp 4qp")
    for group in (None, "g"):
        assert score(REAL, REAL, other, group=group) == pytest.approx([1000.0, 0.0])


def test_cells_in_use_give_the_same_score(monkeypatch):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.integers(0, 9, (60, 3)).astype(str), columns=list("gab"))
    coded = columns(LISTS, frame, frame.sample(40, random_state=1))
    dense = k_marginal(coded, group="g")
    monkeypatch.setattr("core.quality.metrics.yardstick.DENSE_CELLS", 1)
    for ours, theirs in zip(dense, k_marginal(coded, group="g"), strict=True):
        assert ours == pytest.approx(theirs, nan_ok=True)


def test_numbers_are_binned_by_real_quantiles():
    schema = Schema(columns=(Column(name="x", kind=Kind.NUMBER, missing=True),))
    real = pd.DataFrame({"x": [*np.arange(100.0), np.nan]})
    other = pd.DataFrame({"x": [0.0, 4.9, 5.0, 99.0, 100.0, -1.0, np.nan]})
    one = columns(schema, real, other)["x"]
    assert np.bincount(one.codes[0])[1:4].tolist() == [5, 5, 5]
    assert one.names[:2] == ("<", "0 – 5") and one.names[-3:] == ("99", ">", "(missing)")
    assert one.codes[1].tolist() == [1, 1, 2, 21, 22, 0, 23]
    own = columns(schema, real, other, own=100)["x"]
    assert own.names[1:4] == ("0", "1", "2") and own.codes[1].tolist() == [
        *(1, 5, 6, 100),
        *(101, 0, 102),
    ]


def test_two_numbers_are_never_one_bin():
    schema = Schema(columns=(Column(name="x", kind=Kind.INTEGER, dtype="int64"),))
    one = columns(schema, pd.DataFrame({"x": [0] * 99 + [1]}), pd.DataFrame({"x": [1, 0, 2]}))["x"]
    assert one.codes[1].tolist() == [2, 1, 3]


def test_columns_without_a_value_are_coded():
    schema = Schema(columns=(Column(name="x", kind=Kind.NUMBER, missing=True),))
    one = columns(schema, pd.DataFrame({"x": [np.nan] * 3}), pd.DataFrame({"x": [1.0, np.nan]}))
    names = one["x"].names
    assert [names[code] for code in one["x"].codes[0]] == ["(missing)"] * 3
    assert names[one["x"].codes[1][0]] != "(missing)" == names[one["x"].codes[1][1]]


def test_as_close_as_a_subsample():
    scores = np.linspace(500.0, 950.0, len(SUBSAMPLES))
    shares = [subsample_share(one, scores) for one in (400.0, scores[3], 1000.0)]
    assert shares == pytest.approx([SUBSAMPLES[0], SUBSAMPLES[3], 1.0])
    between = subsample_share((scores[4] + scores[5]) / 2, scores)
    assert between == pytest.approx((SUBSAMPLES[4] * SUBSAMPLES[5]) ** 0.5)


def test_subsamples_recover_their_own_size():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.integers(0, 6, (4000, 3)).astype(str), columns=list("gab"))
    part = frame.sample(400, random_state=3)
    measured = yardsticks(
        Comparison.open(frame, part, LISTS, grouping=(("g",), 2)), lambda *_: None
    )
    first = measured.parts["yardsticks"][0]
    assert first.group == "g" and first.as_close_as == pytest.approx(0.1, rel=0.25)
    name, worst, _ = min(first.groups, key=lambda one: one[1])
    assert f"The worst group is {name}, with {worst:.0f} points" in measured.scores[0].note
    assert [one.group for one in measured.parts["yardsticks"]] == ["g", None]


def test_target_with_few_values_groups_first():
    schema = LISTS.model_copy(update={"target": "b"})
    measured = yardsticks(Comparison.open(REAL, MADE, schema), lambda *_: None)
    assert [one.group for one in measured.parts["yardsticks"]] == ["b", None]


@pytest.mark.skipif(not DATA.exists(), reason="FACSIMILE_DATA names no folder with nist/")
@pytest.mark.parametrize(
    ("lists", "names", "group", "published"),
    [
        # of single draws, of which one of 5 % has a standard deviation of 3 points
        ((), None, "PUMA", (771, 834, 888, 932)),
        # NIST's sample reports (SDNist 2.5), mean of two: INDP and counts of people are lists there
        (("INDP", "NOC", "NPF"), None, "PUMA", (755, 823.5, 878.5, 924)),
        ((), TEN, None, (950, 969, 977, 987)),
    ],
)
def test_published_scores_of_real_subsamples(lists, names, group, published):
    frame = pd.read_csv(DATA, dtype=str, keep_default_na=False)
    numbers = [name for name in NUMBERS if name not in lists]
    for name in numbers:
        frame[name] = pd.to_numeric(frame[name], errors="coerce")
    kinds = {name: Kind.NUMBER if name in numbers else Kind.CATEGORY for name in names or frame}
    schema = Schema(
        columns=tuple(Column(name=n, kind=kind, missing=kind.numeric) for n, kind in kinds.items())
    )
    scores, _ = k_marginal(columns(schema, frame), group=group)
    found = [scores[SUBSAMPLES.index(share)] for share in (0.05, 0.1, 0.2, 0.4)]
    assert found[0] == pytest.approx(published[0], abs=4)
    assert found[1:] == pytest.approx(published[1:], abs=3)
