"""release_lists: labels, combinations and shares of missing cells, in two looks.

The first look is at all lists alike. It finds most of them whole, so the second goes to those whose
labels leave a rest beyond the noise, and the two counts of a label are averaged by their
precisions. In a list that is looked at once a label is shown where its count passes a threshold, in
the others where the average passes its own. Each threshold bounds the chance to show a label of one
unit alone, and the two chances add up.

Which lists are looked at again follows from counts that were shown. Given those, the noise of a
label that the first look did not show can only lie lower than before it, so the second threshold
holds whatever was chosen.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from core.privacy.discovery.bins_in_a_row import Counts
from core.privacy.discovery.lists import (
    BEYOND_NOISE,
    UNRULED,
    Beginnings,
    ListCounts,
    labels_ruled,
    listed,
    settled_rule,
    shown,
    with_absent,
)
from core.privacy.discovery.open_domain import OpenDomain
from core.privacy.discovery.planning import LISTS, LISTS_AGAIN, Levels, complete, most_keys
from core.privacy.discovery.ranges import rest_of
from core.privacy.discovery.raw_rows import Keys
from core.privacy.guarded import PrivateTable
from core.privacy.mechanisms.additive import Mechanism
from core.privacy.mechanisms.domain_release import LabelCounts
from core.schema.column import SchemaColumn
from core.schema.rules.rules import Combinations, Determines


@dataclass(frozen=True)
class FoundLists:
    """What was learned of lists: columns, rules, and counts of listed columns' states by name."""

    columns: tuple[SchemaColumn, ...]
    rules: tuple[Determines | Combinations, ...]
    counts: Mapping[str, ListCounts]


@dataclass(frozen=True)
class _Histogram:
    """One list's keys, the noisy counts of them and of missing cells, and what these can show."""

    keys: Keys
    counts: Counts
    levels: Levels

    def rest(self, n: int, column: SchemaColumn | None = None) -> float:
        """The share of n units under labels that are not shown; 0 where noise explains it."""
        passed = self.counts[:-1] > self.levels.label
        if column is not None:
            passed = shown(column, self.keys, self.counts, self.levels, UNRULED)
        inside = [*self.counts[:-1][passed], max(0.0, float(self.counts[-1]))]
        share, error = rest_of(inside, self.levels.std[LISTS], n)
        return share if share > BEYOND_NOISE * error else 0.0


def release_lists(
    table: PrivateTable, wanted: OpenDomain, keys: tuple[Keys, ...], levels: Levels
) -> FoundLists:
    """Carry out what a plan holds of `LISTS` and `LISTS_AGAIN`; `keys` as `read_raw` gives them."""
    most = most_keys(wanted, table.n, table.plan.most_rows)
    counted = LabelCounts(tuple(len(own) for own in keys), most)
    parts = counted.split(noisy_counts(table, LISTS, counted))
    histograms = [_Histogram(own, part, levels) for own, part in zip(keys, parts, strict=True)]
    if any(phase.name == LISTS_AGAIN for phase in table.plan.phases):
        histograms = _looked_at_again(table, wanted, histograms, most)
    return _found(wanted, histograms, table.n)


def noisy_counts(table: PrivateTable, phase: str, mechanism: Mechanism) -> Counts:
    """What a phase releases of the raw rows, float64."""
    return np.asarray(table.release(phase, mechanism).numpy(), dtype=np.float64)


def _looked_at_again(
    table: PrivateTable, wanted: OpenDomain, histograms: Sequence[_Histogram], most: int
) -> list[_Histogram]:
    """With averaged counts where a rest is left; of all lists alike where none leaves any.

    Of a list with a rest r the counts are multiplied by r^⅓: where thresholds that fall with the
    noise uncover a rest in proportion, the sum of rests is then least.
    """
    rests = _rests(wanted, histograms, table.n)
    scales = np.cbrt(rests) if rests.any() else np.ones(len(rests))
    chosen = np.flatnonzero(scales).tolist()
    counted = LabelCounts(
        tuple(len(histograms[i].keys) for i in chosen),
        most,
        tuple(chosen),
        tuple(scales[chosen].tolist()),
    )
    parts = counted.split(noisy_counts(table, LISTS_AGAIN, counted))
    averaged = list(histograms)
    for i, scale, part in zip(chosen, counted.factors, parts, strict=True):
        first = histograms[i]
        weight, levels = first.levels.averaged(
            table.plan, wanted, scale, sensitivity=counted.sensitivity, lists=len(chosen)
        )
        counts = weight * first.counts + (1.0 - weight) * part
        averaged[i] = _Histogram(first.keys, counts, levels)
    return averaged


def _rests(wanted: OpenDomain, histograms: Sequence[_Histogram], n: int) -> Counts:
    """The rest of each histogram; of beginnings of codes, that of the codes."""
    own = {
        column.name: 0.0 if complete(column) else one.rest(n, column)
        for column, one in zip(wanted.listed, histograms, strict=False)
    }
    rests = [*own.values(), *(own[column.name] for column, _ in wanted.beginnings)]
    rests += [0.0] * len(wanted.made_up)
    rests += [one.rest(n) for one in histograms[len(rests) :]]
    return np.array(rests)


def _found(wanted: OpenDomain, histograms: Sequence[_Histogram], n: int) -> FoundLists:
    left = iter(histograms)
    own = list(zip(wanted.listed, left, strict=False))
    beginnings: dict[str, list[Beginnings]] = {}
    for (column, length), one in zip(wanted.beginnings, left, strict=False):
        beginnings.setdefault(column.name, []).append((length, one.keys, one.counts))
    made_up = [
        with_absent(column, float(one.counts[-1]), one.levels, n)
        for column, one in zip(wanted.made_up, left, strict=False)
    ]
    rules = tuple(
        settled_rule(rule, one.keys, one.counts, one.levels)
        for rule, one in zip(wanted.rules, left, strict=True)
    )
    lists = [
        listed(
            column, one.keys, one.counts, one.levels, n,
            beginnings=beginnings.get(column.name, ()),
            ruled=labels_ruled(rules, column.name),
        )
        for column, one in own
    ]  # fmt: skip
    found = (*(one for one, _ in lists), *made_up)
    return FoundLists(found, rules, {one.name: states for one, states in lists})
