"""Negative controls for P3GM: the printed DP-EM and its like fail where the honest ones pass."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from core.privacy.mechanisms.mixture import Mixture, MixtureStep
from core.privacy.mechanisms.moments import Moments
from tests.mutants import broken_p3gm as broken
from tests.privacy import toys
from tests.privacy.harness import (
    Caught,
    check_additive,
    check_isolation,
    check_sensitivity,
)

D, R = toys.WIDTH, 2.0
ROWS, OTHER = toys.random_table(6, 1), toys.random_table(6, 2)
FAR = toys.table(np.full((6, D), 50.0))
LONELY = toys.table(np.vstack([np.zeros((5, D)), np.full((1, D), 1.1)]))  # one record apart
APART = Mixture(
    torch.tensor([0.5, 0.5]).double(),
    torch.stack([torch.zeros(D), torch.full((D,), 1.1)]).double(),
    torch.full((2, D), 0.05).double(),
)


def sensitivity(mechanism):
    for rows in (ROWS, FAR, LONELY):
        check_sensitivity(mechanism, rows)


def isolation(mechanism):
    check_isolation(mechanism, ROWS, OTHER)
    check_additive(mechanism, ROWS, OTHER)


def em(kind):
    return kind(view=toys.values_of, current=APART, radius=R, scales=(1.0, 1.0, 1.0))


def pca(kind):
    return kind(view=toys.values_of, width=D, radius=R, mean_weight=1.0)


@pytest.mark.parametrize(
    ("mutant", "check"),
    [
        (em(broken.PrintedEm), sensitivity),
        (em(broken.PrintedEm), isolation),
        (em(broken.StaleResponsibilities), isolation),
        (em(broken.UnclippedEm), sensitivity),
        (em(broken.EmForgetsSquares), sensitivity),
        (pca(broken.PcaForgetsSquares), sensitivity),
        (pca(broken.UnclippedPca), sensitivity),
        (pca(broken.WithoutRootTwo), sensitivity),
        (pca(broken.CentredOnTheMean), isolation),
    ],
    ids=lambda x: type(x).__name__ if hasattr(x, "noise") else x.__name__,
)
def test_a_broken_mechanism_is_caught(mutant, check):
    with pytest.raises(Caught):
        check(mutant)


@pytest.mark.parametrize("check", [sensitivity, isolation])
@pytest.mark.parametrize("honest", [em(MixtureStep), pca(Moments)], ids=["em", "pca"])
def test_the_honest_twins_pass(honest, check):
    check(honest)


def test_the_printed_em_breaks_where_a_group_is_small():
    """One record of a group of one moves its mean by its whole distance from nothing."""
    printed = em(broken.PrintedEm)
    with pytest.raises(Caught, match="moves the statistic by"):
        check_sensitivity(printed, LONELY)
