"""Lists of small whole numbers: which of them are there needs no proof that somebody has one."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch

from core.privacy.discovery import raw_rows
from core.privacy.discovery.open_domain import open_domain, possible_labels
from core.privacy.discovery.planning import Levels
from core.privacy.discovery.raw_rows import read_raw
from core.privacy.mechanisms.domain_release import LabelCounts
from core.schema.column import Kind
from core.schema.schema import Schema
from tests.privacy.learned_tables import by_name, learn, planned, schema_for, to_learn

pytestmark = pytest.mark.slow

N, EPSILON, RNG = 3000, 0.4, np.random.default_rng(8)
SCALE = RNG.choice(np.arange(1, 8), N, p=[0.03, 0.05, 0.12, 0.3, 0.3, 0.14, 0.06])


def whole(kind: Kind, values: np.ndarray) -> tuple[pd.DataFrame, Schema]:
    """A list of numbers beside seven of labels."""
    names = {f"list {i}": RNG.choice(["a", "b", "c"], len(values)) for i in range(7)}
    frame = pd.DataFrame(names).astype("str").assign(score=values)
    column = to_learn("score", kind).model_copy(update={"dtype": "int64"})
    rest = schema_for(frame.drop(columns="score"))
    return frame, Schema(columns=(*rest.columns, column))


def found(kind: Kind, values: np.ndarray, seed: int) -> tuple[str, ...]:
    frame, schema = whole(kind, values)
    return by_name(learn(frame, schema, EPSILON, seed))["score"].categories or ()


def test_steps_of_a_scale_are_found_beside_common_ones() -> None:
    runs = [found(Kind.ORDERED, SCALE, seed) for seed in range(20)]
    assert all({"3", "4", "5", "6"} <= {*run} for run in runs)
    assert np.mean([len({*run} & {"1", "2", "7"}) for run in runs]) >= 1.5  # of three
    strangers = [{*run} - set(map(str, range(1, 8))) for run in runs]
    assert np.mean([len(one) for one in strangers]) <= 0.2
    frame, schema = whole(Kind.ORDERED, SCALE)
    wanted, plan = planned(schema, N, EPSILON)
    hidden = Levels.of(plan, wanted).label
    assert np.sum(SCALE == 2) < hidden and np.sum(SCALE == 7) < hidden


def test_codes_between_which_nothing_lies_stay_the_only_ones() -> None:
    runs = [found(Kind.CATEGORY, np.where(SCALE > 4, 30, 7), seed) for seed in range(20)]
    assert runs == [("7", "30")] * 20


def test_numbers_that_are_not_small_need_the_proof() -> None:
    """Nobody knows that there is a 512 until enough records show it."""
    values = np.where(np.arange(N) < 60, 512, SCALE)
    assert not any("512" in found(Kind.ORDERED, values, seed) for seed in range(10))


def test_small_numbers_are_counted_whether_they_occur_or_not(monkeypatch) -> None:
    """A record that is left out takes no cell along, so noise covers what it moves."""
    frame, schema = whole(Kind.ORDERED, np.array([3, 3, 41]))
    wanted = open_domain(schema)
    kept = [
        read_raw(rows, wanted)[1][-1] for rows in (frame, frame.iloc[:2].reset_index(drop=True))
    ]
    assert kept[0] == kept[1] == tuple((label,) for label in possible_labels(wanted.listed[-1]))
    monkeypatch.setattr(raw_rows, "possible_labels", lambda column: ())  # those that occur alone
    whole_keys, kept = (read_raw(rows, wanted)[1][-1] for rows in (frame, frame[:2]))
    assert whole_keys != kept
    monkeypatch.undo()
    raw, keys = read_raw(frame, wanted)
    mechanism = LabelCounts(tuple(len(own) for own in keys), N)
    counts = mechanism.split(mechanism.statistic(raw.to("cpu"), torch.ones(3)).numpy())[-1]
    assert len(counts) == 101 and counts[[3, 41]].tolist() == [2.0, 1.0] and counts.sum() == 3.0


@pytest.mark.parametrize(
    ("values", "ends"),
    [
        (RNG.integers(1, 13, N), (1.0, 12.0)),  # months
        (RNG.integers(0, 11, N), (0.0, 10.0)),  # marks out of ten
        (RNG.choice([0, 1, 2, 3], N), (0.0, 3.0)),
        (RNG.integers(18, 20, N), (18.0, 19.0)),
        (RNG.integers(0, 40, N), (0.0, 50.0)),
    ],
)
def test_small_whole_numbers_end_where_records_do(values: np.ndarray, ends: tuple) -> None:
    frame, schema = whole(Kind.INTEGER, values)
    runs = [by_name(learn(frame, schema, EPSILON, seed))["score"] for seed in range(20)]
    assert np.mean([(one.low, one.high) == ends for one in runs]) >= 0.8


@pytest.mark.parametrize(
    "values",
    [
        RNG.geometric(0.25, N) - 1,
        RNG.poisson(RNG.gamma(0.5, 8.0, N)),
        np.floor(RNG.lognormal(0.5, 1.1, N)),
    ],
)
def test_counts_that_thin_out_are_not_cut_where_noise_begins(values: np.ndarray) -> None:
    frame, schema = whole(Kind.INTEGER, values.astype(np.int64))
    runs = [by_name(learn(frame, schema, EPSILON, seed))["score"] for seed in range(20)]
    assert np.mean([np.mean(values > one.high) for one in runs]) <= 0.06  # by bins alone .11 to .19


def test_numbers_below_those_found_are_not_said_to_lie_outside() -> None:
    """Each of 1 to 19 holds less than its noise, and all of them a third of the records."""
    frame, schema = whole(Kind.INTEGER, np.floor(RNG.lognormal(3.5, 1.3, N)).astype(np.int64) + 1)
    runs = [by_name(learn(frame, schema, EPSILON, seed))["score"] for seed in range(20)]
    assert max(one.low or 0.0 for one in runs) <= 1.0
    told = [one.learned.outside for one in runs if one.learned is not None]
    assert (
        np.mean(told) <= 0.12 and len(told) == 20
    )  # its standard error is .1, and it is no less than 0


@pytest.mark.parametrize(("name", "last"), [("birthDay", 31), ("hour", 23), ("Monat", 12)])
def test_fields_of_a_date_end_where_the_calendar_does(name: str, last: int) -> None:
    random = np.random.default_rng(4)
    of_year = random.integers(1, 366, N)  # in a column that a day of the month might be called
    first = 0 if name == "hour" else 1
    values = {name: random.integers(first, last + 1, N), "day": of_year, "day in month": of_year}
    frame = pd.DataFrame(values)
    for seed in range(5):
        learned = by_name(learn(frame, schema_for(frame), EPSILON, seed))
        assert (learned[name].low, learned[name].high) == (float(first), float(last))
        assert learned["day"].high == 500.0


def test_years_end_near_ours_where_noise_hides_their_end() -> None:
    """Between 1,000 and 5,000 a table of 40 numbers has noise in each of them."""
    random = np.random.default_rng(5)
    others = {f"x{i}": random.integers(0, 40, N) for i in range(40)}
    since = {"birthYear": random.integers(1930, 2010, N), "school year": random.integers(1, 6, N)}
    frame = pd.DataFrame({**since, "price": random.integers(1930, 5000, N), **others})
    for seed in range(5):
        learned = by_name(learn(frame, schema_for(frame), 1.0, seed))
        assert 2000.0 <= learned["birthYear"].high <= 2100.0
        assert learned["school year"].high <= 9.0 and learned["price"].high >= 4999.0


@pytest.mark.parametrize("zeros", [0.7, 0.0])
def test_counts_that_surely_lie_somewhere_are_not_left_out(zeros: float) -> None:
    """Noise hides each number, but not that many records have some number beyond those found."""
    random, n = np.random.default_rng(6), 1470
    counts = np.where(random.random(n) < zeros, 0, random.geometric(0.1, n))
    others = {f"x{i}": random.normal(40.0, 12.0, n).round().astype(int) for i in range(15)}
    others |= {f"list {i}": random.choice(["a", "b", "c"], n) for i in range(15)}
    frame = pd.DataFrame({"visits": counts, **others})
    schema = schema_for(frame, visits=Kind.INTEGER)
    found = [by_name(learn(frame, schema, 1.0, seed))["visits"].high for seed in range(20)]
    assert np.mean([(counts > high).mean() for high in found]) <= 0.1
    assert np.mean([high <= 200.0 for high in found]) >= 0.9


def test_years_of_a_list_bring_no_small_number() -> None:
    """The clearest of a hundred small ones, of which noise alone makes one, would be there."""
    years = RNG.integers(2006, 2011, N)
    runs = [found(Kind.ORDERED, years, seed) for seed in range(20)]
    assert {label for labels in runs for label in labels} <= {str(y) for y in range(2006, 2011)}
    assert np.mean([len(labels) for labels in runs]) >= 4.0
