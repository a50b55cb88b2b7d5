"""Matching released counts: mixtures descend on squared distances in units of their noise.

Everything here works on releases and on the mixtures' own marginals. No record is in reach, so any
number of steps costs no privacy.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from core.models.scan_focus.mixture import LatentMixtures
from core.models.scan_focus.pair_distance import (
    CELLS_A_STEP,
    PairBlock,
    blocks_of,
    squared_distance,
)
from core.models.steps.counting.counts import LEAST_NOISE, PairTarget
from core.models.steps.counting.design import Design
from core.models.steps.counting.scan import Scanned
from core.models.steps.training.adam import Adam, OneCycle

AT_ONCE = 32  # pairs of means that one product of all makes in the time of one by itself
APART = 0.03  # weight of a pair that is not related; at 1 its signs are as exact as chance's
COLUMNS_A_STEP = 300  # columns whose pairs are kept apart in one step


@dataclass(frozen=True)
class SetTarget:
    """Released shares of the groups of a larger set: float32 [classes, groups of each column].

    Attributes:
      groups: per column, int64 [cells], the group of each cell.
      noise: standard deviation of a share.
    """

    columns: tuple[int, ...]
    groups: tuple[Tensor, ...]
    shares: Tensor
    noise: float


@dataclass(frozen=True)
class Targets:
    """All that was released, as shares of n.

    Attributes:
      columns: float32 [cells], shares of every column's cells.
      columns_noise: float32 [cells], their standard deviations.
      scanned: of singles, pairs and larger sets; None where a table has one column.
      signs: float32 [cells, G] a column, of the scan.
      counted: pairs as they were released; `noisy`, the same within each class where they are
        alike in all, and nothing in structural zeros; `pairs`, these with noise shrunk away.
      related: of the pairs of the design, those that were counted or that the scan shows clearly.
    """

    n: int
    columns: Tensor
    columns_noise: Tensor
    scanned: Scanned | None
    signs: tuple[Tensor, ...]
    counted: tuple[PairTarget, ...] = ()
    pairs: tuple[PairTarget, ...] = ()
    noisy: tuple[PairTarget, ...] = ()
    sets: tuple[SetTarget, ...] = ()
    related: tuple[int, ...] = ()


@dataclass
class _Gaps:
    """Mean squared distances of the last step, in units of the noise."""

    columns: Tensor = field(default_factory=lambda: torch.zeros(()))
    pairs: Tensor = field(default_factory=lambda: torch.zeros(()))
    sets: Tensor = field(default_factory=lambda: torch.zeros(()))


def set_shares(target: SetTarget, within: Tensor, shares: Sequence[Tensor]) -> Tensor:
    """What mixtures have of a larger set's groups: [mixtures, classes and first columns, others].

    Half of the columns lie along each axis, so that components need not hold all groups at once.

    Args:
      within: [mixtures, classes, components], weights within each class.
      shares: [mixtures, cells, components] of every column.
    """
    sides = [within, torch.ones_like(within[:, :1])]
    for i, (column, groups) in enumerate(zip(target.columns, target.groups, strict=True)):
        part = torch.nn.functional.one_hot(groups).to(within).t() @ shares[column]
        side = 2 * i // len(target.columns)
        sides[side] = (sides[side][:, :, None] * part[:, None]).flatten(1, 2)
    return sides[0] @ sides[1].transpose(1, 2)


def within_classes(weights: Tensor, shares: Sequence[Tensor], design: Design) -> Tensor:
    """Components' weights within each class, [mixtures, classes, components]; of all in one class.

    Args:
      weights: [mixtures, components].
      shares: see `set_shares`.
    """
    if design.condition is None:
        return weights[:, None]
    return weights[:, None] * shares[design.condition]


class MixtureMatcher:
    """The training state: mixtures, their optimiser, and what each is to match.

    Args:
      steps: of the first training, see `begin`.
      seed: of which pairs a step compares, where there are too many for all.
    """

    def __init__(
        self,
        mixtures: LatentMixtures,
        targets: Targets,
        design: Design,
        *,
        steps: int,
        rate: float,
        seed: int,
        device: str,
    ):
        self.mixtures = mixtures.to(device)
        self.done = 0
        self.device, self._design, self._targets = device, design, targets
        self._columns = targets.columns.to(device)
        self._columns_precision = self._precision(targets.columns_noise).to(device)
        self._blocks = blocks_of(targets.pairs, mixtures.sizes, targets.n, device)
        self._random = torch.Generator(device="cpu").manual_seed(seed)
        self._rate = rate
        self.begin(steps)
        self._gaps = _Gaps()
        self._signs = torch.cat(targets.signs).t().to(device) if targets.signs else None
        self._members = [torch.tensor(sets, device=device) for sets in design.sets]
        self._scanned = self._followed_in_scan()
        self._unrelated = self._unrelated_pairs()

    def begin(self, steps: int) -> None:
        """Get ready for so many steps from where the mixtures stand."""
        cycle = OneCycle(self._rate, steps, warm=max(0.1, 2.0 / steps))
        self._adam = Adam(self.mixtures.parameters(), cycle, decays=(0.9, 0.99))

    def step(self) -> None:
        """One descent step."""
        weights, shares = self.mixtures()
        loss = self._column_loss(weights, shares)
        within = self._within(weights, shares)
        loss = loss + self._pair_loss(within, shares) + self._scan_loss(within, shares)
        if self._targets.sets:
            loss = loss + self._set_loss(within, self.mixtures.by_column(shares))
        self._adam.descend(loss)
        self.done += 1

    def metrics(self) -> dict[str, float]:
        """Root mean square distances to the releases, noise included, in units of the noise."""
        values = {"single columns": math.sqrt(float(self._gaps.columns))}
        if self._targets.pairs:
            values["pairs of columns"] = math.sqrt(float(self._gaps.pairs))
        if self._targets.sets:
            values["larger sets"] = math.sqrt(float(self._gaps.sets))
        return values

    @torch.no_grad()
    def expected(self, size: int) -> Tensor:
        """What the scan of sets of `size` columns shows of all together: float64 like the scan."""
        weights, shares = self.mixtures()
        within = self._within(weights, shares)
        members, signs = self._members[size - 1], range(self._design.signs)
        groups = [_sign_sums(within, self._sign_means(shares, g), members) for g in signs]
        return torch.stack([one.mean(dim=0) for one in groups], dim=1).double().cpu()

    def state_dict(self) -> dict[str, Any]:
        """Everything needed to go on, tensors and plain values only."""
        return {
            "step": self.done,
            "mixtures": self.mixtures.state_dict(),
            "adam": self._adam.state_dict(),
            "random": self._random.get_state(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from `state_dict`."""
        self.done = int(state["step"])
        self.mixtures.load_state_dict(state["mixtures"])
        self._adam.load_state_dict(state["adam"])
        self._random.set_state(state["random"])

    def _within(self, weights: Tensor, shares: Tensor) -> Tensor:
        return within_classes(weights, self.mixtures.by_column(shares), self._design)

    def _precision(self, noise: Tensor) -> Tensor:
        return noise.clamp_min(LEAST_NOISE / self._targets.n).float() ** -2

    def _followed_in_scan(self) -> list[tuple[Tensor, Tensor]]:
        """Of single columns and of related pairs, their members and their sums in the scan."""
        scanned = self._targets.scanned
        if scanned is None or len(scanned.sums) < 2:
            return []
        singles, pairs = (sums.float().to(self.device) for sums in scanned.sums[:2])
        related = torch.tensor(self._targets.related, dtype=torch.int64, device=self.device)
        followed = [(self._members[0], singles)]
        if len(related):
            followed.append((self._members[1][related], pairs[:, :, related]))
        return followed

    def _unrelated_pairs(self) -> Tensor | None:
        """Float32 [columns, columns], 1 at pairs of features that are not related, or None."""
        related = self._targets.related
        if len(related) == len(self._design.pairs):
            return None
        pairs = torch.ones(self._design.columns, self._design.columns).fill_diagonal_(0.0)
        for first, second in (self._design.pairs[i] for i in related):
            pairs[first, second] = pairs[second, first] = 0.0
        return pairs.to(self.device)

    def _column_loss(self, weights: Tensor, shares: Tensor) -> Tensor:
        whole = (shares @ weights[:, :, None])[:, :, 0]
        gap = (whole - self._columns).square() * self._columns_precision
        self._gaps.columns = gap.detach().mean()
        return gap.sum()

    def _pair_loss(self, within: Tensor, shares: Tensor) -> Tensor:
        chosen, factor = self._blocks_now()
        total = squared_distance(shares, within, chosen)
        cells = sum(block.counted for block in chosen)
        self._gaps.pairs = total.detach() / max(1, cells * len(within))
        return total * factor

    def _blocks_now(self) -> tuple[list[PairBlock], float]:
        """The blocks of a step, and what their sum is multiplied by to stand for all."""
        cells = sum(block.counted for block in self._blocks)
        if cells <= CELLS_A_STEP:
            return self._blocks, 1.0
        count = max(1, round(len(self._blocks) * CELLS_A_STEP / cells))
        order = torch.randperm(len(self._blocks), generator=self._random)[:count].tolist()
        return [self._blocks[i] for i in order], len(self._blocks) / count

    def _scan_loss(self, within: Tensor, shares: Tensor) -> Tensor:
        """Singles and related pairs by one sign pattern a step."""
        scanned = self._targets.scanned
        if scanned is None or not self._scanned:
            return within.new_zeros(())
        g = self.done % self._design.signs
        precision = float(self._precision(torch.tensor(scanned.noise)))
        total, means = within.new_zeros(()), self._sign_means(shares, g)
        for members, sums in self._scanned:
            gap = _sign_sums(within, means, members) - sums[:, g]
            total = total + gap.square().sum()
        total = total * (precision * self._design.signs)
        return total if self._unrelated is None else total + self._apart_loss(within, shares)

    def _apart_loss(self, within: Tensor, shares: Tensor) -> Tensor:
        """Pairs that are not related are kept as far from going together as chance would.

        Nothing is known of them but that; without it a mixture ties them as its fit to the
        others happens to. With signs drawn anew each step, the squared covariance of two
        columns' signs is on average their cells' squared distance to independence.
        """
        assert self._unrelated is not None
        features = torch.tensor(self._design.features)
        if len(features) > COLUMNS_A_STEP:
            order = torch.randperm(len(features), generator=self._random)
            features = features[order[:COLUMNS_A_STEP].sort().values]
        columns = self.mixtures.by_column(shares)
        apart = [columns[column] for column in features]
        sizes = [one.shape[1] for one in apart]
        means = _means(torch.cat(apart, dim=1), torch.cat(list(map(self._coin, sizes))), sizes)
        among = self._unrelated[features][:, features]
        total = within.new_zeros(())
        for weight in within.unbind(dim=1):  # one class: [mixtures, components]
            weighted = means * weight[:, None]
            sums = weighted.sum(dim=2)
            product = sums[:, :, None] * sums[:, None] / weight.sum(dim=1)[:, None, None]
            gap = weighted @ means.transpose(1, 2) - product
            total = total + (gap.square() * among).sum()
        part = (len(features) / len(self._design.features)) ** 2
        return total * (0.5 * APART * self._targets.n / part)  # each pair stands in both halves

    def _coin(self, cells: int) -> Tensor:
        """As many signs of either kind as can be, in random order: float32 [cells]."""
        order = torch.randperm(cells, generator=self._random)
        return (1.0 - 2.0 * (order % 2)).to(self.device)

    def _sign_means(self, shares: Tensor, g: int) -> Tensor:
        """Each component's mean sign of each column: [mixtures, columns, components]."""
        assert self._signs is not None
        return _means(shares, self._signs[g], self.mixtures.sizes)

    def _set_loss(self, within: Tensor, shares: Sequence[Tensor]) -> Tensor:
        total, count = within.new_zeros(()), 0
        for target in self._targets.sets:
            joint = set_shares(target, within, shares)
            goal = target.shares.to(joint).reshape(joint.shape[1:])
            precision = float(self._precision(torch.tensor(target.noise)))
            total = total + (joint - goal).square().sum() * precision
            count += joint.numel()
        self._gaps.sets = total.detach() / max(1, count)
        return total


def _sign_sums(within: Tensor, means: Tensor, members: Tensor) -> Tensor:
    """Mean sign products of sets in each class: [mixtures, classes, sets]."""
    if members.shape[1] == 2 and means.shape[1] ** 2 <= AT_ONCE * len(members):
        every = (means[:, None] * within[:, :, None]) @ means[:, None].transpose(2, 3)
        return every[:, :, members[:, 0], members[:, 1]]
    products = means[:, members[:, 0]]
    for position in range(1, members.shape[1]):
        products = products * means[:, members[:, position]]
    return within @ products.transpose(1, 2)


def _means(shares: Tensor, values: Tensor, sizes: Sequence[int]) -> Tensor:
    """Each component's mean of a value of each column: [mixtures, columns, components].

    Args:
      shares: [mixtures, cells, components] of columns of these sizes.
      values: float32 [cells].
    """
    column = torch.arange(len(sizes)).repeat_interleave(torch.tensor(sizes)).to(shares.device)
    means = shares.new_zeros((len(shares), len(sizes), shares.shape[2]))
    return means.index_add(1, column, shares * values[:, None])
