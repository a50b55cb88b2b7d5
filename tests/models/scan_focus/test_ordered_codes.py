"""Which label rare codes of a long list belong to is told by the list, and asked of the records."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pytest

from core.models.steps.counting.zeros.ordered_codes import LabelsOfCodes, labels_of_codes
from core.models.steps.counting.zeros.structural_zeros import StructuralZero

CODES, LABELS, NOISE = 60, 12, 80.0
RANDOM = np.random.default_rng(3)
RECORDS = 250.0 * RANDOM.dirichlet(np.full(CODES, 8.0)) * CODES  # about three times the noise each
OWN = np.repeat(np.arange(LABELS), CODES // LABELS)
RULE = np.where(OWN[:, None] == np.arange(LABELS), RECORDS[:, None], 0.0)
ALONE = np.outer(RECORDS, RULE.sum(axis=0) / RECORDS.sum())


def rule(truth: np.ndarray, seed: int, spread: float = 0.0) -> LabelsOfCodes | None:
    random = np.random.default_rng(seed)
    noisy = truth + NOISE * random.standard_normal(truth.shape)
    known = RECORDS + spread * random.standard_normal(CODES)
    return next(labels_of_codes((0, 1), noisy, known, np.full(CODES, spread), NOISE), None)


def inside(zeros: Iterable[StructuralZero], truth: np.ndarray) -> np.ndarray:
    """Records in each place."""
    return np.array([truth[zero.left.numpy()][:, zero.right.numpy()].sum() for zero in zeros])


def barred(zeros: Iterable[StructuralZero]) -> np.ndarray:
    """Bool [codes, labels]."""
    every = np.zeros((CODES, LABELS), dtype=bool)
    for zero in zeros:
        every |= zero.left.numpy()[:, None] & zero.right.numpy()
    return every


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("spread", [0.0, NOISE / 2.0])
def test_rare_codes_have_the_label_of_their_neighbours(seed, spread):
    found = rule(RULE, seed, spread)
    assert found.apart.mean() > 0.75  # of what could be excluded at best: eleven of twelve
    assert RULE[found.apart].sum() < 0.05 * RECORDS.sum()
    alone = np.random.default_rng(seed).permutation(CODES)  # codes that tell nothing of neighbours
    scattered = rule(RULE[alone], seed, spread)
    assert scattered is None or scattered.apart.mean() < found.apart.mean()


def test_labels_in_the_order_of_codes_are_surer():
    other = RULE[:, np.random.default_rng(1).permutation(LABELS)]
    in_order, in_none = (
        np.mean([rule(truth, seed).belongs[truth > 0.0].mean() for seed in range(5)])
        for truth in (RULE, other)
    )
    assert in_order > in_none + 0.01


@pytest.mark.parametrize("seed", range(5))
def test_labels_that_do_not_follow_are_not_asked_about(seed):
    assert rule(ALONE, seed) is None
    assert rule(0.5 * RULE + 0.5 * ALONE, seed) is None


def test_a_second_look_tells_which_label_a_code_has():
    before, after, noise = [], [], NOISE / 2.0
    for seed in range(5):
        found = rule(RULE, seed)
        counts = 0.7 * inside(found.asked, RULE)
        counts += noise * np.random.default_rng(seed).standard_normal(len(counts))
        kept = barred(found.kept(counts, noise, np.full(len(counts), 0.7)))
        assert np.median((~kept).sum(axis=1)) == 1  # a label a code
        before.append(RULE[np.arange(CODES), found.belongs.argmax(axis=1)].sum())
        after.append(RULE[~kept].sum())
    assert np.mean(before) < np.mean(after) > 0.985 * RECORDS.sum()


def test_what_others_were_merged_into_goes_with_any_label():
    truth, merged = RULE.copy(), CODES // 2
    truth[merged] = 6.0 * RECORDS[merged] * RULE.sum(axis=0) / RECORDS.sum()
    for seed in range(5):
        random = np.random.default_rng(seed)
        noisy = truth + NOISE * random.standard_normal(truth.shape)
        known = (0, 1), noisy, truth.sum(axis=1), np.zeros(CODES), NOISE
        found = next(labels_of_codes(*known))
        counts = inside(found.asked, truth) + 5.0 * random.standard_normal(len(found.asked))
        kept = barred(found.kept(counts, 5.0, np.ones(len(counts))))
        assert not kept[merged].any() and kept[:merged].any(axis=1).all()


def test_only_labels_without_many_strays_are_believed():
    found = rule(RULE, 1)
    counts = inside(found.asked, RULE)
    counts[:LABELS:2] = 0.3 * RULE.sum(axis=0)[::2]  # each label's codes come before single ones
    kept = barred(found.kept(counts, 5.0, np.ones(len(counts))))
    assert (kept | ~found.apart)[:, 1::2].all() and not (kept & found.apart)[:, ::2].any()


def test_codes_next_to_a_labels_own_decide_nothing():
    """A few of a neighbour's records are there where rare codes moved to the nearest."""
    found = rule(RULE, 2)
    ends = np.flatnonzero(np.diff(OWN))
    shared = RULE.copy()
    shared[ends, OWN[ends + 1]] = 0.5 * RECORDS[ends]
    kept = barred(found.kept(inside(found.asked, shared), 5.0, np.ones(len(found.asked))))
    assert kept[ends, OWN[ends + 1]].mean() > 0.5 and not (kept & (RULE > 0.0)).any()
