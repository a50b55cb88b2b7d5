"""Sensitivity, zero-out and isolation of honest mechanisms, and the shared clip helper."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from core.privacy.mechanisms.additive import Mechanism, clip_rows
from tests.privacy import toys
from tests.privacy.harness import (
    check_promises,
    check_sensitivity,
    check_tight,
)

HONEST = [toys.ClippedSum(0.7), toys.waves(8), toys.Histogram()]
tables = arrays(np.float64, (6, toys.WIDTH), elements=st.floats(-1e6, 1e6))


@pytest.mark.parametrize("mechanism", HONEST, ids=lambda m: type(m).__name__)
@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    first=tables, second=tables, mask=arrays(np.float64, 6, elements=st.sampled_from([0.0, 1.0]))
)
def test_no_record_moves_more_than_the_sensitivity(
    mechanism: Mechanism, first: np.ndarray, second: np.ndarray, mask: np.ndarray
) -> None:
    rows, other = toys.table(first), toys.table(second)
    check_promises(mechanism, rows, other)
    check_sensitivity(mechanism, rows, torch.from_numpy(mask))


@pytest.mark.parametrize("mechanism", HONEST, ids=lambda m: type(m).__name__)
def test_an_extremal_record_reaches_the_sensitivity(mechanism: Mechanism) -> None:
    check_tight(mechanism, toys.table(np.full((2, toys.WIDTH), 50.0)))


@pytest.mark.parametrize("mechanism", HONEST, ids=lambda m: type(m).__name__)
def test_honest_mechanisms_match_the_protocol(mechanism: Mechanism) -> None:
    assert isinstance(mechanism, Mechanism)


@settings(max_examples=80, deadline=None, derandomize=True)
@given(
    x=arrays(np.float32, (5, 4), elements=st.floats(-(2.0**60), 2.0**60, width=32)),
    radius=st.floats(1e-3, 1e3),
)
def test_clipped_rows_lie_in_the_ball_and_keep_their_direction(
    x: np.ndarray, radius: float
) -> None:
    rows = torch.from_numpy(x)
    clipped = clip_rows(rows, radius)
    norms = clipped.double().norm(dim=1)
    assert bool((norms <= radius * (1 + 1e-6)).all())
    inside = rows.double().norm(dim=1) <= radius * (1 - 1e-6)
    assert torch.equal(clipped[inside], rows[inside])  # nothing to clip
    dots = (clipped.double() * rows.double()).sum(dim=1)
    lengths = norms * rows.double().norm(dim=1)
    assert torch.allclose(dots, lengths, rtol=1e-5, atol=1e-12)


def test_infinite_rows_become_zero_and_a_bad_radius_is_named() -> None:
    x = torch.tensor([[float("inf"), 1.0], [float("nan"), 0.0], [3.0, 4.0]])
    assert clip_rows(x, 1.0).tolist() == pytest.approx(
        torch.tensor([[0.0, 0.0], [0.0, 0.0], [0.6, 0.8]])
    )
    with pytest.raises(ValueError, match="-2"):
        clip_rows(x, -2.0)
