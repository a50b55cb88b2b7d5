"""Counts in which a record weighs as much as a shift keeps of its like: Δ stays as it was."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch

from core.privacy.mechanisms import histograms, marginals
from core.privacy.mechanisms.histograms import Histograms, Weight, weighted
from core.privacy.mechanisms.marginals import Marginals
from tests.lmdp.worlds import CODEC, coded, shifted_people
from tests.privacy.harness import Caught, check_promises, check_sensitivity, check_tight

SHOWN = ["pay", "debt"]
COUNTS = [Histograms, Marginals]
SHIFTED = shifted_people({"g": ("age", "ward")}, power=0.75, key=b"a secret of the tests")
SHIFT: Any = SHIFTED.transforms[0]


def counted(kind, weight: Weight | None = SHIFT.kept_share):
    return kind.of(CODEC, SHOWN, weight=weight)


def ones(n: int) -> torch.Tensor:
    return torch.ones(n, dtype=torch.float64)


@pytest.mark.parametrize("kind", COUNTS)
def test_weights_keep_the_sensitivity_and_it_is_reached(kind):
    mechanism = counted(kind)
    assert mechanism.sensitivity == counted(kind, None).sensitivity
    for seed in range(10):
        check_promises(mechanism, coded(8, seed), coded(8, seed + 100))
    many = coded(2000, 7)
    certain = np.flatnonzero(SHIFT.kept_share(many).numpy() == 1.0)
    check_tight(mechanism, many.take(certain[:2]))  # a record that the shift always keeps


@pytest.mark.parametrize("kind", COUNTS)
def test_a_record_left_out_moves_its_own_cells_by_its_own_weight(kind):
    """Left out of the table, not masked in place: what the others add must not change."""
    mechanism, whole = counted(kind), coded(60, 3)
    full, weights = mechanism.statistic(whole, ones(60)), SHIFT.kept_share(whole)
    for left_out in (0, 31, 59):
        rest = whole.take(np.delete(np.arange(60), left_out))
        moved = full - mechanism.statistic(rest, ones(59))
        cells = moved[moved.abs() > 1e-12]
        assert len(cells) == round(mechanism.sensitivity**2)
        assert torch.allclose(cells, weights[left_out].expand(len(cells)))
        assert float(torch.linalg.vector_norm(moved)) <= mechanism.sensitivity


@pytest.mark.parametrize("kind", COUNTS)
def test_whatever_a_weight_says_no_record_counts_more_than_once(kind):
    check_sensitivity(counted(kind, lambda rows: 3.0 * ones(len(rows))), coded(8, 1))


@pytest.mark.parametrize("kind", COUNTS)
def test_weights_without_a_cap_are_caught(kind, monkeypatch):
    def uncapped(rows, mask, weight):
        return mask.double() * weight(rows)

    monkeypatch.setattr(histograms, "weighted", uncapped)
    monkeypatch.setattr(marginals, "weighted", uncapped)
    with pytest.raises(Caught):
        check_sensitivity(counted(kind, lambda rows: 3.0 * ones(len(rows))), coded(8, 1))


@pytest.mark.parametrize("kind", COUNTS)
def test_weights_that_look_at_other_records_are_caught(kind):
    """As weights over the largest weight of the batch would."""

    def relative(rows):
        weights = SHIFT.kept_share(rows)
        return weights / weights.max()

    with pytest.raises(Caught):
        check_promises(counted(kind, relative), coded(8, 1), coded(8, 2))


def test_weights_of_a_persons_rows_add_up_to_one_at_most():
    rows = coded(50, 4)
    of_person = torch.full((50,), 1 / 50, dtype=torch.float64)
    assert float(weighted(rows.to("cpu"), of_person, SHIFT.kept_share).sum()) <= 1.0
    assert float(weighted(rows.to("cpu"), of_person, None).sum()) == pytest.approx(1.0)


def test_kept_share_depends_on_the_record_alone():
    rows = coded(300, 5)
    together = SHIFT.kept_share(rows)
    assert float(together.min()) > 0.0 and float(together.max()) <= 1.0
    alone = torch.cat([SHIFT.kept_share(rows.slice(i, i + 1)) for i in range(300)])
    assert torch.allclose(together, alone, rtol=1e-12)
    spread = float(together.std())
    assert math.isfinite(spread) and spread > 0.05  # it does weigh
