"""Which records are kept out: a matter of places alone."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.encoding.holdout import held_out, training_count


@given(n=st.integers(1, 3000), share=st.floats(0, 0.5))
def test_the_split_adds_up_and_leaves_something_to_train_on(n, share):
    kept = held_out(n, share)
    assert len(kept) == n
    assert (~kept).sum() == training_count(n, share) >= 1
    assert abs(kept.sum() - n * share) <= 1
    assert (held_out(n, share) == kept).all()


def test_a_larger_share_keeps_the_same_records_and_more():
    assert (held_out(1000, 0.2) >= held_out(1000, 0.1)).all()


@pytest.mark.parametrize("period", [2, 5, 10])
def test_neither_a_sorted_nor_a_periodic_file_is_split_unevenly(period):
    kept = np.flatnonzero(held_out(20_000, 0.2))
    assert abs(kept.mean() / 20_000 - 0.5) < 0.02
    counts = np.bincount(kept % period, minlength=period)
    assert counts.max() / counts.min() < 1.15
