"""Columns that follow from another one, by noisy counts of both."""

from __future__ import annotations

import numpy as np
import torch

from core.models.steps.counting.counts import PairTarget
from core.models.steps.counting.relations import determined
from tests.models.scan_focus.test_scan_focus import listed


def follow(truth, noise: float, released=None, taken: int | None = None) -> list[tuple[int, int]]:
    """What is made of one pair's released shares, [1, a, b]; its columns' shares are known."""
    released = truth if released is None else released
    scales = [listed(size) for size in truth.shape[1:]]
    shares = [truth.sum(axis=axis)[0] for axis in (2, 1)]
    found = determined([PairTarget((0, 1), torch.tensor(released), noise)], scales, shares, taken)
    return [(rule.source, rule.result) for rule in found]


def test_only_an_exact_dependence_of_columns_is_found():
    joint = np.zeros((1, 6, 3))
    joint[0, np.arange(6), np.arange(6) % 3] = 1.0 / 6.0

    def rules(broken_share: float, noise: float) -> list[tuple[int, int]]:
        return follow((1 - broken_share) * joint + broken_share / 18.0, noise)

    assert rules(0.0, 1e-3) == [(0, 1)]
    assert rules(0.1, 1e-3) == []  # real rows break it
    assert rules(0.0, 0.02) == []  # nobody can know
    nearly = 0.04 / (2.0 / 3.0)  # of the rows spread over all cells, a third keep the rule
    assert rules(nearly, 1e-4) == []  # 4 % break it
    assert rules(nearly, 5e-3) == [(0, 1)]  # as far as 1.2 % of noise can tell, 3 %
    noise = 0.05 * np.random.default_rng(2).standard_normal((1, 6, 3))  # has largest cells too
    assert follow(np.full((1, 6, 3), 1.0 / 18.0), 0.05, noise + 1.0 / 18.0) == []
    assert follow(joint, 1e-3, taken=1) == []
    rarely = np.zeros((1, 6, 3))  # nine in ten have one value, so that two in a hundred are a fifth
    rarely[0, :, 0], rarely[0, 5, 0], rarely[0, 5, 1:] = 0.9 / 5, 0.02, (0.08, 0.0)
    assert follow(rarely, 1e-4) == []
    rarely[0, 5, :2] = 0.002, 0.098
    assert follow(rarely, 1e-4) == [(0, 1)]


def test_a_rule_is_found_by_the_few_records_that_tell_of_it():
    """Eight in ten have one label; a rule that a quarter of the others break is none."""
    sizes, results = np.array([0.82, 0.07, 0.06, 0.05]), np.array([0, 1, 2, 2])
    exact, noise = np.zeros((1, 4, 3)), 0.008
    exact[0, np.arange(4), results] = sizes
    loose = exact.copy()
    loose[0, 1:] = 0.75 * exact[0, 1:] + 0.25 * np.eye(3)[0] * sizes[1:, None]

    def found(joint: np.ndarray) -> int:
        draws = (np.random.default_rng(i).normal(0.0, noise, joint.shape) for i in range(100))
        return sum((0, 1) in follow(joint, noise, joint + draw) for draw in draws)

    assert found(exact) > 60 and found(loose) < 5


def test_an_exact_rule_is_found_despite_noise_on_rare_labels():
    """Forty labels of which a fifth of records have ones too rare to be told from noise."""
    rng, noise = np.random.default_rng(3), 0.0036
    sizes = np.sort(rng.dirichlet(np.full(40, 8.0)))
    joint, alone = np.zeros((1, 40, 8)), np.zeros((1, 40, 8))
    joint[0, np.arange(40), np.arange(40) % 8] = sizes
    alone[0] = sizes[:, None] / 8.0
    assert 0.05 < sizes[sizes < 4 * noise].sum() < 0.25
    draws = noise * rng.standard_normal((20, 1, 40, 8))
    assert sum(follow(joint, noise, joint + draw) == [(0, 1)] for draw in draws) >= 19
    assert not any(follow(alone, noise, alone + draw) for draw in draws)


def test_a_label_that_breaks_a_rule_often_is_seen_among_others():
    """Together they break it in three of a hundred records, one of them in a tenth of its own."""
    sizes, results, noise = np.array([0.48, 0.27, 0.25]), np.array([0, 1, 1]), 0.004
    exact = np.zeros((1, 3, 2))
    exact[0, np.arange(3), results] = sizes
    loose = exact.copy()
    loose[0, 1] = 0.028, 0.242

    def found(joint: np.ndarray) -> int:
        draws = (np.random.default_rng(i).normal(0.0, noise, joint.shape) for i in range(100))
        return sum((0, 1) in follow(joint, noise, joint + draw) for draw in draws)

    assert found(exact) > 90 and found(loose) < 10
