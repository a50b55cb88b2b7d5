"""Cells that no record lies in are found from noisy counts, and no drawn row lies in them."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from core.models.scan_focus.mending import mended, stored_zeros
from core.models.steps.counting.counts import PairTarget
from core.models.steps.counting.scales import ColumnScale
from core.models.steps.counting.structural_zeros import (
    StructuralZero,
    asked_zeros,
    candidates,
    emptied,
    kept_zeros,
)
from core.models.steps.training.column_bins import ColumnBins
from tests.models.tables import coded

ADULT, N, NOISE = 7, 60_000, 60.0  # first cell of grown-ups, records, noise of a pair's count


def people(children_with_a_job: float = 0.0) -> np.ndarray:
    """Records [n, 2]: an age in 0 … 19, and whether somebody has a job; of grown-ups three in four.

    Args:
      children_with_a_job: share of children.
    """
    random = np.random.default_rng(4)
    age = random.integers(0, 20, N)
    job = random.random(N) < np.where(age < ADULT, children_with_a_job, 0.75)
    return np.stack([age, job.astype(int)], axis=1)


def scales() -> tuple[ColumnScale, ColumnScale]:
    """A line of twenty cells, and a list of two."""
    codec, _ = coded(4)
    number = next(block for block in codec.blocks if block.number is not None)
    listed = next(block for block in codec.blocks if block.number is None)
    line = ColumnBins(number, (np.arange(20) + 0.5) / 20, 0.05)
    along = np.append(np.arange(20), 20 + np.arange(line.atoms))
    ages = ColumnScale(line, along, 20, np.ones(20), np.ones(20), np.arange(20.0))
    jobs = ColumnScale(ColumnBins(listed, np.zeros(0), 0.0), np.arange(2), 0, *[np.ones(2)] * 3)
    return ages, jobs


def found(rows: np.ndarray, seed: int) -> tuple[StructuralZero, ...]:
    """What is kept of noisy counts of a pair and of an exact share in what was asked."""
    random = np.random.default_rng(seed)
    joint = np.histogram2d(rows[:, 0], rows[:, 1], bins=(np.arange(21), np.arange(3)))[0]
    noisy = torch.from_numpy(joint + random.normal(0.0, NOISE, joint.shape)) / N
    shares = [joint.sum(axis=1) / N, joint.sum(axis=0) / N]
    pair = PairTarget((0, 1), noisy[None], NOISE / N)
    some = candidates([pair], scales(), shares, N, frozenset())
    inside = [
        zero.left.numpy()[rows[:, zero.columns[0]]] & zero.right.numpy()[rows[:, zero.columns[1]]]
        for zero in asked_zeros(some)
    ]
    each = np.array(inside, dtype=float).reshape(-1, N)
    counts = (each / np.sqrt(np.maximum(each.sum(axis=0), 1.0))).sum(axis=1)
    return kept_zeros(some, counts + random.normal(0.0, 20.0, len(counts)), 20.0)


@pytest.mark.parametrize("seed", range(5))
def test_a_half_line_without_a_label_ends_where_it_does(seed):
    (children,) = (zero for zero in found(people(), seed) if zero.columns == (0, 1))
    assert np.flatnonzero(children.left).tolist() == list(range(ADULT))
    assert children.right.tolist() == [False, True]


def test_a_half_line_where_a_few_have_the_label_is_kept():
    for seed in range(5):
        assert found(people(children_with_a_job=0.15), seed) == ()


def test_targets_are_emptied_and_columns_keep_their_counts():
    zero = StructuralZero((1, 0), torch.tensor([False, True]), torch.arange(20) < ADULT)
    shares = torch.full((1, 20, 2), 1.0 / 40.0)
    (target,) = emptied([PairTarget((0, 1), shares, 0.01)], [zero])
    assert float(target.shares[0, :ADULT, 1].sum()) == 0.0
    assert target.shares.sum(dim=2).flatten().tolist() == pytest.approx([0.05] * 20, abs=1e-3)
    other = PairTarget((0, 2), shares, 0.01)
    assert emptied([other], [zero]) == (other,)


def test_rows_in_a_zero_get_the_cell_their_component_means():
    zero = StructuralZero((0, 1), torch.arange(20) < ADULT, torch.tensor([False, True]))
    young = (torch.arange(20) < ADULT).float()
    ages = torch.stack([0.95 * young / ADULT + 0.05 / 20.0, (1.0 - young) / 13.0])
    jobs = torch.tensor([[0.9, 0.1], [0.2, 0.8]])
    random = torch.Generator().manual_seed(5)
    component = torch.arange(4_000) % 2
    drawn = torch.stack(
        [torch.multinomial(part[component], 1, generator=random)[:, 0] for part in (ages, jobs)]
    )
    wrong = (drawn[0] < ADULT) & (drawn[1] == 1)
    cells = mended(drawn, component, [ages, jobs], stored_zeros([zero], [20, 2]), random)
    assert wrong.sum() > 100
    assert not ((cells[0] < ADULT) & (cells[1] == 1)).any()
    assert (cells[:, ~wrong] == drawn[:, ~wrong]).all()
    assert (cells[0, wrong] == drawn[0, wrong]).all(), "children lose the job, not their age"


def test_without_zeros_rows_stay_as_they_are():
    drawn = torch.zeros((2, 3), dtype=torch.int64)
    shares = [torch.ones(1, 20), torch.ones(1, 2)]
    none = stored_zeros([], [20, 2])
    assert mended(drawn, torch.zeros(3), shares, none, torch.Generator()) is drawn
