"""What an attacker works out from all released rows, rather than from the closest one.

*Counts*: three columns at a time, how much oftener a person's values occur in released rows than
among people, in standard deviations; what is published as noisy counts leaks there first. People
are all that are tried, so nothing here knows who was learnt from. *Values*: a forest learns one
listed column after the other from the released rows and guesses people's.

Sources: Homer et al., "Resolving individuals contributing trace amounts of DNA to highly complex
mixtures", 2008, and Sankararaman et al., 2009 (counts against a reference); Stadler, Oprisanu and
Troncoso, "Synthetic data: anonymisation groundhog day", 2022 (trained attribute inference).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import RandomForestClassifier
from sklearn.neighbors import NearestNeighbors

from core.quality.aligned_tables import AlignedTable
from core.quality.metrics.estimators import one_thread
from core.quality.metrics.marginals import TRIPLES, column_sets
from core.quality.metrics.train_synthetic_test_real import Task

Floats = NDArray[np.float64]
TREES = 30
MOST_LABELS, SECRETS = 20, 6  # of a column that is guessed, and how many columns are


def counted(people: AlignedTable, released: AlignedTable, columns: int = 3) -> Floats:
    """How much oftener each person's values occur in released rows than among people [n].

    Args:
      columns: that are looked at together.
    """
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
