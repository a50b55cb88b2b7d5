"""Cells that no record lies in are found from noisy counts, and no drawn row lies in them."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
import torch

from core.encoding.codec import Block
from core.models.scan_focus import mending
from core.models.scan_focus.mending import mended, stored_zeros
from core.models.steps.counting.counts import PairTarget
from core.models.steps.counting.placing import Placing
from core.models.steps.counting.relations import Determined
from core.models.steps.counting.scales import ColumnScale
from core.models.steps.counting.zeros.candidates import candidates
from core.models.steps.counting.zeros.finding import asked_zeros, kept_zeros
from core.models.steps.counting.zeros.overlaps import added, in_common
from core.models.steps.counting.zeros.structural_zeros import StructuralZero, emptied
from core.models.steps.training.column_bins import ColumnBins
from core.schema.column import Column, Kind
from tests.models.tables import coded

ADULT, N, NOISE = 7, 60_000, 60.0  # first cell of grown-ups, records, noise of a pair's count


def people(children_with_a_job: float = 0.0, grown_ups: float = 0.75) -> np.ndarray:
    """Records [n, 2]: an age in 0 … 19, and whether somebody has a job.

    Args:
      children_with_a_job, grown_ups: share of each that has one.
    """
    random = np.random.default_rng(4)
    age = random.integers(0, 20, N)
    job = random.random(N) < np.where(age < ADULT, children_with_a_job, grown_ups)
    return np.stack([age, job.astype(int)], axis=1)


def listed_block(labels: tuple[str, ...]) -> Block:
    """That of a list."""
    column = Column(name="listed", kind=Kind.CATEGORY, categories=labels)
    return replace(coded(4)[0].blocks[0], column=column, number=None, states=labels)


def scales(years: int = 1) -> tuple[ColumnScale, ColumnScale]:
    """A line of twenty ages, so many a cell, and a list of two."""
    codec, _ = coded(4)
    number = next(block for block in codec.blocks if block.number is not None)
    listed = listed_block(("no", "yes"))
    line = ColumnBins(number, (np.arange(20) + 0.5) / 20, 0.05)
    cells = 20 // years
    along = np.append(np.arange(20) // years, cells + np.arange(line.atoms))
    each = np.bincount(along).astype(float)
    ages = ColumnScale(line, along, cells, each, each, (np.arange(20.0) + 1.0) / years)
    jobs = ColumnScale(
        ColumnBins(listed, np.zeros(0), 0.0), np.arange(2), 0, *[np.ones(2)] * 2, np.zeros(0)
    )
    return ages, jobs


def found(rows: np.ndarray, seed: int, years: int = 1) -> tuple[StructuralZero, ...]:
    """What is kept of noisy counts of a pair and of an exact share in what was asked."""
    random = np.random.default_rng(seed)
    bins = np.arange(20 // years + 1), np.arange(3)
    joint = np.histogram2d(rows[:, 0] // years, rows[:, 1], bins=bins)[0]
    atoms = scales(years)[0].size - len(joint)
    joint = np.pad(joint, ((0, atoms), (0, 0)))
    noisy = torch.from_numpy(joint + random.normal(0.0, NOISE, joint.shape)) / N
    shares = [joint.sum(axis=1) / N, joint.sum(axis=0) / N]
    pair = PairTarget((0, 1), noisy[None], NOISE / N)
    known = [np.full(len(share), 5.0) for share in shares]
    some = candidates([pair], scales(years), shares, known, N, frozenset(), 20.0)
    inside = [
        zero.left.numpy()[rows[:, zero.columns[0]]] & zero.right.numpy()[rows[:, zero.columns[1]]]
        for zero in asked_zeros(some)
    ]
    each = np.array(inside, dtype=float).reshape(-1, N)
    counts = (each / np.sqrt(np.maximum(each.sum(axis=0), 1.0))).sum(axis=1)
    together = in_common([one.asked for one in some], [pair], scales(years), shares)
    return kept_zeros(some, counts + random.normal(0.0, 20.0, len(counts)), 20.0, together)


@pytest.mark.parametrize("seed", range(5))
def test_a_half_line_without_a_label_ends_where_it_does(seed):
    (children,) = (zero for zero in found(people(), seed) if zero.columns == (0, 1))
    assert np.flatnonzero(children.left).tolist() == list(range(ADULT))
    assert children.right.tolist() == [False, True]


def test_a_half_line_where_a_few_have_the_label_is_kept():
    for seed in range(5):
        assert found(people(children_with_a_job=0.15), seed) == ()


@pytest.mark.parametrize("seed", range(5))
def test_a_label_that_ends_inside_a_cell_ends_there(seed):
    cut = {(one.columns, tuple(np.flatnonzero(one.left))) for one in found_whole(seed)}
    assert ((0, 1), tuple(range(ADULT))) in cut, "no child has a job"
    assert ((0, 1), tuple(range(ADULT, 20))) in cut, "every grown-up has one"


def found_whole(seed: int) -> tuple[StructuralZero, ...]:
    return found(people(grown_ups=1.0), seed, years=5)


@pytest.mark.parametrize("seed", range(5))
def test_a_cell_whose_ages_all_have_both_labels_is_not_cut(seed):
    rows = people(grown_ups=1.0)
    mixed = (rows[:, 0] >= 5) & (rows[:, 0] < 10)
    rows[mixed, 1] = np.random.default_rng(seed).random(mixed.sum()) < 0.6
    zeros = [one for one in found(rows, seed, years=5) if one.columns == (0, 1)]
    ages = {tuple(np.flatnonzero(one.left)) for one in zeros}
    assert ages == {tuple(range(5)), tuple(range(10, 20))}


def test_drawn_rows_of_a_cut_cell_lie_where_their_label_does():
    line = scales(5)
    ages, job = line[0].grid, torch.tensor([False, True])
    bins = torch.arange(ages.count)
    zeros = [
        StructuralZero((0, 1), bins < ADULT, job),
        StructuralZero((0, 1), (bins >= ADULT) & (bins < 20), ~job),
    ]
    placing, random = Placing.of(line, (), (), zeros), torch.Generator().manual_seed(1)
    label = np.arange(4_000) % 2
    cells = [np.ones(4_000, dtype=np.int64), label]
    _, position = placing.numbers(ages.block, cells[0], random, left=placing._left(0, cells))
    age = np.floor(position * 20)
    assert set(age[label == 0]) == {5.0, 6.0} and set(age[label == 1]) == {7.0, 8.0, 9.0}
    _, anywhere = placing.numbers(ages.block, cells[0], random)
    assert set(np.floor(anywhere * 20)) == {5.0, 6.0, 7.0, 8.0, 9.0}


def test_targets_are_emptied_and_columns_keep_their_counts():
    zero = StructuralZero((1, 0), torch.tensor([False, True]), torch.arange(20) < ADULT)
    shares = torch.full((1, 20, 2), 1.0 / 40.0)
    (target,) = emptied([PairTarget((0, 1), shares, 0.01)], [zero], scales())
    assert float(target.shares[0, :ADULT, 1].sum()) == 0.0
    assert target.shares.sum(dim=2).flatten().tolist() == pytest.approx([0.05] * 20, abs=1e-3)
    other = PairTarget((0, 2), shares, 0.01)
    assert emptied([other], [zero], scales()) == (other,)


def test_noisy_targets_are_emptied_and_keep_the_noise_of_others():
    zero = StructuralZero((1, 0), torch.tensor([False, True]), torch.arange(20) < ADULT)
    shares = torch.randn((1, 20, 2), generator=torch.Generator().manual_seed(1))
    (target,) = emptied([PairTarget((0, 1), shares, 0.01)], [zero], scales(), clean=False)
    assert not target.shares[0, :ADULT, 1].any()
    assert torch.equal(target.shares[0, ADULT:], shares[0, ADULT:])
    assert torch.equal(target.shares[0, :, 0], shares[0, :, 0])


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
    cells = mended(drawn, component, [ages, jobs], stored_zeros([zero], scales()), random)
    assert wrong.sum() > 100
    assert not ((cells[0] < ADULT) & (cells[1] == 1)).any()
    assert (cells[:, ~wrong] == drawn[:, ~wrong]).all()
    assert (cells[0, wrong] == drawn[0, wrong]).all(), "children lose the job, not their age"


def test_without_zeros_rows_stay_as_they_are():
    drawn = torch.zeros((2, 3), dtype=torch.int64)
    shares = [torch.ones(1, 20), torch.ones(1, 2)]
    none = stored_zeros([], scales())
    assert mended(drawn, torch.zeros(3), shares, none, torch.Generator()) is drawn


def kept_empty(men: float, *, asking: float, runs: int = 40) -> float:
    """Share of runs that keep a ward free of men, by pairs too noisy to tell and by what is asked.

    Args:
      men: share of men in the ward, of about 250 of 6,000 people.
      asking: standard deviation of what is asked.
    """
    n, noise, random = 6_000, 60.0, np.random.default_rng(6)
    joint = np.array([[250.0, 2_750.0], [250.0 * men / (1.0 - men), 2_750.0]])
    listed = listed_block(("no", "yes"))
    none, each = np.zeros(0), np.ones(2)
    two = ColumnScale(ColumnBins(listed, none, 0.0), np.arange(2), 0, each, each, none)
    shares, known = [joint.sum(axis=1) / n, joint.sum(axis=0) / n], [np.full(2, 20.0)] * 2
    kept = 0
    for _ in range(runs):
        noisy = torch.from_numpy(joint + random.normal(0.0, noise, joint.shape)) / n
        pair = PairTarget((0, 1), noisy[None], noise / n)
        some = candidates([pair], (two, two), shares, known, n, frozenset(), asking)
        there = [joint[z.left.numpy()[:2]][:, z.right.numpy()].sum() for z in asked_zeros(some)]
        counts = np.array(there) + random.normal(0.0, asking, len(there))
        together = in_common([one.asked for one in some], [pair], (two, two), shares)
        zeros = kept_zeros(some, counts, asking, together)
        kept += any(z.left.tolist()[:2] == [False, True] and bool(z.right[0]) for z in zeros)
    return kept / runs


def test_a_cell_is_asked_about_where_pairs_cannot_tell() -> None:
    assert kept_empty(0.0, asking=10.0) > 0.8
    assert kept_empty(0.0, asking=500.0) < 0.3, "nothing is asked that the answer would not tell"
    assert kept_empty(0.3, asking=10.0) < 0.1, "it is no zero"


def test_mended_rows_leave_columns_their_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """What one zero takes from a label, another gives back."""
    random = torch.Generator().manual_seed(7)
    shares = [torch.tensor([[0.5, 0.5]]), torch.tensor([[0.6, 0.2, 0.2]])]
    component = torch.zeros(20_000, dtype=torch.int64)
    drawn = torch.stack(
        [torch.multinomial(one[component], 1, generator=random)[:, 0] for one in shares]
    )
    zeros = torch.zeros((3, 2, 5), dtype=torch.bool)
    zeros[0, 0, 1] = zeros[1, 0, 3] = zeros[0, 1, 0] = zeros[1, 1, 4] = True
    zeros[2] = True

    def moved() -> int:
        cells = mended(drawn, component, shares, zeros, random)
        wrong = (cells[0] == 1) & (cells[1] == 1) | (cells[0] == 0) & (cells[1] == 2)
        assert not wrong.any()
        before, after = (torch.bincount(side[1], minlength=3) for side in (drawn, cells))
        return int((before - after).abs().max())

    steered = moved()
    monkeypatch.setattr(mending, "MOST_ODDS", 0.0)
    assert 5 * steered < moved()


def test_rows_that_nothing_mends_are_copied_in_wide_tables() -> None:
    """Odds of a thousand columns multiply beyond what a number holds."""
    random = torch.Generator().manual_seed(9)
    shares = [torch.tensor([[0.5, 0.5]])] * 1_000
    drawn = torch.randint(2, (1_000, 300), generator=random)
    zeros = torch.zeros((3, 2, 2_000), dtype=torch.bool)
    zeros[0, 0, 1] = zeros[1, 0, 2:4] = True  # no row may hold the first column's second label
    zeros[0, 1, 0], zeros[1, 1, 5] = True, True
    zeros[2, :, 4:6] = True
    cells = mended(drawn, torch.zeros(300, dtype=torch.int64), shares, zeros, random)
    assert not (cells[0] == 1).any() and not ((cells[0] == 0) & (cells[2] == 1)).any()


def test_places_that_go_together_share_what_a_record_adds() -> None:
    """Of nine columns that are alike, half of the others hold records where their counts say so."""
    listed = listed_block(("no", "yes"))
    none, each = np.zeros(0), np.ones(2)
    two = ColumnScale(ColumnBins(listed, none, 0.0), np.arange(2), 0, each, each, none)
    first, second = torch.tensor([True, False]), torch.tensor([False, True])
    places = [[StructuralZero((column, 9), second, first)] for column in range(9)]

    def adds(together: np.ndarray, held: float = 500.0) -> list[float]:
        table = torch.from_numpy(together)[None]
        pairs = [PairTarget(two, table, 0.0) for two in combinations(range(9), 2)]
        shares = [together.sum(axis=0)] * 9 + [np.array([0.5, 0.5])]
        common = in_common(places, pairs, (two,) * 10, shares)
        return added(common, np.full(9, 1000.0), np.zeros(9), np.full(9, held), 10.0).tolist()

    same, apart = np.diag([0.9, 0.1]), np.outer([0.9, 0.1], [0.9, 0.1])
    assert adds(same) == pytest.approx([1.0 / np.sqrt(1.0 + 0.5 * 8)] * 9)
    assert adds(apart) == pytest.approx([1.0 / np.sqrt(1.0 + 0.5 * 8 * 0.1)] * 9)
    assert adds(same, held=0.0) == pytest.approx([1.0] * 9), "nobody lies in empty places"


def test_a_column_that_follows_leaves_other_cells_empty() -> None:
    none, sizes = np.zeros(0), (3, 2)
    scales = tuple(
        ColumnScale(
            ColumnBins(listed_block(tuple("abc")[:k]), none, 0.0), np.arange(k), 0,
            np.ones(k), np.ones(k), none,
        )
        for k in sizes
    )  # fmt: skip
    rule = Determined(0, 1, torch.tensor([0, 1, 1]))
    left, right, _ = stored_zeros(tuple(rule.zeros(scales)), scales)
    empty = (left[:, :3, None] & right[:, None, 3:]).any(dim=0)
    assert empty.tolist() == [[False, True], [True, False], [True, False]]


def test_parts_of_a_cell_share_no_record() -> None:
    """The ages of one cell: those before three, those from there on, and all of them."""
    years = scales(5)
    ages, every = torch.arange(len(years[0].cell_of)), torch.tensor([True, True])
    ends = [(0, 3), (3, 5), (0, 5)]
    places = [[StructuralZero((0, 1), (ages >= a) & (ages < b), every)] for a, b in ends]
    shares = [np.full(scale.size, 1.0 / scale.size) for scale in years]
    common = in_common(places, [], years, shares)
    inside = years[0].inside[:5].cumsum()
    assert common[0, 1] == common[1, 0] == 0.0 and common[0, 2] == pytest.approx(1.0)
    assert common[2, 0] == pytest.approx(inside[2]) and 0.0 < inside[2] < 1.0


def test_ranked_labels_are_asked_about_together() -> None:
    """Sevens go with nothing below five: of ranked labels one place, of words four."""
    none = np.zeros(0)

    def ranked(labels: tuple[str, ...]) -> ColumnScale:
        of = ColumnBins(listed_block(labels), none, 0.0)
        return ColumnScale(of, np.arange(8), 0, np.ones(8), np.ones(8), none)

    numbers, words = tuple("12345678"), tuple("dbeacfgh")
    assert ranked(numbers).in_order == 8 and ranked(words).in_order < 3
    assert ranked((*"1234", "N", *"567")).in_order == 4
    joint = np.full((8, 8), 300.0)
    joint[:4, 6] = 0.0
    pair = PairTarget((0, 1), torch.from_numpy(joint / joint.sum())[None], 60.0 / joint.sum())
    shares, known = [joint.sum(1) / joint.sum(), joint.sum(0) / joint.sum()], [np.full(8, 5.0)] * 2
    asked = [
        {tuple(np.flatnonzero(zero.left)) for zero in asked_zeros(found)}
        for found in (
            candidates([pair], scale, shares, known, int(joint.sum()), frozenset(), 20.0)
            for scale in ((ranked(numbers),) * 2, (ranked(words),) * 2)
        )
    ]
    assert (0, 1, 2, 3) in asked[0] and (0, 1, 2, 3) not in asked[1]
