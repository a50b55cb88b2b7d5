"""What a mixture is held to: a pair in each class where it was counted so, else in all at once."""

from __future__ import annotations

import pytest
import torch

from core.encoding.codec import Codec
from core.models.scan_focus import pair_distance
from core.models.scan_focus.matching import MixtureMatcher, Targets
from core.models.scan_focus.mixture import LatentMixtures
from core.models.scan_focus.pair_distance import blocks_of, squared_distance
from core.models.steps.counting.counts import PairTarget
from core.models.steps.counting.design import Design
from core.models.steps.counting.scan import Scanned
from tests.models.scan_focus.test_pair_queries import with_class
from tests.models.scan_focus.test_scan_focus import flags

SIZES = (2, 2, 2)  # two columns and the class


def trained(shares: torch.Tensor, steps: int = 300) -> torch.Tensor:
    """What a mixture that saw one pair's shares makes of it in each class: [classes, 2, 2]."""
    pair = PairTarget((0, 1), shares, 0.01, alike=False)
    even = torch.full((6,), 0.5)
    targets = Targets(1000, even, torch.full((6,), 0.01), None, (), (pair,), (pair,))
    torch.manual_seed(0)
    mixture = LatentMixtures(
        torch.randn((1, 4, 16)),
        even.log(),
        torch.zeros((1, 6, 16)),
        anchored=(),
        sizes=SIZES,
        hidden=16,
    )
    design = Design.of(Codec(with_class(2)), 2)
    one = MixtureMatcher(mixture, targets, design, steps=steps, rate=0.02, seed=0, device="cpu")
    for _ in range(steps):
        one.step()
    with torch.no_grad():
        weights, shares = one.mixtures()
        first, second, classes = mixture.by_column(shares)
        return torch.einsum("mk,myk,mak,mbk->yab", weights, classes, first, second)


def test_a_pair_counted_together_is_matched_only_in_all_classes() -> None:
    apart = torch.tensor([[[0.25, 0.0], [0.0, 0.25]], [[0.125, 0.125], [0.125, 0.125]]])
    together = apart.sum(dim=0, keepdim=True)
    by_class, at_once = trained(apart), trained(together)
    torch.testing.assert_close(by_class, apart, atol=0.02, rtol=0.0)
    torch.testing.assert_close(at_once.sum(dim=0), together[0], atol=0.02, rtol=0.0)
    off = (at_once - apart).abs().max()
    assert off > 0.04  # it could not know


def test_its_loss_does_not_see_which_class_a_component_is_in() -> None:
    shares = torch.tensor([[[0.9, 0.2], [0.1, 0.8], [0.7, 0.4], [0.3, 0.6]]])
    within = torch.tensor([[[0.4, 0.2], [0.1, 0.3]]])
    moved = torch.stack([within[:, 0] - 0.05, within[:, 1] + 0.05], dim=1)
    losses = {}
    for count in (1, 2):
        pair = PairTarget((0, 1), torch.full((count, 2, 2), 0.25 / count), 0.01)
        blocks = blocks_of((pair,), (2, 2), 1000, "cpu")
        losses[count] = [float(squared_distance(shares, part, blocks)) for part in (within, moved)]
    assert losses[1][0] == pytest.approx(losses[1][1])
    assert losses[2][0] != pytest.approx(losses[2][1])


@pytest.mark.parametrize("alone", [0, 100])
def test_a_distance_and_its_gradient_are_those_of_each_pair(
    alone: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In one block or in several, pairs of all classes and of each, and one that nobody counted."""
    monkeypatch.setattr(pair_distance, "ALONE", alone)
    sizes, random = (3, 2, 4, 2), torch.Generator().manual_seed(2)
    shares = torch.rand((2, 11, 5), generator=random).requires_grad_()
    within = torch.rand((2, 2, 5), generator=random).requires_grad_()
    pairs = [
        PairTarget((a, b), torch.rand((classes, sizes[a], sizes[b]), generator=random), noise)
        for a, b, classes, noise in
        ((0, 1, 1, 0.1), (0, 3, 1, 0.2), (1, 2, 2, 0.3), (0, 2, 2, 0.1), (2, 3, 1, 0.5))
    ]  # fmt: skip
    blocks = blocks_of(pairs, sizes, 1000, "cpu")
    assert all((block.second is None) == bool(alone) for block in blocks)
    assert sum(block.counted for block in blocks) == 6 + 6 + 16 + 24 + 8
    columns, expected = shares.split(sizes, dim=1), torch.zeros(())
    for pair in pairs:
        weights = within if len(pair.shares) > 1 else within.sum(dim=1, keepdim=True)
        joint = torch.einsum("myk,mak,mbk->myab", weights, *(columns[i] for i in pair.columns))
        expected = expected + ((joint - pair.shares) / pair.noise).square().sum()
    found = squared_distance(shares, within, blocks)
    torch.testing.assert_close(found, expected)
    theirs = torch.autograd.grad(expected, (shares, within))
    torch.testing.assert_close(torch.autograd.grad(found, (shares, within)), theirs)


def test_related_pairs_follow_the_scan_without_counts() -> None:
    """Of thirty flags the scan shows that the first two are alike; nothing was counted."""
    design = Design.of(Codec(flags(30)), 2)
    signs = (torch.tensor([[1.0], [-1.0]]).repeat(1, design.signs),) * 30
    sums = [torch.zeros((1, design.signs, len(sets))).double() for sets in design.sets[:2]]
    sums[1][..., design.pairs.index((0, 1))] = 1.0
    even, alike = torch.full((60,), 0.5), []
    for related in ((), (design.pairs.index((0, 1)),)):
        targets = Targets(
            1000, even, torch.full((60,), 0.01), Scanned(sums, 0.01), signs, related=related
        )
        torch.manual_seed(0)
        mixture = LatentMixtures(
            torch.randn((1, 4, 16)), even.log(), torch.zeros((1, 60, 16)),
            anchored={0, 1}, sizes=(2,) * 30, hidden=16,
        )  # fmt: skip
        one = MixtureMatcher(mixture, targets, design, steps=300, rate=0.02, seed=0, device="cpu")
        for _ in range(300):
            one.step()
        with torch.no_grad():
            weights, shares = one.mixtures()
            first, second, *_ = mixture.by_column(shares)
            alike.append(float((weights * (first * second).sum(dim=1)).sum()))
    assert alike[0] == pytest.approx(0.5, abs=0.02) and alike[1] > 0.95
