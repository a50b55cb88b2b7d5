"""Learned ranges: what bins in a row hold together where noise hides each, and where they end."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

from core.privacy.discovery.bins_in_a_row import likeliest
from core.privacy.discovery.grids import grid_of
from core.privacy.discovery.ranges import FirstLook, Narrowed
from core.privacy.discovery.second_look import FineLook
from core.schema.column import Column, Kind
from tests.privacy.learned_tables import by_name, learn, schema_for

RUNS, STD = 40, 75.0


def found(kind: Kind, values: NDArray[np.float64], seed: int) -> tuple[float, float]:
    """What is taken to hold the values, of which no bin holds four standard deviations."""
    grid, random = grid_of(Column(name="x", kind=kind)), np.random.default_rng(seed)
    edges = np.array(grid.edges)
    counts = np.histogram(values, edges)[0].astype(float)
    assert counts.max() < 4.0 * STD
    noisy = counts + STD * random.standard_normal(len(counts))
    ends, atoms = likeliest(grid, noisy, STD * random.standard_normal(len(grid.atoms)))
    return (edges[ends[0]], edges[ends[1] + 1]) if not atoms else (atoms[0], atoms[0])


@pytest.mark.parametrize("kind", [Kind.NUMBER, Kind.INTEGER])
def test_a_range_that_few_records_spread_over_is_seen(kind):
    values = np.round(np.random.default_rng(1).lognormal(11.6, 0.9, 700))  # of loans
    assert np.histogram(values, np.array(grid_of(Column(name="x", kind=kind)).edges))[0].max() < 300
    inside = []
    for seed in range(RUNS):
        low, high = found(kind, values, seed)
        inside.append(np.mean((values >= low) & (values <= high)))
    assert np.mean(np.array(inside) > 0.6) >= 0.8


def test_what_is_taken_has_one_sign_and_usual_numbers():
    for seed in range(RUNS):
        low, high = found(Kind.NUMBER, np.zeros(0), seed)
        assert low >= 0.0 or high <= 0.0
        assert max(abs(low), abs(high)) <= 1e6


def test_years_and_days_end_where_they_do():
    """Not at 0 and 5,000, where years of death would have a cell for each decade."""
    random = np.random.default_rng(6)
    years = np.where(random.random(5_000) < 0.5, np.nan, random.integers(1872, 2022, 5_000))
    frame = pd.DataFrame({"died": years, "day": random.integers(1, 32, 5_000)})
    columns = by_name(learn(frame, schema_for(frame), 1.0))
    assert 1800.0 <= columns["died"].low <= 1880.0 and 2020.0 <= columns["died"].high <= 2100.0
    assert (columns["day"].low, columns["day"].high) == (1.0, 31.0)


def test_amounts_do_not_end_where_years_begin():
    """At 1,800 or 2,100, were the cells of whole numbers decades there."""
    random = np.random.default_rng(7)
    amounts = random.lognormal(6.9, 0.4, 4_000).round().astype(np.int64)
    frame = pd.DataFrame({f"x{i}": amounts for i in range(4)})
    ends = [one for seed in range(8) for one in learn(frame, schema_for(frame), 0.2, seed).columns]
    assert np.mean([column.high in (2000.0, 5000.0) for column in ends]) >= 0.9
    assert np.mean([(amounts > column.high).mean() for column in ends]) < 0.03


def test_few_amounts_far_beyond_zero_are_seen_together():
    """As of debts, which most have not, and of which no cell holds enough to be seen."""
    random = np.random.default_rng(8)
    some = random.random(4_000) < 0.15
    debts = np.where(some, random.lognormal(8.0, 0.9, 4_000), 0.0).round()
    assert np.histogram(debts[some], [500, 1000, 2000, 5000, 10_000])[0].max() < 300
    frame = pd.DataFrame({f"x{i}": debts for i in range(4)})
    schema = schema_for(frame)
    found = [one for seed in range(40) for one in learn(frame, schema, 0.3, seed).columns]
    assert {0.0} == {(*column.spikes, column.high)[0] for column in found}
    assert np.mean([(debts > column.high).mean() < 0.03 for column in found]) >= 0.8


def test_noise_does_not_pass_for_records_in_a_narrow_range():
    """A third lie in one bin; noise of the others could make it look as if it were all."""
    random, std = np.random.default_rng(9), 200.0
    held = np.where(random.random(3_000) < 0.3, 10.15, random.uniform(5.0, 20.0, 3_000))
    counts = np.histogram(held, 150, (5.0, 20.0))[0]
    look = FirstLook(5.0, 20.0, (5.0, 20.0), 3_000.0, (), (), {}, False, False, (0.0, 0.0))
    for _ in range(200):
        noisy = counts + std * random.standard_normal(150)
        found = FineLook(noisy, std, 0.0).narrowed(look) or Narrowed(5.0, 20.0, 0.0, std)
        low, high = found.low, found.high
        assert ((held >= low) & (held <= high)).mean() > 0.5


def test_years_do_not_reach_to_zero_by_noise():
    """A bin more on either side, and the range would end at zero or at five thousand."""
    random = np.random.default_rng(10)
    years = random.normal(1965, 18, (5_000, 3)).round().clip(1920, 2010).astype(int)
    frame = pd.DataFrame(years, columns=["born", "begun", "built"])
    schema = schema_for(frame, **dict.fromkeys(frame, Kind.INTEGER))
    found = [one for seed in range(40) for one in learn(frame, schema, 0.3, seed).columns]
    assert np.mean([one.high - one.low > 400 for one in found]) <= 0.05
    assert np.mean([one.low <= 1935 and one.high >= 1995 for one in found]) >= 0.9


@pytest.mark.parametrize(("spread", "n", "std"), [(1.4, 54_000, 116.0), (8.0, 20_000, 60.0)])
def test_what_lies_outside_of_a_narrowed_range_is_said(spread: float, n: int, std: float) -> None:
    """Of a thin tail no bin shows, nor do a few in a row; noise in their sum must be told."""
    random, narrowed = np.random.default_rng(11), []
    held = random.normal(60.0, spread, n)
    counts = np.histogram(held, 160, (20.0, 100.0))[0]
    for _ in range(200):
        noisy, inside = counts + std * random.standard_normal(160), n + std * random.normal()
        look = FirstLook(20.0, 100.0, (20.0, 100.0), inside, (), (), {}, False, False, (0.0, 0.0))
        narrowed.append(FineLook(noisy, std, 0.0).narrowed(look) or Narrowed(20.0, 100.0, 0.0, std))
    outside = np.array([((held < one.low) | (held > one.high)).sum() for one in narrowed])
    errors = np.array([one.lost - lost for one, lost in zip(narrowed, outside, strict=True)])
    assert np.mean(outside > 0.03 * n) <= 0.03
    assert np.mean(np.abs(errors) <= 2.0 * np.array([one.std for one in narrowed])) >= 0.9


def outside(values: NDArray[np.float64], kind: Kind, epsilon: float = 0.09) -> list[float]:
    """The shares of numbers beyond their bounds, as learned of two columns of them in ten runs."""
    frame = pd.DataFrame({"one": values, "other": values})
    schema = schema_for(frame, one=kind, other=kind)
    learned = [one for seed in range(10) for one in learn(frame, schema, epsilon, seed).columns]
    return [np.mean((values < one.low) | (values > one.high)) for one in learned]


def test_years_of_birth_that_all_are_frequent_lie_close_together():
    """Four in all, and no other: the range between round numbers is a thousand years long."""
    random = np.random.default_rng(16)
    frame = pd.DataFrame({"birthy": random.choice([1977, 1978, 1979, 1980], 12_000)})
    schema = schema_for(frame, birthy=Kind.INTEGER)
    found = [by_name(learn(frame, schema, 0.1, seed))["birthy"] for seed in range(10)]
    assert np.mean([one.high - one.low <= 50 for one in found]) >= 0.9
    assert np.mean([one.low <= 1977 and one.high >= 1980 for one in found]) >= 0.9


def test_numbers_of_either_sign_are_found():
    """As of where a ball lies, left or right of the middle, of which the left holds a few more."""
    sides = np.random.default_rng(13).normal(-2.3, 8.4, 3_400).round(3)
    assert np.mean(np.array(outside(sides, Kind.NUMBER)) > 0.1) <= 0.1


def test_small_codes_are_found_beside_more_frequent_ones():
    """Of fourteen, more than half of the records hold the last four."""
    random = np.random.default_rng(14)
    codes = np.where(random.random(3_400) < 0.44, random.integers(1, 10, 3_400), 0)
    codes = np.where(codes, codes, random.integers(11, 15, 3_400)).astype(np.float64)
    assert np.mean(np.array(outside(codes, Kind.INTEGER)) > 0.1) <= 0.1


def test_a_code_for_unknown_is_not_all_that_is_found():
    """Most have one, and no bin of what the others have stands above noise by itself."""
    random = np.random.default_rng(17)
    amounts = random.lognormal(4.0, 1.5, 3_400).round()
    codes = np.where(random.random(3_400) < 0.6, 9999.0, amounts)
    assert np.mean(np.array(outside(codes, Kind.INTEGER, 0.07)) > 0.1) <= 0.1


def test_no_other_sign_is_found_where_few_are_not_zero():
    """Noise has some row of bins that stands clearest, and few records seem to be lacking."""
    random = np.random.default_rng(18)
    counts = np.where(random.random((2_700, 6)) < 0.85, 0, random.geometric(0.5, (2_700, 6)))
    frame = pd.DataFrame(counts, columns=list("abcdef"))
    schema = schema_for(frame, **dict.fromkeys(frame, Kind.INTEGER))
    found = [one for seed in range(30) for one in learn(frame, schema, 0.25, seed).columns]
    assert np.mean([one.low < 0.0 for one in found]) <= 0.01


def test_noise_does_not_hide_the_lower_of_two_peaks():
    """As of how fast a ball is thrown: most by far, but not all, lie in a narrow range."""
    random, std = np.random.default_rng(15), 150.0
    held = np.append(random.normal(92.5, 1.0, 2_100), random.normal(80.0, 6.0, 1_300))
    counts = np.histogram(held, 250, (50.0, 100.0))[0]
    look = FirstLook(50.0, 100.0, (50.0, 100.0), 3_400.0, (), (), {}, False, False, (0.0, 0.0))
    for _ in range(400):
        found = FineLook(counts + std * random.standard_normal(250), std, 0.0).narrowed(look)
        assert found is None or ((held >= found.low) & (held <= found.high)).mean() > 0.8
