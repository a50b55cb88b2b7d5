"""What scan and focus counts beyond columns and pairs, from released numbers alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch

from core.models.scan_focus.matching import MixtureMatcher, SetTarget, Targets
from core.models.steps.counting.counts import PairTarget, Query, SetCounts
from core.models.steps.counting.denoising import denoised
from core.models.steps.counting.design import FOCUS, PAIRS
from core.models.steps.counting.releases import Releases

SET_SNR_THRESHOLD = 25.0  # standard deviations above noise, of larger sets, which a rough model may
# miss a little
UNLEARNED_ENERGY_SHARE = 0.5  # of a clear pair's energy, that may be left unexplained
MOST_SETS = 4
GROUPS = {3: 4, 4: 4}  # groups a number is folded to in a counted set, by its size; else 3


class FocusedReleases(Releases):
    """Counts of columns and pairs, then of what a preliminary model made from them gets wrong."""

    def targets(self) -> Targets:
        """What a preliminary model is trained on: columns, scan and pairs."""
        pairs = self.pairs(PAIRS) if self.design.pairs else ()
        columns, columns_noise = self._column_targets()
        return Targets(
            n=self.table.n,
            columns=columns,
            columns_noise=columns_noise,
            scanned=self.scanned,
            signs=tuple(signs.float() for signs in self.signs),
            counted=pairs,
            pairs=denoised(pairs, self.scales, self.shares, self.within),
        )

    def focused(self, targets: Targets, preliminary: MixtureMatcher | None) -> Targets:
        """The targets with what is counted last: contradicted sets, or pairs once more."""
        state = self.checkpoint.state
        if "focus_sets" not in state:
            chosen = self._contradicted(preliminary)
            state["focus_sets"] = [list(columns) for columns in chosen]
        sets = [tuple(columns) for columns in state["focus_sets"]]
        if not sets:
            second = self.pairs(FOCUS)
            counted = tuple(_mean(a, b) for a, b in zip(targets.counted, second, strict=True))
            pairs = denoised(counted, self.scales, self.shares, self.within)
            columns, columns_noise = self._column_targets()
            again = replace(targets, counted=counted, pairs=pairs)
            return replace(again, columns=columns, columns_noise=columns_noise)
        queries = tuple(self._set_query(columns) for columns in sets)
        mechanism = SetCounts(self.scales, queries)
        counts = mechanism.split(self._release(FOCUS, mechanism))
        noise = mechanism.deviations(self._noise_multiplier(FOCUS))
        first = 0 if self.design.condition is None else 1
        targeted = [
            SetTarget(
                query.columns[first:],
                query.groups[first:],
                (count / self.table.n).float().reshape(self.design.classes, *query.shape[first:]),
                one / self.table.n,
            )
            for query, count, one in zip(queries, counts, noise, strict=True)
        ]
        return replace(targets, sets=tuple(targeted))

    def unlearned_columns(self, preliminary: MixtureMatcher | None) -> frozenset[int]:
        """Columns of clear pairs of which the preliminary model has learnt less than half.

        A parity of two columns has no slope where all components are alike; those that start apart
        in such columns see it.
        """
        if self.scanned is None or preliminary is None:
            return frozenset()
        above, clear = self._pair_energy()
        left, _ = self.scanned.energy(2, preliminary.expected(2))
        missed = (clear > SET_SNR_THRESHOLD) & (left > UNLEARNED_ENERGY_SHARE * above)
        return frozenset(c for i in np.flatnonzero(missed) for c in self.design.pairs[i])

    def _contradicted(self, preliminary: MixtureMatcher | None) -> list[tuple[int, ...]]:
        """The larger sets whose scan the preliminary model explains least, beyond noise."""
        if self.scanned is None or preliminary is None:
            return []
        scores: list[tuple[tuple[int, ...], float]] = []
        for size in range(3, len(self.design.sets) + 1):
            _, score = self.scanned.energy(size, preliminary.expected(size))
            best = np.argsort(-score)[: 2 * MOST_SETS]
            scores += [(self.design.sets[size - 1][i], float(score[i])) for i in best]
        scores.sort(key=lambda row: -row[1])
        clear = [(columns, z) for columns, z in scores if z > SET_SNR_THRESHOLD][:MOST_SETS]
        self.checkpoint.state["focus_scores"] = [[list(columns), z] for columns, z in clear]
        return [columns for columns, _ in clear]

    def _set_query(self, columns: Sequence[int]) -> Query:
        """The cells of a larger set, numbers folded to few groups of like size."""
        groups = []
        for column in columns:
            scale, few = self.scales[column], GROUPS.get(len(columns), 3)
            along = np.floor(scale.ranks(self.shares[column]) * few).astype(np.int64)
            along = np.unique(along, return_inverse=True)[1]
            atoms = np.arange(scale.grid.atoms) + (along.max() + 1 if scale.line else 0)
            groups.append(torch.from_numpy(np.concatenate([along, atoms])))
        condition = self.design.condition
        if condition is None:
            return Query(tuple(columns), tuple(groups), 1.0)
        classes = torch.arange(self.design.classes)
        return Query((condition, *columns), (classes, *groups), 1.0)


def _mean(one: PairTarget, other: PairTarget) -> PairTarget:
    """Two releases of one pair, each weighed by its precision."""
    a, b = (1.0 / max(target.noise, 1e-12) ** 2 for target in (one, other))
    shares = (one.shares * a + other.shares * b) / (a + b)
    return PairTarget(one.columns, shares, 1.0 / math.sqrt(a + b), one.alike)
