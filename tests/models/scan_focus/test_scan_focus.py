"""Scan and focus: its private accesses keep their promises, and it finds what it says it finds."""

from __future__ import annotations

import dataclasses
import functools
from itertools import combinations
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import roc_auc_score

from core.encoding.codec import Codec, Codes
from core.models.planning import plan_fit
from core.models.registry import synthesizer
from core.models.scan_focus.fitted import _stratified
from core.models.scan_focus.matching import MixtureMatcher, Targets
from core.models.scan_focus.releases import unlearned_columns
from core.models.step import FitContext
from core.models.steps.counting.counts import (
    PairTarget,
    Query,
    RelationCounts,
    SetCounts,
    uniform_query,
)
from core.models.steps.counting.denoising import denoised
from core.models.steps.counting.design import MOST_SETS, Design
from core.models.steps.counting.difference_candidates import DifferenceCandidate
from core.models.steps.counting.relation_candidates import TotalCandidate
from core.models.steps.counting.releases import Releases
from core.models.steps.counting.scales import (
    SHORT_GRID,
    ColumnScale,
    FineCounts,
    FineHistograms,
    fine_grids,
)
from core.models.steps.counting.scan import Scan, Scanned, draw_signs
from core.models.steps.counting.zeros.structural_zeros import BrokenZeros, everywhere
from core.models.steps.training.column_bins import ColumnBins
from core.privacy.guarded import PrivateTable
from core.privacy.plan import Budget
from core.schema.column import Column, Kind
from core.schema.schema import Domain, Schema
from tests.models.tables import Watcher, coded, scales_of
from tests.mutants import broken_scan_focus as broken
from tests.privacy.deterministic_noise import DeterministicNoise
from tests.privacy.harness import Caught, check_promises, check_tight

pytestmark = pytest.mark.slow

SIGMA = 3.73  # of one Gaussian at (1, 1e-5)


@functools.cache
def measured(target: str | None = "ill"):
    """The small table's codec, scales and design, and one mechanism of each kind."""
    codec, codes = coded(60, target=target)
    histograms = FineHistograms(fine_grids(codec, 1.0, 4000))
    release = histograms.statistic(codes.to("cpu"), torch.ones(len(codes)))
    scales = scales_of(histograms.grids, histograms.split(release), 1e-3)
    design = Design.of(codec, 4)
    shares = [scale.shares(scale.counts) for scale in scales]
    signs = draw_signs(scales, shares, design.signs, seed=3)
    pairs = tuple(
        uniform_query(scales, pair, 0.5 + i) for i, pair in enumerate(combinations(range(4), 2))
    )
    zeros = [everywhere(pair, scales) for pair in ((0, 1), (2, 3))]
    zeros.append(dataclasses.replace(zeros[0], left=torch.arange(len(zeros[0].left)) < 3))
    sums = tuple(TotalCandidate(0, *one) for one in ((1, 3, 1.0), (0, 3, 1e-12), (1, 3, 0.0)))
    apart = tuple(DifferenceCandidate(*pair, "own") for pair in ((1, 3), (3, 1)))
    return {
        "fine": histograms,
        "scan": Scan(scales, signs, design),
        "counts": SetCounts(scales, pairs),
        "relations": RelationCounts(codec.blocks, sums, ((1, 3), (3, 1))),
        "differences": RelationCounts(codec.blocks, sums, ((1, 3),), apart),
        "zeros": BrokenZeros(scales, tuple(zeros)),
    }


def rows(n: int, seed: int = 0) -> Codes:
    return coded(n, seed=seed)[1]


@pytest.mark.parametrize("kind", ["fine", "scan", "counts", "relations", "differences", "zeros"])
@pytest.mark.parametrize("target", ["ill", None])
def test_no_record_moves_a_statistic_beyond_its_sensitivity(kind, target):
    mechanism = measured(target)[kind]
    check_promises(mechanism, rows(7), rows(7, seed=1))
    check_tight(mechanism, with_costs(), least=0.999)


def with_costs() -> Codes:
    """Records of which nothing is missing."""
    some = rows(60)
    return some.take(np.flatnonzero(some.states[:, 1] != 2)[:7])


def twin(kind, honest):
    return kind(**{f.name: getattr(honest, f.name) for f in dataclasses.fields(honest)})


@pytest.mark.parametrize(
    ("mutant", "kind"),
    [
        (broken.ForgetsCoarseCells, "fine"),
        (broken.CountsSetsOnce, "scan"),
        (broken.SignsOfAbsentRecords, "scan"),
        (broken.CentredSigns, "scan"),
        (broken.ForgetsWeights, "counts"),
        (broken.BothOfEachSum, "relations"),
        (broken.EqualIsBelowToo, "relations"),
        (broken.ForgetsCoarseDifferences, "differences"),
        (broken.WholeInEachZero, "zeros"),
    ],
)
def test_a_broken_twin_is_caught(mutant, kind):
    with pytest.raises(Caught):
        check_promises(twin(mutant, measured()[kind]), with_costs(), rows(7, seed=1))


def test_one_persons_rows_weigh_no_more_than_one_row():
    for mechanism in measured().values():
        some = rows(9)
        mask = torch.zeros(9, dtype=torch.float64)
        mask[:3] = 1.0 / 3.0
        moved = torch.linalg.vector_norm(mechanism.statistic(some, mask))
        assert moved <= mechanism.sensitivity * (1 + 1e-9)


def test_shares_of_the_budget_sum_to_one_whatever_is_measured():
    for target in ("ill", "age", None):
        shares = Design.of(coded(4, target=target)[0], 4).shares(100, 1.0)
        assert sum(shares.values()) == pytest.approx(1.0)
        fine = Design.of(coded(4, target=target)[0], 4).shares(5_000, 1.0)
        assert sum(fine.values()) == pytest.approx(1.0)
        assert fine["scales"] > shares["scales"]  # there are numbers, and records to see them by
    one = Schema(columns=(Column(name="a", kind=Kind.CATEGORY, categories=("x", "y")),)).domain()
    assert Design.of(Codec(one), 4).shares(5_000, 1.0) == Design.of(Codec(one), 4).shares(100, 1.0)
    assert list(Design.of(Codec(one), 4).shares(100, 1.0)) == ["scales", "columns"]


def flags(count: int) -> Domain:
    names = [f"f{i}" for i in range(count)]
    columns = tuple(Column(name=n, kind=Kind.CATEGORY, categories=("0", "1")) for n in names)
    return Schema(columns=columns).domain()


def test_larger_sets_are_left_out_where_there_are_too_many():
    assert [len(sets) for sets in Design.of(Codec(flags(12)), 4).sets] == [12, 66, 220, 495]
    wide = Design.of(Codec(flags(120)), 4)
    assert [len(sets) for sets in wide.sets] == [120, 7140]
    assert wide.signs == 1 and wide.scanned > MOST_SETS


def parity_table(n: int, order: int, seed: int = 0) -> tuple[Domain, pd.DataFrame]:
    """Nine numbers and a class: the parity of the signs of the first `order` of them."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({f"x{i}": rng.standard_normal(n).clip(-4, 4) for i in range(9)})
    odd = np.logical_xor.reduce([frame[f"x{i}"] > 0 for i in range(order)])
    frame["class"] = np.where(odd ^ (rng.random(n) < 0.03), "1", "0")
    columns = [Column(name=f"x{i}", kind=Kind.NUMBER, low=-4, high=4) for i in range(9)]
    label = Column(name="class", kind=Kind.CATEGORY, categories=("0", "1"))
    return Schema(columns=(*columns, label), target="class").domain(), frame


def scores(order: int, *, signal: bool = True) -> tuple[Design, np.ndarray]:
    """The scan of a parity at a tenth of ε = 1, and how significant each set of `order` is."""
    domain, frame = parity_table(8000, order)
    if not signal:
        frame["class"] = frame["class"].sample(frac=1, random_state=1).to_numpy()
    codec = Codec(domain)
    codes = codec.encode(frame).to("cpu")
    histograms = FineHistograms(fine_grids(codec, 30.0, len(frame)))
    release = histograms.statistic(codes, torch.ones(len(frame)))
    scales = scales_of(histograms.grids, histograms.split(release), 30.0)
    design = Design.of(codec, 4)
    shares = [scale.shares(scale.counts) for scale in scales]
    mechanism = Scan(scales, draw_signs(scales, shares, design.signs, 1), design)
    noise = SIGMA / np.sqrt(0.1) * mechanism.sensitivity
    statistic = mechanism.statistic(codes, torch.ones(len(frame)))
    random = torch.Generator().manual_seed(5)
    release = statistic + noise * torch.randn(statistic.shape, generator=random).double()
    scanned = Scanned(mechanism.split(release, len(frame)), noise / len(frame))
    return design, scanned.energy(order, torch.zeros_like(scanned.sums[order - 1]))[1]


@pytest.mark.parametrize("order", [3, 4])
def test_a_parity_stands_out_of_the_scan_and_nothing_else_does(order):
    design, score = scores(order)
    best, next_best = np.sort(score)[::-1][:2]
    assert design.sets[order - 1][int(score.argmax())] == tuple(range(order))
    assert best > 25.0 > 8.0 > next_best
    assert scores(order, signal=False)[1].max() < 8.0


def test_a_parity_of_three_is_learned(tmp_path):
    """Trees that learn from synthetic rows predict real ones; from a shuffled class they cannot."""
    domain, frame = parity_table(8000, 3)
    codec = Codec(domain)
    model = synthesizer("scan_focus")
    settings = {
        "steps": 160,
        "preliminary_steps": 20,
        "components": 150,
        "members": 2,
        "hidden": 64,
        "latent": 16,
    }
    plan = plan_fit(model, domain, len(frame), Budget(epsilon=3.0, delta=1e-5), settings)
    table = PrivateTable(codec.encode(frame), domain, plan, noise_source=DeterministicNoise(1))
    context = FitContext(on_event=Watcher(), folder=tmp_path, seed=1)
    drawn = model.fit(table, plan, context).sample(8000, seed=1)
    trees = HistGradientBoostingClassifier(random_state=0, early_stopping=False)
    trees.fit(drawn.drop(columns="class"), drawn["class"])
    _, fresh = parity_table(4000, 3, seed=9)
    chance = trees.predict_proba(fresh.drop(columns="class"))[:, 1]
    assert roc_auc_score(fresh["class"] == "1", chance) > 0.8


def listed(size: int) -> ColumnScale:
    categories = tuple(str(i) for i in range(size))
    codec = Codec(
        Schema(columns=(Column(name="a", kind=Kind.CATEGORY, categories=categories),)).domain()
    )
    grid = ColumnBins.of(codec.blocks[0], lambda steps: steps < SHORT_GRID, 16)
    return ColumnScale.of(grid, FineCounts(np.full(size, 100.0), 1.0, 32))


def test_noise_is_shrunk_from_pairs_and_structure_is_not():
    random = np.random.default_rng(3)
    scales = (listed(12), listed(10))
    flat = np.full((1, 12, 10), 1.0 / 120.0)
    strong = np.zeros((1, 12, 10))
    strong[0, np.arange(12), np.arange(12) % 10] = 1.0 / 12.0
    for truth, better in ((flat, 0.5), (strong, 1.1)):
        shares = [truth.sum(axis=(0, 2)), truth.sum(axis=(0, 1))]
        noisy = truth + 0.004 * random.standard_normal(truth.shape)
        target = PairTarget((0, 1), torch.tensor(noisy), 0.004)
        clean = denoised([target], scales, shares, {})[0].shares.numpy()
        before, after = np.square(noisy - truth).sum(), np.square(clean - truth).sum()
        assert after < better * before


def test_separate_column_counts_serve_a_pair_without_signal():
    """The pair's own margins are noisy; those counted apart within each class are not."""
    random = np.random.default_rng(4)
    scales = (listed(12), listed(10))
    first = random.dirichlet(np.ones(12), 2) / 2.0  # [classes, cells]
    second = random.dirichlet(np.ones(10), 2) / 2.0
    truth = first[:, :, None] * second[:, None, :] * 2.0
    noisy = truth + 0.004 * random.standard_normal(truth.shape)
    target = PairTarget((0, 1), torch.tensor(noisy), 0.004)
    shares = [first.sum(axis=0), second.sum(axis=0)]
    within = {0: (first, 1e-4), 1: (second, 1e-4)}
    gaps = [
        np.square(denoised([target], scales, shares, known)[0].shares.numpy() - truth).sum()
        for known in ({}, within)
    ]
    assert gaps[1] < 0.5 * gaps[0]


def test_columns_of_a_pair_that_a_draft_did_not_learn_are_named(monkeypatch):
    known = object.__new__(Releases)
    known.design = Design.of(Codec(flags(4)), 2)
    seen = torch.zeros((1, 4, 6), dtype=torch.float64)
    seen[..., 4] = 0.5  # columns 1 and 3 go together
    known.scanned = Scanned([torch.zeros((1, 4, 4)), seen], 0.01)
    monkeypatch.setattr(known, "pair_energy", lambda: known.scanned.energy(2, 0.0 * seen))
    preliminary = object.__new__(MixtureMatcher)
    for learnt, stuck in ((0.0, {1, 3}), (0.9, set())):
        monkeypatch.setattr(preliminary, "expected", lambda size, learnt=learnt: learnt * seen)
        assert unlearned_columns(known, preliminary) == stuck
    known.scanned = None
    assert unlearned_columns(known, preliminary) == frozenset()


def test_pairs_that_are_not_related_are_kept_apart():
    """Two columns that every component gives the same cell are pushed to independence."""
    codec = Codec(flags(30))
    design = Design.of(codec, 2)
    shares = [torch.full((1, 2, 8), 0.5) for _ in range(30)]
    alike = torch.eye(2).repeat(1, 4)[None]
    shares[3] = shares[4] = alike
    whole = torch.cat(shares, dim=1)
    matcher = object.__new__(MixtureMatcher)
    matcher.mixtures = SimpleNamespace(by_column=lambda shares: torch.split(shares, 2, dim=1))
    matcher._design, matcher.device, matcher.done = design, "cpu", 0
    matcher._random = torch.Generator().manual_seed(0)
    matcher._targets = Targets(1000, torch.zeros(0), torch.zeros(0), None, ())
    within = torch.full((1, 1, 8), 1.0 / 8.0)
    matcher._unrelated = matcher._unrelated_pairs()
    assert float(matcher._apart_loss(within, whole)) > 10.0
    related = (design.pairs.index((3, 4)),)
    matcher._targets = dataclasses.replace(matcher._targets, related=related)
    matcher._unrelated = matcher._unrelated_pairs()
    assert float(matcher._apart_loss(within, whole)) < 1e-6


def test_stratified_draws_have_less_error_than_independent():
    shares = torch.tensor([[0.7, 0.2, 0.1], [0.1, 0.1, 0.8]])
    component = torch.arange(2).repeat_interleave(500)
    errors = []
    for seed in range(20):
        cell = _stratified(shares, component, torch.Generator().manual_seed(seed))
        for part, expected in ((cell[:500], shares[0]), (cell[500:], shares[1])):
            errors.append(torch.bincount(part, minlength=3) / 500.0 - expected)
    worst = float(torch.stack(errors).abs().max())
    assert worst <= 2.0 / 500.0  # independent draws are off by .02 and more


def test_cells_of_a_column_follow_density_and_keep_spikes():
    column = Column(name="a", kind=Kind.NUMBER, low=-5, high=5)
    codec = Codec(Schema(columns=(column,)).domain())
    random = np.random.default_rng(0)
    value = np.where(random.random(20_000) < 0.1, 1.25, random.standard_normal(20_000).clip(-5, 5))
    codes = codec.encode(pd.DataFrame({"a": value})).to("cpu")
    histograms = FineHistograms(fine_grids(codec, 20.0, 20_000))
    noise = np.random.default_rng(1).normal(0.0, 20.0, sum(histograms.sizes))
    statistic = histograms.statistic(codes, torch.ones(20_000)) + torch.from_numpy(noise)
    scale = ColumnScale.of(histograms.grids[0], FineCounts(histograms.split(statistic)[0], 20.0))
    cell = scale.index(codes).numpy()
    place = np.searchsorted(scale.keys, cell + random.random(20_000)).clip(0, len(scale.keys) - 1)
    drawn = -5 + 10 * scale.grid.centres[place]
    edges = np.linspace(-4, 4, 17)
    real, made = (np.histogram(x, edges)[0] / 20_000 for x in (value, drawn))
    assert np.abs(real - made).sum() / 2.0 < 0.02
    assert np.abs(drawn - 1.25).min() < 0.02
    near = np.mean(np.abs(drawn - 1.25) < 0.03)
    assert abs(near - np.mean(np.abs(value - 1.25) < 0.03)) < 0.02


def test_a_folded_query_counts_every_record_once():
    counts = measured()["counts"]
    query = Query(
        (0, 2), (torch.zeros(counts.scales[0].size, dtype=torch.int64), torch.arange(4)), 2.0
    )
    mechanism = SetCounts(counts.scales, (query,))
    release = mechanism.statistic(rows(50), torch.ones(50))
    assert mechanism.split(release)[0].sum() == 50.0
    assert mechanism.deviations(3.0) == [3.0 * 2.0 / 2.0]
