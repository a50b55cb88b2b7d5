"""By which column of a person's their events end: what is asked, of whom, and what is kept."""

from __future__ import annotations

import numpy as np

from core.encoding.codec import Codec, Codes
from core.encoding.layout.layout import Layout
from core.encoding.person_rows import encoded_records
from core.encoding.windows import PERSON
from core.models.steps.counting.relation_candidates import relation_candidates
from core.models.steps.counting.relations import Comparison, Limit, next_times, without_limits
from core.schema.column import Column, Kind
from core.schema.schema import Schema
from tests.histories import leaving

PEOPLE = 200


def windows() -> tuple[Codec, Codes]:
    """Of people who leave soon after their last visit, weigh 40 to 90, and are 30 to 60 years old.

    In columns whose numbers might add up.
    """
    rows, declared = leaving(PEOPLE)
    random, ends = np.random.default_rng(0), {"weight": (40, 90), "age": (30, 60)}
    for name, (low, high) in ends.items():
        rows[name] = random.integers(low, high + 1, PEOPLE)[rows["who"]]
    columns = [
        Column(name=name, kind=Kind.INTEGER, low=low, high=high, step=1, dtype="int64")
        for name, (low, high) in ends.items()
    ]
    assert declared.person is not None
    constant = (*declared.person.constant, *ends)
    person = declared.person.model_copy(update={"constant": constant})
    declared = Schema(columns=(*declared.columns, *columns), person=person)
    layout = Layout(declared.domain())
    codes, _ = encoded_records(rows, layout, person)
    return Codec(layout.domain), codes.to("cpu")


def test_next_events_are_when_they_are() -> None:
    rows, declared = leaving(PEOPLE)
    codec, codes = windows()
    [time] = relation_candidates(codec).times
    found = time.numbers(codec.blocks, codes)
    events = rows[rows["key"].notna()].sort_values(["who", "day"])
    assert declared.person is not None
    events = events.groupby("who").head(declared.person.rows)
    later = events["day"][events["who"].duplicated()]
    assert sorted(found[~np.isnan(found)]) == sorted(later)


def test_a_person_is_compared_with_events_and_adds_up_alone() -> None:
    codec, _ = windows()
    names = [block.column.name for block in codec.blocks]
    asked = relation_candidates(codec)
    compared = {(names[one], names[other]) for one, other in asked.compared}
    assert {("left", "first day"), ("left", "day to next")} <= compared
    assert ("weight", "first day") in compared and ("age", "first day") not in compared
    own = {name for name, (role, *_) in codec.domain.roles.items() if role == PERSON}
    added = {names[i] for one in asked.totals for i in (one.total, one.left, one.right)}
    assert added and added <= own


def test_next_events_are_late_by_noisy_shares() -> None:
    first = np.array([0.0, 10.0]), np.array([0.7, 0.3])
    since = np.array([0.0, 5.0, 9.0]), np.array([0.5, 0.3, -0.1])
    wait = np.array([1.0, 2.0]), np.array([0.2, 0.2])
    times, held = next_times(first, since, wait, unit=2.0, latest=20.0)
    assert (np.diff(times) >= 0.0).all() and times[0] == 2.0 and times[-1] == 20.0
    assert abs(held.sum() - 0.4) < 1e-9
    assert abs((times < 10.0) @ held - 0.4 * 0.7 * 0.5 / 0.8) < 0.02
    assert not len(next_times(first, (since[0], -np.ones(3)), wait, unit=1.0, latest=9.0)[0])


def test_an_order_of_waits_is_a_limit() -> None:
    codec, _ = windows()
    names = [block.column.name for block in codec.blocks]
    left, first, wait, age = map(names.index, ("left", "first day", "day to next", "age"))
    kept = [
        Comparison(first, left, ordered=True, equal=0.0),
        Comparison(wait, left, ordered=True, equal=0.0),
        Comparison(age, wait, ordered=True, equal=0.0),
        Comparison(age, left, ordered=True, equal=0.0),
    ]
    others, limits = without_limits(kept, relation_candidates(codec).times)
    assert limits == (Limit(left, wait),) and others == (kept[3],)
