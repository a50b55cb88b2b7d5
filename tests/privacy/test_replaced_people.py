"""One person comes in place of another, with another key: pairs and groups of all others stay.

What is measured is the statistic of a real table of rows, encoded and put together anew each time.
Replace-one allows 2 Δ, leaving a person out Δ. The broken twin puts people together by the rank of
their key's hash, as consecutive ones.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from core.cluster.ray_summation import part_of
from core.encoding.key_groups import bucket_count
from core.encoding.layout.layout import Layout
from core.encoding.person_rows import encoded_records, number_people
from core.lmdp.certificate import RejectionCount
from core.lmdp.level import GROUP, groups_of
from core.models.pearl.characteristic_function import PairDistance
from core.privacy import guarded, summation
from core.privacy.guarded import PrivateTable
from core.privacy.meter import UnplannedReleaseError
from core.privacy.summation import ChunkedStatistic, InOneProcess, InThreads, added
from core.schema.column import DomainColumn, Kind
from core.schema.person import Person
from core.schema.schema import Domain
from tests.privacy import toys
from tests.privacy.harness import Caught

pytestmark = pytest.mark.slow

N = 5 * GROUP + 33
NUMBERS = [
    DomainColumn(name=name, kind=Kind.NUMBER, low=0.0, high=1.0, missing=True) for name in "uv"
]
PAIRS = PairDistance(((0, 0), (1, 1)))


class Majority:
    """A group's test that hangs on a single record: are there more ones than zeros?"""

    def rejects(self, codes):
        return float(codes.values[:, 0].mean()) > 0.5


GROUPS = RejectionCount(Majority())
MECHANISMS = pytest.mark.parametrize("mechanism", [PAIRS, GROUPS], ids=["pairs", "groups"])
ROWS = pytest.mark.parametrize("rows", [1, 3])


def frame_of(seed, n=N, rows=1):
    """n people of 1 … 2 m rows, some numbers missing."""
    rng = np.random.default_rng(seed)
    who = np.repeat([f"p{i}" for i in range(n)], rng.integers(1, 2 * rows + 1, n))
    u, v = rng.integers(0, 2, (2, len(who))).astype(float)
    v[rng.random(len(who)) < 0.1] = np.nan
    return pd.DataFrame({"who": who, "u": u, "v": v})


def statistic(frame, mechanism, rows=1, *, n=None, **more):
    """Before noise; n is the number of people that is public, where somebody was left out."""
    person = Person(columns=("who",), rows=rows)
    domain = Domain(
        columns=(DomainColumn(name="who", kind=Kind.IDENTIFIER), *NUMBERS), person=person
    )
    codes, people = encoded_records(frame, Layout(domain), person)
    plan = toys.plan(people.n, [toys.phase()], claim=CLAIM).model_copy(update={"unit": person})
    table = PrivateTable(codes, domain, plan, people=people, **more)
    with pytest.MonkeyPatch.context() as patch:
        if n is not None:
            patch.setattr(guarded, "bucket_count", lambda _, size: bucket_count(n, size))
        return table._sum(mechanism, device="cpu", tick=None).flatten()


CLAIM = toys.plan(toys.N, [toys.phase()]).guarantee


def moved(before, after, mechanism):
    """By how many Δ."""
    return float((after - before).norm()) / mechanism.sensitivity


def check_replaced(frame, mechanism, who, key, rows=1, values=None):
    """Raise `Caught` where replacing somebody moves the statistic by more than 2 Δ."""
    other = frame.copy()
    own = other["who"] == who
    other.loc[own, "who"] = key
    if values is not None:
        other.loc[own, ["u", "v"]] = values
    by = moved(statistic(frame, mechanism, rows), statistic(other, mechanism, rows), mechanism)
    if by > 2.0 * (1.0 + 1e-6):
        raise Caught(f"replacing a person moves the statistic by {by:.2f} Δ")
    return by


def by_rank(hashes, size, buckets):
    """The broken twin: consecutive people in the order of their hashes."""
    return np.arange(len(hashes) // size * size)


@cache
def hashes_of(start):
    """Hashes of twenty thousand keys, by key."""
    keys = pd.DataFrame({"who": [f"{start}{i}" for i in range(20_000)]})
    number, hashes = number_people(keys)
    return dict(zip(keys["who"], hashes[number].tolist(), strict=True))


# -- the property ----------------------------------------------------------------------------------


@MECHANISMS
@ROWS
@settings(max_examples=15, deadline=None)
@given(
    seed=st.integers(0, 99),
    gone=st.integers(0, N - 1),
    key=st.text("abcdef0123456789", min_size=1, max_size=6),
    values=st.sampled_from([(0.0, 1.0), (1.0, 0.0), (1.0, np.nan), None]),
)
def test_a_replaced_person_moves_it_twice_the_sensitivity(mechanism, rows, seed, gone, key, values):
    check_replaced(frame_of(seed, rows=rows), mechanism, f"p{gone}", f"new {key}", rows, values)


@MECHANISMS
@ROWS
@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 99), gone=st.integers(0, N - 1))
def test_a_person_left_out_moves_it_by_the_sensitivity(mechanism, rows, seed, gone):
    frame = frame_of(seed, rows=rows)
    rest = frame[frame["who"] != f"p{gone}"].reset_index(drop=True)
    before, after = statistic(frame, mechanism, rows), statistic(rest, mechanism, rows, n=N)
    assert moved(before, after, mechanism) <= 1.0 + 1e-6


def swap_that_shifts_all_ranks(size):
    """A table in which a person with a new first key turns pairs and groups by rank upside down.

    In the order of hashes partners are alike, and groups even. Moved by a place, they are not.
    """
    frame = frame_of(1).drop_duplicates("who").reset_index(drop=True)
    ranks, hashes = number_people(frame[["who"]])
    turn = ranks // size % 2
    if size > 2:  # as many ones as zeros; every second group begins and the others end with ones
        turn = turn == ranks % size // (size // 2)
    frame["u"] = frame["v"] = turn.astype(float)
    last = frame["who"][int(np.flatnonzero(ranks == len(frame) - 1)[0])]
    first = next(key for key, value in hashes_of("q").items() if value < int(hashes[0]))
    return frame, last, first


@pytest.mark.parametrize(("mechanism", "size"), [(PAIRS, 2), (GROUPS, GROUP)])
def test_people_by_rank_are_caught(mechanism, size, monkeypatch):
    frame, last, first = swap_that_shifts_all_ranks(size)
    check_replaced(frame, mechanism, last, first, values=(1.0, 1.0))
    monkeypatch.setattr(guarded, "positions_by_key", by_rank)
    with pytest.raises(Caught, match="moves the statistic by"):
        check_replaced(frame, mechanism, last, first, values=(1.0, 1.0))


# -- how near it comes -----------------------------------------------------------------------------


def buckets_of(frame, size):
    """Who is in which bucket, in the order of hashes."""
    count = bucket_count(len(frame), size)
    found = {}
    for who in sorted(frame["who"], key=hashes_of("p").__getitem__):
        found.setdefault(hashes_of("p")[who] % count, []).append(who)
    return count, found


def newcomer(count, bucket, before):
    """A new key of that bucket, with a smaller hash than somebody's."""
    below = hashes_of("p")[before]
    return next(k for k, h in hashes_of("q").items() if h % count == bucket and h < below)


def test_a_replaced_person_reaches_the_bound_of_pairs():
    """A pair at distance 1 is broken up, and another by a newcomer without numbers."""
    frame = frame_of(3).drop_duplicates("who").reset_index(drop=True)
    count, found = buckets_of(frame, 2)
    leaving = next(who for who in found.values() if len(who) == 2)
    others = ((b, who) for b, who in found.items() if len(who) > 1 and who != leaving)
    bucket, joined = max(others, key=lambda one: hashes_of("p")[one[1][0]])  # room before them
    for people in (leaving, joined):
        for value, who in enumerate(people[:2]):
            frame.loc[frame["who"] == who, ["u", "v"]] = float(value)
    key = newcomer(count, bucket, joined[0])
    by = check_replaced(frame, PAIRS, leaving[0], key, values=(np.nan, np.nan))
    assert by > 2.0 * 0.95


def test_a_replaced_person_reaches_the_bound_of_groups():
    """Two groups with one more one than zeros lose it: to somebody who leaves, or who joins."""
    frame = frame_of(3).drop_duplicates("who").reset_index(drop=True)
    count, found = buckets_of(frame, GROUP)
    full = [(bucket, who) for bucket, who in found.items() if len(who) > GROUP]
    (_, leaving), (bucket, joined) = full[:2]
    ones = GROUP // 2 + 1
    zeros = {who for people in (leaving, joined) for who in people}
    zeros -= {*leaving[:ones], *joined[:1], *joined[GROUP - ones + 1 : GROUP]}
    frame["u"] = (~frame["who"].isin(zeros)).astype(float)
    key = newcomer(count, bucket, joined[0])
    by = check_replaced(frame, GROUPS, leaving[0], key, values=(0.0, 0.0))
    assert by == 2.0


# -- who computes it -------------------------------------------------------------------------------


class InParts:
    """Each block with its own rows alone, as tasks of a cluster get it."""

    def total(self, work, tick):
        statistic = work.statistic
        parts = (part_of(work, block) for block in range(work.blocks))
        return added(replace(part, statistic=statistic).block(0) for part in parts)


@MECHANISMS
@ROWS
def test_it_is_the_same_whoever_computes_it_in_any_order(mechanism, rows, monkeypatch):
    monkeypatch.setattr(summation, "BLOCK_CHUNKS", 1)
    frame, size = frame_of(4, rows=rows), {"chunk_rows": GROUP}
    blocks = []
    honest = ChunkedStatistic.block
    monkeypatch.setattr(
        ChunkedStatistic, "block", lambda self, *of: blocks.append(of) or honest(self, *of)
    )
    alone = statistic(frame, mechanism, rows, summation=InOneProcess(), **size)
    assert len(blocks) > 2
    turned = frame.iloc[::-1].reset_index(drop=True)
    for table in (frame, turned):
        for of in (InOneProcess(), InThreads(), InParts()):
            assert torch.equal(alone, statistic(table, mechanism, rows, summation=of, **size))


@ROWS
def test_a_person_who_is_absent_leaves_others_places_alone(rows):
    frame = frame_of(5, rows=rows)
    before = statistic(frame, PAIRS, rows)
    for gone in (0, 17, N - 1):
        less = statistic(frame, PAIRS, rows, present=np.arange(N) != gone)
        assert moved(before, less, PAIRS) <= 1.0 + 1e-6


def test_people_whose_keys_are_not_known_are_not_paired():
    person = Person(columns=("who",), rows=1)
    plan = toys.plan(20, [toys.phase()]).model_copy(update={"unit": person})
    table = PrivateTable(toys.random_table(20, 1), toys.domain(), plan)
    with pytest.raises(UnplannedReleaseError, match="by which keys"):
        table.release("sum", PAIRS)
    assert not table.meter.executed


def test_most_people_are_in_a_pair_or_a_group():
    frame = frame_of(6, 20 * GROUP).drop_duplicates("who").assign(u=0.0, v=0.0)
    everybody = frame["who"].nunique()
    paired = 2.0 * statistic(frame, PAIRS)[2] / everybody
    told_apart = statistic(frame.assign(u=1.0), GROUPS)[0]
    assert paired > 0.55  # three fifths of what pairs by rank would be
    assert told_apart > 0.9 * groups_of(everybody, people=True)
