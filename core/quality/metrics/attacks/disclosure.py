"""Disclosure: is anyone of the table exposed? Attacks, each beside its own baseline.

Every attack is tried on rows that the synthesizer learnt from and on rows of a holdout, drawn
alike: one row of each person, and read by ranges and labels that do not know which is which. What
works on both tells nothing of the people in the table; only the difference does, at equal shares of
each value of the target, and as far as `membership_test` beside this finds it beyond chance for all
attacks together. They can show a leak and cannot show that there is none: that is what ε is for.

Distances are Euclidean between encoded rows (`AlignedTable.encode`), with a difference of label
counting like a number's full range.

Sources: Giomi et al., "A unified framework for quantifying privacy risk in synthetic data", 2023
(attack against control); Platzer and Reutterer, "Holdout-based empirical assessment of mixed-type
synthetic data", 2021 (closest records); Chen et al., "GAN-Leaks", 2020 (membership by distance).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import rankdata

from core.message import Message
from core.quality.aligned_tables import AlignedTable, Feature, Features, sample_rows
from core.quality.comparison import Comparison
from core.quality.metrics.attacks.membership_test import LEVEL, Lead, classes_of_numbers, leads
from core.quality.metrics.attacks.trained import (
    Refits,
    counted,
    encoded,
    guessed,
    nearest,
    refitted,
)
from core.quality.metrics.family import Measured, Step, family
from core.quality.report.types import Attack

Floats = NDArray[np.float64]
ROWS = 4_000  # rows a side, of training, holdout and synthetic rows that attacks look at
LOOKED_UP = 5 * ROWS  # synthetic rows in which an attacker looks up the closest
LEAST = 20  # holdout rows below which nothing can be said
NEIGHBOURS = 24  # real rows among which ties for the closest are seen
TIED = 1e-6  # distances that differ by less are equal but for rounding
CLOSE = 0.05  # of a number's range: a guess this near counts as right


REFITTED = (
    Message("Telling who was in the table by refitting"),
    Message(
        "An attacker who knows the model fits it again and again with and without each person's "
        "row, and learns how the synthetic tables differ: 0.5 is a coin toss, 1 is certainty."
    ),
)


@dataclass(frozen=True)
class RealRows:
    """Real rows of both kinds in a random order.

    `member`, bool [n], says who was learnt from; `classes`, int [n], are of the target's values;
    `index`, int [n], are places among all rows, those learnt from first.
    """

    rows: AlignedTable
    index: NDArray[np.int64]
    member: NDArray[np.bool_]
    classes: NDArray[np.int64]


@dataclass(frozen=True)
class Trial:
    """An attack that was tried.

    Attributes:
      success: float [n], of each real row, in any unit; NaN for those it was not tried on.
      shown: value and baseline for people, from mean successes on members and on strangers.
    """

    key: str
    title: str
    meaning: str
    unit: str
    success: Floats
    shown: Callable[[float, float], tuple[float, float]]

    def attack(self, lead: Lead, member: NDArray[np.bool_]) -> Attack:
        """With what the test of all attacks together says, and whom a rule made of it accuses.

        Yes or no accuses by itself; of other successes the tenth that are highest on strangers.
        """
        sides = [self.success[side & ~np.isnan(self.success)] for side in (~member, member)]
        least = 0.5 if np.isin(self.success, (0.0, 1.0)).all() else np.quantile(sides[0], 0.9)
        accused, found = (float((side > least).mean()) for side in sides)
        value, baseline = self.shown(lead.members, lead.strangers)
        needed = None
        if lead.at_level is not None:
            least, below = self.shown(*lead.at_level)
            needed = least - below
        return Attack(
            key=self.key,
            title=self.title,
            meaning=self.meaning,
            unit=self.unit,
            value=value,
            baseline=baseline,
            lead_needed=needed,
            p=lead.p,
            exposed=lead.p <= LEVEL,
            records=lead.records,
            strangers=lead.others,
            accused=accused,
            found=found,
        )


def attacks(
    train: AlignedTable,
    holdout: AlignedTable,
    synthetic: AlignedTable,
    *,
    target: str | None = None,
    seed: int = 0,
    refits: Refits | None = None,
) -> list[Attack]:
    """All attacks that the tables, one row of each person, allow; none if the holdout is small.

    Args:
      refits: of the run's model, for the attack that takes long.
    """
    rng = np.random.default_rng(seed)
    if min(train.n, holdout.n) < LEAST or not synthetic.n or not train.features.names:
        return []
    real, released = _read_alike(train, holdout, synthetic, target, rng)
    trials = tried(real, released, target, rng)
    looks = None if refits is None else refitted(real.rows, real.index, released, refits, rng)
    if looks is not None:
        trials.append(_ranked("refitted", *REFITTED, looks))
    found = leads(real.member, real.classes, [trial.success for trial in trials], rng)
    return [one.attack(lead, real.member) for one, lead in zip(trials, found, strict=True)]


def tried(
    real: RealRows, released: AlignedTable, target: str | None, rng: np.random.Generator
) -> list[Trial]:
    """Every attack's success on each real row; knows of no row whether it was learnt from."""
    trials = [_copies(real.rows, released), *_closest(real.rows, released.sample(ROWS, rng))]
    looked_up = released.sample(LOOKED_UP, rng)
    trials.append(_membership(real.rows, looked_up))
    if target is not None and target in real.rows.features.names and len(real.rows.features) > 1:
        trials += _attribute(real, looked_up, target)
    return [*trials, *_trained(real.rows, looked_up, target)]


@family(
    text="Testing whether anyone is exposed",
    order=110,
    cost=2.5,
    applies=lambda tables: tables.holdout is not None,
    otherwise="We could not test whether anyone is exposed: this needs real rows that the model "
    "never saw, and no such table was given.",
)
def disclosure(tables: Comparison, _: Step) -> Measured:
    """What simple attackers reach; needs a holdout."""
    assert tables.holdout is not None
    real, holdout = tables.real, tables.holdout
    if tables.one_each is not None:
        real, holdout = real.take(tables.one_each[0]), holdout.take(tables.one_each[1])
    found = attacks(real, holdout, tables.synthetic, target=tables.target, seed=tables.seed)
    return Measured(parts={"attacks": found})


def _read_alike(
    train: AlignedTable,
    holdout: AlignedTable,
    synthetic: AlignedTable,
    target: str | None,
    rng: np.random.Generator,
) -> tuple[RealRows, AlignedTable]:
    """Rows of both kinds and synthetic ones, by ranges and labels of the real ones together.

    Read by the training rows' own, a stranger's extreme value is clipped and a rare label has no
    coordinate of its own, so that strangers are told apart by the reading.
    """
    chosen = [sample_rows(side.n, ROWS, rng) for side in (train, holdout)]
    sides = train.take(chosen[0]), holdout.take(chosen[1])
    order = rng.permutation(sides[0].n + sides[1].n)
    items, real, released = [], {}, {}
    for feature in train.features.items:
        values = np.concatenate([side.values[feature.name] for side in sides])[order]
        tables = values, synthetic.values[feature.name]
        alike, (real[feature.name], released[feature.name]) = _alike(feature, *tables)
        items.append(alike)
    features = Features(items)
    rows = AlignedTable(features, len(order), real)
    classes = np.zeros(len(order), dtype=np.int64)
    if target is not None and target in features.names:
        classes = real[target].astype(np.int64)
        if features[target].numeric and not rows.missing(target).all():
            classes = classes_of_numbers(real[target].astype(np.float64), sides[1].n)
    member = order < sides[0].n
    index = np.concatenate([chosen[0], train.n + chosen[1]])[order]
    return RealRows(rows, index, member, classes), AlignedTable(features, synthetic.n, released)


def _alike(
    feature: Feature, real: NDArray[np.generic], synthetic: NDArray[np.generic]
) -> tuple[Feature, tuple[NDArray[np.generic], NDArray[np.generic]]]:
    """A column by the range of these real values, or by its labels as often as they occur there."""
    if feature.numeric:
        present = real[~np.isnan(real.astype(np.float64))].astype(np.float64)
        low, high = (present.min(), present.max()) if len(present) else (np.nan, np.nan)
        return replace(feature, low=float(low), high=float(high)), (real, synthetic)
    codes = real.astype(np.int64)
    counts = np.bincount(codes[codes >= 0], minlength=len(feature.labels))
    order = np.lexsort((np.array(feature.labels, dtype=str), -counts))
    rank = np.append(np.argsort(order), -1)  # a missing label's -1 stays
    labels = tuple(feature.labels[i] for i in order)
    return replace(feature, labels=labels), (rank[codes], rank[synthetic.astype(np.int64)])


def _copies(rows: AlignedTable, released: AlignedTable) -> Trial:
    names = list(rows.features.names)
    hashes, others = (
        pd.util.hash_pandas_object(pd.DataFrame(table.values)[names], index=False)
        for table in (rows, released)
    )
    return Trial(
        "copies",
        Message("Exact copies of real rows"),
        Message(
            "Share of the table's rows that appear in the synthetic table with every value the "
            "same, next to the share of unseen rows that do so by chance."
        ),
        Message("share of rows"),
        np.asarray(hashes.isin(others), dtype=np.float64),
        _shares,
    )


def _closest(rows: AlignedTable, synthetic: AlignedTable) -> list[Trial]:
    closest, singled = closest_records(encoded(rows), encoded(synthetic))
    return [
        Trial(
            "closest",
            Message("Synthetic rows closer to the table than to unseen people"),
            Message(
                "How often the real record closest to a synthetic row is one the model was "
                "trained on, rather than one it never saw. Half is chance."
            ),
            Message("share of synthetic rows"),
            closest,
            _halves,
        ),
        Trial(
            "ratio",
            Message("Synthetic rows that single out one real record"),
            Message(
                "The same, with each synthetic row weighted by how much closer its closest real "
                "record is than the second closest: 0 if both are equally close, 1 if it is a "
                "copy. Half is chance."
            ),
            Message("share of synthetic rows"),
            singled,
            _halves,
        ),
    ]


def closest_records(real: Floats, synthetic: Floats) -> tuple[Floats, Floats]:
    """Of how many synthetic rows each real record is the closest, float [n], and how clearly.

    The margin is 1 - the distance to the closest over that to the second. Records at the same
    distance share a synthetic row, and none of them has one.
    """
    points, point_of, copies = np.unique(real, axis=0, return_inverse=True, return_counts=True)
    distance, index = nearest(synthetic, points, NEIGHBOURS)
    tied = distance <= distance[:, :1] + TIED
    sharing = (tied * copies[index]).sum(axis=1)
    each, margins = np.zeros(len(points)), np.zeros(len(points))
    np.add.at(each, index[tied], (tied / sharing[:, None])[tied])
    if distance.shape[1] > 1:
        alone = sharing == 1
        ratio = distance[alone, 0] / distance[alone, 1]
        np.add.at(margins, index[alone, 0], 1.0 - ratio)
    return each[point_of.ravel()], margins[point_of.ravel()]


def _membership(rows: AlignedTable, synthetic: AlignedTable) -> Trial:
    distance = nearest(encoded(rows), encoded(synthetic))[0][:, 0]
    return _ranked(
        "membership",
        Message("Telling who was in the table"),
        Message(
            "An attacker who knows a person's row guesses from the closest synthetic row whether "
            "the person was in the table: 0.5 is a coin toss, 1 is certainty."
        ),
        -np.round(distance / TIED),
    )


def _ranked(key: str, title: str, meaning: str, scores: Floats) -> Trial:
    """An attack by scores that are higher for people who seem to have been learnt from."""
    ranks = rankdata(np.round(scores, 9)) / len(scores)  # a difference of means is AUROC - ½
    return Trial(key, title, meaning, "AUROC", ranks, _auroc)


def _trained(rows: AlignedTable, released: AlignedTable, target: str | None) -> Iterator[Trial]:
    """Attacks that use all released rows at once."""
    yield _ranked(
        "counts",
        Message("Telling who was in the table by counts"),
        Message(
            "An attacker who knows a person's row counts, three columns at a time, how often the "
            "person's values occur in the synthetic table, next to how often among people in "
            "general: 0.5 is a coin toss, 1 is certainty."
        ),
        counted(rows, released),
    )
    if (right := guessed(rows, released, target)) is not None:
        yield Trial(
            "values",
            Message("Guessing any value of people in the table, trained"),
            Message(
                "A model is trained on the synthetic table to guess one column after the other "
                "from all others: how many of a person's values it guesses, next to the same for "
                "people who were not in the table."
            ),
            Message("share guessed"),
            right,
            _shares,
        )


def _attribute(real: RealRows, synthetic: AlignedTable, target: str) -> list[Trial]:
    """Only people who have the value are attacked; too few of them say nothing."""
    known = ~real.rows.missing(target)
    released = synthetic.take(np.flatnonzero(~synthetic.missing(target)))
    if min((known & real.member).sum(), (known & ~real.member).sum()) < LEAST:
        return []
    success = np.full(real.rows.n, np.nan)
    success[known] = _guessed(real.rows.take(np.flatnonzero(known)), released, target)
    attack = Trial(
        "attribute",
        Message("Guessing {target} for people in the table", target=target),
        Message(
            "An attacker who knows everything else about a person guesses {target} from the "
            "closest synthetic row: how often the guess is right, next to the same guess about "
            "people who were not in the table, with each value of {target} equally frequent in "
            "both groups.",
            target=target,
        ),
        Message("share guessed"),
        success,
        _shares,
    )
    return [attack]


def _guessed(people: AlignedTable, synthetic: AlignedTable, target: str) -> Floats:
    """Whether the target of a person's closest synthetic row is that person's own, 0 or 1 [n]."""
    if not synthetic.n:
        return np.zeros(people.n)
    known, released = (encoded(table.without(target)) for table in (people, synthetic))
    closest = nearest(known, released)[1][:, 0]
    guess, truth = synthetic.values[target][closest], people.values[target]
    feature = people.features[target]
    if not feature.numeric:
        return np.asarray(guess == truth, dtype=np.float64)
    span = max(feature.high - feature.low, 1e-300)
    gap = np.abs(guess.astype(np.float64) - truth.astype(np.float64)) / span
    return np.asarray(gap <= CLOSE, dtype=np.float64)


def _shares(members: float, strangers: float) -> tuple[float, float]:
    return members, strangers


def _auroc(members: float, strangers: float) -> tuple[float, float]:
    """Of ranks, as shares of all."""
    return 0.5 + members - strangers, 0.5


def _halves(members: float, strangers: float) -> tuple[float, float]:
    """What falls to members of as many members as strangers, beside a half."""
    return (members / (members + strangers) if members + strangers > 0.0 else 0.5), 0.5
