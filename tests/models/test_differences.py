"""How far numbers, or ranks of unlike ones, lie apart is counted, and drawn rows keep it."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
import torch
from scipy.stats import spearmanr

from core.encoding.codec import Codec, Codes
from core.models.steps.counting.counts import RelationCounts
from core.models.steps.counting.difference_candidates import (
    YEAR,
    DifferenceCandidate,
    difference_candidates,
)
from core.models.steps.counting.differences import (
    Difference,
    asked_differences,
    keep_differences,
    kept_differences,
)
from core.models.steps.counting.relation_candidates import relation_candidates
from core.models.steps.counting.scales import (
    ColumnScale,
    FineHistograms,
    fine_grids,
)
from core.models.steps.training.column_bins import ColumnBins
from core.schema.calendar import DAY
from core.schema.column import Column, Kind
from core.schema.schema import Schema
from tests.models.tables import scales_of

N = 8000
BORN, DEBUT, BATS, WEIGHT, PAY, SPENT = range(6)
BIRTHS = (DifferenceCandidate(BORN, DEBUT, "years"),)


def codec() -> Codec:
    """People, whose debut is a date; their birth may be unknown."""
    day = {"dtype": "str", "date_format": "%Y-%m-%d"}
    debut = {"low": -40 * YEAR, "high": 60 * YEAR, "step": DAY, **day}
    columns = [
        Column(name="born", kind=Kind.INTEGER, low=1900, high=2020, step=1, missing=True),
        Column(name="debut", kind=Kind.DATETIME, **debut),
        Column(name="bats", kind=Kind.CATEGORY, categories=("L", "R")),
        Column(name="weight", kind=Kind.INTEGER, low=100, high=400, step=1),
        Column(name="pay", kind=Kind.INTEGER, low=0, high=10_000_000, step=1, scale="log"),
        Column(name="spent", kind=Kind.INTEGER, low=0, high=10_000_000, step=1, scale="log"),
    ]
    return Codec(Schema(columns=tuple(columns)).domain())


def people(apart: float = 4.0, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Years of birth, some unknown, and of the debut, some 24 years later."""
    random = np.random.default_rng(seed)
    born = np.round(random.uniform(1905.0, 1990.0, N))
    debut = born + random.normal(24.0, apart, N).clip(10.0, 60.0)
    return np.where(random.random(N) < 0.1, np.nan, born), debut


def rows(born: np.ndarray, debut: np.ndarray) -> Codes:
    """Records of these years; all else is at its lower bound."""
    made = codec()
    states = np.zeros((len(born), 6), dtype=np.int32)
    values = np.zeros((len(born), made.numbers))
    first, second = made.blocks[BORN], made.blocks[DEBUT]
    states[:, BORN] = np.where(np.isnan(born), first.missing_state, 0)
    values[:, first.number] = np.nan_to_num(first.line.position(born))
    values[:, second.number] = second.line.position((debut - 1970.0) * YEAR)
    return Codes(states, values)


def years(codes: Codes) -> np.ndarray:
    """How long after birth each debut is; NaN where the birth is unknown."""
    born, debut = (codes.numbers(codec().blocks[i]) for i in (BORN, DEBUT))
    return 1970.0 + debut / YEAR - born


def histograms(codes: Codes) -> list[np.ndarray]:
    """Exact counts of the fine cells of each column."""
    mechanism = FineHistograms(grids())
    return mechanism.split(mechanism.statistic(codes.to("cpu"), torch.ones(N)))


def grids() -> tuple[ColumnBins, ...]:
    return fine_grids(codec(), 10.0, N)


def known(codes: Codes) -> tuple[tuple[ColumnScale, ...], list[np.ndarray]]:
    """Scales and shares of cells, of counts as without noise."""
    scales = scales_of(grids(), histograms(codes), 5.0)
    return scales, [scale.shares(scale.counts) for scale in scales]


def asked_of(codes: Codes, pair: tuple[int, int], halves: float) -> tuple[DifferenceCandidate, ...]:
    """Of all candidates, what is asked about if only this pair goes together, in such halves."""
    candidates = tuple(difference_candidates(codec()))
    return asked_differences(candidates, {pair: (0.4, halves)}, set(), *known(codes))


def released(
    codes: Codes, noise: float, seed: int = 0, asked: tuple[DifferenceCandidate, ...] = BIRTHS
) -> tuple[Difference, ...]:
    """What is kept by counts with so much noise."""
    mechanism = RelationCounts(codec().blocks, (), (), asked)
    counts = mechanism.split(mechanism.statistic(codes, torch.ones(N)))[2].numpy()
    counts += noise * np.random.default_rng(seed).standard_normal(counts.shape)
    return kept_differences(counts, asked, *known(codes), noise, N)


def test_numbers_are_compared_in_their_unit_or_by_ranks():
    found = {(c.first, c.second): c.unit for c in difference_candidates(codec())}
    units = {(BORN, DEBUT): "years", (PAY, SPENT): "log"}
    numeric = combinations((BORN, DEBUT, WEIGHT, PAY, SPENT), 2)
    assert found == {pair: units.get(pair, "ranks") for pair in numeric}
    assert relation_candidates(codec()).differences == tuple(difference_candidates(codec()))


def test_only_what_goes_together_is_asked_about():
    candidates, of = tuple(difference_candidates(codec())), known(rows(*people()))
    seen = {(BORN, DEBUT): (0.4, 0.0), (PAY, SPENT): (0.001, 0.9), (BORN, WEIGHT): (0.4, 0.3)}
    asked = asked_differences(candidates, seen, set(), *of)
    assert [(one.first, one.second) for one in asked] == [(BORN, DEBUT)]
    assert asked_differences(candidates, seen, {DEBUT}, *of) == ()


def test_differences_alone_plan_no_release():
    """Whether one is asked about is known after the scan, and a release of nothing is refused."""
    two = Codec(codec().domain.project(["born", "debut"]))
    found = relation_candidates(two)
    assert found.differences and not found


def test_one_record_left_out_moves_counts_by_their_sensitivity():
    some = rows(*(column[:7] for column in people()))
    ranks = asked_of(rows(*people()), (BORN, WEIGHT), 0.9)
    asked = (*BIRTHS, DifferenceCandidate(DEBUT, BORN, "years"), *ranks)
    mechanism = RelationCounts(codec().blocks, (), (), asked)
    whole = mechanism.statistic(some, torch.ones(7))
    moves = []
    for left_out in range(7):
        rest = some.take(np.delete(np.arange(7), left_out))
        moves.append(float((whole - mechanism.statistic(rest, torch.ones(6))).norm()))
    assert max(moves) == pytest.approx(mechanism.sensitivity)


@pytest.mark.parametrize("seed", range(3))
def test_a_histogram_with_noise_says_how_far_apart(seed):
    codes = rows(*people())
    (found,) = released(codes, 60.0, seed)
    shares = np.array([0.01, 0.25, 0.5, 0.75, 0.99])
    real = np.nanquantile(years(codes), shares)
    np.testing.assert_allclose(found.at(shares, codec().blocks), real, atol=3.0)


def test_noise_alone_says_nothing():
    nobody = rows(np.full(N, np.nan), people()[1])
    assert released(nobody, 60.0) == ()


def test_a_wide_difference_says_nothing():
    born, _ = people()
    debut = np.random.default_rng(3).uniform(1940.0, 2020.0, N)  # whenever somebody was born
    assert released(rows(born, debut), 30.0) == ()


def test_rows_lie_as_far_apart_as_was_counted():
    born, debut = people()
    (found,) = released(rows(born, debut), 30.0)
    drawn = rows(born, np.where(np.arange(N) % 5 == 0, people(seed=1)[1], debut))
    before, moved = drawn.values.copy(), codec().blocks[DEBUT].number
    assert np.nanmean((years(drawn) < 5.0) | (years(drawn) > 50.0)) > 0.05
    keep_differences(codec(), drawn, [found], torch.Generator().manual_seed(0))
    after = years(drawn)
    assert np.nanmean((after < 5.0) | (after > 50.0)) < 0.002
    assert np.nanstd(after) < 1.3 * np.nanstd(years(rows(born, debut)))
    for number in range(before.shape[1]):
        np.testing.assert_array_equal(np.sort(drawn.values[:, number]), np.sort(before[:, number]))
        if number != moved:
            np.testing.assert_array_equal(drawn.values[:, number], before[:, number])
    unknown = np.isnan(born)
    np.testing.assert_array_equal(drawn.values[unknown], before[unknown])


def test_what_noise_hides_stays_as_far_apart_as_it_was_drawn():
    """A fifth of the records lie apart as it happens, so few in each cell that noise hides them."""

    def mixed(seed: int) -> Codes:
        born, debut = people(seed=seed)
        random = np.random.default_rng(seed + 10)
        return rows(born, np.where(random.random(N) < 0.2, random.uniform(1915, 2020, N), debut))

    def far(codes: Codes) -> float:
        return float(np.nanmean(np.abs(years(codes) - 24.0)[~np.isnan(years(codes))] > 15.0))

    real, drawn = mixed(0), mixed(1)
    (found,) = released(real, 60.0)
    keep_differences(codec(), drawn, [found], torch.Generator().manual_seed(0))
    assert 0.1 < far(real) and far(drawn) == pytest.approx(far(real), rel=0.3)
    nothing_hidden = replace(found, hidden=(0.0, 0.0))
    keep_differences(codec(), drawn, [nothing_hidden], torch.Generator().manual_seed(0))
    assert far(drawn) < 0.5 * far(real)


def test_what_lies_as_far_apart_stays_where_it_is():
    drawn = rows(*people())
    (found,) = released(drawn, 30.0)
    before = years(drawn)
    keep_differences(codec(), drawn, [found], torch.Generator().manual_seed(0))
    assert np.nanmean(np.abs(years(drawn) - before)) < 0.8


def test_a_stored_difference_comes_back():
    (found,) = released(rows(*people()), 30.0)
    one = found.candidate
    stored = [one.first, one.second, one.unit, one.curves]
    assert Difference.stored(stored, list(found.cumulated), found.hidden) == found


# -- ranks of unlike numbers -----------------------------------------------------------------------


def weighed(sign: float, seed: int = 0, loose: float = 0.02) -> Codes:
    """Players who weigh the more, or the less, the later they were born."""
    born, debut = people(seed=seed)
    random = np.random.default_rng(seed)
    weight = 250.0 + sign * (np.nan_to_num(born, nan=1950.0) - 1947.0) ** 3 / 700.0
    weight = weight + loose * 100.0 * random.standard_normal(N)
    codes = rows(born, debut)
    block = codec().blocks[WEIGHT]
    codes.values[:, block.number] = block.line.position(weight.clip(100.0, 400.0).round())
    return codes


def together(codes: Codes) -> float:
    """The rank correlation of birth and weight."""
    born, weight = (codes.numbers(codec().blocks[i]) for i in (BORN, WEIGHT))
    return float(spearmanr(born, weight, nan_policy="omit").statistic)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_ranks_of_unlike_numbers_are_kept(sign):
    real, drawn = weighed(sign), weighed(sign)
    asked = asked_of(real, (BORN, WEIGHT), sign * 0.9)
    (found,) = released(real, 60.0, asked=asked)
    number = codec().blocks[WEIGHT].number
    mixed = np.random.default_rng(4).random(N) < 0.5  # of half the rows, nobody knows
    drawn.values[mixed, number] = np.random.default_rng(5).permutation(drawn.values[mixed, number])
    assert abs(together(drawn)) < 0.6
    keep_differences(codec(), drawn, [found], torch.Generator().manual_seed(0))
    assert sign * together(drawn) > 0.97
    assert sign * together(real) > 0.97


def test_the_wrong_direction_says_nothing():
    asked = asked_of(weighed(1.0), (BORN, WEIGHT), -0.9)
    assert released(weighed(1.0), 30.0, asked=asked) == ()


def test_one_unit_with_unlike_spreads_is_compared_by_ranks():
    """Minutes and what they cost: both are own numbers, and their difference is the minutes."""
    codes = rows(*people())
    pay, spent = (codec().blocks[i] for i in (PAY, SPENT))
    many = np.random.default_rng(6).lognormal(10.0, 1.0, N)
    codes.values[:, pay.number] = pay.line.position(many)
    codes.values[:, spent.number] = spent.line.position(np.sqrt(many))
    (one,) = asked_of(codes, (PAY, SPENT), 0.9)
    assert one.unit == "ranks" and len(released(codes, 60.0, asked=(one,))) == 1
    assert asked_of(codes, (PAY, SPENT), 0.2) == ()
