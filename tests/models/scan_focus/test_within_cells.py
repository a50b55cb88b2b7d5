"""Numbers that go together go together within their cells too."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from core.models.steps.counting.within_cells import Dependence, dependences, places

ROWS = 40_000
ENDS = np.array([-1.5, -0.5, 0.0, 0.4, 1.2])  # of six cells


def normals(correlation: float, seed: int = 0) -> np.ndarray:
    covariance = [[1.0, correlation], [correlation, 1.0]]
    return np.random.default_rng(seed).multivariate_normal([0.0, 0.0], covariance, ROWS).T


def in_cells(values: np.ndarray) -> list[np.ndarray]:
    return [np.searchsorted(ENDS, one) for one in values]


def placed(values: np.ndarray, known: list[Dependence]) -> np.ndarray:
    """The values drawn anew within their cells, by each column's own values there."""
    cells = in_cells(values)
    ranks = places(known, cells, [6, 6], torch.Generator().manual_seed(1))
    drawn = np.empty_like(values)
    for i, (one, cell) in enumerate(zip(values, cells, strict=True)):
        anywhere = np.random.default_rng(i).random(ROWS)
        for c in range(6):
            own = cell == c
            drawn[i, own] = np.quantile(one[own], ranks.get(i, anywhere)[own])
    return drawn


@pytest.mark.parametrize("correlation", [-0.9, 0.5, 0.95])
def test_the_correlation_is_that_of_what_was_cut(correlation):
    first, second = in_cells(normals(correlation))
    shares = [torch.eye(6)[cell] for cell in (first, second)]  # each record a component
    weights = torch.full((ROWS,), 1.0 / ROWS)
    (found,) = dependences(weights, shares, [6, 6], [(0, 1)])
    assert found.correlation == pytest.approx(correlation, abs=0.03)


@pytest.mark.parametrize("correlation", [-0.9, 0.9])
def test_numbers_keep_their_correlation_within_cells(correlation):
    values = normals(correlation)
    drawn = placed(values, [Dependence(1, 0, correlation)])
    apart = placed(values, [])
    kept, lost = (abs(correlation - np.corrcoef(one)[0, 1]) for one in (drawn, apart))
    assert kept < 0.015 < 3.0 * kept + 0.015 < lost
    for one, made in zip(values, drawn, strict=True):  # and each its own distribution
        quantiles = np.linspace(0.01, 0.99, 99)
        assert np.allclose(np.quantile(one, quantiles), np.quantile(made, quantiles), atol=0.05)


def test_ranks_are_even_in_each_cell_whatever_cells_say():
    """Also where records lie in cells that hardly ever go together."""
    cells = [np.repeat([0, 5], ROWS // 2), np.repeat([5, 0], ROWS // 2)]
    ranks = places([Dependence(1, 0, 0.98)], cells, [6, 6], torch.Generator().manual_seed(2))
    for cell in (0, 5):
        own = np.sort(ranks[1][cells[1] == cell])
        assert np.abs(own - (np.arange(len(own)) + 0.5) / len(own)).max() < 1e-3


def test_whoever_has_no_number_lies_anywhere():
    first, second = in_cells(normals(0.95))
    first[::2] = 6  # a label, behind the line
    ranks = places(
        [Dependence(1, 0, 0.95)], [first, second], [6, 6], torch.Generator().manual_seed(3)
    )
    assert np.isfinite(ranks[1]).all() and 0.0 <= ranks[1].min() <= ranks[1].max() <= 1.0
    alone = ranks[1][(first == 6) & (second == 3)]
    assert 0.4 < alone.mean() < 0.6


def test_dependences_make_no_circle():
    """Three numbers that all go together: two pairs, each with one that is drawn before."""
    cells = [*in_cells(normals(0.95)), in_cells(normals(0.95))[0], np.zeros(ROWS, dtype=np.int64)]
    shares = [torch.eye(6)[cell] for cell in cells]
    weights = torch.full((ROWS,), 1.0 / ROWS)
    pairs = [(0, 1), (1, 2), (0, 2), (0, 3)]
    found = dependences(weights, shares, [6, 6, 6, 1], pairs)
    assert len(found) == 2 and {column for one in found for column in one[:2]} == {0, 1, 2}
