"""How records are spread inside a column's cells, from a noisy histogram."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch
from numpy.typing import NDArray
from scipy.stats import lognorm, norm

from core.encoding.codec import Codec
from core.models.steps.counting.lines.densities import densities, keys
from core.models.steps.counting.lines.ends import seen, supported, without_islands
from core.models.steps.counting.scales import FineHistograms, fine_grids, merged
from core.schema.column import Column, Kind
from core.schema.schema import Schema

Floats = NDArray[np.float64]
NOISE = 60.0


def bells() -> Floats:
    """Two groups of 5,000 and 3,000 along 200 cells."""
    at = np.arange(200.0)
    return 133.0 * np.exp(-0.5 * ((at - 60) / 15) ** 2) + 60.0 * np.exp(
        -0.5 * ((at - 150) / 20) ** 2
    )


def released(true: Floats, seed: int, noise: float = NOISE) -> Floats:
    """Counts that agree with coarse ones, as a fit has them."""
    random = np.random.default_rng(seed)
    counts = true + random.normal(0.0, noise, len(true))
    for start in range(0, len(true), 16):
        block = slice(start, start + 16)
        coarse = true[block].sum() + random.normal(0.0, noise)
        counts[block] += (coarse - counts[block].sum()) / (len(counts[block]) + 1.0)
    return counts


def density(counts: Floats, noise: float, ends: tuple[int, int]) -> Floats:
    (found,) = densities(counts, noise, ends, 0)
    return found


def distance(one: Floats, other: Floats) -> float:
    return float(np.abs(one / one.sum() - other / other.sum()).sum() / 2.0)


@pytest.mark.parametrize("seed", range(3))
def test_neighbouring_cells_share_strength(seed):
    """Single counts are mostly noise here: 40 records a cell, give or take 60."""
    true = bells()
    counts = released(true, seed)
    found = density(counts, NOISE, (0, 200))
    assert distance(found, true) < 0.12 < 0.3 < distance(np.maximum(counts, 0.0), true)


def test_without_noise_a_density_is_what_was_counted():
    counts = np.random.default_rng(0).poisson(30.0, 100).astype(float)
    assert (density(counts, 0.0, (0, 100)) == counts).all()
    assert distance(density(counts, 0.01, (0, 100)), counts) < 0.01


def test_values_that_many_records_share_stay_apart():
    """A tenth of the records is exactly 100; the cells beside it are not lifted."""
    true = bells()
    true[100] += 800.0
    found = density(released(true, 1), NOISE, (0, 200))
    assert 600.0 < found[100] < 1_000.0 and max(found[98:100].max(), found[101:103].max()) < 100.0


def test_nothing_is_placed_outside_what_was_seen():
    true = np.zeros(200)
    true[80:120] = 150.0
    counts = released(true, 2)
    found = density(counts, NOISE, seen(counts, np.arange(200) // 8, NOISE))
    assert found[:60].sum() + found[140:].sum() < 0.01 * found.sum()


def test_keys_rise_within_each_cell_and_fill_it():
    cells = np.array([0, 0, 0, 1, 1, 2])
    places = keys(np.array([1.0, 0.0, 3.0, 0.0, 0.0, 5.0]), cells)
    assert places.tolist() == [0.25, 0.25, 1.0, 1.5, 2.0, 3.0]


def test_possible_densities_have_tails_that_noise_hides():
    """Of 40 records beyond the last cell that stands clear, the density drawn from has none."""
    true = 100.0 * np.exp(-0.05 * np.arange(200.0))
    counts = released(true, 3, 30.0)
    end = 90
    found = densities(counts, 30.0, (0, end), 8)
    assert found[0, end:].sum() == 0.0 and (found >= 0.0).all()
    tails = found[1:, end:].sum(axis=1)
    assert (tails > 0.0).all() and tails.mean() < 10 * true[end:].sum()
    assert found[1:, -10:].mean() < 0.3 * found[1:, end : end + 10].mean()


def test_a_low_count_between_full_cells_is_no_hole() -> None:
    holes, empty = 0, 0.0
    for seed in range(40):
        random = np.random.default_rng(seed)
        true = np.append(np.tile([400.0, 110.0], 10), np.zeros(12))  # too rough to be smoothed
        found = density(true + random.normal(0.0, NOISE, 32), NOISE, (0, 32))
        holes += int((found[2:18] <= 0.0).sum())
        empty += float(found[23:].sum() / found.sum())
    assert holes <= 3  # of 640 cells; seven where each cell is judged by itself
    assert empty / 40 < 0.03


def ends_of(exact: np.ndarray, seed: int) -> tuple[int, int]:
    return supported(released(exact, seed), NOISE, (0, len(exact)))


def test_a_density_that_ends_at_once_has_no_records_beyond() -> None:
    """Shares end at one, in the middle of what bounds leave room for."""
    exact = np.append(np.full(64, 0.0), np.full(64, 200.0))
    spilt = []
    for seed in range(10):
        counts = released(exact, seed)
        first, end = ends_of(exact, seed)
        assert exact[:first].sum() + exact[end:].sum() < 0.04 * exact.sum()
        both = (density(counts, NOISE, ends)[:64].sum() for ends in ((0, 128), (first, end)))
        spilt.append(list(both))
    before, after = np.mean(spilt, axis=0)
    assert after < 0.3 * before


def falsely_ended(sure: bool) -> int:
    """Of 200 columns whose records fill a sixth of their cells, how many end far beyond."""
    exact, random, noise, wrong = np.zeros(128), np.random.default_rng(1), 100.0, 0
    exact[:20] = 8000.0 * norm.pdf(np.arange(20.0), 12.0, 3.0)
    for _ in range(200):
        counts = exact + random.normal(0.0, noise, 128)
        runs = merged(counts, noise, 32, frozenset(), np.ones(128), sure=sure)
        wrong += seen(counts, runs, noise)[1] > 60
    return wrong


def test_noise_in_empty_cells_seldom_ends_a_column() -> None:
    """Waits whose bounds are those of a calendar lie in a few of its days."""
    assert falsely_ended(sure=True) <= 4
    assert falsely_ended(sure=False) > 8  # by cells as they are counted


def far_out(exact: Floats, beyond: int, noise: float, *, islands: bool) -> Floats:
    """Of 100 histograms, the share of records that seem to lie beyond a cell."""
    found = []
    for seed in range(100):
        counts = released(exact, seed, noise)
        ends = supported(counts, noise, (0, len(exact)))
        ends = ends if islands else without_islands(counts, noise, ends)
        records = density(counts, noise, ends)
        found.append(float(records[beyond:].sum() / records.sum()))
    return np.array(found)


BELL = np.diff(norm.cdf(np.linspace(-5.0, 11.0, 129)))  # which ends half way to the bound


@pytest.mark.parametrize("noise", [60.0, 100.0])
def test_noise_far_from_all_records_holds_none(noise: float) -> None:
    before, after = (far_out(4000.0 * BELL, 75, noise, islands=kept) for kept in (True, False))
    assert (before > 0.02).sum() >= 8  # as it was
    assert (after > 0.02).sum() <= 3 and after.mean() < 0.2 * before.mean()


def test_records_far_from_the_others_stay_where_they_show() -> None:
    """A fifth of a column lies far from the rest, or amounts are round ones alone."""
    before, after = (
        far_out(4000.0 * BELL + 1000.0 * BELL[::-1], 64, NOISE, islands=kept)
        for kept in (True, False)
    )
    assert after.mean() > 0.98 * before.mean() and after.min() > 0.1
    heaps = np.where(np.arange(128) % 10 == 5, 4000.0 * 0.95 ** np.arange(128.0) + 200.0, 0.0)
    for seed in range(20):
        assert without_islands(released(heaps, seed), NOISE, (0, 126))[1] >= 116


def test_a_tail_that_falls_slowly_is_no_island() -> None:
    """Noise leaves gaps in it, which are no emptier than what lies beyond them."""
    tail = 7000.0 * np.diff(lognorm(1.2, scale=0.05).cdf(np.linspace(0.0, 1.0, 129)))
    lost = []
    for seed in range(40):
        counts = released(tail, seed)
        end = supported(counts, NOISE, (0, 128))
        inner = without_islands(counts, NOISE, end)
        lost.append([tail[one[1] :].sum() / tail.sum() for one in (end, inner)])
    before, after = np.mean(lost, axis=0)
    assert 0.005 < before and after < 1.5 * before  # 2.6 times, by the density of most records


def test_a_thin_tail_is_no_sudden_end() -> None:
    exact = 40_000.0 * np.diff(norm.cdf(np.linspace(-5.0, 5.0, 129)))
    for seed in range(10):
        first, end = ends_of(exact, seed)
        assert exact[:first].sum() + exact[end:].sum() < 0.01 * exact.sum()
    assert supported(exact, 0.0, (3, 120)) == (3, 120), "without noise nothing spills over"


def test_ends_are_found_however_few_cells_hold_values() -> None:
    """Integers on fine cells of a logarithmic scale leave runs of cells that can hold none."""
    for seed in range(300):
        random = np.random.default_rng(seed)
        cells = int(random.integers(16, 257))
        held = np.zeros(cells)
        some = random.choice(cells, max(2, int(cells * random.random() ** 3)), replace=False)
        held[some] = random.random(len(some))
        counts = 20.0 * NOISE * held + random.normal(0.0, NOISE, cells)
        first, end = sorted(random.choice(cells + 1, 2, replace=False).tolist())
        low, high = supported(counts, NOISE, (first, end), None, held)
        assert 0 <= low < high <= cells


def test_coarse_cells_say_nothing_of_missing_numbers():
    """Of a hundred values, the last coarse cell has four; missing ones come after them."""
    column = Column(name="x", kind=Kind.INTEGER, low=0, high=99, step=1, missing=True)
    codec = Codec(Schema(columns=(column,)).domain())
    numbers = np.where(np.arange(4000) % 4 == 0, np.nan, np.arange(4000.0) % 100)
    codes = codec.encode(pd.DataFrame({"x": numbers}))
    histograms = FineHistograms(fine_grids(codec, 1.0, len(codes)))
    exact = histograms.statistic(codes.to("cpu"), torch.ones(len(codes)))
    (counts,) = histograms.split(exact)
    np.testing.assert_allclose(counts, exact.numpy()[: len(counts)])
    assert counts[-1] == 1000.0
