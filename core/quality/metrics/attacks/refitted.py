"""Membership by refitting: how released rows look to a person who was learnt from, and who was not.

The attacker knows the rows of all who are tried and the model, but not who was learnt from. He fits
the model again and again, each time to a random half of them and to the other half, and compares
what each fit releases with a person's row, less what fits release on average. A regression learns
from that which halves people were in, and is then asked of the real release. No fit depends on who
was learnt from.

Sources: Shokri et al., "Membership inference attacks against machine learning models", 2017;
Stadler et al., 2022 (synthetic tables); Carlini et al., "Membership inference attacks from first
principles", 2022 (each record less its own mean).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression

from core.quality.aligned_tables import AlignedTable
from core.quality.metrics.attacks.trained import counted, encoded, nearest
from core.quality.metrics.estimators import one_thread

Floats = NDArray[np.float64]
FEWEST, MOST = 4, 64  # fits
NEAR = 4  # released rows whose distance is looked at


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
