"""Disclosure: is anyone of the table exposed? Attacks, each beside its own baseline.

Every attack is tried twice: against rows that the synthesizer learnt from and against as many rows
of a holdout that it never saw. What works on both tells nothing of the people in the table; only
the difference does. These are tests of one release by simple attackers. They can show a leak and
cannot show that there is none: that is what ε is for.

Distances are Euclidean between encoded rows (`Features.encode`), with a difference of label
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
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from core.quality.aligned_tables import Cells, Features, sample_rows
from core.quality.report.types import Attack

__all__ = ["attacks", "distances", "exact_copies"]

Floats = NDArray[np.float64]
ROWS = 4_000  # rows a side, of training, holdout and synthetic rows that attacks look at
LEAST = 20  # holdout rows below which nothing can be said
# Two-sided 99 %: five attacks are tried, and together they should cry wolf once in forty reports.
Z = 2.575829


@dataclass(frozen=True)
class _Sides:
    """Equally many rows that were learnt from and that were not, and synthetic ones, encoded."""

    train: Cells
    holdout: Cells
    synthetic: Cells


def attacks(
    features: Features,
    train: Cells,
    holdout: Cells,
    synthetic: Cells,
    *,
    target: str | None = None,
    seed: int = 0,
) -> list[Attack]:
    """All attacks that the tables allow; none when the holdout is too small.

    Args:
      features: of the columns.
      train: rows that the synthesizer learnt from.
      holdout: rows of the same source that it did not.
      synthetic: what was released.
      target: the column whose value the attribute attacker guesses; without it there is no such
        attack.
      seed: of subsamples.
    """
    rng = np.random.default_rng(seed)
    size = min(ROWS, train.n, holdout.n)
    if size < LEAST or not synthetic.n or not len(features):
        return []
    sides = _Sides(
        train.take(sample_rows(train.n, size, rng)),
        holdout.take(sample_rows(holdout.n, size, rng)),
        synthetic.take(sample_rows(synthetic.n, ROWS, rng)),
    )
    found = [_copies(features, train, sides, synthetic), *_closest(features, sides)]
    found.append(_membership(features, sides, synthetic, rng))
    if target is not None and target in features.names and len(features) > 1:
        found.append(_attribute(features, sides, synthetic, target, rng))
    return found


def exact_copies(features: Features, rows: Cells, others: Cells) -> float:
    """Share of `rows` that stand in `others` too, equal in every compared column."""
    if not rows.n:
        return 0.0
    return float(np.isin(_keys(features, rows), _keys(features, others)).mean())


def distances(x: Floats, others: Floats, k: int = 1) -> Floats:
    """Distances of each row of x to its k nearest rows of others, ascending, [n, min(k, ·)]."""
    k = min(k, len(others))
    with threadpool_limits(limits=1):
        near = NearestNeighbors(n_neighbors=k, algorithm="auto").fit(others)
        found: Floats = near.kneighbors(x)[0]
    return found


def _copies(features: Features, train: Cells, sides: _Sides, synthetic: Cells) -> Attack:
    """Rows of the table that were released as they are, against rows nobody gave away."""
    hit = exact_copies(features, train, synthetic)
    base = exact_copies(features, sides.holdout, synthetic)
    return _attack(
        "copies",
        "Rows that stand in the release as they are",
        "Share of the table's rows that stand in the synthetic table with every value the same, "
        "beside the share of rows it never saw that do so by chance.",
        value=hit,
        baseline=base,
        n=sides.holdout.n,
        unit="share of rows",
        measured=True,
    )


def _closest(features: Features, sides: _Sides) -> list[Attack]:
    """Is a synthetic row nearer to the table than to people who were not in it?"""
    made, train, other = (
        _encoded(features, c) for c in (sides.synthetic, sides.train, sides.holdout)
    )
    to_train, to_other = distances(made, train, 2), distances(made, other, 2)
    nearer = (to_train[:, 0] < to_other[:, 0]) + 0.5 * (to_train[:, 0] == to_other[:, 0])
    found = [
        _attack(
            "closest",
            "Synthetic rows nearer to the table than to strangers",
            "Of each synthetic row's closest real record: how often it is one that was learnt "
            "from rather than one that was not. Half is chance.",
            value=float(nearer.mean()),
            baseline=0.5,
            n=len(nearer),
            unit="share of synthetic rows",
        )
    ]
    if to_train.shape[1] == 2:
        ratios = [_ratio(side) for side in (to_train, to_other)]
        below = (ratios[0] < ratios[1]) + 0.5 * (ratios[0] == ratios[1])
        found.append(
            _attack(
                "ratio",
                "Synthetic rows that single out one record of the table",
                "How often the closest record stands out from the second closest more among rows "
                "that were learnt from than among strangers. Half is chance.",
                value=float(below.mean()),
                baseline=0.5,
                n=len(below),
                unit="share of synthetic rows",
            )
        )
    return found


def _membership(
    features: Features, sides: _Sides, synthetic: Cells, rng: np.random.Generator
) -> Attack:
    """Can it be told who was in the table, by closeness to the release?"""
    made = _encoded(features, synthetic.take(sample_rows(synthetic.n, 5 * ROWS, rng)))
    near = [
        -distances(_encoded(features, cells), made)[:, 0] for cells in (sides.train, sides.holdout)
    ]
    label = np.repeat([1, 0], [len(near[0]), len(near[1])])
    value = float(roc_auc_score(label, np.concatenate(near)))
    n = min(len(near[0]), len(near[1]))
    return _attack(
        "membership",
        "Telling who was in the table",
        "An attacker who knows a person's row guesses from its closest synthetic row whether the "
        "person was in the table: AUROC, 0.5 is a coin, 1 is certainty.",
        value=value,
        baseline=0.5,
        n=n,
        unit="AUROC",
        spread=_auroc_spread(value, n),
    )


def _attribute(
    features: Features, sides: _Sides, synthetic: Cells, target: str, rng: np.random.Generator
) -> Attack:
    """Does the release give away one value of people in the table better than of strangers?"""
    known = features.without(target)
    made = synthetic.take(sample_rows(synthetic.n, 5 * ROWS, rng))
    made = made.take(np.flatnonzero(~made.missing(target)))
    hits = []
    for cells in (sides.train, sides.holdout):
        there = cells.take(np.flatnonzero(~cells.missing(target)))
        hits.append(_guesses(features, known, there, made, target))
    return _attack(
        "attribute",
        f"Guessing {target} of people in the table",
        f"An attacker who knows everything else of a person guesses {target} from the closest "
        "synthetic row: how often that is right, beside the same guess about people who were not "
        "in the table.",
        value=hits[0],
        baseline=hits[1],
        n=min(sides.train.n, sides.holdout.n),
        unit="share guessed",
        measured=True,
    )


def _guesses(features: Features, known: Features, cells: Cells, made: Cells, target: str) -> float:
    if not cells.n or not made.n:
        return 0.0
    with threadpool_limits(limits=1):
        near = NearestNeighbors(n_neighbors=1).fit(_encoded(known, made))
        place = near.kneighbors(_encoded(known, cells), return_distance=False)[:, 0]
    guess, truth = made.values[target][place], cells.values[target]
    feature = features[target]
    if not feature.numeric:
        return float((guess == truth).mean())
    span = max(feature.high - feature.low, 1e-300)
    gap = np.abs(guess.astype(np.float64) - truth.astype(np.float64)) / span
    return float((gap <= 0.05).mean())


def _attack(
    key: str,
    title: str,
    meaning: str,
    *,
    value: float,
    baseline: float,
    n: int,
    unit: str,
    measured: bool = False,
    spread: float | None = None,
) -> Attack:
    """With the half-width of a 99 % interval of the difference, and whether it is above zero."""
    if spread is None:  # of a share; a baseline other than a coin's was measured too
        spread = math.hypot(_share_spread(value, n), _share_spread(baseline, n) * measured)
    half = Z * spread
    return Attack(
        key=key,
        title=title,
        meaning=meaning,
        unit=unit,
        value=value,
        baseline=baseline,
        half_width=half,
        exposed=value - baseline > half,
        records=n,
    )


def _share_spread(share: float, n: int) -> float:
    """Standard error of a share of n rows, never zero: none of n does not prove never."""
    return math.sqrt(max(share * (1.0 - share), 1.0 / n) / n)


def _auroc_spread(auroc: float, n: int) -> float:
    """Standard error of an AUROC with n rows on either side (Hanley and McNeil, 1982)."""
    q1, q2 = auroc / (2.0 - auroc), 2.0 * auroc**2 / (1.0 + auroc)
    spread = auroc * (1.0 - auroc) + (n - 1) * (q1 + q2 - 2.0 * auroc**2)
    return math.sqrt(max(spread, 0.0)) / n


def _ratio(found: Floats) -> Floats:
    """Closest over second closest, in [0, 1]; 1 where both are at distance zero."""
    out: Floats = np.where(found[:, 1] > 0.0, found[:, 0] / np.maximum(found[:, 1], 1e-300), 1.0)
    return out


def _encoded(features: Features, cells: Cells) -> Floats:
    """`Features.encode` with one-hot blocks shrunk so that two labels are at distance 1."""
    x = features.encode(cells)
    start = 0
    for feature in features.items:
        if not feature.numeric:
            x[:, start : start + feature.width] /= math.sqrt(2.0)
        start += feature.width
    return x


def _keys(features: Features, cells: Cells) -> NDArray[np.uint64]:
    """One hash a row of all compared values."""
    frame = pd.DataFrame({name: cells.values[name] for name in features.names})
    return np.asarray(pd.util.hash_pandas_object(frame, index=False), dtype=np.uint64)
