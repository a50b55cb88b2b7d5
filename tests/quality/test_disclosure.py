"""Disclosure: leaks are found, honest tables are not accused, distances are right."""

import numpy as np
import pandas as pd
import pytest

from core.quality.aligned_tables import Features
from core.quality.metrics.disclosure import (
    LEAST,
    _exchanged_errors,
    attacks,
    exact_copies,
    nearest,
)
from tests.quality.conftest import collapsed, make


def found(schema, train, holdout, synthetic, **more):
    _, cells = Features.fit(schema, train, holdout, synthetic)
    return {attack.key: attack for attack in attacks(*cells, **more)}


@pytest.fixture(scope="module")
def people():
    return make(600, 1), make(600, 2), make(600, 3)


def test_fresh_rows_expose_nobody(schema, people):
    result = found(schema, *people, target="job")
    assert set(result) == {"copies", "closest", "ratio", "membership", "attribute"}
    assert [key for key, attack in result.items() if attack.exposed] == []
    assert abs(result["membership"].value - 0.5) < 0.06


def test_false_alarms_are_rare(schema):
    alarms = sum(
        attack.exposed
        for seed in range(20)
        for attack in found(
            schema, make(300, 3 * seed), make(300, 3 * seed + 1), make(300, 3 * seed + 2)
        ).values()
    )
    assert alarms <= 2  # of 80 at one-sided 0.5 %


def test_many_synthetic_rows_beside_few_strangers_accuse_nobody(schema):
    alarms = sum(
        found(schema, *(make(n, 3 * seed + i) for i, n in enumerate((600, 40, 3000))))[key].exposed
        for seed in range(20)
        for key in ("closest", "ratio")
    )
    assert alarms <= 1  # of 40 at one-sided 0.5 %; many more when every synthetic row was a proof


def test_one_copied_row_in_five_is_found_beside_few_strangers(schema):
    hits = {"closest": 0, "ratio": 0}
    for seed in range(10):
        train, holdout, fresh = (make(n, 3 * seed + i) for i, n in enumerate((600, 60, 3000)))
        mixed = pd.concat([train.iloc[[i % 60 for i in range(600)]], fresh[:2400]])
        for key, attack in found(schema, train[:60], holdout, mixed).items():
            if key in hits:
                hits[key] += attack.exposed
    assert min(hits.values()) >= 7, hits


def test_errors_are_those_of_who_was_learnt_from():
    rng = np.random.default_rng(3)
    for size in (30, 200):
        train, holdout, synthetic = (rng.normal(size=(n, 3)) for n in (size, size, 2000))
        error = _exchanged_errors(synthetic, train, holdout)[0]
        # of a draw of half of all records, each with the synthetic rows that lie nearest to it
        places = nearest(synthetic, np.concatenate([train, holdout]))[1][:, 0]
        near = np.bincount(places, minlength=2 * size)
        assert error == pytest.approx(
            np.sqrt(near.var() * size**2 / (2 * size - 1)) / 2000, rel=0.2
        )
        assert error > 1.3 * np.sqrt(0.25 / 2000)  # were each row a proof of its own
    alike = np.zeros((50, 2))
    assert _exchanged_errors(alike, alike, alike) == (0.01, 0.01)  # all ties


def test_a_copied_table_is_found_by_every_attack(schema, people):
    train, holdout, _ = people
    result = found(schema, train, holdout, train, target="job")
    assert all(attack.exposed for attack in result.values())
    assert result["copies"].value == 1.0 and result["copies"].baseline < 0.05
    assert result["closest"].value > 0.95
    assert result["membership"].value > 0.95
    assert result["attribute"].value > result["attribute"].baseline + 0.03


def test_one_copied_row_in_six_is_found(schema, people):
    train, holdout, fresh = people
    mixed = pd.concat([train[:100], fresh[100:]], ignore_index=True)
    result = found(schema, train, holdout, mixed)
    assert result["copies"].exposed and result["copies"].value >= 100 / 600
    assert result["closest"].exposed


def test_a_collapsed_table_is_no_leak_of_many(schema, people):
    train, holdout, _ = people
    result = found(schema, train, holdout, collapsed(holdout))
    assert not result["copies"].exposed and not result["membership"].exposed


def test_only_people_who_have_the_value_are_counted_when_it_is_guessed(schema, people):
    def told(frame, rows):
        return frame.assign(job=frame["job"].where(np.arange(len(frame)) < rows))

    train, holdout, fresh = people
    few = found(schema, told(train, 60), told(holdout, 50), fresh, target="job")["attribute"]
    assert few.records == 50
    chance = max(few.value * (1 - few.value), few.baseline * (1 - few.baseline), 1 / 50)
    assert few.half_width > 2.5 * np.sqrt(chance / 50)  # not of the 600 rows a side
    none = found(schema, told(train, 60), told(holdout, LEAST - 1), fresh, target="job")
    assert "attribute" not in none and "membership" in none


def test_copies_are_counted_as_pandas_counts_them(schema, people):
    train, _, fresh = people
    mixed = pd.concat([train[:50], fresh[50:]], ignore_index=True)
    features, (a, b) = Features.fit(schema, train, mixed)
    names = list(features.names)
    merged = train[names].astype(str).drop_duplicates()
    keys = set(map(tuple, mixed[names].astype(str).to_numpy()))
    hit = [tuple(row) in keys for row in train[names].astype(str).to_numpy()]
    assert len(merged) > 500
    assert exact_copies(a, b) == pytest.approx(np.mean(hit))


def test_distances_by_brute_force():
    rng = np.random.default_rng(0)
    x, others = rng.random((40, 7)), rng.random((30, 7))
    every = np.sort(np.linalg.norm(x[:, None] - others[None], axis=2), axis=1)
    near, place = nearest(x, others, 2)
    assert np.allclose(near, every[:, :2])
    assert np.allclose(np.linalg.norm(x - others[place[:, 0]], axis=1), every[:, 0])


def test_a_tiny_holdout_says_nothing(schema, people):
    train, holdout, fresh = people
    assert found(schema, train, holdout[: LEAST - 1], fresh) == {}
