"""Learned ranges: what bins in a row hold together where noise hides each, and where they end."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

from core.privacy.discovery.grids import grid_of
from core.privacy.discovery.ranges import _likeliest
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
    ends, atoms = _likeliest(grid, noisy, STD * random.standard_normal(len(grid.atoms)))
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
    assert (columns["day"].low, columns["day"].high) == (1.0, 50.0)
