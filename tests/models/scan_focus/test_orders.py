"""Columns of numbers of which one stays below another are found by counts of their pair."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from core.models.steps.counting.scales import ColumnScale
from core.models.steps.counting.zeros.orders import Order, orders
from core.models.steps.training.column_bins import ColumnBins
from core.schema.column import Column, Kind
from tests.models.tables import coded

N, NOISE, ASKED = 20_000, 60.0, 20.0
NONE = np.zeros(0)


def listed(*labels: str) -> ColumnScale:
    """A list of labels."""
    column, size = Column(name="n", kind=Kind.CATEGORY, categories=labels), len(labels)
    block = replace(coded(4)[0].blocks[0], column=column, number=None, states=labels)
    each = np.ones(size)
    return ColumnScale(ColumnBins(block, NONE, 0.0), np.arange(size), 0, each, each, NONE)


CHILDREN, PEOPLE = listed(*"01234", "N"), listed(*"23456", "N")
SHARES = np.array([0.5, 0.2, 0.15, 0.1, 0.02, 0.03]), np.array([0.3, 0.25, 0.2, 0.12, 0.08, 0.05])


def joint(strays: float) -> np.ndarray:
    """Records of both if they were independent, but for children that are no fewer than people.

    Args:
      strays: share of these that are there all the same.
    """
    children, people = np.array([0, 1, 2, 3, 4, np.nan]), np.array([2, 3, 4, 5, 6, np.nan])
    beyond = children[:, None] >= people
    each = N * np.outer(*SHARES)
    return np.where(beyond, strays * each, each)


def found(records: np.ndarray, seed: int) -> Order | None:
    noisy = records + NOISE * np.random.default_rng(seed).standard_normal(records.shape)
    shares = records.sum(axis=1) / records.sum(), records.sum(axis=0) / records.sum()
    return next(orders((0, 1), (CHILDREN, PEOPLE), noisy, shares, N, NOISE), None)


def kept(records: np.ndarray, seed: int) -> bool:
    """Whether the order is kept, if each record adds a half to what it lies in."""
    order = found(records, seed)
    if order is None:
        return False
    held = [records[zero.left.numpy()][:, zero.right.numpy()].sum() for zero in order.asked]
    noise = ASKED * np.random.default_rng(seed).standard_normal(len(held))
    adds = np.full(len(held), 0.5)
    return bool(list(order.kept(adds * np.array(held) + noise, ASKED, adds)))


def test_what_is_not_below_is_asked_of_each_cell() -> None:
    order = found(joint(0.0), 1)
    assert order is not None
    barred = np.zeros((6, 6), dtype=bool)
    for zero in order.asked:
        barred |= zero.left.numpy()[:, None] & zero.right.numpy()
    assert np.array_equal(barred, joint(0.0) == 0.0)
    known = joint(0.0) / joint(0.0).sum()
    alone = N * np.outer(known.sum(axis=1), known.sum(axis=0))
    assert order.in_parts == pytest.approx((alone * barred).sum(axis=0)[:3])


def test_an_order_is_found_unless_some_records_break_it() -> None:
    assert np.mean([kept(joint(0.0), seed) for seed in range(20)]) > 0.7
    assert np.mean([kept(joint(0.3), seed) for seed in range(20)]) < 0.1
    assert not any(kept(joint(1.0), seed) for seed in range(20))


def test_ties_are_barred_where_counts_lack_them_too() -> None:
    ties = joint(0.0)
    for child, person in ((2, 0), (3, 1), (4, 2)):
        ties[child, person] = N * SHARES[0][child] * SHARES[1][person]
    order = found(ties, 2)
    assert order is not None
    held = sum(ties[zero.left.numpy()][:, zero.right.numpy()].sum() for zero in order.asked)
    assert held == 0.0, "only what is above"


def test_words_have_no_order() -> None:
    words = listed(*"abcdef")
    table = np.tril(np.full((6, 6), 500.0))
    shares = table.sum(axis=1) / table.sum(), table.sum(axis=0) / table.sum()
    assert next(orders((0, 1), (words, words), table, shares, N, NOISE), None) is None


def test_cells_of_a_line_are_below_where_all_of_their_values_are() -> None:
    """Ages of first work in cells of five years, and ages today."""
    number = next(block for block in coded(4)[0].blocks if block.number is not None)
    column = Column(name="age", kind=Kind.INTEGER, low=0, high=19, step=1, dtype="int64")
    block = replace(number, column=column, states=("value",))
    grid = ColumnBins(block, np.arange(20) / 19.0, 0.0)
    along, each = np.arange(20) // 5, np.full(4, 5.0)
    ages = ColumnScale(grid, along, 4, each, each, (np.arange(20.0) + 1.0) / 5.0)
    table = np.triu(np.full((4, 4), 1250.0))
    shares = table.sum(axis=1) / table.sum(), table.sum(axis=0) / table.sum()
    order = next(orders((0, 1), (ages, ages), table, shares, int(table.sum()), NOISE))
    assert [zero.right.nonzero().item() for zero in order.asked] == [0, 1, 2]
    for cell, zero in enumerate(order.asked):
        assert zero.left.tolist() == [age > 5 * cell + 4 for age in range(20)]
