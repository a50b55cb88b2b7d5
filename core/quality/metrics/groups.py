"""Headline figures by the groups of one or two columns, with the groups that are farthest off.

Within each group: the mean distance of its single columns and pairs, beside that of as many rows
drawn from the real table; the rate of an outcome; and what a model of it, trained on either whole
table, is worth on the group's real test rows. The outcome is the rarest label of the target that a
twentieth of real rows hold. A case is found where it is among as many highest scores as there are
cases, so that true positive rates of two models can be compared (equal opportunity: Hardt, Price
and Srebro, 2016). Groups are named where they differ beyond chance at 95 % for all together.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import r2_score

from core.message import Message, to_say
from core.quality.aligned_tables import AlignedTable, Coded
from core.quality.comparison import Comparison
from core.quality.metrics.estimators import auroc, logistic, regressors, side_by_side
from core.quality.metrics.family import Measured, Step, family
from core.quality.metrics.marginals import DENSE_CELLS, column_sets
from core.quality.metrics.train_synthetic_test_real import TEST_ROWS, Predictions, Task, predict
from core.quality.report.types import GroupFigures, Grouping

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]
Binned = tuple[Ints, Ints]  # `AlignedTable.bins`

ROWS = 20_000  # a side
WORK = 100_000_000  # rows × sets of columns × groupings: a few seconds of counting
MOST_SETS = 300  # of columns within one grouping
MOST_COLUMNS, FEW = 8, 12  # columns to group by unasked, and labels that one may have
PARTS, OWN = 4, 8  # of numbers, where they have more different values than the second
MOST_GROUPS = 24  # the largest
LEAST, LEAST_CASES = 30, 20  # real rows of a group that has figures, and cases that may be found
RARE = 0.05  # of real rows that an outcome has at least
FARTHEST = to_say(
    "Beyond chance, “{group}” is farthest from the real rows. Its pairs of columns have a distance "
    "of {synthetic:.3f}; in another sample of real rows it is {real:.3f}."
)
RATE = to_say(
    "The share of “{outcome}” differs most for “{group}”: {real:.1%} of real rows, "
    "{synthetic:.1%} of synthetic rows."
)
MEAN = to_say(
    "The mean of “{outcome}” differs most for “{group}”: {real:,.4g} in real rows, "
    "{synthetic:,.4g} in synthetic rows."
)
FOUND = to_say(
    "Of the real cases of “{outcome}”, a model trained on synthetic rows finds {low:.0%} to "
    "{high:.0%}, depending on the group; one trained on real rows {real_low:.0%} to "
    "{real_high:.0%}."
)
MISSED = to_say(
    "The largest difference is for “{group}”: {synthetic:.0%} are found instead of {real:.0%}."
)


@family(text="Comparing groups", order=145, cost=1.5)
def by_groups(tables: Comparison, _: Step) -> Measured:
    """Figures by the groups that were asked for, or of columns with few values and of two each."""
    models = _Models.of(tables)
    sides = [*tables.samples(ROWS, 12), models.test]
    binned = [side.bins() for side in sides[:3]]
    found = [_grouping(sides, binned, columns, models) for columns in _chosen(tables)]
    return Measured(parts={"groupings": [one for one in found if len(one.groups) > 1]})


def _chosen(tables: Comparison) -> list[tuple[str, ...]]:
    """The columns asked for; columns with few labels, then numbers, then two each, in the time."""
    others = [one for one in tables.features.items if one.name != tables.target]
    listed = sorted((f for f in others if 2 <= len(f.labels) <= FEW), key=lambda f: len(f.labels))
    names = [f.name for f in (*listed, *(f for f in others if f.high > f.low))][:MOST_COLUMNS]
    sets = min(MOST_SETS, max(1, math.comb(len(tables.features), 2)))
    room = max(1, WORK // (min(ROWS, tables.real.n) * sets))
    single = [(name,) for name in names]
    wanted = [tables.grouping[0], *single, *combinations(names, 2)]
    return [one for one in dict.fromkeys(wanted) if one][:room]


def _grouping(
    sides: Sequence[AlignedTable],
    binned: Sequence[Binned],
    columns: tuple[str, ...],
    models: _Models,
) -> Grouping:
    """Figures by the groups of some columns; sides: real, synthetic, resampled and test rows."""
    each = [Coded.of(sides[0].features[name], sides, own=OWN, parts=PARTS) for name in columns]
    coded = Coded.crossed(each)
    counts = np.bincount(coded.codes[0], minlength=len(coded.names))
    kept = np.sort(np.argsort(-counts, kind="stable")[:MOST_GROUPS])
    kept = kept[counts[kept] >= LEAST]
    number = np.full(len(coded.names), len(kept))  # all others share the last one
    number[kept] = np.arange(len(kept))
    groups = [number[codes] for codes in coded.codes]
    others = np.flatnonzero([name not in columns for name in sides[0].features.names])
    single, pairs = (_distances(binned, groups, others, k) for k in (1, 2))
    outcome = None if models.task is None or models.task.target in columns else models.outcome
    z = NormalDist().inv_cdf(1.0 - 0.025 / max(1, len(kept)))
    values = [] if outcome is None else [models.values(side) for side in sides[:2]]
    figures = [
        GroupFigures(
            name=coded.names[at],
            share=_two(float((codes == i).mean()) for codes in groups[:2]),
            single=_two(single[i].tolist()),
            pairs=_two(pairs[i].tolist()),
            **({} if outcome is None else models.figures(values, [g == i for g in groups], z)),
        )
        for i, at in enumerate(kept.tolist())
    ]
    return Grouping(
        columns=columns,
        outcome=outcome,
        score="R²" if models.task is not None and models.task.numeric else "AUROC",
        groups=figures,
        unseen=int((counts > 0).sum()) - len(kept),
        sentences=list(_sentences(figures, outcome)),
    )


def _two(values: Iterable[float]) -> tuple[float, float]:
    real, synthetic = (round(value, 6) for value in values)
    return real, synthetic


def _distances(binned: Sequence[Binned], groups: Sequence[Ints], others: Ints, k: int) -> Floats:
    """Mean distance from real rows within each group, of resampled and of synthetic ones [·, 2]."""
    (a, sizes), (b, _), (c, _) = binned
    count = int(max(code.max(initial=0) for code in groups)) + 1
    whole = [np.bincount(code, minlength=count) for code in groups[:3]]
    sets, apart = column_sets(len(others), k, MOST_SETS), np.zeros((count, 2))
    for some in sets:
        keys, cells = list(groups[:3]), count
        for j in (others[i] for i in some):
            keys = [key * sizes[j] + x[:, j] for key, x in zip(keys, (a, b, c), strict=True)]
            cells *= int(sizes[j])
        used, each = np.arange(min(cells, DENSE_CELLS)), cells // count
        if cells > DENSE_CELLS:
            used, dense = np.unique(np.concatenate(keys), return_inverse=True)
            keys = np.split(dense, np.cumsum([len(key) for key in keys])[:-1])
        group_of = used // each
        real, synthetic, resampled = (
            np.bincount(key, minlength=len(group_of)) / np.maximum(n, 1)[group_of]
            for key, n in zip(keys, whole, strict=True)
        )
        for i, other in enumerate((resampled, synthetic)):
            apart[:, i] += 0.5 * np.bincount(group_of, np.abs(real - other), count)
    apart /= len(sets)
    apart[whole[1] == 0, 1] = 1.0  # no synthetic row in the group
    return apart


@dataclass(frozen=True)
class _Models:
    """What models of the target, trained on the real and on the synthetic table, say of test rows.

    Attributes:
      test: real rows whose target is present.
      label: the outcome's; None of a number.
      said: for each of the test rows, how much speaks for the outcome, or the number.
    """

    test: AlignedTable
    task: Task | None = None
    label: int | None = None
    outcome: str | None = None
    said: tuple[Floats, ...] = ()

    @classmethod
    def of(cls, tables: Comparison) -> _Models:
        """Logistic regression for labels, ridge regression for numbers."""
        rng, target = tables.rng(13), tables.target
        test = tables.test.sample(TEST_ROWS, rng)
        if target is None:
            return cls(test)
        task, test = Task(tables.features, target), test.take(np.flatnonzero(~test.missing(target)))
        samples = [table.sample(ROWS, rng) for table in (tables.train, tables.synthetic)]
        learned = _learned(task, samples, test)
        if task.numeric:
            said = tuple(one.predicted.astype(np.float64) for one in learned)
            return cls(test, task, None, target, said)
        codes = tables.real.values[target].astype(np.int64)
        shares = np.bincount(codes[codes >= 0], minlength=1) / max(1, len(codes))
        often = np.flatnonzero(shares >= RARE)
        if len(often) < 1 or shares.max() == 1.0:
            return cls(test)
        label = int(often[np.argmin(shares[often])])
        found = [np.asarray(one.class_scores[:, one.labels == label], float) for one in learned]
        outcome = f"{target} = {tables.features[target].labels[label]}"
        return cls(test, task, label, outcome, tuple(x[:, 0] for x in found if x.size))

    def values(self, table: AlignedTable) -> Floats:
        """1 where a row has the outcome and 0 where not, or the number; NaN where missing [n]."""
        assert self.task is not None
        column = table.values[self.task.target].astype(np.float64)
        if self.label is None:
            return column
        return np.where(column < 0, np.nan, column == self.label)

    @cached_property
    def truth(self) -> Floats:
        """`values` of the test rows."""
        return self.values(self.test)

    @cached_property
    def hits(self) -> list[Mask]:
        """The test rows that each model tells to be cases: as many as there are, bool [n]."""
        every = int(self.truth.sum())
        return [np.argsort(np.argsort(-x, kind="stable")) < every for x in self.said]

    def figures(self, sides: Sequence[Floats], rows: Sequence[Mask], z: float) -> dict[str, Any]:
        """Of one group: rates on both sides, by `values`, and how good models are on test rows."""
        mine = [side[at] for side, at in zip(sides, rows, strict=False)]
        real, synthetic = (x[~np.isnan(x)] for x in mine)
        found: dict[str, Any] = {}
        if len(real) and len(synthetic):
            spread = float(np.concatenate([real, synthetic]).std())
            found["rate"] = _two((real.mean(), synthetic.mean()))
            found["chance"] = z * spread * math.sqrt(1.0 / len(real) + 1.0 / len(synthetic))
        truth, tested = self.truth, rows[3]
        if len(self.said) < 2:
            return found
        if self.label is None:
            if tested.sum() >= LEAST and truth[tested].std() > 0.0:
                scores = (r2_score(truth[tested], x[tested]) for x in self.said)
                found["score"] = _two(max(0.0, score) for score in scores)
            return found
        cases = tested & (truth == 1.0)
        n, others = int(cases.sum()), int((tested & (truth == 0.0)).sum())
        if min(n, others) >= LEAST_CASES:
            found["score"] = _two(auroc(truth[tested] == 1.0, x[tested]) for x in self.said)
        if n >= LEAST_CASES:
            found["found"] = _two(hit[cases].mean() for hit in self.hits)
            differ = int((self.hits[0][cases] != self.hits[1][cases]).sum())
            found["found_chance"] = z * math.sqrt(differ + 1) / n
        return found


def _learned(task: Task, samples: Sequence[AlignedTable], test: AlignedTable) -> list[Predictions]:
    """What a model trained on each of the samples says of the test rows; [] of one class."""

    def learn(table: AlignedTable) -> list[Predictions]:
        model = regressors()["Ridge regression"] if task.numeric else logistic()
        return list(predict(task, table, test, models={"": model}).values())

    return [one for some in side_by_side(learn, samples) for one in some]


def _sentences(figures: Sequence[GroupFigures], outcome: str | None) -> Iterator[Message]:
    """The worst groups, beyond chance where chance is known."""
    worst = max(figures, key=lambda one: one.pairs[1] - one.pairs[0], default=None)
    if worst is None:
        return
    yield Message(FARTHEST, group=worst.name, **_named(worst.pairs))
    if outcome is None:
        return
    if rated := _largest([(one.name, one.rate, one.chance) for one in figures]):
        yield Message(RATE if " = " in outcome else MEAN, outcome=outcome, **rated)
    else:
        yield Message("In no group does “{outcome}” differ by more than chance.", outcome=outcome)
    tested = [one.found for one in figures if one.found]
    if len(tested) > 1:
        real, made = ([each[side] for each in tested] for side in (0, 1))
        ends = {"real_low": min(real), "real_high": max(real), "low": min(made), "high": max(made)}
        yield Message(FOUND, outcome=outcome, **ends)
    if missed := _largest([(one.name, one.found, one.found_chance) for one in figures]):
        yield Message(MISSED, **missed)


def _largest(
    measured: Sequence[tuple[str, tuple[float, float] | None, float | None]],
) -> dict[str, Any]:
    """The group, and the two figures of it, that differ most among those beyond chance; or {}."""
    beyond = [
        (abs(two[1] - two[0]), name, two)
        for name, two, chance in measured
        if two is not None and abs(two[1] - two[0]) > (chance or 0.0)
    ]
    return {"group": max(beyond)[1], **_named(max(beyond)[2])} if beyond else {}


def _named(two: tuple[float, float]) -> dict[str, float]:
    return {"real": two[0], "synthetic": two[1]}
