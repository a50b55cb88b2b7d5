"""Rows and columns of a counted pair that look alike are estimated together."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from core.encoding.codec import Codec
from core.models.steps.counting import denoising, empirical_bayes
from core.models.steps.counting.counts import PairTarget
from core.models.steps.counting.denoising import denoised
from core.models.steps.counting.empirical_bayes import fitted_margins, pooled
from core.models.steps.counting.scales import SHORT_GRID, ColumnScale, FineCounts
from core.models.steps.training.column_bins import ColumnBins
from core.schema.column import Column, Kind
from core.schema.schema import Schema

Floats = NDArray[np.float64]
NOISE = 0.002  # as large as a usual row's share of a cell


def listed(size: int) -> ColumnScale:
    """A list of so many labels, each a cell."""
    categories = tuple(str(label) for label in range(size))
    column = Column(name="a", kind=Kind.CATEGORY, categories=categories)
    grid = ColumnBins.of(
        Codec(Schema(columns=(column,)).domain()).blocks[0], lambda steps: steps < SHORT_GRID, 16
    )
    return ColumnScale.of(grid, FineCounts(np.full(size, 100.0), 1.0, size))


def kinds(rng: np.random.Generator, rows: int = 40, cells: int = 6) -> Floats:
    """Shares of a list of many labels against a shorter one, whose rows are of three shapes."""
    shapes = rng.dirichlet(np.full(cells, 0.3), 3)
    sizes = rng.dirichlet(np.full(rows, 0.5))
    table = sizes[:, None] * shapes[rng.integers(0, 3, rows)]
    return np.asarray(table[None] / table.sum())


def draw(seed: int, make: Callable[[np.random.Generator], Floats] = kinds) -> tuple[Floats, ...]:
    """The truth, a release, and shares of both columns."""
    rng = np.random.default_rng(seed)
    truth = make(rng)
    released = truth + NOISE * rng.standard_normal(truth.shape)
    return truth, released, truth.sum(axis=2), truth.sum(axis=1)


def energy(table: Floats) -> float:
    """Squared distance to independence within each class."""
    first, second = table.sum(axis=2), table.sum(axis=1)
    independent = first[:, :, None] * second[:, None] / table.sum(axis=(1, 2))[:, None, None]
    return float(np.square(table - independent).sum())


def distances(seeds: int = 8) -> tuple[float, float]:
    """Mean distance to the truth of what only has its columns' shares, and of what is pooled."""
    plain, together = [], []
    for seed in range(seeds):
        truth, released, first, second = draw(seed)
        fitted = fitted_margins(released, first, second)
        plain.append(np.abs(fitted - truth).sum() / 2)
        pooled_ = pooled(released, released, first, second, NOISE)
        together.append(np.abs(pooled_ - truth).sum() / 2)
    return float(np.mean(plain)), float(np.mean(together))


def test_rows_that_look_alike_come_nearer_to_the_truth() -> None:
    plain, together = distances()
    assert together < 0.75 * plain


def test_without_looking_at_the_release_they_do_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """A twin that gives every row the mean of all shapes loses what tells them apart."""
    kept = empirical_bayes._by_shape

    def blind(table: Floats, released: Floats, margin: Floats, noise: float) -> Floats:
        return kept(table, released, margin, 1e6)

    monkeypatch.setattr(empirical_bayes, "_by_shape", blind)
    plain, together = distances()
    assert together > plain


def test_what_goes_together_keeps_its_strength() -> None:
    shares = []
    for seed in range(8):
        truth, released, first, second = draw(seed)
        shares.append(energy(pooled(released, released, first, second, NOISE)) / energy(truth))
    assert 0.9 < np.mean(shares) < 1.1


def test_what_is_shrunk_is_stretched_again_but_not_without_end() -> None:
    truth, released, first, second = draw(0)
    independent = first[:, :, None] * second[:, None]
    halved = independent + 0.8 * (truth - independent)
    again = pooled(halved, released, first, second, NOISE)
    assert energy(again) > 0.85 * energy(truth)
    nothing = pooled(independent, released, first, second, NOISE)
    assert energy(nothing) < 1e-6 * energy(truth)  # all rows look alike


@pytest.mark.parametrize("classes", [1, 3])
def test_shares_of_both_columns_are_kept_and_none_is_below_zero(classes: int) -> None:
    def make(rng: np.random.Generator) -> Floats:
        return np.concatenate([kinds(rng) for _ in range(classes)]) / classes

    _, released, first, second = draw(3, make)
    table = pooled(released, released, first, second, NOISE)
    assert table.min() >= 0.0
    assert np.abs(table.sum(axis=1) - second).max() < 1e-9
    assert np.abs(table.sum(axis=2) - first).max() < 2e-3  # proportional fitting, cut short


def test_labels_that_nobody_has_get_nothing_and_stop_nothing() -> None:
    truth, released, first, second = draw(4)
    first, second = first.copy(), second.copy()
    first[:, 5:9], second[:, 2] = 0.0, -0.01
    table = pooled(released, released, first, second, NOISE)
    assert np.isfinite(table).all()
    assert np.abs(table[:, 5:9]).max() < 1e-9 and np.abs(table[:, :, 2]).max() < 1e-9


def test_distinct_rows_under_little_noise_stay_unchanged() -> None:
    rng = np.random.default_rng(5)
    truth = rng.dirichlet(np.full(12, 0.3), 10)[None] / 10
    released = truth + 1e-5 * rng.standard_normal(truth.shape)
    table = pooled(released, released, truth.sum(axis=2), truth.sum(axis=1), 1e-5)
    assert np.abs(table - truth).sum() / 2 < 1.1 * np.abs(released - truth).sum() / 2


def test_without_noise_there_is_nothing_to_estimate() -> None:
    truth, _, first, second = draw(6)
    assert pooled(truth, truth, first, second, 0.0) is truth


def test_two_columns_of_two_cells_only_get_their_shares() -> None:
    released = np.array([[[0.5, -0.1], [0.2, 0.4]]])
    first, second = np.array([[0.4, 0.6]]), np.array([[0.6, 0.4]])
    table = pooled(released, released, first, second, 0.1)
    assert np.array_equal(table, fitted_margins(released, first, second))


@pytest.mark.parametrize(("noise", "nearer"), [(0.0, 1.001), (1e-4, 1.05), (4e-3, 0.8), (0.5, 0.9)])
def test_half_of_a_target_is_pooled_and_nearer_for_it(
    noise: float, nearer: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where there is little noise, as near as without."""
    rng = np.random.default_rng(7)
    truth = kinds(rng)
    released = truth + noise * rng.standard_normal(truth.shape)
    target = PairTarget((0, 1), torch.from_numpy(released), noise)
    within = {0: (truth.sum(axis=2), noise), 1: (truth.sum(axis=1), noise)}
    shares = [truth.sum(axis=(0, 2)), truth.sum(axis=(0, 1))]
    scales = [listed(size) for size in truth.shape[1:]]

    def error() -> float:
        clean = denoised([target], scales, shares, within)[0].shares.double().numpy()
        return float(np.linalg.norm(clean - truth))

    half = error()
    monkeypatch.setattr(denoising, "POOLED", 0.0)
    assert half <= nearer * error() + 1e-6
