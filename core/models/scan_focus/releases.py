"""What scan and focus counts beyond columns and pairs, from released numbers alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations, islice

import numpy as np
import torch
from scipy.stats import chi2, false_discovery_control

from core.models.scan_focus.matching import MixtureMatcher, SetTarget, Targets
from core.models.steps.counting.counts import Query, SetCounts
from core.models.steps.counting.denoising import as_released, denoised
from core.models.steps.counting.design import FOCUS, SET_SNR_THRESHOLD
from core.models.steps.counting.releases import Releases
from core.models.steps.counting.zeros.structural_zeros import emptied

UNLEARNED_ENERGY_SHARE = 0.5  # of a clear pair's energy, that may be left unexplained
MOST_SETS = 4
OF_PAIRS = 0.5  # of what a set shows beyond the model, that one of its pairs shows alike
FALSE_DISCOVERIES = 0.05  # share of pairs that only the scan shows to go together, that do not
GROUPS = {3: 4, 4: 4}  # groups a number is folded to in a counted set, by its size; else 3


@dataclass(frozen=True)
class Focus:
    """What scan and focus follows, before and after it counted what a preliminary model misses."""

    known: Releases
    targets: Targets
    preliminary: MixtureMatcher | None = None
    unlearned: frozenset[int] = frozenset()

    def measure(self, phase: str) -> Focus:
        """With what is counted last: sets that the model contradicts, or pairs once more."""
        known, state = self.known, self.known.checkpoint.state
        if "focus_sets" not in state:
            chosen = contradicted_sets(known, self.preliminary)
            state["focus_sets"] = [list(columns) for columns in chosen]
        sets = [tuple(columns) for columns in state["focus_sets"]]
        if sets:
            targets = replace(self.targets, sets=_counted_sets(known, sets))
        else:
            known.count_pairs(phase)
            targets = targets_of(known)
        known.tell_significant()
        return replace(self, targets=targets)


def targets_of(known: Releases) -> Targets:
    """Columns, scan and pairs."""
    counted, shares, within = known.counted, known.shares, known.within
    columns, columns_noise = known.column_targets()
    noisy = as_released(counted, shares, within)
    clean = denoised(counted, known.scales, shares, within, known.none)
    return Targets(
        n=known.table.n,
        columns=columns,
        columns_noise=columns_noise,
        scanned=known.scanned,
        signs=tuple(signs.float() for signs in known.signs),
        related=_related_pairs(known),
        counted=counted,
        pairs=emptied(clean, known.zeros, known.scales),
        noisy=emptied(noisy, known.zeros, known.scales, clean=False),
    )


def _related_pairs(known: Releases) -> tuple[int, ...]:
    """Which of the design's pairs were counted, or go together by the scan.

    Source: Benjamini and Hochberg, "Controlling the false discovery rate", Journal of the Royal
    Statistical Society B 1995: so few of those that only noise lets go together are among them.
    """
    if known.scanned is None or not known.design.pairs:
        return ()
    numbers = known.design.signs * known.design.classes
    _, score = known.pair_energy()
    chance = chi2.sf(numbers + score * math.sqrt(2.0 * numbers), numbers)
    clear = false_discovery_control(chance) < FALSE_DISCOVERIES
    counted = {pair.columns for pair in known.counted}
    both = enumerate(zip(known.design.pairs, clear, strict=True))
    return tuple(i for i, (pair, shown) in both if shown or pair in counted)


def unlearned_columns(known: Releases, preliminary: MixtureMatcher) -> frozenset[int]:
    """Columns of clear pairs of which the preliminary model has learnt less than half.

    A parity of two columns has no slope where all components are alike; those that start apart in
    such columns see it.
    """
    if known.scanned is None:
        return frozenset()
    above, clear = known.pair_energy()
    left, _ = known.scanned.energy(2, preliminary.expected(2))
    missed = (clear > SET_SNR_THRESHOLD) & (left > UNLEARNED_ENERGY_SHARE * above)
    return frozenset(c for i in np.flatnonzero(missed) for c in known.design.pairs[i])


def contradicted_sets(known: Releases, preliminary: MixtureMatcher | None) -> list[tuple[int, ...]]:
    """The larger sets whose scan the preliminary model explains least, beyond noise.

    A set that holds a pair which the model contradicts half as clearly shows that pair's lack
    again: with a column that is nearly constant, the set's signs are the pair's.
    """
    if known.scanned is None or preliminary is None:
        return []
    _, left = known.scanned.energy(2, preliminary.expected(2))
    pairs: dict[tuple[int, ...], float]
    pairs = dict(zip(known.design.pairs, left.tolist(), strict=True))

    def of_pairs(columns: tuple[int, ...]) -> float:
        return max(pairs.get(pair, 0.0) for pair in combinations(columns, 2))

    scores: list[tuple[tuple[int, ...], float]] = []
    for size in range(3, len(known.design.sets) + 1):
        _, score = known.scanned.energy(size, preliminary.expected(size))
        clearest = ((known.design.sets[size - 1][i], float(score[i])) for i in np.argsort(-score))
        own = ((columns, z) for columns, z in clearest if of_pairs(columns) < OF_PAIRS * z)
        scores += islice(own, MOST_SETS)
    scores.sort(key=lambda row: -row[1])
    clear = [(columns, z) for columns, z in scores if z > SET_SNR_THRESHOLD][:MOST_SETS]
    known.checkpoint.state["focus_scores"] = [[list(columns), z] for columns, z in clear]
    return [columns for columns, _ in clear]


def _counted_sets(known: Releases, sets: Sequence[tuple[int, ...]]) -> tuple[SetTarget, ...]:
    queries = tuple(_set_query(known, columns) for columns in sets)
    mechanism = SetCounts(known.scales, queries)
    counts = mechanism.split(known.release(FOCUS, mechanism))
    noise = mechanism.deviations(known.noise_multiplier(FOCUS))
    first, n = 0 if known.design.condition is None else 1, known.table.n
    return tuple(
        SetTarget(
            query.columns[first:],
            query.groups[first:],
            (count / n).float().reshape(known.design.classes, *query.shape[first:]),
            one / n,
        )
        for query, count, one in zip(queries, counts, noise, strict=True)
    )


def _set_query(known: Releases, columns: Sequence[int]) -> Query:
    """The cells of a larger set, numbers folded to few groups of like size."""
    groups = []
    for column in columns:
        scale, few = known.scales[column], GROUPS.get(len(columns), 3)
        along = np.floor(scale.ranks(known.shares[column]) * few).astype(np.int64)
        along = np.unique(along, return_inverse=True)[1]
        atoms = np.arange(scale.grid.atoms) + (along.max() + 1 if scale.line else 0)
        groups.append(torch.from_numpy(np.concatenate([along, atoms])))
    condition = known.design.condition
    if condition is None:
        return Query(tuple(columns), tuple(groups), 1.0)
    return Query((condition, *columns), (torch.arange(known.design.classes), *groups), 1.0)
