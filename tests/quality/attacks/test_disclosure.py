"""Disclosure: leaks are found, honest tables are not accused, distances are right."""

import numpy as np
import pandas as pd
import pytest

from benchmarks.attacks import unmatched_alarms
from core.quality.aligned_tables import Features
from core.quality.comparison import Comparison
from core.quality.metrics.attacks.disclosure import (
    LEAST,
    attacks,
    closest_records,
    disclosure,
)
from core.quality.metrics.attacks.trained import nearest
from core.schema.column import Column, Kind
from core.schema.person import Person
from tests.quality.conftest import collapsed, make

pytestmark = pytest.mark.slow


def read(schema, train, holdout, synthetic):
    _, cells = Features.fit(schema, train, holdout, synthetic)
    return cells


def found(schema, train, holdout, synthetic, **more):
    cells = read(schema, train, holdout, synthetic)
    return {attack.key: attack for attack in attacks(*cells, **more)}


@pytest.fixture(scope="module")
def people():
    return make(600, 1), make(600, 2), make(600, 3)


def test_fresh_rows_expose_nobody(schema, people):
    result = found(schema, *people, target="job")
    assert set(result) == {
        "copies",
        "closest",
        "ratio",
        "membership",
        "attribute",
        "counts",
        "values",
    }
    assert [key for key, attack in result.items() if attack.exposed] == []
    assert abs(result["membership"].value - 0.5) < 0.06


def test_few_clean_runs_raise_an_alarm(schema):
    sizes = (600, 60, 900)
    alarms = sum(
        any(
            attack.exposed
            for attack in found(
                schema, *(make(n, 3 * seed + i) for i, n in enumerate(sizes)), target="job"
            ).values()
        )
        for seed in range(40)
    )
    assert alarms <= 3  # of 40 at 1 %: more in one of 1,400 times


def skewed(n, rich, seed):
    """Rows of which just this share is rich, whatever else they are."""
    rows = make(n, seed)
    return rows.assign(rich=np.random.default_rng(seed).permutation(n) < round(rich * n))


def test_another_base_rate_by_luck_is_no_leak(schema):
    alarms, unmatched = 0, 0
    for seed in range(12):
        tables = skewed(800, 0.2, 3 * seed), skewed(300, 0.4, 3 * seed + 1)
        synthetic = skewed(800, 0.2, 3 * seed + 2)
        result = found(schema, *tables, synthetic, target="rich")
        alarms += any(attack.exposed for attack in result.values())
        cells = read(schema, *tables, synthetic)
        unmatched += "attribute" in unmatched_alarms(*cells, target="rich")
    assert alarms <= 1
    assert unmatched >= 6  # the comparison without classes takes it for one


def test_a_number_is_guessed_at_equal_shares_of_its_quantiles(schema):
    young, old = (make(3000, seed).sort_values("age", ignore_index=True) for seed in (1, 2))
    rng = np.random.default_rng(0)
    train = young.iloc[rng.choice(3000, 600, p=np.arange(3000, 0, -1) / 4501500)]
    holdout = old.iloc[rng.choice(3000, 600, p=np.arange(1, 3001) / 4501500)]
    clean = found(schema, train, holdout, make(900, 4), target="age")["attribute"]
    leaking = found(schema, train, holdout, train, target="age")["attribute"]
    assert not clean.exposed and abs(clean.value - clean.baseline) < clean.lead_needed
    assert leaking.exposed and leaking.value > 0.8


def test_many_synthetic_rows_beside_few_strangers_accuse_nobody(schema):
    alarms = 0
    for seed in range(20):
        result = found(schema, *(make(n, 3 * seed + i) for i, n in enumerate((600, 40, 3000))))
        alarms += any(attack.exposed for attack in result.values())
    assert alarms <= 1  # of 20 runs at 1 %, whose attacks raise them together


def test_one_copied_row_in_five_is_found_beside_few_strangers(schema):
    hits = {"copies": 0, "closest": 0, "ratio": 0}
    for seed in range(10):
        train, holdout, fresh = (make(n, 3 * seed + i) for i, n in enumerate((600, 60, 3000)))
        result = found(schema, train, holdout, pd.concat([train[:120], fresh[:480]]))
        for key in hits:
            hits[key] += result[key].exposed
    assert min(hits["copies"], hits["ratio"]) >= 7, hits


def test_a_copied_table_is_found_by_every_attack(schema, people):
    train, holdout, _ = people
    result = found(schema, train, holdout, train, target="job")
    assert all(attack.exposed for attack in result.values())
    assert result["copies"].value == 1.0 and result["copies"].baseline < 0.05
    assert result["closest"].value > 0.95
    assert result["membership"].value > 0.95
    assert result["attribute"].value > result["attribute"].baseline + 0.03
    for attack in result.values():
        assert attack.value - attack.baseline > attack.lead_needed > 0


def test_one_copied_row_in_six_is_found(schema, people):
    train, holdout, fresh = people
    mixed = pd.concat([train[:100], fresh[100:]], ignore_index=True)
    result = found(schema, train, holdout, mixed)
    assert result["copies"].exposed and result["copies"].value >= 100 / 600
    assert result["closest"].exposed


def test_a_collapsed_table_is_no_leak_of_many(schema, people):
    train, holdout, _ = people
    for one in (holdout, train):
        result = found(schema, train, holdout, collapsed(one), target="job")
        assert not any(attack.exposed for attack in result.values())


def test_strangers_are_read_like_the_rows_learnt_from(schema):
    """A range or list of labels of the training rows would bend the strangers' alone."""
    train, holdout = make(200, 1), make(200, 2)
    holdout.loc[:20, "pay"] = 1e6
    holdout.loc[:99, "job"] = [f"rare {i}" for i in range(100)]
    ours = found(schema, train, holdout, make(300, 3))
    swapped = found(schema, holdout, train, make(300, 3))
    for key in ("closest", "ratio", "membership"):
        assert ours[key].value + swapped[key].value == pytest.approx(1.0, abs=1e-9)


def test_rows_of_one_person_count_once(schema):
    key = Column(name="who", kind=Kind.IDENTIFIER, dtype="int64")
    visits = schema.model_copy(
        update={
            "columns": (key, *schema.columns),
            "person": Person(columns=("who",), rows=20),
        }
    )
    alarms, by_row = 0, 0
    for seed in range(6):
        # everybody comes twenty times with equal rows: by row, sixty proofs where there are three
        drawn = [make(n, 3 * seed + i) for i, n in enumerate((300, 30, 900))]
        train, holdout = (
            rows.loc[rows.index.repeat(20)].assign(who=np.repeat(np.arange(len(rows)), 20))
            for rows in drawn[:2]
        )
        tables = Comparison.open(
            train, drawn[2].assign(who=0), visits, test=holdout.reset_index(drop=True)
        )
        assert tables.one_each is not None
        result = disclosure(tables, lambda *_: None).parts["attacks"]
        assert {(attack.records, attack.strangers) for attack in result} == {(300, 30)}
        alarms += any(attack.exposed for attack in result)
        assert tables.holdout is not None
        by_row += any(
            attack.exposed
            for attack in attacks(tables.real, tables.holdout, tables.synthetic, target="rich")
        )
    assert alarms <= 1
    assert by_row >= 3  # rows taken for people accuse tables that leak nothing


def test_only_people_with_a_value_count_when_it_is_guessed(schema, people):
    def told(frame, rows):
        known = pd.Series(list("abc") * 200, index=frame.index)
        return frame.assign(job=known.where(np.arange(len(frame)) < rows))

    train, holdout, fresh = people
    few = found(schema, told(train, 60), told(holdout, 50), fresh, target="job")["attribute"]
    assert (few.records, few.strangers) == (60, 50)
    assert few.lead_needed > 0.1  # not that of 600 rows a side
    none = found(schema, told(train, 60), told(holdout, LEAST - 1), fresh, target="job")
    assert "attribute" not in none and "membership" in none


def test_copies_are_counted_as_pandas_counts_them(schema, people):
    train, holdout, fresh = people
    mixed = pd.concat([train[:50], fresh[50:]], ignore_index=True)
    features, _ = Features.fit(schema, train, mixed)
    names = list(features.names)
    keys = set(map(tuple, mixed[names].astype(str).to_numpy()))
    hit = [tuple(row) in keys for row in train[names].astype(str).to_numpy()]
    assert sum(hit) >= 50
    assert found(schema, train, holdout, mixed)["copies"].value == pytest.approx(np.mean(hit))


def test_distances_by_brute_force():
    rng = np.random.default_rng(0)
    x, others = rng.random((40, 7)), rng.random((30, 7))
    every = np.sort(np.linalg.norm(x[:, None] - others[None], axis=2), axis=1)
    near, index = nearest(x, others, 2)
    assert np.allclose(near, every[:, :2])
    assert np.allclose(np.linalg.norm(x - others[index[:, 0]], axis=1), every[:, 0])


def test_closest_records_by_hand():
    real = np.array([[0.0, 0.0], [0.0, 0.0], [1.0, 0.0], [0.0, 2.0]])
    synthetic = np.array([[0.0, 0.0], [0.8, 0.0], [0.5, 0.0], [0.0, 2.0]])
    closest, outstanding = closest_records(real, synthetic)
    # the first is shared by two, the third by three, who are as near
    assert closest == pytest.approx([0.5 + 1 / 3, 0.5 + 1 / 3, 1 + 1 / 3, 1.0])
    assert outstanding == pytest.approx([0.0, 0.0, 1 - 0.2 / 0.8, 1.0])


def test_a_tiny_holdout_says_nothing(schema, people):
    train, holdout, fresh = people
    assert found(schema, train, holdout[: LEAST - 1], fresh) == {}
