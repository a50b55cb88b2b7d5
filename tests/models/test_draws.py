"""Indices drawn by shares: as often as the shares say, and never where a share is nothing."""

from __future__ import annotations

import pytest
import torch
from scipy.stats import chisquare

from core.models.steps.training.column_bins import one_of_each

SHARES = torch.tensor([0.0, 0.5, 0.3, 0.0, 0.15, 0.05, 0.0])


def test_indices_come_as_often_as_their_shares_say():
    drawn = one_of_each(SHARES.repeat(40_000, 1), torch.Generator().manual_seed(1))
    counts = torch.bincount(drawn, minlength=len(SHARES))
    held = SHARES > 0
    assert counts[~held].sum() == 0
    assert chisquare(counts[held], SHARES[held] * 40_000).pvalue > 1e-3
    # the statistic sees a share that is two hundredths off
    assert chisquare(counts[held], torch.tensor([0.48, 0.32, 0.15, 0.05]) * 40_000).pvalue < 1e-3


@pytest.mark.parametrize("total", [1.0, 0.7, 1.9999999, 3e-5])
@pytest.mark.parametrize(("uniform", "index"), [(0.0, 1), (1.0 - 2.0**-24, 5)])
def test_no_uniform_number_ends_at_a_share_of_nothing(monkeypatch, total, uniform, index):
    monkeypatch.setattr(torch, "rand", lambda shape, generator: torch.full(shape, uniform))
    drawn = one_of_each((SHARES * total).repeat(3, 1), torch.Generator())
    assert drawn.tolist() == [index] * 3
