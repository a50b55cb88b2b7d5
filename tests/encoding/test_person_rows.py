"""Rows put together by person: nobody's rows, and no order of the file, decide about another's."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.encoding.holdout import people_trained_on, split_rows
from core.encoding.person_rows import PersonRows, cell_hashes, kept_rows, number_people, votes
from core.schema.person import Person

KEYS = st.lists(st.sampled_from([*"abcdefgh", None]), min_size=1, max_size=40)


def table(keys, seed=0):
    keys = list(keys)
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "who": pd.Series(keys, dtype="str"),
            "x": rng.integers(0, 4, len(keys)),
            "y": rng.random(len(keys)).round(1),
        }
    )


def records(frame, most, rule=kept_rows):
    """Each person's kept rows in their order, with weights, by key."""
    number, _ = number_people(frame[["who"]])
    index, people = rule(number, cell_hashes(frame[name] for name in ("x", "y")), most)
    who = frame["who"].fillna("nobody").to_numpy()[index]
    return {
        who[start]: [
            (int(frame["x"][i]), float(frame["y"][i]), float(people.weights[start]))
            for i in index[start:stop]
        ]
        for start, stop in zip(people.offsets[:-1], people.offsets[1:], strict=True)
    }


def by_place(number, content, most):
    """Broken: the first rows in the file stay."""
    order = np.argsort(number, kind="stable")
    counts = np.bincount(number)
    place = np.arange(len(order)) - np.repeat(np.cumsum(counts) - counts, counts)
    stay = np.minimum(counts, most)
    return order[place < most], PersonRows(np.concatenate([[0], np.cumsum(stay)]))


@settings(max_examples=25, deadline=None)
@given(KEYS, st.integers(1, 4), st.integers(0, 99))
def test_the_order_of_the_file_decides_nothing(keys, most, seed):
    frame = table(keys)
    shuffled = frame.sample(frac=1.0, random_state=seed).reset_index(drop=True)
    honest = records(frame, most)
    assert list(honest.items()) == list(records(shuffled, most).items())
    assert set(honest) == {key or "nobody" for key in keys}
    for key, rows in honest.items():
        assert len(rows) == min(most, sum((k or "nobody") == key for k in keys))
        assert len({weight for *_, weight in rows}) == 1
        assert 1 - 1e-6 < sum(weight for *_, weight in rows) <= 1.0


def test_keeping_rows_by_their_place_is_caught():
    frame = table("aaaaaabbbb")
    assert records(frame, 2, by_place) != records(frame.iloc[::-1], 2, by_place)


@settings(max_examples=25, deadline=None)
@given(KEYS, st.integers(1, 4))
def test_a_person_who_goes_moves_nobody_else(keys, most):
    frame = table(keys)
    everybody = records(frame, most)
    for gone in everybody:
        rest = frame[frame["who"].fillna("nobody") != gone].reset_index(drop=True)
        if len(rest):
            less = records(rest, most)
            assert list(less.items()) == [(k, v) for k, v in everybody.items() if k != gone]


def test_who_is_held_out_depends_on_their_own_key_alone():
    keys = [f"p{i}" for i in range(400) for _ in range(i % 3 + 1)]
    frame, person = table(keys), Person(columns=("who",), rows=2)
    trained, kept = split_rows(frame, 0.25, person)
    assert not set(trained["who"]) & set(kept["who"])
    assert 60 < kept["who"].nunique() < 140
    assert people_trained_on([frame[["who"]]], 0.25) == trained["who"].nunique()
    gone = kept["who"].iloc[0]
    _, less = split_rows(frame[frame["who"] != gone], 0.25, person)
    assert set(less["who"]) == set(kept["who"]) - {gone}
    assert len(split_rows(table("a"), 0.5, person)[0]) == 1  # somebody is always trained on


def test_several_columns_say_who_together_and_a_gap_says_nobody():
    keys = pd.DataFrame({"a": [1, 1, 2, None, 2, None], "b": list("xyxx") + [None, None]})
    number, hashes = number_people(keys)
    assert len(hashes) == 4 and (np.diff(hashes.astype(float)) > 0).all()
    assert number[3] == number[4] == number[5]
    assert len(set(number[:4])) == 4


def test_side_by_side_rows_are_padded_with_nothing():
    people = PersonRows(np.array([0, 1, 4, 6]))
    rows, weights = people.padded(np.array([2, 0]))
    assert rows.tolist() == [[4, 5], [0, 0]]
    assert weights.tolist() == [[0.5, 0.5], [1.0, 0.0]]
    assert people.padded(np.array([], dtype=np.int64))[0].shape == (0, 1)


def test_a_person_without_rows_is_refused():
    with pytest.raises(ValueError, match="needs a row"):
        PersonRows(np.array([0, 2, 2]))
    with pytest.raises(ValueError, match="needs a hash"):
        PersonRows(np.array([0, 2]), np.arange(2, dtype=np.uint64))


def test_a_synthetic_persons_rows_have_one_vote():
    frame, person = table("aabccc"), Person(columns=("who",), rows=3)
    assert votes(frame, person).tolist() == pytest.approx([0.5, 0.5, 1, 1 / 3, 1 / 3, 1 / 3])
    assert votes(frame, None).sum() == votes(frame[["x"]], person).sum() == 6
