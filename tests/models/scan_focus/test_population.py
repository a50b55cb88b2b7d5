"""The truth of a replica: the mixture's shares of cells, and more inside them than it holds."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from core.encoding.codec import Codec
from core.models.scan_focus.population import draw_population
from core.models.steps.training.column_bins import ColumnBins
from core.schema.column import Column, Kind
from core.schema.schema import Schema

ROWS, FINE, LINE = 40_000, 64, 4


@pytest.fixture(scope="module")
def codec() -> Codec:
    columns = [
        Column(name=name, kind=Kind.NUMBER, low=0, high=1, step=1 / FINE, dtype="float64")
        for name in "ab"
    ]
    return Codec(Schema(columns=tuple(columns)).domain())


def mixture(codec: Codec, noise: float) -> tuple[dict[str, torch.Tensor], dict]:
    """Two components on two columns of four cells each: both columns rise in one, fall in one."""
    rising = torch.tensor([0.1, 0.2, 0.3, 0.4])
    shares = torch.stack([torch.cat([rising, rising]), torch.cat([rising.flip(0)] * 2)])
    weights = {"weights": torch.tensor([0.5, 0.5]), "shares": shares}
    weights["zeros"] = torch.zeros((2, 0, 2 * LINE), dtype=torch.bool)
    for i, block in enumerate(codec.blocks):
        grid = ColumnBins.of(block, lambda steps: True, 1024)
        fine = np.minimum(np.arange(grid.cells) * LINE // FINE, LINE - 1)
        size = np.bincount(fine)
        within = np.concatenate([np.arange(1, one + 1) / one for one in size])
        weights[f"places.{i}"] = torch.from_numpy(grid.centres)
        weights[f"keys.{i}"] = torch.from_numpy(fine + within)
        weights[f"fine.{i}"] = torch.from_numpy(fine)
        random = np.random.default_rng(i)
        others = [within ** np.exp(noise * random.standard_normal()) for _ in range(8)]
        weights[f"others.{i}"] = torch.from_numpy(fine + np.array(others))
    constants = {"sizes": [LINE, LINE], "lines": [LINE, LINE], "widths": [0.0, 0.0]}
    return weights, constants | {
        "follows": [],
        "compared": [],
        "apart": [],
        "totals": [],
        "ends": [],
        "together": [],
    }


def drawn(codec: Codec, noise: float, seed: int = 0) -> np.ndarray:
    random = torch.Generator().manual_seed(seed)
    return draw_population(codec, *mixture(codec, noise), ROWS, random).values


def test_columns_stay_as_they_are(codec: Codec) -> None:
    values = drawn(codec, 0.0)
    counts = np.histogram(values[:, 0], bins=LINE * 4, range=(0, 1))[0] / ROWS
    assert counts[1:-1] == pytest.approx(1 / 16, abs=0.01)


def within(values: np.ndarray) -> float:
    """Correlation inside the cell in the middle that both columns lie in."""
    inside = values[((values > 0.26) & (values < 0.49)).all(axis=1)]
    return float(np.corrcoef(inside.T)[0, 1])


def test_columns_go_together_inside_a_cell(codec: Codec) -> None:
    assert within(drawn(codec, 0.0)) > 0.02


def test_each_truth_is_rough_in_its_own_way(codec: Codec) -> None:
    def mean(seed: int, noise: float) -> float:
        return float(drawn(codec, noise, seed)[:, 0].mean())

    smooth, rough = ([mean(seed, noise) for seed in range(6)] for noise in (0.0, 0.5))
    assert np.std(rough) > 2.0 * np.std(smooth)
    assert np.mean(rough) == pytest.approx(0.5, abs=0.03)
