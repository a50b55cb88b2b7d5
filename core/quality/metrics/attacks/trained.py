"""What an attacker works out from all released rows, rather than from the closest one.

*Counts*: three columns at a time, how much oftener a person's values occur in released rows than
among people, in standard deviations; what is published as noisy counts leaks there first. People
are all that are tried, so nothing here knows who was learnt from. *Values*: a forest learns one
listed column after the other from the released rows and guesses people's. *Refits*: the attacker
fits the model again and again, each time to a random half of all who are tried and to the other
half, and compares what each fit releases with a person's row, less what fits release on average. A
regression learns from that which halves people were in, and is then asked of the real release.

Sources: Homer et al., "Resolving individuals contributing trace amounts of DNA to highly complex
mixtures", 2008, and Sankararaman et al., 2009 (counts against a reference); Stadler, Oprisanu and
Troncoso, "Synthetic data: anonymisation groundhog day", 2022 (trained attribute inference, and
membership in synthetic tables); Shokri et al., "Membership inference attacks against machine
learning models", 2017; Carlini et al., "Membership inference attacks from first principles", 2022
(each record less its own mean).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import NearestNeighbors

from core.quality.aligned_tables import AlignedTable
from core.quality.metrics.estimators import one_thread
from core.quality.metrics.marginals import TRIPLES, column_sets
from core.quality.metrics.train_synthetic_test_real import Task

Floats = NDArray[np.float64]
TREES = 30
MOST_LABELS, SECRETS = 20, 6  # of a column that is guessed, and how many columns are
FEWEST, MOST = 4, 64  # fits
NEAR = 4  # released rows whose distance is looked at


def counted(people: AlignedTable, released: AlignedTable, columns: int = 3) -> Floats:
    """How much oftener each person's values occur in released rows than among people [n]."""
    (own, sizes), (other, _) = people.bins(), released.bins()
    n, score = people.n, np.zeros(people.n)
    codes = np.concatenate([own, other])
    for chosen in column_sets(len(sizes), columns, TRIPLES):
        key = np.zeros(len(codes), dtype=np.int64)
        for j in chosen:  # labels may be so many that only cells in use can be numbered
            key = np.unique(key * sizes[j] + codes[:, j], return_inverse=True)[1]
        cells = int(key.max()) + 1
        share = np.bincount(key[:n], minlength=cells) / n
        residual = np.bincount(key[n:], minlength=cells) / len(other) - share
        score += (residual / np.sqrt(share + 1.0 / len(other)))[key[:n]]
    return score


def guessed(people: AlignedTable, released: AlignedTable, target: str | None) -> Floats | None:
    """The share of each person's values that forests guess [n]; None where no column is listed."""
    listed = [f.name for f in people.features.items if 2 <= len(f.labels) <= MOST_LABELS]
    secrets = sorted(listed, key=lambda name: name != target)[:SECRETS]
    right, known = np.zeros(people.n), np.zeros(people.n)
    if len(people.features) < 2:
        return None
    for name in secrets:
        task, here = Task(people.features, name), ~people.missing(name)
        forest = RandomForestClassifier(TREES, min_samples_leaf=2, random_state=0)
        x, y = task.data(released)
        if len(y) and here.any():
            with one_thread():
                guess = forest.fit(x, y).predict(task.data(people)[0])
            right[here] += guess == people.values[name][here]
            known += here
    return right / np.maximum(known, 1.0) if known.any() else None


def nearest(x: Floats, others: Floats, k: int = 1) -> tuple[Floats, NDArray[np.int64]]:
    """Distances to the k nearest rows of others, ascending, and which they are, [n, min(k, ·)]."""
    with one_thread():
        neighbours = NearestNeighbors(n_neighbors=min(k, len(others))).fit(others)
        distance, index = neighbours.kneighbors(x)
    return distance, index


def encoded(table: AlignedTable) -> Floats:
    """`AlignedTable.encode` with one-hot blocks shrunk so that two labels are at distance 1."""
    x = table.encode()
    start = 0
    for feature in table.features.items:
        if not feature.numeric:
            x[:, start : start + feature.width] /= math.sqrt(2.0)
        start += feature.width
    return x


@dataclass(frozen=True)
class Refits:
    """A way to fit the run's model again, for so many seconds.

    Attributes:
      release: given indices of real rows, those learnt from first, what a fit to them releases.
    """

    release: Callable[[NDArray[np.int64]], pd.DataFrame]
    seconds: float


def refitted(
    people: AlignedTable,
    index: NDArray[np.int64],
    released: AlignedTable,
    refits: Refits,
    rng: np.random.Generator,
) -> Floats | None:
    """How much a release looks as if each person had been learnt from [n]; None after few fits."""
    members, seen, began = list[NDArray[np.bool_]](), list[Floats](), time.monotonic()
    while len(seen) < MOST and time.monotonic() < began + refits.seconds:
        half = rng.permutation(people.n) < people.n // 2
        for inside in (half, ~half):  # so that everybody is in as many fits as anybody else
            members.append(inside)
            seen.append(_looks(people, people.features.read(refits.release(index[inside]))))
    if len(seen) < FEWEST:
        return None
    looks = np.stack(seen)
    # each fit less the mean of all others: as the real release is none of those it is compared with
    others = (looks.sum(axis=0) - looks) / (len(looks) - 1)
    x, spread = (looks - others).reshape(-1, looks.shape[2]), looks.std(axis=(0, 1)) + 1e-9
    with one_thread():
        learnt = LogisticRegression().fit(x / spread, np.concatenate(members))
        own = (_looks(people, released) - looks.mean(axis=0)) / spread
        return np.asarray(learnt.decision_function(own))


def _looks(people: AlignedTable, released: AlignedTable) -> Floats:
    """How near released rows come to each person, and how often values occur together [n, 4]."""
    distance = nearest(encoded(people), encoded(released), NEAR)[0]
    near = np.log(0.01 + distance[:, [0, -1]])
    often = [counted(people, released, columns) for columns in (2, 3)]
    return np.column_stack([near, *often])
