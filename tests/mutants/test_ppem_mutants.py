"""Negative controls for PPEM: the printed version and near misses, each caught by a check."""

import math
from dataclasses import dataclass

import numpy as np
import pytest
import torch

from core.privacy.dpsgd.clipping import clipped_sum
from core.privacy.dpsgd.dense import GradFactor
from core.privacy.dpsgd.gradient import ClippedGradient, clipped_weight
from core.privacy.dpsgd.penalty import PenalisedGradient
from tests.privacy import nets, toys
from tests.privacy.dpsgd.test_penalty import EQUAL, ROWS, SHARE, C, make, mean_square, parity
from tests.privacy.harness import Caught, check_additive, check_sensitivity

OTHER = toys.random_table(6, 2)


def test_the_honest_one_passes():
    check_sensitivity(nets.OnCodes(make(parity)), EQUAL, tolerance=nets.FLOAT32)


class Printed(ClippedGradient):
    """The paper's algorithm 1: every record's gradient carries the penalty of the whole batch."""

    def statistic(self, rows, mask, *, out=None):
        total = torch.zeros(self.size + 1)
        present = rows[mask > 0]
        shared = torch.zeros(self.size)
        views = {layer.start: layer.views(shared) for layer in self.networks.layers}
        for factor in mean_square(self.networks, present):
            views[factor.layer.start][0].addmm_(factor.backprops.t(), factor.activations)
            views[factor.layer.start][1].add_(factor.backprops.sum(0))
        each = nets.per_record(self.networks, rows) + shared / max(1, len(present))
        total[:-1] = nets.clipped(each, self.clip_norm, mask)
        return total


def test_the_printed_penalty_ties_records_together():
    networks = nets.dense(nets.SHAPES["deep"])
    printed = Printed(networks=networks, grad_factors=nets.grad_factors(networks), clip_norm=C)
    with pytest.raises(Caught):
        check_additive(nets.OnCodes(printed), ROWS, OTHER, tolerance=nets.FLOAT32)
    with pytest.raises(Caught):
        for seed in range(40):
            rows = toys.random_table(6, seed)
            check_sensitivity(nets.OnCodes(printed), rows, tolerance=nets.FLOAT32)


class ForgetsThePenalty(PenalisedGradient):
    """Clips the penalty and leaves it out of Δ."""

    @property
    def sensitivity(self):
        return C * math.hypot(1.0, 0.1)


class CountsItOnce(PenalisedGradient):
    """Δ = C + C_pen, as if a penalty could only vanish and not turn round."""

    @property
    def sensitivity(self):
        return math.hypot(C + SHARE * C, C / 10)


class ForgetsToClipIt(PenalisedGradient):
    """Adds the penalty as it is."""

    def batch_term(self, rows):
        found = torch.zeros(self.size)
        views = {layer.start: layer.views(found) for layer in self.networks.layers}
        for factor in self.penalty(rows):
            views[factor.layer.start][0].addmm_(factor.backprops.t(), factor.activations)
            views[factor.layer.start][1].add_(factor.backprops.sum(0))
        return found


@pytest.mark.parametrize("kind", [ForgetsThePenalty, CountsItOnce, ForgetsToClipIt])
def test_broken_penalties_are_caught(kind):
    honest = make(parity)
    broken = kind(
        networks=honest.networks,
        grad_factors=honest.grad_factors,
        penalty=honest.penalty,
        clip_norm=honest.clip_norm,
        penalty_clip=honest.penalty_clip,
    )
    with pytest.raises(Caught):
        check_sensitivity(nets.OnCodes(broken), EQUAL, tolerance=nets.FLOAT32)


@dataclass(frozen=True, kw_only=True)
class IgnoresOneFactor(ClippedGradient):
    """A Lipschitz penalty whose norm is taken over the first pass alone."""

    def statistic(self, rows, mask, *, out=None):
        total = torch.zeros(self.size + 1)
        grad_factors = self.grad_factors(rows)
        half = len(grad_factors) // 2
        views = self.networks.views(total)
        factor = clipped_sum(grad_factors[:half], clip_norm=self.clip_norm, mask=mask, views=views)
        more = torch.zeros(self.size + 1)
        scaled = [
            GradFactor(u.layer, u.backprops * factor.unsqueeze(1), u.activations, u.bias)
            for u in grad_factors[half:]
        ]
        clipped_sum(scaled, clip_norm=math.inf, mask=mask, views=self.networks.views(more))
        total = total + more
        total[-1] = clipped_weight(factor, mask, self.clip_norm)
        return total


def twice(networks):
    """Two passes whose gradients add up."""
    once = nets.grad_factors(networks)
    return lambda x: [*once(x), *once(3.0 * x)]


def test_a_norm_that_forgets_a_use_is_caught():
    networks = nets.dense(nets.SHAPES["deep"])
    rows = toys.table(np.full((6, toys.WIDTH), 50.0))
    made = {"networks": networks, "grad_factors": twice(networks), "clip_norm": C}
    honest = ClippedGradient(**made, several_passes=True)
    check_sensitivity(nets.OnCodes(honest), rows, tolerance=nets.FLOAT32)
    broken = IgnoresOneFactor(**made)
    with pytest.raises(Caught):
        check_sensitivity(nets.OnCodes(broken), rows, tolerance=nets.FLOAT32)
