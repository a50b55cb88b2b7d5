"""Noise of counted pairs is shrunk away along waves in the ranks of numbers and ordered labels."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy.stats import norm

from core.encoding.codec import Codec
from core.models.steps.counting.counts import PairTarget
from core.models.steps.counting.denoising import denoised
from core.models.steps.counting.scales import ColumnScale, FineCounts
from core.models.steps.training.column_bins import ColumnBins
from core.schema.column import Column, Kind
from core.schema.schema import Schema

Floats = NDArray[np.float64]
RUNS = 40


def scale_of(cells: int, kind: Kind) -> ColumnScale:
    """A column of so many whole numbers or labels, each a cell."""
    if kind is Kind.INTEGER:
        column = Column(name="a", kind=kind, low=0.0, high=cells - 1.0, step=1.0)
    else:
        labels = tuple("abcdefghijklmnopqrstuvwxyz"[:cells])
        column = Column(name="a", kind=kind, categories=labels)
    block = Codec(Schema(columns=(column,)).domain()).blocks[0]
    grid = ColumnBins.of(block, lambda steps: True, cells)
    return ColumnScale.of(grid, FineCounts(np.full(grid.count, 100.0), 1.0, cells))


def together(first: Floats, second: Floats, correlation: float) -> Floats:
    """Shares of the cells of two numbers with these shares and a Gaussian copula."""
    random = np.random.default_rng(0)
    x = random.standard_normal(400_000)
    y = correlation * x + np.sqrt(1.0 - correlation**2) * random.standard_normal(len(x))
    cells = [np.searchsorted(norm.ppf(s.cumsum()[:-1]), v) for s, v in ((first, x), (second, y))]
    table = np.zeros((len(first), len(second)))
    np.add.at(table, tuple(cells), 1.0 / len(x))
    return table


def error_left(kind: Kind, noise: float) -> float:
    """The share of noise's squared error that is left: few of many have a high number."""
    shares = [0.6 ** np.arange(12.0), 0.7 ** np.arange(9.0)]
    first, second = (share / share.sum() for share in shares)
    truth = together(first, second, 0.8)
    scales, random, left = (scale_of(12, kind), scale_of(9, kind)), np.random.default_rng(1), 0.0
    for _ in range(RUNS):
        noisy = truth + noise * random.standard_normal(truth.shape)
        target = PairTarget((0, 1), torch.tensor(noisy[None]), noise)
        clean = denoised([target], scales, [first, second], {})[0].shares[0].numpy()
        left += float(np.square(clean - truth).sum())
    return left / (RUNS * truth.size * noise**2)


@pytest.mark.parametrize("kind", [Kind.INTEGER, Kind.ORDERED])
def test_little_noise_is_left_of_skewed_columns_in_order(kind):
    assert error_left(kind, 0.01) < 0.17


def test_labels_without_an_order_keep_more_noise():
    assert error_left(Kind.CATEGORY, 0.01) > 1.3 * error_left(Kind.ORDERED, 0.01)
