"""What is counted of pairs follows from the scan; classes are told apart only where they differ."""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from core.encoding.codec import Codec
from core.models.scan_focus.matching import MixtureMatcher
from core.models.scan_focus.releases import contradicted_sets
from core.models.steps.calibration.calibration import counts_of
from core.models.steps.counting.counts import PairTarget
from core.models.steps.counting.denoising import as_released, beyond_independence, denoised
from core.models.steps.counting.design import FOCUS, PAIRS, Design
from core.models.steps.counting.pair_queries import (
    COLUMN_WEIGHT,
    COLUMN_WEIGHT_JOINED,
    PairQueries,
    PairsSeen,
    least_error_weights,
    pair_importance,
    select_pairs,
    weights_again,
)
from core.models.steps.counting.releases import Releases
from core.models.steps.counting.scan import Scanned
from core.schema.column import Column, Kind
from core.schema.schema import Domain, Schema
from tests.models.scan_focus.test_scan_focus import flags, listed

FLAGS = Design.of(Codec(flags(4)), 2)
NONE_SHOWN, STRONG = np.zeros(6), np.full(6, 100.0)  # what six pairs show
NOISE = 1e-3  # of a share, with all of the weight


def with_class(count: int) -> Domain:
    """So many yes-or-no columns and a class of two."""
    names = [f"f{i}" for i in range(count)]
    columns = [Column(name=n, kind=Kind.CATEGORY, categories=("0", "1")) for n in (*names, "class")]
    return Schema(columns=tuple(columns), target="class").domain()


def shown(pair: tuple[int, ...], weight: float) -> bool:
    """No pair's cells drown in noise."""
    return False


def asked(
    score: np.ndarray, differs: np.ndarray | None, sizes: tuple[int, ...] = (2,) * 4,
    *, design: Design = FLAGS, dominated=shown, clear: bool = True,
) -> PairQueries:  # fmt: skip
    """What is counted where energies are as large as scores, and all pairs matter alike."""
    seen = PairsSeen(score, np.maximum(score, 1e-3), differs, np.ones(len(score)), clear)
    return select_pairs(design, sizes, seen, noise=NOISE, noise_dominated=dominated)


def test_pairs_that_show_nothing_leave_weight_to_columns() -> None:
    """Not where noise may hide what they would show."""
    left_by = ((NONE_SHOWN, True, COLUMN_WEIGHT), (NONE_SHOWN, False, 0.0), (STRONG, True, 0.0))
    for score, clear, left in left_by:
        every = asked(score, STRONG, clear=clear)
        assert len(every.pairs) == 6 and every.columns == pytest.approx(left)
        assert every.weights.sum() + every.columns == pytest.approx(1.0)


def test_classes_are_counted_separately_where_pairs_differ() -> None:
    differs = np.array([9.0, -1.0, 0.7, -0.1, -0.5, 0.0])
    some = asked(STRONG, differs)
    apart = {pair for pair, one in zip(some.pairs, some.by_class, strict=True) if one}
    assert apart == {FLAGS.pairs[0]}
    assert some.columns == pytest.approx(
        COLUMN_WEIGHT_JOINED * 5 / 6
    )  # else less ties columns to the class
    assert some.weights.sum() + some.columns == pytest.approx(1.0)
    assert asked(NONE_SHOWN, NONE_SHOWN).columns == COLUMN_WEIGHT  # which is more
    single = asked(STRONG, None)
    assert single.by_class.all() and single.columns == 0.0  # there is nothing to tell apart


def test_rare_labels_are_counted_in_all_classes_together() -> None:
    weights = {}

    def first(pair: tuple[int, ...], weight: float) -> bool:
        weights[pair] = weight
        return pair == FLAGS.pairs[0]

    every = asked(STRONG, STRONG, dominated=first)
    together = [pair for pair, apart in zip(every.pairs, every.by_class, strict=True) if not apart]
    assert together == [FLAGS.pairs[0]] and not every.alike.any()
    assert every.columns == 0.0 and sum(weights.values()) == pytest.approx(1.0)
    many = asked(STRONG, STRONG, dominated=lambda pair, weight: 0 in pair)
    assert many.by_class.all() and many.columns == 0.0  # half of all pairs: too much left open
    assert asked(STRONG, STRONG, dominated=None).by_class.all()
    assert asked(STRONG, None, dominated=first).by_class.all()
    nothing = asked(STRONG, NONE_SHOWN, dominated=first)
    assert nothing.alike.all() and nothing.columns == pytest.approx(COLUMN_WEIGHT_JOINED)


def test_a_column_without_a_pair_is_counted_by_class() -> None:
    design, clear = Design.of(Codec(flags(12)), 2), np.full(66, 100.0)
    dominated = lambda pair, weight: 3 in pair  # noqa: E731
    every = asked(clear, clear, (2,) * 12, design=design, dominated=dominated)
    assert [3 in pair for pair in every.pairs] == (~every.by_class).tolist()
    assert every.columns == pytest.approx(COLUMN_WEIGHT_JOINED * 11 / 66)
    assert every.weights.sum() + every.columns == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("share", "weight", "noise_dominated"),
    # of 100 records in two classes, with noise of 5, 1, 1, 100 and 1 records
    [
        (0.98, 0.04, True),
        (0.98, 1.0, True),
        (0.7, 1.0, False),
        (0.25, 1e-4, True),
        (0.25, 1, False),
    ],
)
def test_cells_with_fewer_records_than_noise_count_as_hidden(
    share, weight, noise_dominated
) -> None:
    known = releases(with_class(2), {})
    known.scales = (listed(4), listed(4), listed(2))
    rest = (1.0 - share) / 3.0
    known.shares = [np.array([share, rest, rest, rest])] * 2 + [np.full(2, 0.5)]
    assert known._noise_dominated((0, 1), weight) is noise_dominated
    known.scales = (SimpleNamespace(line=4), *known.scales[1:])  # type: ignore[assignment]
    assert not known._noise_dominated(
        (0, 1), weight
    )  # of a number, neighbouring cells say the same


def test_many_small_class_differences_are_not_noise() -> None:
    random = np.random.default_rng(3)
    pairs = Design.of(Codec(flags(20)), 2)  # 190 of them
    noise, seen = random.standard_normal(190), np.full(190, 9.0)
    alike = [
        1.0 - asked(seen, noise + shift, (2,) * 20, design=pairs).by_class.mean()
        for shift in (0.0, 0.7)
    ]
    assert alike[0] > 0.85 and alike[1] == 0.0


def test_more_cells_and_more_to_see_get_more_weight() -> None:
    by_cells = asked(STRONG, STRONG, sizes=(2, 2, 2, 40))
    wide = [3 in pair for pair in by_cells.pairs]
    assert by_cells.weights[wide].min() > by_cells.weights[np.logical_not(wide)].max()
    little = np.array([1.0, 1.0, 1.0, 1.0, 1.0, 1000.0]) * 1e-3 * NOISE
    seen = PairsSeen(little, little, None, np.ones(6), clear=True)
    some = select_pairs(FLAGS, (2,) * 4, seen, noise=NOISE, noise_dominated=None)
    assert some.pairs[0] == FLAGS.pairs[5] and some.weights[0] > 1.5 * some.weights[1]


def test_what_is_left_to_learn_is_counted_again() -> None:
    """A pair that shows nothing gets no more, and all noise together is what was planned."""
    first = asked(STRONG, None)
    whole = 1.0 / NOISE**2
    noise = [float(1.0 / math.sqrt(w * whole)) for w in first.weights]
    counted = [
        PairTarget((a, b), torch.zeros((1, 2, 2)), one)
        for (a, b), one in zip(first.pairs, noise, strict=True)
    ]
    energy = np.array([1.0, 1.0, 1e-12, 1e-12, 1e-3, 1e-3])
    again = weights_again(first, counted, energy, NOISE)
    assert again.sum() == pytest.approx(1.0) and (again[2:4] < 1e-5).all()
    assert again[0] == pytest.approx(again[1]) and again[0] > again[4] > 0.15
    assert weights_again(first, counted, np.ones(6), NOISE) == pytest.approx(first.weights)
    luck = np.array([3.0, 1.0, 0.1, 0.1, 1.0, 0.8]) * math.sqrt(8.0) * NOISE**2 * 6.0
    assert weights_again(first, counted, luck, NOISE) == pytest.approx(first.weights)
    # of pairs of which one was hardly counted, this one
    few = [replace(one, noise=one.noise * (10.0 if i else 1.0)) for i, one in enumerate(counted)]
    again = weights_again(first, few, np.ones(6), NOISE)
    assert again[0] < 0.05 and again[1:] == pytest.approx(again[1])


def test_two_counts_of_a_pair_are_weighed_by_their_precision() -> None:
    one = PairTarget((0, 1), torch.full((1, 2, 2), 0.2), 0.1)
    mean = one.mean(replace(one, shares=torch.full((1, 2, 2), 0.5), noise=0.2))
    assert mean.shares.numpy() == pytest.approx(0.26)
    assert mean.noise == pytest.approx(1.0 / math.sqrt(125.0))


def test_distance_to_independence_leaves_out_the_noise() -> None:
    random, shares = np.random.default_rng(1), [np.full(8, 1 / 8)] * 2
    alike, apart, noise = np.full((8, 8), 1 / 64), np.eye(8) / 8, 0.01
    for truth in (alike, apart):
        seen = [
            PairTarget((0, 1), torch.tensor(truth + noise * random.normal(size=(1, 8, 8))), noise)
            for _ in range(200)
        ]
        energy = np.array([beyond_independence([one], shares, {})[0] for one in seen])
        above = math.sqrt(2.0 * 64) * noise**2
        assert (energy >= above * (1.0 - 1e-9)).all()
        assert energy.mean() - above == pytest.approx(
            np.square(truth - alike).sum(), abs=0.6 * above
        )


def test_weights_make_the_expected_error_least() -> None:
    """No other weights, near or far, leave less error than the formula's."""
    random = np.random.default_rng(5)
    for _ in range(20):
        importance, variance, energy = np.exp(random.normal(0.0, 2.0, (3, 12)))

        def error(weights: np.ndarray, i=importance, v=variance, e=energy) -> float:
            return float((i * np.sqrt(e * v / (weights * e + v))).sum())

        best = least_error_weights(importance, variance, energy)
        others = best * np.exp(random.normal(0.0, 0.3, (200, 12)))
        others = np.vstack([others, random.dirichlet(np.ones(12), 200), np.full(12, 1 / 12)])
        least = min(error(other / other.sum()) for other in others)
        assert best.sum() == pytest.approx(1.0) and error(best) < least * 1.02


def test_the_target_of_many_labels_is_what_groups_compare() -> None:
    """Pairs with it count for every pair within its groups."""
    labels = tuple("abcdefghijkl")
    columns = [Column(name=f"f{i}", kind=Kind.CATEGORY, categories=("0", "1")) for i in range(4)]
    site = Column(name="site", kind=Kind.CATEGORY, categories=labels)
    for target, grouped in (("site", 4), (None, 4), ("f0", None)):
        known = releases(Schema(columns=(*columns, site), target=target).domain(), {})
        known.column_counts[4] = np.full(12, 400.0)
        assert known.group == (known.design.condition if grouped is None else grouped)
        importance = pair_importance(known.design, grouped)
        with_site = np.array([4 in pair for pair in known.design.pairs])
        assert (importance[~with_site] == 1.0).all()
        if grouped is not None:
            assert (importance[with_site] == 3.0).all()
    known = releases(Schema(columns=(*columns, site)).domain(), {})
    known.column_counts[4] = np.full(12, 2.0)
    assert known.group is None  # groups that noise hides
    known = releases(Schema(columns=(*columns, site)).domain(), {})
    known.column_counts[4] = np.array([2_000.0, *[400.0] * 11])  # most people are in one
    assert known.group is None


def test_a_pair_with_another_class_share_differs_by_class() -> None:
    shares, variances = np.array([0.75, 0.25]), np.array([1e-6, 1e-6])
    alike = torch.tensor([0.3, 0.1]).double()[:, None, None].expand(2, 4, 1)
    opposite = torch.tensor([0.1, -0.1]).double()[:, None, None].expand(2, 4, 1)
    scanned = Scanned([torch.cat([alike, opposite], dim=2)], 1e-3)
    z = scanned.differing(1, torch.zeros_like(scanned.sums[0]), shares, variances)
    assert z[0] < 0.0 and z[1] > 1000.0
    assert scanned.differing(1, scanned.sums[0], shares, variances)[1] < 0.0  # nothing is left


def test_pure_noise_differs_by_class_at_the_stated_rate() -> None:
    random = np.random.default_rng(2)
    shares, noise = np.array([0.8, 0.2]), 0.01
    sums = torch.from_numpy(noise * random.standard_normal((2, 4, 20_000)))
    z = Scanned([sums], noise).differing(1, 0.0 * sums, shares, np.full(2, noise**2))
    assert abs(z.mean()) < 0.03 and z.std() == pytest.approx(1.0, abs=0.05)


def releases(domain: Domain, state: dict[str, torch.Tensor], noise: float = 0.03) -> Releases:
    """Releases of a hundred records, of which the scan says nothing and no column anything."""
    known = object.__new__(Releases)
    known.codec, known.table = Codec(domain), SimpleNamespace(n=100)
    known.design, columns = Design.of(known.codec, 2), len(known.codec.blocks)
    known.scales = (listed(2),) * columns
    known.checkpoint = SimpleNamespace(state=state, seed=0)
    known.shares = [np.full(2, 0.5)] * columns
    known.column_counts = [np.full(2, 50.0)] * columns
    known.column_noise = [np.full(2, 1.0)] * columns
    known.within, known._released = {}, []
    known.totals, known.compared, known.differences = (), (), ()
    sets = [torch.zeros((known.design.classes, 4, len(one))).double() for one in known.design.sets]
    known.scanned = Scanned(sets, noise)
    known.noise_multiplier = lambda phase: 1.0  # type: ignore[method-assign]
    return known


def counted(known: Releases, phase: str) -> tuple[PairTarget, ...]:
    known.count_pairs(phase)
    return known.counted


def test_classes_that_are_counted_together_carry_less_noise() -> None:
    together = releases(with_class(4), {PAIRS: torch.ones(6 * 4 + 4 * 4)})
    together.checkpoint.state["joins_classes"] = True
    apart = releases(with_class(4), {PAIRS: torch.ones(6 * 8 + 4 * 4), "joins_classes": False})
    (one, *_), (other, *_) = (counted(known, PAIRS) for known in (together, apart))
    assert one.shares.shape == (1, 2, 2)
    assert one.noise == pytest.approx(other.noise)  # of a cell; a sum over classes has more
    assert set(together.within) == {0, 1, 2, 3}


def test_noise_of_pairs_and_scan_decides_how_pairs_count() -> None:
    """With little of it, and with much, every class is counted by itself."""
    cases = ((1.0, 0.03, 1), (1.0, 0.05, 2), (1e-3, 0.03, 2), (0.0, 0.0, 2))
    for noise, of_scan, classes in cases:
        known = releases(with_class(4), {}, of_scan)
        known.noise_multiplier = lambda phase, noise=noise: noise  # type: ignore[method-assign]
        known.release = lambda phase, asked: torch.ones(  # type: ignore[method-assign]
            sum(math.prod(query.shape) for query in asked.queries)
        )
        assert all(len(pair.shares) == classes for pair in counted(known, PAIRS))
        assert known.checkpoint.state["joins_classes"] == (classes == 1)


def test_a_pair_counted_together_shrinks_to_independence() -> None:
    """Two columns that follow the class go together, and nothing is left to shrink."""
    first, second = np.array([[0.4, 0.1], [0.1, 0.4]]), np.array([[0.3, 0.2], [0.2, 0.3]])
    truth = np.einsum("ya,yb->yab", first, second) * 2.0
    noisy = truth.sum(axis=0) + 0.05 * np.array([[1.0, -1.0], [-1.0, 1.0]])
    target = PairTarget((0, 1), torch.tensor(noisy[None]), 0.1)
    within = {0: (first, 1e-4), 1: (second, 1e-4)}
    shares = [first.sum(axis=0), second.sum(axis=0)]
    clean = denoised([target], (listed(2), listed(2)), shares, within)[0]
    np.testing.assert_allclose(clean.shares.numpy(), truth, atol=1e-6)
    assert clean.noise * math.sqrt(2.0) == pytest.approx(target.noise)


def test_a_pair_counted_together_keeps_odds_and_class_effects() -> None:
    """Of two columns that are all but the same, each class gets what its own columns say."""
    odds = np.array([[0.48, 0.02], [0.02, 0.48]])
    truth = np.stack([0.7 * odds * [[0.2, 1.0], [1.0, 5.0]], 0.3 * odds * [[5.0, 1.0], [1.0, 0.2]]])
    truth /= truth.sum()
    first, second = truth.sum(axis=2), truth.sum(axis=1)
    target = PairTarget((0, 1), torch.tensor(truth.sum(axis=0)[None]), 1e-6)
    within = {0: (first, 1e-6), 1: (second, 1e-6)}
    shares = [first.sum(axis=0), second.sum(axis=0)]
    clean = denoised([target], (listed(2), listed(2)), shares, within)[0]
    np.testing.assert_allclose(clean.shares.numpy(), truth, atol=1e-5)


def test_models_with_counts_match_such_pairs_class_by_class() -> None:
    known = releases(with_class(4), {PAIRS: torch.ones(6 * 4 + 4 * 4)})
    known.checkpoint.state["joins_classes"] = True
    counted(known, PAIRS)
    counts = counts_of(known)
    assert sorted(table.columns for table in counts.pairs) == [(4, *pair) for pair in FLAGS.pairs]
    assert all(table.shares.shape == (8,) for table in counts.pairs)


def test_joint_pair_reports_no_class_effect() -> None:
    """It is matched as it was counted, by the mixture and by rows that are weighed."""
    known = releases(with_class(4), {PAIRS: torch.ones(4 + 5 * 8 + 4 * 4)})
    known.checkpoint.state["joins_classes"] = True
    known.differing = lambda size, expected: STRONG  # type: ignore[method-assign]
    known._noise_dominated = lambda pair, weight: pair == (0, 1)  # type: ignore[method-assign]
    every = counted(known, PAIRS)
    (one,) = [pair for pair in every if pair.columns == (0, 1)]
    clean = next(p for p in denoised(every, known.scales, known.shares, {}) if not p.alike)
    assert not one.alike and clean.shares.shape == one.shares.shape == (1, 2, 2)
    assert clean.noise == one.noise and clean.columns == (0, 1)
    tables = {table.columns: table.shares.shape for table in counts_of(known).pairs}
    assert tables.pop((0, 1)) == (4,)
    assert sorted(tables) == [(4, *pair) for pair in FLAGS.pairs[1:]]


def test_noisy_targets_are_what_was_counted() -> None:
    """Of pairs that are alike in all classes, their sum over classes is."""
    known = releases(with_class(4), {PAIRS: torch.arange(6.0 * 4 + 4 * 4)})
    known.checkpoint.state["joins_classes"] = True
    every = counted(known, PAIRS)
    noisy = as_released(every, known.shares, known.within)
    for pair, target in zip(every, noisy, strict=True):
        assert target.shares.shape == (2, *pair.shares.shape[1:])
        torch.testing.assert_close(target.shares.sum(dim=0), pair.shares[0], rtol=1e-4, atol=1e-6)


def test_what_is_counted_once_more_is_what_was_counted_first() -> None:
    """Though the columns' shares, which say what is rare, were counted again meanwhile."""
    release = torch.ones(4 + 5 * 8 + 4 * 4)
    known = releases(with_class(4), {PAIRS: release, FOCUS: release, "joins_classes": True})
    known.differing = lambda size, expected: STRONG  # type: ignore[method-assign]
    known._noise_dominated = lambda pair, weight: (  # type: ignore[method-assign]
        pair == (0, 1) and not known.within
    )
    first, second = counted(known, PAIRS), counted(known, FOCUS)
    assert known.within and [len(one.shares) for one in first].count(1) == 1
    for one, other in zip(first, second, strict=True):
        assert one.columns == other.columns and one.shares.shape == other.shares.shape
        assert one.alike == other.alike


@pytest.mark.parametrize(("of_pair", "counted"), [(0.0, True), (0.02, True), (0.04, False)])
def test_a_set_that_mirrors_a_pairs_lack_is_not_counted(monkeypatch, of_pair, counted):
    """One of its pairs shows nothing, a ninth or three fifths of what it shows itself."""
    known = object.__new__(Releases)
    known.design = Design.of(Codec(flags(3)), 3)
    pairs, sets = (torch.zeros((1, 4, n), dtype=torch.float64) for n in (3, 1))
    pairs[..., 0], sets[...] = of_pair, 0.052
    known.scanned = Scanned([torch.zeros((1, 4, 3)), pairs, sets], 0.01)
    known.checkpoint = SimpleNamespace(state={})
    draft = object.__new__(MixtureMatcher)
    monkeypatch.setattr(draft, "expected", lambda size: torch.zeros_like((pairs, sets)[size - 2]))
    assert contradicted_sets(known, draft) == ([(0, 1, 2)] if counted else [])
