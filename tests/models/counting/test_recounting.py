"""Values that many records share: found by two counts, and drawn as often as they are there."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from core.encoding.codec import Codec, Codes
from core.models.steps.counting import scales
from core.models.steps.counting.counts import SetCounts, uniform_query
from core.models.steps.counting.lines.merging import without_candidates
from core.models.steps.counting.lines.recounting import Recount
from core.models.steps.counting.placing import Placing
from core.models.steps.counting.scales import ColumnScale, FineCounts, FineHistograms
from core.models.steps.training.column_bins import ColumnBins
from core.schema.column import Column, Kind
from core.schema.schema import Domain
from tests.mutants.broken_scan_focus import CountsSpikesWholeToo
from tests.privacy.harness import Caught, check_promises, check_tight

GAIN = Column(name="gain", kind=Kind.INTEGER, low=0, high=100_000, step=1)
CODEC = Codec(Domain(columns=(GAIN,)))
GRID = ColumnBins.of(CODEC.blocks[0], lambda _: False, 256)
FIRST, SECOND = 36.0, 22.0  # standard deviations of the counts


def gains(fee: int, most: int = 0, seed: int = 0) -> Codes:
    """4,000 gains up to 40,000, and how many of 15,024 and of 99,999."""
    spread = np.random.default_rng(seed).integers(0, 40_001, 4_000)
    values = np.concatenate([spread, np.full(fee, 15_024), np.full(most, 99_999)])
    places = CODEC.blocks[0].line.position(values.astype(np.float64))
    return Codes(np.zeros((len(values), 1), np.int32), places[:, None])


def first_count(codes: Codes, seed: int, noise: float = FIRST) -> FineCounts:
    histograms = FineHistograms((GRID,))
    exact = histograms.statistic(codes.to("cpu"), torch.ones(len(codes), dtype=torch.float64))
    noisy = exact + torch.from_numpy(np.random.default_rng(seed).normal(0.0, noise, len(exact)))
    return FineCounts(histograms.split(noisy)[0], noise, 24)


def second_count(known: FineCounts) -> tuple[Recount, SetCounts]:
    recount = Recount.of(GRID, known)
    return recount, SetCounts((recount,), (uniform_query((recount,), (0,)),))


def counted_twice(codes: Codes, seed: int) -> ColumnScale:
    recount, mechanism = second_count(first_count(codes, seed))
    exact = mechanism.statistic(codes.to("cpu"), torch.ones(len(codes), dtype=torch.float64))
    noise = np.random.default_rng(seed + 1000).normal(0.0, SECOND, len(exact))
    scale, known = recount.settled(exact.numpy() + noise, SECOND)
    assert known.counts.sum() == pytest.approx(len(codes), abs=6.0 * FIRST * 256**0.5)
    assert len(known.counts) == len(known.std) == scale.size
    return scale


def drawn(scale: ColumnScale, rows: int) -> np.ndarray:
    """Values of records in cells as the scale has them."""
    random = np.random.default_rng(0)
    cells = random.choice(scale.size, rows, p=scale.shares(scale.counts))
    placing = Placing.of([scale], [], [])
    codes = placing.codes(CODEC, [cells], torch.Generator().manual_seed(1))
    return codes.numbers(CODEC.blocks[0])


def test_a_value_that_many_share_comes_out_exactly_and_as_often():
    values = drawn(counted_twice(gains(fee=600), seed=1), 46_000)
    assert 5_000 < (values == 15_024).sum() < 7_000  # 600 of 4,600
    assert np.isin(values, [15_023, 15_025]).sum() < 60


def test_a_spike_of_many_values_is_not_one_of_them():
    """Three hundred values of two records each are in one fine cell; none of them is many."""
    codes = gains(fee=0)
    places = CODEC.blocks[0].line.position(np.arange(14_900.0, 15_200.0).repeat(2))
    codes = Codes(
        np.zeros((len(codes) + 600, 1), np.int32), np.append(codes.values, places)[:, None]
    )
    recount, _ = second_count(first_count(codes, seed=2))
    assert len(recount.spikes) == 1
    assert len(counted_twice(codes, seed=2).values) == 0


def kept_codes(most: int) -> float:
    """How often 99,999, far above all others, has a cell of its own in the end."""
    scales = [counted_twice(gains(fee=0, most=most, seed=seed), seed) for seed in range(40)]
    ends = [scale.cell_of[[GRID.cells - 2, GRID.cells - 1]] for scale in scales]
    reached = [scale.keys[-1] - scale.keys[-2] > 0.5 for scale in scales]
    return float(np.mean([a != b and own for (a, b), own in zip(ends, reached, strict=True)]))


def test_a_code_far_out_is_found_by_both_counts_together(monkeypatch):
    assert kept_codes(160) >= 0.85
    assert kept_codes(0) <= 0.05
    monkeypatch.setattr(scales, "CANDIDATE_SNR_THRESHOLD", scales.SPIKE_SNR_THRESHOLD)
    assert kept_codes(160) <= 0.65  # by the first alone


def test_what_was_no_spike_joins_the_cells_beside_it():
    cells = np.array([0, 0, 1, 1, 2, 3, 3, 4])
    candidate = np.arange(8) == 4
    counts = np.array([10.0, 3.0, 4.0, 10.0, 10.0])
    for fair, cuts, joined in (
        (5.0, (), [0, 0, 1, 1, 1, 1, 1, 2]),  # the one before ended for it
        (2.0, (), [0, 0, 1, 1, 2, 2, 2, 3]),
        (2.0, (5,), [0, 0, 1, 1, 1, 2, 2, 3]),  # rules cut behind it
        (5.0, (4, 5), [0, 0, 1, 1, 2, 3, 3, 4]),
    ):
        found = without_candidates(cells, candidate, counts, fair, frozenset(cuts))
        assert found.tolist() == joined
    last = without_candidates(cells, np.arange(8) == 7, counts, 2.0, frozenset())
    assert last.tolist() == [0, 0, 1, 1, 2, 3, 3, 3]


@pytest.mark.parametrize("counts", [SetCounts, CountsSpikesWholeToo])
def test_a_record_moves_one_count_whether_in_a_spike_or_not(counts):
    codes = gains(fee=600)
    recount, honest = second_count(first_count(codes, seed=1, noise=1e-3))
    assert recount.spikes
    mechanism = counts(honest.scales, honest.queries)
    some = codes.take(np.array([0, 1, len(codes) - 2, len(codes) - 1]))
    if counts is SetCounts:
        check_promises(mechanism, some, some.take(np.array([3, 2, 1, 0])))
        check_tight(mechanism, some, least=0.999)
    else:
        with pytest.raises(Caught):
            check_promises(mechanism, some, some.take(np.array([3, 2, 1, 0])))
