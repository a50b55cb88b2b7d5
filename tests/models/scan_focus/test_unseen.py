"""What noise may hide is looked for in released counts, and truths of replicas hold it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from core.models.scan_focus.unseen import _left_possible, _positive, _scores, unseen, with_unseen
from core.models.steps.counting.counts import PairTarget

ROWS = 20_000
SHARES = (np.array([0.5, 0.3, 0.15, 0.05]), np.array([0.7, 0.3]))


def counted(gap: float, noise: float, seed: int = 0) -> tuple[PairTarget, ...]:
    """A pair whose last label goes with the last of the other more often than alone."""
    joint = np.outer(*SHARES)
    joint[3] += [-gap, gap]
    joint += np.random.default_rng(seed).normal(0.0, noise, joint.shape)
    return (PairTarget((0, 1), torch.from_numpy(joint)[None].float(), noise),)


def known(noise: float) -> Any:
    """Releases of columns, which the mixture has learnt half way into their noise."""
    scales = [SimpleNamespace(size=len(share), line=0) for share in SHARES]
    random = np.random.default_rng(1)
    counts = [ROWS * (share + noise * 0.7 * random.normal(size=len(share))) for share in SHARES]
    return SimpleNamespace(
        plan=SimpleNamespace(budget=SimpleNamespace(private=True)), scanned=object(),
        scales=scales, table=SimpleNamespace(n=ROWS), within={}, column_counts=counts,
        column_noise=[np.full(len(share), noise * ROWS) for share in SHARES],
        design=SimpleNamespace(condition=None),
        codec=SimpleNamespace(domain=SimpleNamespace(roles={})),
    )  # fmt: skip


def learnt() -> tuple[torch.Tensor, torch.Tensor]:
    """A mixture in which columns are independent: noise hid the rest."""
    return torch.ones(1), torch.from_numpy(np.concatenate(SHARES)).float()[None]


def drawn(weights: dict[str, torch.Tensor], seed: int) -> torch.Tensor:
    random = torch.Generator().manual_seed(seed)
    share, parts = learnt()[0], torch.split(learnt()[1], [4, 2], dim=1)
    component = torch.zeros(ROWS, dtype=torch.int64)
    cells = torch.stack(
        [torch.multinomial(part[0], ROWS, True, generator=random) for part in parts]
    )
    return with_unseen(cells, component, parts, {**weights, "weights": share}, random)


def rates(weights: dict[str, torch.Tensor], seeds: int = 30) -> np.ndarray:
    """Of the other column's last label, among the rare label and the rest, less that of all."""
    found = []
    for seed in range(seeds):
        cells = drawn(weights, seed)
        last = (cells[1] == 1).float()
        found.append([float(last[cells[0] == k].mean() - last.mean()) for k in (3, 0)])
    return np.array(found)


def test_scores_are_orthonormal_under_the_shares() -> None:
    share = np.array([0.1, 0.2, 0.1, 0.2, 0.1, 0.1, 0.05, 0.15])
    scores = _scores(share, line=6, most=16, n=10**6)
    assert scores.shape == (8, 5)  # three waves, two labels
    assert share @ scores == pytest.approx(0.0, abs=1e-9)
    assert (scores * share[:, None]).T @ scores == pytest.approx(np.eye(5), abs=1e-9)
    assert _scores(np.array([0.6, 0.4]), line=0, most=16, n=10**6).shape == (2, 1)
    assert _scores(share, line=0, most=3, n=10**6).shape == (8, 3)


def test_truths_hold_as_much_dependence_as_noise_may_hide() -> None:
    """A label of 5 % of rows, of which noise of a fiftieth as much hides little, or nearly all."""
    little, much = (
        rates(unseen(known(noise), counted(0.0, noise), learnt())) for noise in (2e-4, 4e-3)
    )
    chance = np.sqrt(0.21 / (0.05 * ROWS))
    assert np.std(little[:, 0]) < 1.5 * chance
    assert np.std(much[:, 0]) > 1.5 * chance
    assert np.std(much[:, 1]) < 0.5 * np.std(much[:, 0])  # frequent labels are known better


def test_what_the_mixture_lacks_is_in_every_truth() -> None:
    found = rates(unseen(known(5e-4), counted(0.01, 5e-4), learnt()), seeds=10)
    assert found[:, 0].mean() == pytest.approx(0.01 / 0.05, abs=0.05)


def test_columns_differ_as_far_as_their_noise_leaves_possible() -> None:
    weights = unseen(known(0.01), counted(0.0, 1e-4), learnt())
    share = [float((drawn(weights, seed)[1] == 1).float().mean()) for seed in range(30)]
    assert 0.005 < np.std(share) < 0.02 and np.mean(share) == pytest.approx(0.3, abs=0.01)


def test_without_noise_nothing_is_hidden() -> None:
    silent = known(0.0)
    silent.plan.budget.private = False
    assert unseen(silent, counted(0.0, 0.0), learnt()) == {}
    cells = torch.zeros((2, 5), dtype=torch.int64)
    assert with_unseen(cells, cells[0], (), {}, torch.Generator()) is cells


def test_mean_squares_of_coefficients_hold_the_truth() -> None:
    """Whatever was hidden, the mean square left possible is hardly ever below what it was."""
    random, noise = np.random.default_rng(0), 0.1
    for hidden in (0.0, 0.05, 0.3):
        truth = random.normal(0.0, hidden, (500, 6))
        found = truth + random.normal(0.0, noise, truth.shape)
        each = [_left_possible(one[None], np.full((1, 6), noise**2), 0.0) for one in found]
        left = np.mean([np.square(mean) + deviation**2 for mean, deviation in each])
        assert np.square(truth).mean() < left < np.square(truth).mean() + 1.5 * noise**2


def test_chance_of_the_rows_is_not_hidden_twice() -> None:
    """Released counts hold it, and drawing rows adds it: together what releases leave possible."""
    found, noise, chance = np.zeros((1, 6)), np.full((1, 6), 0.01), 1e-3
    alone, beside = (_left_possible(found, noise, c)[1] for c in (0.0, chance))
    assert beside**2 + chance == pytest.approx(alone**2)
    assert (_left_possible(found, noise, 1.0)[1] == 0.0).all()


def test_positive_numbers_keep_their_mean_and_stay_empty() -> None:
    mean = torch.full((20_000,), 0.4)
    drawn = _positive(mean, torch.ones(20_000), torch.Generator().manual_seed(0))
    assert float(drawn.mean()) == pytest.approx(0.4, abs=0.03)
    assert float(drawn.std()) == pytest.approx(1.0, abs=0.1)
    assert float((drawn < 0.01).float().mean()) > 0.4
