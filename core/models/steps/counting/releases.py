"""Private counts, release by release, and what each next one asks, from released numbers alone.

A release is kept in the checkpoint as it came; everything else is made from it again, so that a fit
that goes on asks exactly what was paid for.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cached_property, partial
from itertools import chain

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from core.encoding.codec import Codec
from core.models.events import Emitter, Interaction, SignificantSets
from core.models.step import FitContext
from core.models.steps.counting import pair_queries
from core.models.steps.counting.alike_events import told_by_both
from core.models.steps.counting.comparisons import Comparison, Limit, marginals
from core.models.steps.counting.counts import PairTarget, SetCounts, uniform_query
from core.models.steps.counting.denoising import beyond_independence
from core.models.steps.counting.design import (
    ALL_PAIRS,
    CELLS,
    COLUMNS,
    PAIRS,
    PAIRS_AGAIN,
    RELATIONS,
    SCALES,
    SCAN,
    ZEROS,
    Design,
)
from core.models.steps.counting.differences import Difference, asked_differences
from core.models.steps.counting.lines.recounting import Recount
from core.models.steps.counting.relation_candidates import TotalCandidate, strongest
from core.models.steps.counting.relations import determined, moments_fit, relations_kept, telling
from core.models.steps.counting.scales import (
    ColumnScale,
    FineCounts,
    FineHistograms,
    fine_grids,
    most_cells,
    ranges_within,
)
from core.models.steps.counting.scan import Scan, Scanned, draw_signs
from core.models.steps.counting.significance import Significance
from core.models.steps.counting.window_pairs import column_weights, none_cells, window_importance
from core.models.steps.counting.zeros.finding import found_zeros
from core.models.steps.counting.zeros.orders import out_of_order
from core.models.steps.counting.zeros.structural_zeros import StructuralZero
from core.models.steps.training.training_loop import Checkpoint
from core.privacy.discovery.lists import ListCounts
from core.privacy.guarded import PrivateTable
from core.privacy.mechanisms.additive import Mechanism
from core.privacy.plan import Plan

Floats = NDArray[np.float64]
LEAST_MULTIPLIER, LEAST_ENERGY = 1e-3, 1e-9  # where there is no noise
JOINS = "joins_classes"  # name in a checkpoint
LOW_NOISE_RECORDS_PER_UNIT = 10_000.0  # of the pairs' noise; with more, classes are counted apart


class Releases:
    """What a fit knows of its table; each counting step makes one release.

    Attributes:
      within: by column, shares of its cells within each class and their standard deviation.
      signs, scanned: see `core.models.steps.counting.scan`.
    """

    scales: tuple[ColumnScale, ...]
    shares: list[Floats]
    column_counts: list[Floats]
    column_noise: list[Floats]
    _recounts: tuple[Recount, ...]

    def __init__(
        self, table: PrivateTable, plan: Plan, design: Design, context: FitContext, file: str
    ):
        self.table, self.plan, self.device = table, plan, context.device
        self.design = design.within_noise(plan)
        self.codec, self._list_counts = Codec(table.domain), context.list_counts
        self.checkpoint = Checkpoint.open(context, file, table.meter)
        self.emitter = Emitter(context.on_event, keep=self.checkpoint.keep)
        self.within: dict[int, tuple[Floats, float]] = {}
        self.signs: tuple[Tensor, ...] = ()
        self.scanned: Scanned | None = None
        self.totals: tuple[TotalCandidate, ...] = ()
        self.compared: tuple[Comparison, ...] = ()
        self.limits: tuple[Limit, ...] = ()
        self.differences: tuple[Difference, ...] = ()
        self.counted: tuple[PairTarget, ...] = ()
        self._released: list[PairTarget] = []
        self.zeros: tuple[StructuralZero, ...] = ()

    def measure(self, phase: str) -> Releases:
        """Make the release of a phase, or read it back; what is known with it."""
        steps: dict[str, Callable[[], None]] = {
            SCALES: self._count_bins,
            COLUMNS: self._count_columns,
            SCAN: self._scan_sets,
            RELATIONS: self._count_relations,
            PAIRS: partial(self.count_pairs, PAIRS),
            PAIRS_AGAIN: self._count_pairs_again,
            ZEROS: self._count_zeros,
        }
        steps[phase]()
        return self

    def _count_bins(self) -> None:
        """Histograms of columns, from which cells are made; lists that were learned have one."""
        counted = [i for i in range(self.design.columns) if i not in self.design.learned]
        long = math.sqrt(2.0 * len(counted))  # before it is known which columns are long
        noise = self.noise_multiplier(SCALES)
        grids = fine_grids(self.codec, noise * long, self.table.n)
        counts = {i: self._learned_counts(i).counts for i in self.design.learned}
        spread = [0.0] * len(grids)
        if counted:
            weights = self._weights([min(CELLS, grid.cells) + grid.atoms for grid in grids])
            asked = tuple(grids[i] for i in counted), tuple(weights[i] for i in counted)
            mechanism = FineHistograms(*asked)
            spread = [noise * mechanism.sensitivity / w for w in weights]
            released = mechanism.split(self.release(SCALES, mechanism))
            counts |= dict(zip(counted, released, strict=True))
        pairs = math.sqrt(min(len(self.design.pairs), ALL_PAIRS))
        most = most_cells(self.table.n, pairs and self.pair_noise * pairs, len(grids))
        sure = bool(self.codec.domain.roles)
        ranged = {} if sure else self._list_counts  # windows hold others
        ranges = [ranges_within(grid, ranged.get(grid.block.column.name)) for grid in grids]
        every = (FineCounts(counts[i], spread[i], most, ranges[i], sure) for i in sorted(counts))
        self._recounts = tuple(Recount.of(*both) for both in zip(grids, every, strict=True))
        self.scales = tuple(one.scale for one in self._recounts)

    def _count_columns(self) -> None:
        others = [i for i in range(self.design.columns) if i not in self.design.learned]
        weights = self._weights([scale.size for scale in self.scales])
        queries = {i: uniform_query(self._recounts, (i,), weights[i]) for i in others}
        known = {i: (self.scales[i], self._learned_counts(i)) for i in self.design.learned}
        if queries:
            mechanism = SetCounts(self._recounts, tuple(queries.values()))
            released = mechanism.split(self.release(COLUMNS, mechanism))
            noise = mechanism.deviations(self.noise_multiplier(COLUMNS))
            for i, counts, std in zip(queries, released, noise, strict=True):
                known[i] = self._recounts[i].settled(counts.numpy(), max(std, 1e-6))
        both = [known[i] for i in range(self.design.columns)]
        self.scales = tuple(scale for scale, _ in both)
        self.column_counts = [counts.counts for _, counts in both]
        self.column_noise = [counts.std for _, counts in both]
        self.shares = [scale.shares(counts.counts) for scale, counts in both]

    def _weights(self, cells: Sequence[int]) -> tuple[float, ...]:
        return column_weights(self.codec.domain.roles, self.codec.blocks, cells)

    def _learned_counts(self, column: int) -> ListCounts:
        return self._list_counts[self.codec.blocks[column].column.name]

    def _scan_sets(self) -> None:
        drawn = self.design.signs, self.checkpoint.seed, self.none
        self.signs = draw_signs(self.scales, self.shares, *drawn)
        mechanism = Scan(self.scales, self.signs, self.design)
        release = self.release(SCAN, mechanism)
        noise = self.noise_multiplier(SCAN) * mechanism.sensitivity / self.table.n
        self.scanned = Scanned(mechanism.split(release, self.table.n), noise)

    def _count_relations(self) -> None:
        related = self.design.related
        numbers = marginals(self.codec.blocks, related.times, self.scales, self.shares)
        asked = strongest(self.codec, related, self._strength, partial(moments_fit, numbers))
        assert self.scanned is not None
        seen = self.scanned.together(self.design.pairs, self._independent_pairs)
        columns = self.tagged, self.scales, self.shares
        apart = asked_differences(asked.differences, seen, *columns)
        known, multiplier = (numbers, self.table.n), self.noise_multiplier(RELATIONS)
        mechanism = telling(asked, self.codec.blocks, apart, *known, multiplier)
        release, noise = self.release(RELATIONS, mechanism), multiplier * mechanism.sensitivity
        kept = relations_kept(mechanism, release, noise, *columns, *known)
        self.totals, self.compared, self.limits, self.differences = kept

    def _strength(self, one: int, other: int) -> float:
        """How much two columns go together, by the scan; least where it did not look."""
        return self._strengths.get((min(one, other), max(one, other)), -math.inf)

    @cached_property
    def _strengths(self) -> dict[tuple[int, ...], float]:
        _, score = self.pair_energy()
        return dict(zip(self.design.pairs, score.tolist(), strict=True))

    def _count_pairs_again(self) -> None:
        self.count_pairs(PAIRS_AGAIN)
        self.tell_significant()

    def _count_zeros(self) -> None:
        """Of no column that follows, or is tagged; of all records where pairs suggest no zero."""
        known = self.counted, self.scales, self.shares
        follow = {one.result for one in determined(*known, self.design.condition)}
        follow |= {one.high for one in self.compared if one.equal == 1.0}
        noise = self.noise_multiplier(ZEROS)  # of places that every record adds to with length one
        ask, counts = partial(self.release, ZEROS), (self.column_noise, self.table.n)
        found = found_zeros(*known, *counts, follow | self.tagged, noise, ask)
        self.zeros = (*found, *out_of_order(self.compared, self.scales))

    @cached_property
    def tagged(self) -> frozenset[int]:
        """Blocks of columns whose distribution is hidden."""
        groups = self.plan.protection.groups if self.plan.protection else {}
        names = set(chain(*groups.values()))
        return frozenset(b.index for b in self.codec.blocks if b.column.name in names)

    def tell_significant(self) -> None:
        """Send all significant sets so far."""
        self.emitter.send(SignificantSets(sets=self.significant_sets))

    def column_targets(self) -> tuple[Tensor, Tensor]:
        """Shares of all columns' cells and their standard deviations, as they are known by now."""
        both = (np.concatenate(one) for one in (self.column_counts, self.column_noise))
        counts, noise = (torch.from_numpy(one / self.table.n).float() for one in both)
        return counts, noise

    @property
    def significant_sets(self) -> tuple[Interaction, ...]:
        """See `Significance.sets`; none without noise, where nothing can be told from the scan."""
        if self._significance is None or not self.plan.budget.private:
            return ()
        return self._significance.sets

    @property
    def records(self) -> int:
        """Of the table."""
        return self.table.n

    @property
    def larger_sets(self) -> list[tuple[list[int], float]]:
        """See `significance.Known`."""
        return list(self.checkpoint.state.get("focus_scores", []))

    @cached_property
    def _significance(self) -> Significance | None:
        return None if self.scanned is None else Significance(self, self.scanned)

    def differing(self, size: int, expected: Tensor) -> Floats:
        """How far the scan of each set of `size` columns differs between classes."""
        assert self.scanned is not None
        return self.scanned.differing(size, expected, self.class_shares(), self.scan_variances())

    def scan_variances(self) -> Floats:
        """Of one number of the scan within each class: the noise's and chance's; [classes]."""
        assert self.scanned is not None
        return np.asarray(self.scanned.noise**2 + self.class_shares() / self.table.n)

    def class_shares(self) -> Floats:
        """Released shares of the classes, positive, summing to one; [1] without a class."""
        condition = self.design.condition
        shares = np.ones(1) if condition is None else np.maximum(self.shares[condition], 1e-3)
        return np.asarray(shares / shares.sum())

    def release(self, phase: str, mechanism: Mechanism) -> Tensor:
        """The noisy statistic of a phase: of the checkpoint, or else of the table."""
        kept: Tensor | None = self.checkpoint.state.get(phase)
        if kept is not None:
            return kept
        tick = self.emitter.release(self.plan.phase(phase))
        release = self.table.release(phase, mechanism, device=self.device, tick=tick)
        self.checkpoint.keep(**{phase: release})
        return release

    def noise_multiplier(self, phase: str) -> float:
        """That of a phase of the plan."""
        return self.plan.phase(phase).noise_multiplier

    @cached_property
    def _independent_pairs(self) -> Tensor:
        """The scan of pairs as columns that are independent within each class would show it."""
        assert self.scanned is not None
        return self.scanned.independent(*self.pairs_by_class)

    @property
    def pairs_by_class(self) -> tuple[Tensor, Tensor]:
        """Shares of the classes, and where either column of each pair is among single ones."""
        index = {column: i for i, column in enumerate(self.design.features)}
        members = torch.tensor([[index[a], index[b]] for a, b in self.design.pairs])
        return torch.from_numpy(self.class_shares()), members

    def pair_energy(self) -> tuple[Floats, Floats]:
        """What columns that are independent within each class do not explain of each pair."""
        assert self.scanned is not None
        return self.scanned.energy(2, self._independent_pairs)

    @cached_property
    def _pair_queries(self) -> pair_queries.PairQueries:
        assert self.scanned is not None
        state, design = self.checkpoint.state, self.design
        if JOINS not in state:
            clear = self.table.n > LOW_NOISE_RECORDS_PER_UNIT * self.pair_noise
            state[JOINS] = design.classes > 1 and not clear and self.scanned.clear
        above, score = self.pair_energy()
        of_noise = self.scanned.noise**2 * math.sqrt(2.0 * design.classes / design.signs)
        seen = pair_queries.PairsSeen(
            score=score,
            energy=np.maximum(above, 0.0) / design.signs + max(of_noise, LEAST_ENERGY),
            differs=self.differing(2, self._independent_pairs) if state[JOINS] else None,
            importance=self._importance,
            clear=self.scanned.clear,
        )
        return pair_queries.select_pairs(
            design,
            [scale.size for scale in self.scales],
            seen,
            noise=self.pair_noise / self.table.n,
            noise_dominated=self._noise_dominated if state[JOINS] else None,
        )

    def _noise_dominated(self, pair: tuple[int, ...], weight: float) -> bool:
        records = self.table.n / self.design.classes / self.pair_noise * math.sqrt(weight)
        return pair_queries.noise_dominates(self.scales, self.shares, pair, records)

    @property
    def pair_noise(self) -> float:
        """Noise multiplier of both counts of pairs together, positive."""
        each = [max(self.noise_multiplier(p), LEAST_MULTIPLIER) for p in (PAIRS, PAIRS_AGAIN)]
        return math.hypot(*(1.0 / one for one in each)) ** -1

    @property
    def none(self) -> dict[int, int]:
        """See `none_cells`."""
        missing = [scale.missing_cell for scale in self.scales]
        return none_cells(self.codec.domain.roles, self.codec.blocks, missing)

    @property
    def _importance(self) -> Floats:
        """Of pairs: within groups, or in windows of histories."""
        roles, blocks = self.codec.domain.roles, self.codec.blocks
        windows = window_importance(roles, blocks, self.design.pairs)
        return pair_queries.pair_importance(self.design, self.group) * windows

    @cached_property
    def group(self) -> int | None:
        """The column by whose labels people compare: the class, or `grouping_column`."""
        if self.codec.domain.roles:
            return None
        if self.design.condition is not None or not self.design.pairs:
            return self.design.condition
        sizes = [scale.size for scale in self.scales]
        known = self.design, self.codec, self.column_counts, sizes
        return pair_queries.grouping_column(*known, self.pair_noise)

    def count_pairs(self, phase: str) -> None:
        """Count the chosen pairs in that phase of the plan, besides what was counted of them."""
        asked, condition = self._pair_queries, self.design.condition
        front = () if condition is None else (condition,)
        single = self.design.features if asked.columns > 0.0 else ()
        each = math.sqrt(asked.columns / max(1, len(single)))
        weights = self._weights_again(phase) if self._released else asked.weights
        queries = tuple(
            uniform_query(self.scales, (*front, *pair) if apart else pair, math.sqrt(float(weight)))
            for pair, weight, apart in zip(asked.pairs, weights, asked.by_class, strict=True)
        ) + tuple(uniform_query(self.scales, (*front, column), each) for column in single)
        mechanism = SetCounts(self.scales, queries)
        counts = mechanism.split(self.release(phase, mechanism))
        noise = mechanism.deviations(self.noise_multiplier(phase))
        first, n = len(asked.pairs), self.table.n
        for column, count, one in zip(single, counts[first:], noise[first:], strict=True):
            self._counted_again(column, count.reshape(self.design.classes, -1).numpy(), one)
        targets = []
        for pair, count, one, alike in zip(asked.pairs, counts, noise, asked.alike, strict=False):
            shares = (count / n).float().reshape(-1, *count.shape[-2:])
            targets.append(PairTarget((pair[0], pair[1]), shares, one / n, bool(alike)))
        if self._released:
            both = zip(self._released, targets, strict=True)
            targets = [one.mean(again) for one, again in both]
        self._released = targets
        self.counted = told_by_both(targets, self.codec, self.scales, self.shares, n)

    def _weights_again(self, phase: str) -> Floats:
        """Squared weights of pairs that were counted before, by what is left to learn of each.

        Of windows the same again: much of what their pairs show follows from how they are made.
        """
        if self.codec.domain.roles:
            return self._pair_queries.weights
        left = beyond_independence(self.counted, self.shares, self.within, self.none)
        noise = max(self.noise_multiplier(phase), LEAST_MULTIPLIER) / self.table.n
        return pair_queries.weights_again(self._pair_queries, self._released, left, noise)

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
