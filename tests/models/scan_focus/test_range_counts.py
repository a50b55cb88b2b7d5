"""Counts that found a number's bounds also say how many records lie far out."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from core.encoding.codec import Codec
from core.models.steps.counting.lines.densities import RangeCount, agreeing, densities
from core.models.steps.counting.lines.ends import seen
from core.models.steps.counting.scales import fine_grids, ranges_within
from core.privacy.discovery.lists import ListCounts
from core.privacy.discovery.planning import BOUNDS, Levels
from core.schema.column import Kind
from core.schema.schema import Domain
from tests.privacy.learned_tables import by_name, learn, planned, schema_for

NOISE, RANGE_NOISE, CELLS = 60.0, 45.0, 32


def tail() -> np.ndarray:
    """A thousand records in the first quarter, and two hundred thinly spread over the rest."""
    return np.append(np.full(8, 125.0), np.full(24, 200.0 / 24))


def far_out(seed: int, ranges: bool) -> float:
    """How many records a density has beyond the first quarter."""
    random, exact = np.random.default_rng(seed), tail()
    counts = exact + random.normal(0.0, NOISE, CELLS)
    masks = [np.arange(CELLS) < 8, (np.arange(CELLS) >= 8)]
    released = [
        RangeCount(
            mask.astype(float), float(exact @ mask + random.normal(0, RANGE_NOISE)), RANGE_NOISE
        )
        for mask in masks
    ][: 2 * ranges]
    counts, precision = agreeing(counts, NOISE, released)
    runs = np.minimum(np.arange(CELLS) // 2, 4)
    ends = seen(counts, runs, NOISE, released)
    return float(densities(counts, NOISE, ends, 0, released, precision)[0, 8:].sum())


def test_ranges_keep_the_records_of_a_thin_tail() -> None:
    without, with_ranges = (
        np.array([far_out(seed, ranges) for seed in range(20)]) for ranges in (False, True)
    )
    errors = [float(np.sqrt(np.square(one - 200.0).mean())) for one in (without, with_ranges)]
    assert errors[1] < 60.0 < errors[0]


def test_counts_agree_with_ranges_by_their_variances() -> None:
    counts, half = np.full(CELLS, 10.0), np.repeat([1.0, 0.0], CELLS // 2)
    exact = agreeing(counts, 5.0, [RangeCount(half, 320.0, 1e-6)])[0]
    assert exact @ half == pytest.approx(320.0) and exact[CELLS // 2 :].tolist() == [10.0] * 16
    alike, _ = agreeing(counts, 5.0, [RangeCount(half, 320.0, 5.0 * math.sqrt(16.0))])
    assert alike @ half == pytest.approx(240.0)  # as sure as the sixteen cells together
    assert agreeing(counts, 5.0, [])[1] is None


def test_released_ranges_count_what_lies_on_the_line() -> None:
    rng = np.random.default_rng(0)
    x = np.append(rng.uniform(1.0, 4999.0, 20_000).round(2), [0.0] * 5000 + [999.0] * 500)
    frame = pd.DataFrame({"x": x})
    released = learn(frame, schema_for(frame), 5.0)
    column, known = by_name(released)["x"], released.counts["x"]
    assert 0.0 in column.spikes and known.edges is not None and known.edges[-1] == column.high
    on_line = x[~np.isin(x, column.spikes)]
    exact = np.histogram(on_line, known.edges)[0]
    assert (np.abs(known.counts - exact) < 5.0 * known.std + 1.0).all()
    plan = planned(schema_for(frame), len(x), 5.0)
    assert known.std.min() == pytest.approx(Levels.of(plan[1], plan[0]).std[BOUNDS])


def test_ranges_lie_over_the_cells_they_were_counted_in() -> None:
    frame = pd.DataFrame({"x": np.random.default_rng(1).gamma(2.0, 400.0, 5000).round(2)})
    released = learn(frame, schema_for(frame), 5.0)
    codec = Codec(Domain(columns=(by_name(released)["x"],)))
    (grid,) = fine_grids(codec, 1.0, len(frame))
    fine = np.bincount(grid.index(codec.encode(frame).to("cpu")).numpy(), minlength=grid.count)[
        : grid.cells
    ]
    found = ranges_within(grid, released.counts["x"])
    assert len(found) > 3
    for one in found:
        edge = max(fine[np.flatnonzero(one.cells)[[0, -1]]].max(), 1)
        assert abs(one.count - fine @ one.cells) < 5.0 * one.std + 2.0 * edge
    assert ranges_within(grid, ListCounts(np.ones(1), np.ones(1))) == []
    assert codec.blocks[0].column.kind is Kind.NUMBER


def test_noise_far_from_all_records_is_not_believed() -> None:
    """Of four ranges the last holds all records, and noise shows some in those before."""
    counts, runs = np.append(np.full(24, 12.0), np.full(8, 125.0)), np.zeros(CELLS, dtype=int)
    masks = np.repeat(np.eye(4), 8, axis=1)

    def first(*deviations: float) -> int:
        shown = [*deviations, 20.0]
        ranges = [RangeCount(mask, z * 45.0, 45.0) for mask, z in zip(masks, shown, strict=True)]
        return seen(counts, runs, NOISE, ranges)[0]

    assert first(0.0, 0.0, 0.0) == first(2.5, 0.0, 0.0) == 16, "a tail reaches into the next range"
    assert first(0.0, 0.0, 2.5) == 8 and first(0.0, 2.5, 2.5) == 0
    assert first(3.5, 0.0, 0.0) == 0, "what is clear is seen wherever it is"


def test_ranges_without_noise_or_cells_say_where_records_are() -> None:
    half = np.repeat([0.0, 1.0], CELLS // 2)
    exact = [RangeCount(half, 900.0, 0.0), RangeCount(1.0 - half, 0.0, 0.0)]
    beyond = RangeCount(np.zeros(CELLS), 500.0, 45.0)
    runs = np.zeros(CELLS, dtype=int)
    assert seen(900.0 / 16 * half, runs, NOISE, [*exact, beyond]) == (0, CELLS)
