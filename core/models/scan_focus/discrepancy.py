"""How far mixtures lie from the counts they follow, in units of their noise.

A mixture that is as near to the counts as the real rows are has nothing more to learn from them:
the counts' noise alone sets those a mean square of one apart. One that lies farther has not learnt
what they show yet, and one that lies clearly nearer follows their noise. So training goes on for as
long as counts lie farther, and no longer. Post-processing of releases.

Source: Morozov, "On the solution of functional equations by the method of regularization", Soviet
Mathematics Doklady 1966 (the discrepancy principle).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

import torch
from torch import Tensor

from core.models.scan_focus.groups import NOISY, MixtureGroups
from core.models.scan_focus.matching import Targets, set_shares, within_classes
from core.models.steps.counting.counts import LEAST_NOISE
from core.models.steps.counting.design import Design
from core.models.steps.counting.pair_queries import PAIR_SNR_THRESHOLD

Mixtures = Callable[[], tuple[Tensor, Sequence[Tensor]]]  # see `MixtureGroups`

FARTHER = 0.03  # from one: mixtures that have learned all of the pairs lie at .98 to 1.03
CHANCE = 3.0  # standard deviations of it, where few cells were counted
LEARNED = 2.0 / 3.0  # of what a clear pair shows beyond independence: people call that kept
# squared error of mixtures that follow counts without their noise, as a share of that noise: .06 to
# .25 on tuning tables, but some of it is what the others err by too
DENOISED_ERROR = 0.08


def ensemble_weights(model: MixtureGroups, targets: Targets, design: Design) -> tuple[float, ...]:
    """The weight of each group of mixtures, so that their errors together are least.

    Mixtures that follow counts as they were released err by the noise they took in, which where
    many cells were counted is little of it; those that follow denoised counts by what was shrunk
    away. Of two estimates whose errors are independent each weighs as much as the other errs.

    Source: Bates and Granger, "The combination of forecasts", Operational Research Quarterly 1969.
    """
    if len(model.matchers) == 1:
        return (1.0,)
    apart = of_pairs(model.part(NOISY), targets, design) if targets.counted else 1.0
    noisy = DENOISED_ERROR / (DENOISED_ERROR + max(0.0, 1.0 - apart))
    return noisy, 1.0 - noisy


def lacking(mixtures: Mixtures, targets: Targets, design: Design) -> float:
    """How much farther the counts lie than their noise explains, as a share of it; else 0.

    Counts of larger sets that are already followed into their noise say 0, since further steps
    would learn that, and a parity of four columns falls apart; but not against pairs that lack more
    than these have too much.
    """
    pairs = sum(pair.shares.numel() for pair in targets.counted)
    lack = of_pairs(mixtures, targets, design) - 1.0 if pairs else 0.0
    if sets := sum(one.shares.numel() for one in targets.sets):
        apart = of_sets(mixtures, targets, design) - 1.0
        if abs(apart) > _margin(sets):
            if apart > 0.0:
                return apart
            return lack if lack > max(-apart, _margin(pairs)) else 0.0
    return lack if pairs and lack > _margin(pairs) else 0.0


def _margin(cells: int) -> float:
    """How far from one a mean square of so many cells must lie for that to be clear."""
    return max(FARTHER, CHANCE * math.sqrt(2.0 / cells))


def clear_pair_unlearned(mixtures: Mixtures, targets: Targets, design: Design) -> bool:
    """Whether some pair goes together much less than its counts show beyond noise.

    Where most pairs are noise, the few that are not hardly move the mean of all.
    """
    both = zip(_each_pair(mixtures, targets, design), targets.pairs, strict=True)
    for (shares, _, noise), target in both:
        shown = _beyond_independence(target.shares.to(shares))
        energy = float(shown.square().sum())
        if energy > PAIR_SNR_THRESHOLD * noise**2 * math.sqrt(2.0 * shown.numel()):
            learned = float((shown * _beyond_independence(shares)).sum())
            if learned < LEARNED * energy:
                return True
    return False


def of_pairs(mixtures: Mixtures, targets: Targets, design: Design) -> float:
    """Mean squared distance to the released counts of pairs, in units of their noise."""
    return _mean_square(_each_pair(mixtures, targets, design), targets.n)


@torch.no_grad()
def _each_pair(
    mixtures: Mixtures, targets: Targets, design: Design
) -> Iterator[tuple[Tensor, Tensor, float]]:
    """What the mixtures have of each counted pair, what was released of it, and its noise."""
    weights, shares = mixtures()
    within = within_classes(weights, shares, design)
    for pair in targets.counted:
        first, second = (shares[column] for column in pair.columns)
        apart = within if len(pair.shares) == within.shape[1] else weights[:, None]
        cells = [
            ((first * part[:, None]) @ second.transpose(1, 2)).mean(dim=0)
            for part in apart.unbind(dim=1)
        ]
        yield torch.stack(cells), pair.shares, pair.noise


def _beyond_independence(shares: Tensor) -> Tensor:
    """Of [classes, a, b], less what columns that are independent within each class would show."""
    first, second = shares.sum(dim=2, keepdim=True), shares.sum(dim=1, keepdim=True)
    return shares - first * second / shares.sum(dim=(1, 2), keepdim=True).clamp_min(1e-12)


@torch.no_grad()
def of_sets(mixtures: Mixtures, targets: Targets, design: Design) -> float:
    """The same of the larger sets."""

    def each() -> Iterator[tuple[Tensor, Tensor, float]]:
        weights, shares = mixtures()
        within = within_classes(weights, shares, design)
        for one in targets.sets:
            joint = set_shares(one, within, shares).mean(dim=0)
            yield joint, one.shares.reshape(joint.shape), one.noise

    return _mean_square(each(), targets.n)


def _mean_square(each: Iterator[tuple[Tensor, Tensor, float]], n: int) -> float:
    total, count = 0.0, 0
    for shares, released, noise in each:
        gap = (shares - released.to(shares)) / max(noise, LEAST_NOISE / n)
        total += float(gap.square().sum())
        count += gap.numel()
    return total / count
