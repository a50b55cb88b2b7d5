"""Columns that are equal, often equal or in order are told by counts, and rows keep it.

Also by which column of a person's their events end.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch

from core.encoding.codec import Codec, Codes
from core.encoding.heaping import heaped
from core.encoding.layout.layout import Layout
from core.encoding.person_rows import encoded_records
from core.encoding.windows import PERSON
from core.models.steps.counting.comparisons import (
    Comparison,
    Limit,
    comparisons_kept,
    marginals,
    next_times,
    without_limits,
)
from core.models.steps.counting.counts import RelationCounts
from core.models.steps.counting.placing import Placing
from core.models.steps.counting.relation_candidates import relation_candidates
from core.models.steps.counting.scales import ColumnScale
from core.models.steps.counting.zeros.orders import out_of_order
from core.models.steps.training.column_bins import ColumnBins
from core.schema.calendar import DAY, Calendar, cells_of
from core.schema.column import Column, DomainColumn, Kind, Learned, Provenance
from core.schema.schema import Domain, Schema
from tests.histories import leaving

N, HIGH, CELL = 5000, 59, 10
PEOPLE = 200
NAMES = ("first", "second", "third")


def codec() -> Codec:
    """Three whole numbers, of which the second may be missing."""
    columns = [
        Column(name=name, kind=Kind.INTEGER, low=0, high=HIGH, step=1, missing=name == "second")
        for name in NAMES
    ]
    return Codec(Schema(columns=tuple(columns)).domain())


def scales() -> list[ColumnScale]:
    """Ten values a cell, as likely as each other."""
    found = []
    for block in codec().blocks:
        grid = ColumnBins(block, np.arange(HIGH + 1.0) / HIGH, 0.0)
        along = np.append(np.arange(HIGH + 1) // CELL, 6 + np.arange(grid.atoms))
        each = np.bincount(along).astype(float)
        keys = (np.arange(HIGH + 1.0) + 1.0) / CELL
        found.append(ColumnScale(grid, along, 6, each, each, keys))
    return found


def rows(first: np.ndarray, second: np.ndarray, third: np.ndarray | None = None) -> Codes:
    """Records of these numbers; NaN where the second is missing."""
    numbers = np.stack([first, second, first if third is None else third], axis=1).astype(float)
    states = np.isnan(numbers).astype(np.int32)
    return Codes(states, np.nan_to_num(numbers) / HIGH)


def kept(records: Codes, noise: float, seed: int = 0) -> tuple[Comparison, ...]:
    """What is kept of the first two columns by counts with so much noise."""
    mechanism = RelationCounts(codec().blocks, (), ((0, 1),))
    counts = mechanism.split(mechanism.statistic(records, torch.ones(N)))[1]
    counts += noise * torch.from_numpy(np.random.default_rng(seed).standard_normal(counts.shape))
    each = scales()
    cells = [scale.cell_of[scale.grid.index(records.to("cpu")).numpy()] for scale in each]
    shares = [np.bincount(c, minlength=s.size) / N for c, s in zip(cells, each, strict=True)]
    columns = marginals(mechanism.blocks, (), each, shares)
    return comparisons_kept(counts, mechanism, columns, N, noise)


def numbers(low: int = 0, high: int = HIGH, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).integers(low, high + 1, N)


@pytest.mark.parametrize("seed", range(5))
def test_an_order_is_kept_whichever_column_comes_first(seed):
    a, b = numbers(), numbers(seed=2)
    below, above = np.minimum(a, b), np.maximum(a, b)
    (order,) = kept(rows(below, above), 10.0, seed)
    assert (order.low, order.high, order.ordered) == (0, 1, True) and order.equal < 0.1
    (order,) = kept(rows(above, below), 10.0, seed)
    assert (order.low, order.high, order.ordered) == (1, 0, True)


@pytest.mark.parametrize("seed", range(5))
def test_what_one_record_in_ten_breaks_is_no_order(seed):
    a, b = numbers(), numbers(seed=2)
    some = np.random.default_rng(seed).random(N) < 0.2
    first = np.where(some, a, np.minimum(a, b))
    second = np.where(some, b, np.maximum(a, b))
    assert not any(one.ordered for one in kept(rows(first, second), 40.0, seed))


def test_an_order_that_ranges_make_is_none():
    assert kept(rows(numbers(0, 9), numbers(10, HIGH)), 40.0) == ()
    rare = np.where(np.arange(N) % 20 == 0, 50, 0)  # above most in one of twenty records
    assert not any(one.ordered for one in kept(rows(rare, numbers(1, 20)), 40.0))


def test_always_equal_is_told_from_often_equal():
    a, b = numbers(), numbers(seed=2)
    (same,) = kept(rows(a, a), 80.0)
    assert (same.ordered, same.equal) == (True, 1.0)
    third = np.arange(N) % 3 == 0
    (often,) = kept(rows(a, np.where(third, a, b)), 80.0)
    assert not often.ordered and 0.25 < often.equal < 0.36, "at least so many, for all the noise"
    assert kept(rows(a, b), 80.0) == ()


def test_numbers_without_steps_are_equal_only_if_the_same():
    columns = [Column(name=name, kind=Kind.NUMBER, low=0.0, high=1.0) for name in NAMES[:2]]
    blocks = Codec(Schema(columns=tuple(columns)).domain()).blocks
    mechanism = RelationCounts(blocks, (), ((0, 1),))
    values = np.array([[0.1, 0.4], [0.2, 0.2], [0.3, 0.29], [0.9, 0.1]])
    counts = mechanism.statistic(Codes(np.zeros((4, 2), np.int32), values), torch.ones(4))
    assert counts.tolist() == [1.0, 1.0, 2.0]


def test_noise_that_hides_everything_keeps_nothing():
    assert kept(rows(numbers(), numbers()), 3000.0) == ()
    mostly = np.where(np.arange(N) % 3 == 0, numbers(seed=2), numbers())
    for seed in range(20):  # a share that noise of a tenth says nothing of
        assert not any(0.0 < c.equal < 1.0 for c in kept(rows(numbers(), mostly), 0.1 * N, seed))


def made(
    first: np.ndarray, second: np.ndarray, *compared: Comparison, third: np.ndarray | None = None
) -> list[np.ndarray]:
    """Numbers of rows that are placed in cells of these, the compared columns as they must be."""
    cells = [np.nan_to_num(one, nan=60.0).astype(np.int64) // CELL for one in (first, second)]
    cells.append(cells[0] if third is None else third // CELL)
    placing = Placing.of(scales(), (), (), compared=compared)
    codes = placing.codes(codec(), cells, torch.Generator().manual_seed(3))
    return [codes.numbers(block) for block in codec().blocks]


def test_rows_are_put_in_order_within_a_cell_and_across():
    a, b = numbers(), numbers(seed=2).astype(float)
    b[::7] = np.nan
    assert (np.subtract(*made(a, b)[:2]) > 0).mean() > 0.3
    first, second, _ = made(a, b, Comparison(0, 1, True, 0.0))
    there = ~np.isnan(second)
    assert (first[there] <= second[there]).all() and np.array_equal(there, ~np.isnan(b))


def test_chains_of_orders_are_kept_together():
    chain = Comparison(0, 1, True, 0.0), Comparison(1, 2, True, 0.0), Comparison(0, 2, True, 0.0)
    first, second, third = made(numbers(), numbers(seed=2), *chain, third=numbers(seed=4))
    assert (first <= second).all() and (second <= third).all()


def test_copies_follow_the_column_that_is_put_in_order():
    same, order = Comparison(0, 2, True, 1.0), Comparison(2, 1, True, 0.0)
    first, second, third = made(numbers(), numbers(seed=2), same, order, third=numbers(seed=4))
    assert np.array_equal(first, third) and (first <= second).all()


def test_as_many_rows_are_equal_as_there_are():
    a = numbers()
    near = np.clip(a + np.random.default_rng(5).integers(-12, 13, N), 0, HIGH)
    before, after = (
        (np.subtract(*made(a, near, Comparison(0, 1, False, share))[:2]) == 0).mean()
        for share in (0.0, 0.33)
    )
    assert before < 0.1 and after == pytest.approx(0.33, abs=0.01)


def test_no_number_is_made_equal_where_its_column_has_none():
    """Four in ten are equal, and of the others the first is 0 and the second never."""
    charged = np.clip(numbers(), 20, HIGH)
    paid = np.where(np.random.default_rng(6).random(N) < 0.4, charged - 1, 0)
    first, second, _ = made(paid, charged, Comparison(0, 1, True, 0.9))
    assert second.min() >= 20 and (first[first >= 20] == second[first >= 20]).mean() > 0.9


def test_bins_above_another_column_are_empty():
    places = list(out_of_order([Comparison(0, 1, True, 0.0)], scales()))
    assert [zero.right.nonzero().item() for zero in places] == [0, 1, 2, 3, 4]
    for cell, zero in enumerate(places):
        assert zero.left.tolist() == [value > 10 * cell + 9 for value in range(HIGH + 1)]
    assert not list(out_of_order([Comparison(0, 1, True, 1.0)], scales())), "a copy needs none"


def test_dates_in_order_stay_on_their_days():
    """The first comes on new year's days or on Mondays, and never after the second."""
    year, weekday = ((1.0, *[0.0] * 11), (1.0, *[0.0] * 30)), (1.0, *[0.0] * 6)
    ends = {"low": 0.0, "high": 3651 * DAY, "step": DAY, "provenance": Provenance.LEARNED}
    days = np.random.default_rng(0).integers(0, 3652, (2, N)).astype(float)
    for calendar in (Calendar(month=year[0], day=year[1]), Calendar(weekday=weekday)):
        columns = [
            DomainColumn(
                name=name,
                kind=Kind.DATETIME,
                dtype="datetime64[us]",
                learned=Learned(domain="", calendar=known),
                **ends,
            )
            for name, known in (("first", calendar), ("second", Calendar()))
        ]
        known = Codec(Domain(columns=tuple(columns)))
        codes = Codes(np.zeros((N, 2), dtype=np.int32), days.T / 3651)
        codes = heaped(known, codes, torch.Generator().manual_seed(1))
        before = [codes.numbers(block) for block in known.blocks]
        assert (before[0] > before[1]).mean() > 0.3
        placing = Placing({}, {"compared": [[0, 1, True, 0.0]], "totals": []})
        first, second = (placing.settled(known, codes).numbers(block) for block in known.blocks)
        assert (first <= second).mean() > 0.99, "but where none is early enough"
        wrong = before[0] > before[1]
        assert np.array_equal(first[~wrong], before[0][~wrong])
        for field in ("month", "day", "weekday"):
            shares = np.array(getattr(calendar, field) or np.ones(31))
            assert (shares[cells_of(field, first).astype(int)] > 0).mean() > 0.99


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
    known, codes = windows()
    [time] = relation_candidates(known).times
    found = time.numbers(known.blocks, codes)
    events = rows[rows["key"].notna()].sort_values(["who", "day"])
    assert declared.person is not None
    events = events.groupby("who").head(declared.person.rows)
    later = events["day"][events["who"].duplicated()]
    assert sorted(found[~np.isnan(found)]) == sorted(later)


def test_a_person_is_compared_with_events_and_adds_up_alone() -> None:
    known, _ = windows()
    names = [block.column.name for block in known.blocks]
    asked = relation_candidates(known)
    compared = {(names[one], names[other]) for one, other in asked.compared}
    assert {("left", "first day"), ("left", "day to next")} <= compared
    assert ("weight", "first day") in compared and ("age", "first day") not in compared
    own = {name for name, (role, *_) in known.domain.roles.items() if role == PERSON}
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
    known, _ = windows()
    names = [block.column.name for block in known.blocks]
    left, first, wait, age = map(names.index, ("left", "first day", "day to next", "age"))
    kept = [
        Comparison(first, left, ordered=True, equal=0.0),
        Comparison(wait, left, ordered=True, equal=0.0),
        Comparison(age, wait, ordered=True, equal=0.0),
        Comparison(age, left, ordered=True, equal=0.0),
    ]
    others, limits = without_limits(kept, relation_candidates(known).times)
    assert limits == (Limit(left, wait),) and others == (kept[3],)
