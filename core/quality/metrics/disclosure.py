"""Disclosure: is anyone of the table exposed? Attacks, each beside its own baseline.

Every attack is tried twice: against rows that the synthesizer learnt from and against as many rows
of a holdout that it never saw. What works on both tells nothing of the people in the table; only
the difference does. These are tests of one release by simple attackers. They can show a leak and
cannot show that there is none: that is what ε is for.

Distances are Euclidean between encoded rows (`AlignedTable.encode`), with a difference of label
counting like a number's full range.

Sources: Giomi et al., "A unified framework for quantifying privacy risk in synthetic data", 2023
(attack against control); Platzer and Reutterer, "Holdout-based empirical assessment of mixed-type
synthetic data", 2021 (closest records); Chen et al., "GAN-Leaks", 2020 (membership by distance).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score
from sklearn.neighbors import NearestNeighbors

from core.quality.aligned_tables import AlignedTable
from core.quality.comparison import Comparison
from core.quality.metrics.estimators import one_thread
from core.quality.metrics.family import Measured, Step, family
from core.quality.report.types import Attack

__all__ = ["attacks", "exact_copies", "nearest"]

Floats = NDArray[np.float64]
ROWS = 4_000  # rows a side, of training, holdout and synthetic rows that attacks look at
LOOKED_UP = 5 * ROWS  # synthetic rows in which an attacker looks up the closest
LEAST = 20  # holdout rows below which nothing can be said
NEIGHBOURS = 24  # real records closest to a synthetic row: two of either kind are among them
EXCHANGES = 200  # of who was learnt from: a standard error is known to 5 %
CLOSE = 0.05  # of a number's range: a guess this near counts as right
# Two-sided 99 %: five attacks are tried, and together they should cry wolf once in forty reports.
Z = 2.575829


@dataclass(frozen=True)
class _Sides:
    """Equally many rows that were learnt from and that were not, and synthetic ones."""

    train: AlignedTable
    holdout: AlignedTable
    synthetic: AlignedTable


def attacks(
    train: AlignedTable,
    holdout: AlignedTable,
    synthetic: AlignedTable,
    *,
    target: str | None = None,
    seed: int = 0,
) -> list[Attack]:
    """All attacks that the tables allow; none when the holdout is too small.

    Args:
      train: rows that the synthesizer learnt from.
      holdout: rows of the same source that it did not.
      synthetic: what was released.
      target: the column whose value the attribute attacker guesses; without it there is no such
        attack.
      seed: of subsamples.
    """
    rng = np.random.default_rng(seed)
    names = train.features.names
    size = min(ROWS, train.n, holdout.n)
    if size < LEAST or not synthetic.n or not names:
        return []
    sides = _Sides(train.sample(size, rng), holdout.sample(size, rng), synthetic.sample(ROWS, rng))
    tried = [
        _copies(train, sides.holdout, synthetic),
        *_closest(sides),
        _membership(sides, synthetic.sample(LOOKED_UP, rng)),
    ]
    if target is not None and target in names and len(names) > 1:
        tried += _attribute(sides, synthetic.sample(LOOKED_UP, rng), target)
    return tried


@family(
    text="Trying to find people of the table",
    order=110,
    cost=2.5,
    applies=lambda tables: tables.holdout is not None,
    otherwise="Whether anyone is exposed was not tested: that needs real rows that the synthesizer "
    "never saw, and no such table was given.",
)
def disclosure(tables: Comparison, _: Step) -> Measured:
    """What simple attackers reach; needs a holdout."""
    assert tables.holdout is not None
    tried = attacks(
        tables.real,
        tables.holdout,
        tables.synthetic,
        target=tables.target,
        seed=tables.seed,
    )
    return Measured(parts={"attacks": tried})


def exact_copies(rows: AlignedTable, others: AlignedTable) -> float:
    """Share of `rows` that stand in `others` too, equal in every compared column."""
    if not rows.n:
        return 0.0
    names = list(rows.features.names)
    hashes, released = (
        pd.util.hash_pandas_object(pd.DataFrame(table.values)[names], index=False)
        for table in (rows, others)
    )
    return float(hashes.isin(released).mean())


def nearest(x: Floats, others: Floats, k: int = 1) -> tuple[Floats, NDArray[np.int64]]:
    """Distances to the k nearest rows of others, ascending, and which they are, [n, min(k, ·)].

    Args:
      x: float [n, d].
      others: float [m, d], m ≥ 1, in the same unit.
      k: neighbours, ≥ 1.
    """
    with one_thread():
        neighbours = NearestNeighbors(n_neighbors=min(k, len(others))).fit(others)
        distance, place = neighbours.kneighbors(x)
    return distance, place


def _copies(train: AlignedTable, holdout: AlignedTable, synthetic: AlignedTable) -> Attack:
    """Rows of the table that were released as they are, against rows nobody gave away."""
    return _attack(
        "copies",
        "Rows that stand in the release as they are",
        "Share of the table's rows that stand in the synthetic table with every value the same, "
        "beside the share of rows it never saw that do so by chance.",
        "share of rows",
        value=exact_copies(train, synthetic),
        baseline=exact_copies(holdout, synthetic),
        n=holdout.n,
    )


def _closest(sides: _Sides) -> list[Attack]:
    """Is a synthetic row nearer to the table than to people who were not in it?"""
    synthetic, train, holdout = (
        _encoded(table) for table in (sides.synthetic, sides.train, sides.holdout)
    )
    to_train, to_holdout = (nearest(synthetic, real, 2)[0] for real in (train, holdout))
    errors = _exchanged_errors(synthetic, train, holdout)
    nearer = _below(to_train[:, 0], to_holdout[:, 0])
    closest = _attack(
        "closest",
        "Synthetic rows nearer to the table than to strangers",
        "Of each synthetic row's closest real record: how often it is one that was learnt "
        "from rather than one that was not. Half is chance.",
        "share of synthetic rows",
        value=float(nearer.mean()),
        n=len(synthetic),
        error=errors[0],
    )
    if to_train.shape[1] < 2:
        return [closest]
    singled = _below(_distance_ratio(to_train), _distance_ratio(to_holdout))
    ratio = _attack(
        "ratio",
        "Synthetic rows that single out one record of the table",
        "How often the closest record stands out from the second closest more among rows "
        "that were learnt from than among strangers. Half is chance.",
        "share of synthetic rows",
        value=float(singled.mean()),
        n=len(synthetic),
        error=errors[1],
    )
    return [closest, ratio]


def _membership(sides: _Sides, synthetic: AlignedTable) -> Attack:
    """Can it be told who was in the table, by closeness to the release?"""
    released = _encoded(synthetic)
    closeness = [
        -nearest(_encoded(table), released)[0][:, 0] for table in (sides.train, sides.holdout)
    ]
    n = len(closeness[0])
    value = float(roc_auc_score(np.repeat([1, 0], n), np.concatenate(closeness)))
    return _attack(
        "membership",
        "Telling who was in the table",
        "An attacker who knows a person's row guesses from its closest synthetic row whether the "
        "person was in the table: AUROC, 0.5 is a coin, 1 is certainty.",
        "AUROC",
        value=value,
        n=n,
        error=_auroc_error(value, n),
    )


def _attribute(sides: _Sides, synthetic: AlignedTable, target: str) -> list[Attack]:
    """Does the release give away one value of people in the table better than of strangers?

    Only people who have the value are attacked; too few of them say nothing.
    """
    train, holdout, synthetic = (
        table.take(np.flatnonzero(~table.missing(target)))
        for table in (sides.train, sides.holdout, synthetic)
    )
    n = min(train.n, holdout.n)
    if n < LEAST:
        return []
    attack = _attack(
        "attribute",
        f"Guessing {target} of people in the table",
        f"An attacker who knows everything else of a person guesses {target} from the closest "
        "synthetic row: how often that is right, beside the same guess about people who were not "
        "in the table.",
        "share guessed",
        value=_share_guessed(train, synthetic, target),
        baseline=_share_guessed(holdout, synthetic, target),
        n=n,
    )
    return [attack]


def _share_guessed(people: AlignedTable, synthetic: AlignedTable, target: str) -> float:
    """How often the target of a person's closest synthetic row is that person's own."""
    if not synthetic.n:
        return 0.0
    known, released = (_encoded(table.without(target)) for table in (people, synthetic))
    closest = nearest(known, released)[1][:, 0]
    guess, truth = synthetic.values[target][closest], people.values[target]
    feature = people.features[target]
    if not feature.numeric:
        return float((guess == truth).mean())
    span = max(feature.high - feature.low, 1e-300)
    gap = np.abs(guess.astype(np.float64) - truth.astype(np.float64)) / span
    return float((gap <= CLOSE).mean())


def _attack(
    key: str,
    title: str,
    meaning: str,
    unit: str,
    *,
    value: float,
    baseline: float | None = None,
    n: int,
    error: float | None = None,
) -> Attack:
    """With the half-width of a 99 % interval of the difference, and whether it is above zero.

    Args:
      key, title, meaning, unit: as in `Attack`.
      value: reached on rows that were learnt from.
      baseline: the same share of rows that were not, measured; None for a coin's ½.
      n: rows a side.
      error: standard error of the value; None for that of shares.
    """
    if error is None:
        error = _share_error(value, n)
        if baseline is not None:
            error = math.hypot(error, _share_error(baseline, n))
    baseline = 0.5 if baseline is None else baseline
    return Attack(
        key=key,
        title=title,
        meaning=meaning,
        unit=unit,
        value=value,
        baseline=baseline,
        half_width=Z * error,
        exposed=value - baseline > Z * error,
        records=n,
    )


def _below(a: Floats, b: Floats) -> Floats:
    """Where a value of a is below its partner in b: 1, or 0; a tie counts half."""
    return np.asarray((a < b) + 0.5 * (a == b), dtype=np.float64)


def _exchanged_errors(synthetic: Floats, train: Floats, holdout: Floats) -> tuple[float, float]:
    """Standard errors of how often the closest, and the more outstanding, record was learnt from.

    If nothing of those learnt from shows, then who of all real records was learnt from is a draw,
    and the shares are as they would be had it fallen differently. So it falls differently, again
    and again. Synthetic rows near one real record then win or lose together, as they do: taken for
    proofs of their own, many of them beside few real records would accuse innocent tables.

    Args:
      synthetic: float [n, d].
      train, holdout: float [m, d], equally many.

    Source: permutation tests, Fisher, "The design of experiments", 1935, section 21.
    """
    real = np.concatenate([train, holdout])
    distance, place = nearest(synthetic, real, NEIGHBOURS)
    rng = np.random.default_rng(0)  # the same report each time
    shares = np.empty((EXCHANGES, 2))
    for draw in shares:
        learnt = rng.permutation(len(real)) < len(train)
        sides = [_first_two(distance, side) for side in (learnt[place], ~learnt[place])]
        draw[0] = _below(*(two[:, 0] for two in sides)).mean()
        draw[1] = _below(*(_distance_ratio(two) for two in sides)).mean()
    errors = np.sqrt(((shares - 0.5) ** 2).mean(axis=0))
    least = 0.5 / len(synthetic)  # where all are ties: none of n does not prove never
    return max(float(errors[0]), least), max(float(errors[1]), least)


def _first_two(distance: Floats, chosen: NDArray[np.bool_]) -> Floats:
    """The two smallest distances [n, 2] among those chosen; ascending [n, k], k ≥ 2.

    Where fewer than two are chosen, the others are taken for as far as the farthest.
    """
    chosen, rows = chosen.copy(), np.arange(len(distance))
    chosen[:, -1] = True
    first = chosen.argmax(axis=1)
    chosen[rows, first] = False
    chosen[:, -1] = True
    return np.stack([distance[rows, first], distance[rows, chosen.argmax(axis=1)]], axis=1)


def _share_error(share: float, n: int) -> float:
    """Standard error of a share of n rows, never zero: none of n does not prove never."""
    return math.sqrt(max(share * (1.0 - share), 1.0 / n) / n)


def _auroc_error(auroc: float, n: int) -> float:
    """Standard error of an AUROC with n rows on either side (Hanley and McNeil, 1982)."""
    q1, q2 = auroc / (2.0 - auroc), 2.0 * auroc**2 / (1.0 + auroc)
    variance = auroc * (1.0 - auroc) + (n - 1) * (q1 + q2 - 2.0 * auroc**2)
    return math.sqrt(max(variance, 0.0)) / n


def _distance_ratio(distances: Floats) -> Floats:
    """Closest over second closest [n] of distances [n, 2], in [0, 1]; 1 where both are zero."""
    closest, second = distances[:, 0], distances[:, 1]
    return np.asarray(np.where(second > 0.0, closest / np.maximum(second, 1e-300), 1.0))


def _encoded(table: AlignedTable) -> Floats:
    """`AlignedTable.encode` with one-hot blocks shrunk so that two labels are at distance 1."""
    x = table.encode()
    start = 0
    for feature in table.features.items:
        if not feature.numeric:
            x[:, start : start + feature.width] /= math.sqrt(2.0)
        start += feature.width
    return x
