"""Private counts, release by release, and what each next one asks, from released numbers alone.

A release is kept in the checkpoint as it came; everything else is made from it again, so that a fit
that goes on asks exactly what was paid for.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import ndtri
from torch import Tensor

from core.encoding.codec import Codec
from core.models.events import Emitter, Interaction
from core.models.steps.counting.counts import PairTarget, SetCounts, SumCounts, uniform_query
from core.models.steps.counting.design import (
    COLUMNS,
    PAIRS,
    RELATIONS,
    SCALES,
    SCAN,
    Design,
)
from core.models.steps.counting.pair_queries import (
    BY_CELLS,
    BY_ENERGY,
    WEIGHTING_SCHEMES,
    PairQueries,
    select_pairs,
)
from core.models.steps.counting.relations import sums_kept
from core.models.steps.counting.scales import (
    ColumnScale,
    FineHistograms,
    fine_grids,
    scales_of,
)
from core.models.steps.counting.scan import Scan, Scanned, draw_signs, normal_score
from core.models.steps.training.training_loop import Checkpoint
from core.privacy.guarded import PrivateTable
from core.privacy.mechanisms.additive import Mechanism
from core.privacy.plan import Plan

Floats = NDArray[np.float64]
SCHEME = "weighting_scheme"  # name in a checkpoint
MOST_REPORTED = 300  # sets that are shown to people
NOISE_CELLS_SHARE = 0.9  # share of a pair's cells with fewer records than noise, class by class
LOW_NOISE_RECORDS_PER_UNIT = 10_000.0  # of the pairs' noise; with more, energy weighs pairs
HIGH_SCAN_NOISE_SHARE = 0.04  # of records, a standard deviation of the scan; with more, likewise
# of tables of independent columns, those in which a set is reported
FALSE_POSITIVE_RATE = 0.01


@dataclass
class Releases:
    """What a fit knows of its table, release by release.

    Args:
      plan: what may be released, and with how much noise.
    """

    table: PrivateTable
    plan: Plan
    codec: Codec
    design: Design
    checkpoint: Checkpoint
    emitter: Emitter
    device: str

    def __post_init__(self) -> None:
        """Make, or read back, the releases that no training comes before."""
        self.scales = self._scales()
        self.shares, self.column_counts, self.column_noise = self._columns()
        self.within: dict[int, tuple[Floats, float]] = {}
        self.signs: tuple[Tensor, ...] = ()
        self.scanned: Scanned | None = None
        self.sums = self._sums()
        if self.design.pairs:
            self.signs, self.scanned = self._scan()

    def _column_targets(self) -> tuple[Tensor, Tensor]:
        """Shares of all columns' cells and their standard deviations, as they are known by now."""
        both = self.column_counts, self.column_noise
        counts, noise = (torch.from_numpy(np.concatenate(one) / self.table.n) for one in both)
        return counts.float(), noise.float()

    @property
    def significant_sets(self) -> tuple[Interaction, ...]:
        """Sets of columns that go together beyond noise and chance, clearest first; free to show.

        Chance is what independent columns of as many records would show without any noise. A set
        with a tagged column is left out, and nothing is said of a tagged target: the scan is of
        real columns, not of shifted ones.
        """
        if self.scanned is None or not self.plan.budget.private:
            return ()  # without noise nothing can be told from it
        larger = self.checkpoint.state.get("focus_scores", [])  # those that were counted
        clear = ((tuple(columns), self._normal_score(z)) for columns, z in larger)
        shown = [*self._significant_pairs, *self._shown(clear)]
        return tuple(sorted(shown, key=lambda one: -one.score)[:MOST_REPORTED])

    @cached_property
    def _significant_pairs(self) -> tuple[Interaction, ...]:
        assert self.scanned is not None
        known, spread = self._signs_counted()
        chance = self._class_shares() / self.table.n
        scores = self.scanned.beyond_independence(*self._pairs_by_class, known, spread, chance)
        clearest = np.argsort(-scores, kind="stable")
        pairs = self.design.pairs
        return tuple(
            islice(self._shown((pairs[i], float(scores[i])) for i in clearest), MOST_REPORTED)
        )

    def _shown(self, scores: Iterable[tuple[tuple[int, ...], float]]) -> Iterator[Interaction]:
        """Of scores in falling order, those beyond noise and chance, without a tagged column."""
        groups = {} if self.plan.protection is None else self.plan.protection.groups
        tagged = {name for names in groups.values() for name in names}
        name_of = [block.column.name for block in self.codec.blocks]
        condition = self.design.condition
        hidden_target = condition is not None and name_of[condition] in tagged
        for columns, score in scores:
            names = tuple(name_of[c] for c in columns)
            if score <= self._report_threshold:
                return
            if not tagged & set(names):
                target = not hidden_target and self._differs(columns)
                yield Interaction(columns=names, score=score, target=target)

    def _signs_counted(self) -> tuple[Tensor, Tensor]:
        """Mean of each pair member's signs by the columns' own counts, and its variance."""
        each = [
            (torch.from_numpy(self.column_counts[c]) @ self.signs[c], self.column_noise[c])
            for c in self.design.features
        ]
        known = torch.stack([total / self.table.n for total, _ in each], dim=1)
        return known, torch.tensor([float(np.square(one / self.table.n).sum()) for _, one in each])

    def _variances(self) -> Floats:
        """Of one number of the scan within each class: the noise's and chance's; [classes]."""
        assert self.scanned is not None
        return np.asarray(self.scanned.noise**2 + self._class_shares() / self.table.n)

    def _normal_score(self, z: float) -> float:
        """What `Scanned.energy` gives of a set → how far beyond noise and chance together."""
        assert self.scanned is not None
        noise, signs = self.scanned.noise**2, self.design.signs
        each = signs * self.design.classes
        squares = np.array([noise * (each + z * math.sqrt(2.0 * each))])
        return float(normal_score(squares, np.tile(self._variances(), signs)[:, None])[0])

    def _differs(self, columns: tuple[int, ...]) -> bool:
        """Whether a set's scan differs between classes by more than noise and chance."""
        index = bisect_left(self.design.sets[len(columns) - 1], columns)  # sets are in order
        return bool(self._scan_by_class[len(columns) - 1][index] > self._report_threshold)

    @cached_property
    def _scan_by_class(self) -> list[Floats]:
        """How far each set's scan differs between classes, by size of set."""
        assert self.scanned is not None
        sums = enumerate(self.scanned.sums, start=1)
        return [self._differing(size, torch.zeros_like(one)) for size, one in sums]

    def _differing(self, size: int, expected: Tensor) -> Floats:
        """How far what is left of sets of `size` columns differs between classes."""
        assert self.scanned is not None
        return self.scanned.differing(size, expected, self._class_shares(), self._variances())

    @cached_property
    def _report_threshold(self) -> float:
        """Beyond how many standard deviations a set is told, by how many were looked at."""
        return float(-ndtri(FALSE_POSITIVE_RATE / self.design.scanned))

    def _class_shares(self) -> Floats:
        """Released shares of the classes, positive, summing to one; [1] without a class."""
        condition = self.design.condition
        shares = np.ones(1) if condition is None else np.maximum(self.shares[condition], 1e-3)
        return np.asarray(shares / shares.sum())

    def _release(self, phase: str, mechanism: Mechanism) -> Tensor:
        """Of the checkpoint, or of the table."""
        kept: Tensor | None = self.checkpoint.state.get(phase)
        if kept is not None:
            return kept
        tick = self.emitter.release(self.plan.phase(phase))
        release = self.table.release(phase, mechanism, device=self.device, tick=tick)
        self.checkpoint.keep(**{phase: release})
        return release

    def _noise_multiplier(self, phase: str) -> float:
        return self.plan.phase(phase).noise_multiplier

    def _scales(self) -> tuple[ColumnScale, ...]:
        long = math.sqrt(2.0 * self.design.columns)  # before it is known which columns are long
        multiplier = self._noise_multiplier(SCALES)
        grids = fine_grids(self.codec, multiplier * long, self.table.n)
        mechanism = FineHistograms(grids)
        self._fine_noise = multiplier * mechanism.sensitivity
        return scales_of(mechanism, self._release(SCALES, mechanism), self._fine_noise)

    def _columns(self) -> tuple[list[Floats], list[Floats], list[Floats]]:
        """Shares, counts and their noise, of each column's cells, from both counts of them."""
        queries = tuple(uniform_query(self.scales, (c,)) for c in range(self.design.columns))
        mechanism = SetCounts(self.scales, queries)
        counts = mechanism.split(self._release(COLUMNS, mechanism))
        variance = max(self._noise_multiplier(COLUMNS) * mechanism.sensitivity, 1e-6) ** 2
        shares, means, noise = [], [], []
        for scale, count in zip(self.scales, counts, strict=True):
            before = np.maximum(scale.variance * self._fine_noise**2, 1e-12)
            total = 1.0 / (1.0 / variance + 1.0 / before)
            means.append(total * (count.numpy() / variance + scale.counts / before))
            noise.append(np.sqrt(total))
            shares.append(scale.shares(means[-1]))
        return shares, means, noise

    def _scan(self) -> tuple[tuple[Tensor, ...], Scanned]:
        signs = draw_signs(self.scales, self.shares, self.design.signs, self.checkpoint.seed)
        mechanism = Scan(self.scales, signs, self.design)
        release = self._release(SCAN, mechanism)
        noise = self._noise_multiplier(SCAN) * mechanism.sensitivity / self.table.n
        return signs, Scanned(mechanism.split(release, self.table.n), noise)

    def _sums(self) -> Any:
        candidates = self.design.sums
        if not self.design.sums or not self.design.pairs:
            return ()
        mechanism = SumCounts(self.codec.blocks, candidates)
        release = self._release(RELATIONS, mechanism)
        noise = self._noise_multiplier(RELATIONS) * mechanism.sensitivity
        return sums_kept(release, candidates, noise, self.table.n)

    @cached_property
    def _independent_pairs(self) -> Tensor:
        """The scan of pairs as columns that are independent within each class would show it."""
        assert self.scanned is not None
        return self.scanned.independent(*self._pairs_by_class)

    @property
    def _pairs_by_class(self) -> tuple[Tensor, Tensor]:
        """Shares of the classes, and where either column of each pair is among single ones."""
        index = {column: i for i, column in enumerate(self.design.features)}
        members = torch.tensor([[index[a], index[b]] for a, b in self.design.pairs])
        return torch.from_numpy(self._class_shares()), members

    def _pair_energy(self) -> tuple[Floats, Floats]:
        """What columns that are independent within each class do not explain of each pair."""
        assert self.scanned is not None
        return self.scanned.energy(2, self._independent_pairs)

    @cached_property
    def _pair_queries(self) -> PairQueries:
        """What is counted of pairs, the first time and once more."""
        assert self.scanned is not None
        state = self.checkpoint.state
        if SCHEME not in state:
            clear = self.table.n > LOW_NOISE_RECORDS_PER_UNIT * self._noise_multiplier(PAIRS)
            noisy = self.scanned.noise > HIGH_SCAN_NOISE_SHARE
            state[SCHEME] = BY_ENERGY if clear or noisy else BY_CELLS
        scheme, sizes = WEIGHTING_SCHEMES[state[SCHEME]], [scale.size for scale in self.scales]
        apart = scheme.joins_classes and self.design.classes > 1
        differs = self._differing(2, self._independent_pairs) if apart else None
        energy = self._pair_energy()
        return select_pairs(self.design, sizes, *energy, differs, scheme, self._noise_dominated)

    def _noise_dominated(self, pair: tuple[int, ...], weight: float) -> bool:
        """Whether two lists' cells hold fewer records than noise in nearly all places.

        Their labels are rare: what a few go with shows of all classes at once, if at all.
        """
        if any(self.scales[column].line for column in pair):
            return False  # neighbouring cells say the same
        first, second = (self.shares[column] for column in pair)
        expected = self.table.n / self.design.classes * np.outer(first, second)
        noise = self._noise_multiplier(PAIRS) / math.sqrt(weight)
        return bool((expected < noise).mean() >= NOISE_CELLS_SHARE)

    def pairs(self, phase: str) -> tuple[PairTarget, ...]:
        """Counts of the chosen pairs in that phase of the plan, as they were released."""
        asked, condition = self._pair_queries, self.design.condition
        front = () if condition is None else (condition,)
        single = self.design.features if asked.columns > 0.0 else ()
        each = math.sqrt(asked.columns / max(1, len(single)))
        queries = tuple(
            uniform_query(self.scales, (*front, *pair) if apart else pair, math.sqrt(float(weight)))
            for pair, weight, apart in zip(asked.pairs, asked.weights, asked.by_class, strict=True)
        ) + tuple(uniform_query(self.scales, (*front, column), each) for column in single)
        mechanism = SetCounts(self.scales, queries)
        counts = mechanism.split(self._release(phase, mechanism))
        noise = mechanism.deviations(self._noise_multiplier(phase))
        first, n = len(asked.pairs), self.table.n
        for column, count, one in zip(single, counts[first:], noise[first:], strict=True):
            self._counted_again(column, count.reshape(self.design.classes, -1).numpy(), one)
        targets = []
        for pair, count, one, alike in zip(asked.pairs, counts, noise, asked.alike, strict=False):
            shares = (count / n).float().reshape(-1, *count.shape[-2:])
            targets.append(PairTarget((pair[0], pair[1]), shares, one / n, bool(alike)))
        return tuple(targets)

    def _counted_again(self, column: int, count: Floats, noise: float) -> None:
        """Take further counts of a column's cells within each class, [classes, cells], in."""
        n, (before, spread) = self.table.n, self.within.get(column, (np.zeros(()), math.inf))
        old, new = 1.0 / spread**2, (n / max(noise, 1e-9)) ** 2
        self.within[column] = (before * old + count / n * new) / (old + new), (old + new) ** -0.5
        precision = 1.0 / max(len(count) * noise**2, 1e-12)  # of the sum over classes
        known = 1.0 / np.maximum(self.column_noise[column] ** 2, 1e-12)
        mean = known * self.column_counts[column] + precision * count.sum(axis=0)
        self.column_counts[column] = mean / (known + precision)
        self.column_noise[column] = np.sqrt(1.0 / (known + precision))
        self.shares[column] = self.scales[column].shares(self.column_counts[column])
