"""Which label rare codes of a long list belong to is told by the list, and asked of the records."""

from __future__ import annotations

import numpy as np
import pytest

from core.models.steps.counting.ordered_codes import LabelsOfCodes, labels_of_codes

CODES, LABELS, NOISE = 60, 12, 80.0
RANDOM = np.random.default_rng(3)
RECORDS = 250.0 * RANDOM.dirichlet(np.full(CODES, 8.0)) * CODES  # about three times the noise each
OWN = np.repeat(np.arange(LABELS), CODES // LABELS)
RULE = np.where(OWN[:, None] == np.arange(LABELS), RECORDS[:, None], 0.0)
ALONE = np.outer(RECORDS, RULE.sum(axis=0) / RECORDS.sum())


def rule(truth: np.ndarray, seed: int) -> LabelsOfCodes | None:
    noisy = truth + NOISE * np.random.default_rng(seed).standard_normal(truth.shape)
    return next(labels_of_codes((0, 1), noisy, RECORDS, NOISE), None)


def inside(found: LabelsOfCodes, truth: np.ndarray) -> np.ndarray:
    """Records in each place that is asked about."""
    return np.array([truth[zero.left.numpy()][:, zero.right.numpy()].sum() for zero in found.asked])


@pytest.mark.parametrize("seed", range(5))
def test_rare_codes_have_the_label_of_their_neighbours(seed):
    found = rule(RULE, seed)
    apart = np.stack([zero.left.numpy() for zero in found.asked], axis=1)
    assert apart.mean() > 0.75  # of what could be excluded at best: eleven of twelve
    assert inside(found, RULE).sum() < 0.05 * RECORDS.sum()
    alone = np.random.default_rng(seed).permutation(CODES)  # codes that tell nothing of neighbours
    scattered = rule(RULE[alone], seed)
    assert scattered is None or inside(scattered, RULE[alone]).sum() > inside(found, RULE).sum()


@pytest.mark.parametrize("seed", range(5))
def test_labels_that_do_not_follow_are_not_asked_about(seed):
    assert rule(ALONE, seed) is None
    assert rule(0.5 * RULE + 0.5 * ALONE, seed) is None


def test_only_labels_without_many_strays_are_believed():
    found = rule(RULE, 1)
    counts = 0.3 * found.records * (np.arange(len(found.asked)) % 2)
    kept = list(found.kept(counts, 5.0))
    assert kept == list(found.asked[::2])
    assert not list(found.kept(0.5 * found.records, 5.0))
