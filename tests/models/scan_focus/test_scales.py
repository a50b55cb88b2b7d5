"""Where in its cell a drawn number lies, and where none lies."""

from __future__ import annotations

import numpy as np
import pytest

from core.encoding.codec import Codec
from core.models.steps.counting import scales
from core.models.steps.counting.lines.densities import COARSE, with_coarse
from core.models.steps.counting.scales import ColumnScale, FineCounts, fine_grids, most_cells
from core.models.steps.training.column_bins import ColumnBins
from core.schema.column import Column, DomainColumn, Kind
from core.schema.schema import Domain


def test_cells_are_as_few_as_the_noise_of_pairs_asks():
    """So many that a cell of two numbers holds as many records as its count has noise."""
    assert [most_cells(n, 50.0) for n in (400, 4_500, 32_000, 10**7)] == [4, 9, 25, 32]
    (block,) = Codec(Domain(columns=(Column(name="x", kind=Kind.NUMBER, low=0, high=1),))).blocks
    grid = ColumnBins(block, (np.arange(64) + 0.5) / 64, 1.0 / 64)
    counts = 4_500 / 64 + np.random.default_rng(0).normal(0.0, 5.0, 64)
    for most in (4, 9, 25):
        assert 0.8 * most <= ColumnScale.of(grid, FineCounts(counts, 5.0, most)).line <= most


@pytest.mark.parametrize("cells", [16, 32, 64])
def test_a_line_has_some_cells_however_strong_the_noise_is(cells):
    """One cell alone would lose whatever the column goes together with."""
    (block,) = Codec(Domain(columns=(Column(name="x", kind=Kind.NUMBER, low=0, high=1),))).blocks
    grid = ColumnBins(block, (np.arange(cells) + 0.5) / cells, 1.0 / cells)
    for seed in range(20):
        noise = np.random.default_rng(seed).normal(0.0, 57.0, cells + 4)
        coarse = noise[cells:] + 250.0 if cells >= 4 * COARSE else np.zeros(0)
        counts = with_coarse(1000 / cells + noise[:cells], coarse)
        assert ColumnScale.of(grid, FineCounts(counts, 57.0, 8)).line >= 3


def made_up_outside(width: float) -> float:
    """Mean share of the records placed where half of what lies between the bounds is empty."""
    (block,) = Codec(Domain(columns=(Column(name="x", kind=Kind.NUMBER, low=0, high=32),))).blocks
    grid = ColumnBins(block, (np.arange(32) + 0.5) / 32, width)
    true, noise, outside = np.zeros(32), 40.0, []
    true[10:26] = 4500.0 * np.hanning(18)[1:-1] / np.hanning(18).sum()
    for seed in range(40):
        counts = true + np.random.default_rng(seed).normal(0.0, noise, 32)
        scale = ColumnScale.of(grid, FineCounts(counts, noise, 32))
        shares = scale.shares(scale.counts)
        before = np.concatenate([[0.0], np.cumsum(shares)])
        up_to = before[scale.cell_of] + shares[scale.cell_of] * (scale.keys - scale.cell_of)
        placed = np.diff(np.concatenate([[0.0], up_to]))
        outside.append(placed[:10].sum() + placed[26:].sum())
    return float(np.mean(outside))


@pytest.mark.parametrize("width", [0.0, 1.0 / 32], ids=["values", "intervals"])
def test_bounds_that_reach_too_far_get_no_records(width, monkeypatch):
    kept = made_up_outside(width)
    monkeypatch.setattr(scales, "seen", lambda counts, *_: (0, len(counts)))
    for name in ("supported", "without_islands"):
        monkeypatch.setattr(scales, name, lambda counts, noise, ends, *_: ends)
    assert kept < 0.3 * made_up_outside(width)  # room is left for a tail


@pytest.mark.parametrize("high", [95, 5000], ids=["values", "intervals"])
def test_no_cell_reaches_across_what_a_rule_names(high):
    """A rule about those under a twentieth of the range finds cells of just these."""
    cut = high // 20
    age = DomainColumn(name="age", kind=Kind.INTEGER, low=0, high=high, step=1, cuts=(float(cut),))
    codec = Codec(Domain(columns=(age,)))
    (grid,) = fine_grids(codec, noise=50.0, n=20_000)
    random = np.random.default_rng(3)
    for _ in range(20):
        counts = 20_000 / grid.cells + random.normal(0.0, 50.0, grid.count)
        scale = ColumnScale.of(grid, FineCounts(counts, 50.0, 32))
        below = (grid.centres - grid.width / 2.0) * high + 1e-6 < cut
        assert not set(scale.cell_of[: grid.cells][below]) & set(
            scale.cell_of[: grid.cells][~below]
        )


def days(low: float = 0.0, high: float = 729.0, spikes: tuple[float, ...] = (0.0,)) -> ColumnBins:
    """256 bins of whole days along a log scale, most of which below 40 days hold none."""
    column = DomainColumn(
        name="days", kind=Kind.INTEGER, low=low, high=high, step=1.0, scale="log", spikes=spikes
    )
    (block,) = Codec(Domain(columns=(column,))).blocks
    return ColumnBins.of(block, lambda steps: False, 256)


def bins_of(grid: ColumnBins, days: np.ndarray) -> np.ndarray:
    """The bin of each number of days."""
    return np.searchsorted(np.arange(1, 256) / 256, grid.block.line.position(days))


def test_bins_hold_all_values_of_a_grid_but_its_spikes():
    for low, high, spikes in ((0.0, 729.0, (0.0,)), (0.0, 729.0, ()), (5.0, 900.0, ())):
        grid = days(low, high, spikes)
        each = grid.held * np.diff(grid.block.line.steps(np.arange(257) / 256))
        there = np.arange(low + len(spikes), high + 1.0)
        assert each == pytest.approx(np.bincount(bins_of(grid, there), minlength=256))
    (block,) = Codec(Domain(columns=(Column(name="x", kind=Kind.NUMBER, low=0, high=1),))).blocks
    assert set(ColumnBins.of(block, lambda steps: False, 64).held.tolist()) == {1.0}


def misplaced_days() -> float:
    """Share of records that lie in wrong bins of their cells, by noisy counts of all bins."""
    grid, noise, day, apart = days(), 60.0, np.arange(1.0, 730.0), []
    true = 75.0 * np.bincount(bins_of(grid, day), np.exp(-day / 150.0), minlength=256)
    for seed in range(6):
        counts = true + np.random.default_rng(seed).normal(0.0, noise, 256)
        scale = ColumnScale.of(grid, FineCounts(np.append(counts, np.zeros(grid.atoms)), noise, 32))
        cell = scale.cell_of[:256]
        begins = np.diff(cell, prepend=-1) > 0
        placed = np.where(begins, scale.keys - cell, np.diff(scale.keys, prepend=0.0))
        own = np.bincount(cell, true)[cell]
        apart.append(np.abs(placed * own - true).sum() / 2.0 / true.sum())
    return float(np.mean(apart))


def test_whole_numbers_on_a_log_scale_get_their_own_density(monkeypatch):
    """Seen by records a bin, each small number would be a peak between gaps."""
    kept = misplaced_days()
    monkeypatch.setattr(ColumnBins, "held", property(lambda grid: np.ones(grid.cells)))
    assert kept < 0.6 * misplaced_days()
