"""Rows exchange cells so that counts of pairs come nearer, and nothing else of them changes."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from core.models.scan_focus import balancing
from core.models.scan_focus.balancing import balanced, even_totals

SIZES, ROWS, COMPONENTS = (3, 4, 5, 6), 4_000, 30


def drawn(seed: int, rows: int = ROWS):
    """Rows of a mixture of products, as they come: cells, components, weights and shares."""
    random = torch.Generator().manual_seed(seed)
    shares = [torch.softmax(2 * torch.randn((COMPONENTS, k), generator=random), 1) for k in SIZES]
    weights = torch.softmax(torch.randn(COMPONENTS, generator=random), 0)
    component = torch.multinomial(weights, rows, True, generator=random)
    cells = [torch.multinomial(one[component], 1, generator=random)[:, 0] for one in shares]
    return torch.stack(cells), component, weights, shares, random


def distance(cells, weights, shares, group: int | None) -> float:
    """Mean distance of pairs' counts to those expected, within each label of a group or of all."""
    apart, far = [torch.ones(cells.shape[1], dtype=torch.bool)], []
    given = [weights]
    if group is not None:
        apart = [cells[group] == label for label in range(SIZES[group])]
        given = [weights * shares[group][:, label] for label in range(SIZES[group])]
    for rows, weight in zip(apart, given, strict=True):
        for a in range(len(SIZES)):
            for b in range(a + 1, len(SIZES)):
                if group not in (a, b):
                    counts = np.zeros((SIZES[a], SIZES[b]))
                    np.add.at(counts, (cells[a, rows].numpy(), cells[b, rows].numpy()), 1)
                    expected = ((weight[:, None] * shares[a]).t() @ shares[b]).numpy()
                    far.append(np.abs(counts / cells.shape[1] - expected).sum())
    return float(np.sum(far))


@pytest.mark.parametrize("group", [None, 0], ids=["table", "groups"])
def test_counts_of_pairs_come_nearer(group):
    for seed in range(5):
        cells, component, weights, shares, random = drawn(seed)
        near = balanced(cells, component, weights, shares, group, random)
        before, after = (distance(one, weights, shares, group) for one in (cells, near))
        assert after < 0.8 * before


def test_each_component_keeps_its_cells_of_every_column():
    cells, component, weights, shares, random = drawn(3)
    near = balanced(cells, component, weights, shares, 0, random)
    assert not torch.equal(near, cells) and torch.equal(near[0], cells[0])
    for column, size in enumerate(SIZES):
        before, after = (
            torch.bincount(component * size + one[column], minlength=COMPONENTS * size)
            for one in (cells, near)
        )
        assert torch.equal(before, after)


def test_gaps_stay_those_of_the_rows(monkeypatch):
    """What exchanges keep of the counts is what counting anew gives."""
    kept = []
    original = balancing._Gaps

    class Kept(original):  # type: ignore[misc, valid-type]
        def __init__(self, *given):
            super().__init__(*given)
            kept.append(self)

    monkeypatch.setattr(balancing, "_Gaps", Kept)
    cells, component, weights, shares, random = drawn(4)
    near = balanced(cells, component, weights, shares, 1, random)
    again = original(near, weights, shares, 1)
    torch.testing.assert_close(kept[0]._gaps, again._gaps, atol=1e-2, rtol=0)


def test_few_rows_and_wide_tables_are_left_as_they_are(monkeypatch):
    cells, component, weights, shares, random = drawn(5, rows=balancing.FEWEST_ROWS - 1)
    assert balanced(cells, component, weights, shares, None, random) is cells
    cells, component, weights, shares, random = drawn(5)
    monkeypatch.setattr(balancing, "MOST_COUNTS", 100)
    assert balanced(cells, component, weights, shares, None, random) is cells
    monkeypatch.setattr(balancing, "MOST_COUNTS", 1_000)
    monkeypatch.setattr(balancing, "MOST_LOOKUPS", ROWS)
    assert balanced(cells, component, weights, shares, None, random) is cells


def test_one_column_and_two_with_a_group_have_hardly_a_pair():
    cells, component, weights, shares, random = drawn(4)
    alone = balanced(cells[:1], component, weights, shares[:1], None, random)
    assert torch.equal(alone, cells[:1])
    two = balanced(cells[:2], component, weights, shares[:2], 0, random)
    assert two.shape == (2, ROWS) and not torch.equal(two, cells[:2])


def test_columns_have_the_totals_of_the_mixture():
    """With two rows a component, draws that are even within each are hardly so in all."""
    cells, component, weights, shares, random = drawn(6)
    even = even_totals(cells, component, weights, shares, random)
    for before, after, share in zip(cells, even, shares, strict=True):
        expected = ROWS * weights @ share
        gaps = [torch.bincount(one, minlength=len(expected)) - expected for one in (before, after)]
        assert float(gaps[1].abs().max()) < 1.1 < float(gaps[0].abs().max())


def test_rows_move_where_their_component_allows_it():
    """Even totals leave to each component its own shares, and nothing where those are zero."""
    first = torch.tensor([[0.5, 0.5, 0.0], [0.2, 0.0, 0.8]])
    weights, rounds, seen = torch.tensor([0.5, 0.5]), 200, torch.zeros((2, 3))
    for seed in range(rounds):
        random = torch.Generator().manual_seed(seed)
        component = torch.multinomial(weights, 100, True, generator=random)
        cells = torch.multinomial(first[component], 1, generator=random)[:, 0]
        (even,) = even_totals(cells[None], component, weights, [first], random)
        seen += torch.bincount(component * 3 + even, minlength=6).reshape(2, 3) / rounds / 50
    torch.testing.assert_close(seen, first, atol=0.02, rtol=0)
