"""Whether attacks succeed more on records that were learnt from: one exact test for all of a run.

Null hypothesis: within each class, which records were learnt from is a draw that nothing of the
release depends on. It is how they were drawn (`core.encoding.holdout`), so where there is no leak
any other draw with as many of each class was as likely, whatever the records look like, and the
p-value is exact for any sample size, any ties and any dependence between the attacks. Comparing
within classes means that a base rate which differs between the two kinds by luck is no success of
an attack.

Family: all attacks tried on one release. Their smallest p-value is compared with what it would have
been under the other draws, so that of all releases without a leak at most the level raises an alarm
by any attack. Releases tried again on the same split are not independent of each other: a split
that is unlucky in another way than in its classes stays so.

Sources: Fisher, "The design of experiments", 1935, section 21 (permutations); Mantel and Haenszel,
1959 (differences within classes); Westfall and Young, "Resampling-based multiple testing", 1993,
algorithm 2.5 (the smallest p-value, single step).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]
LEVEL = 0.01  # of all attacks of a run together
DRAWS = 1_999  # a p-value near the level is known to ± 0.0022, and 1 / (DRAWS + 1) is the smallest
AT_ONCE = 100  # draws held in memory: 100 × 8,000 records take 6 MB
DIGITS = 9  # of a standardised sum: equal ones differ by rounding alone
MOST_CLASSES, PER_CLASS = 10, 20  # of a number; with fewer strangers a class hardly compares them


@dataclass(frozen=True)
class Lead:
    """One attack's success on records that were learnt from and on others.

    Attributes:
      members, strangers: mean success at the same weight for each class.
      at_level: the same two where `p` would just be at most the level; None where none would be.
      p: share of draws in which any attack leads as clearly as this one does, in (0, 1].
      records, others: how many members and strangers were compared: classes that hold both.
    """

    members: float
    strangers: float
    at_level: tuple[float, float] | None
    p: float
    records: int
    others: int


def leads(
    member: Mask,
    classes: Ints,
    successes: Sequence[Floats],
    rng: np.random.Generator,
    *,
    draws: int = DRAWS,
) -> list[Lead]:
    """Compare every attack's success on members and strangers, class by class.

    Args:
      member: bool [n], which records were learnt from; exchanged within classes, int [n].
      successes: of each attack, float [n]; NaN throughout a class that the attack does not try. A
        function of all records together that does not know who is a member.
    """
    scores = np.stack(successes, axis=1)
    classes = np.unique(classes, return_inverse=True)[1]
    strata = _Strata.of(member, classes, np.nan_to_num(scores))
    sums = [strata.values[member].sum(axis=0, keepdims=True)]
    sums += [drawn @ strata.values for drawn in _drawn(member, classes, draws, rng)]
    z = np.round((np.vstack(sums) - strata.expected) / strata.scale, DIGITS)
    alone = np.column_stack([_p_values(column) for column in z.T])  # of each attack by itself
    smallest = np.sort(alone.min(axis=1))
    together = smallest.searchsorted(alone, side="right") / len(smallest)
    compared = (strata.weights[classes] > 0.0)[:, None] & ~np.isnan(scores)
    found = []
    for k, rows in enumerate(compared.T):
        reached = z[together[:, k] <= LEVEL, k]
        least = float(reached.min()) if len(reached) and strata.spread[k] else None
        found.append(strata.lead(k, rows, float(together[0, k]), float(z[0, k]), least))
    return found


def classes_of_numbers(values: Floats, others: int) -> Ints:
    """Classes of a number by quantiles, each to hold twenty of the others; NaN has its own.

    >>> classes_of_numbers(np.array([3.0, 1.0, 2.0, np.nan, 4.0]), 40).tolist()
    [1, 0, 0, 2, 1]
    """
    present = ~np.isnan(values)
    bins = max(1, min(MOST_CLASSES, others // PER_CLASS))
    edges: Floats = np.zeros(0)
    if bins > 1:
        edges = np.unique(np.quantile(values[present], np.arange(1, bins) / bins))
    out = np.full(len(values), len(edges) + 1)
    out[present] = np.searchsorted(edges, values[present], side="left")
    return out


@dataclass(frozen=True)
class _Strata:
    """Sums over members as they are drawn within classes.

    values: float [n, attacks].
    weights: float [classes], of each class's difference; 0 where a class holds one kind alone.
    expected, spread: float [attacks], mean and standard deviation of a drawn sum.
    """

    member: Mask
    classes: Ints
    values: Floats
    weights: Floats
    expected: Floats
    spread: Floats

    @classmethod
    def of(cls, member: Mask, classes: Ints, values: Floats) -> _Strata:
        counts = np.bincount(classes).astype(np.float64)
        members = np.bincount(classes, weights=member)
        weights = members * (counts - members) / counts
        expected, variance = np.zeros(values.shape[1]), np.zeros(values.shape[1])
        for one, weight in enumerate(weights):
            within = values[classes == one]
            expected += members[one] * within.mean(axis=0)
            if weight:
                variance += weight * within.var(axis=0, ddof=1)
        return cls(member, classes, values, weights, expected, np.sqrt(variance))

    @property
    def scale(self) -> Floats:
        """The spread; 1 where no draw differs from another."""
        return np.where(self.spread > 0.0, self.spread, 1.0)

    def lead(self, k: int, rows: Mask, p: float, z: float, least: float | None) -> Lead:
        """What attack k reaches on these rows; z and least are standardised sums."""
        if not rows.any():
            return Lead(0.0, 0.0, None, 1.0, 0, 0)
        means = [self._mean(k, rows & side) for side in (self.member, ~self.member)]
        records, n = int((rows & self.member).sum()), int(rows.sum())
        at_level = None
        if least is not None:
            more = (least - z) * self.spread[k] / self._weight(rows)  # of the lead
            at_level = (
                float(means[0] + more * (n - records) / n),
                float(means[1] - more * records / n),
            )
        return Lead(means[0], means[1], at_level, p, records, n - records)

    def _weight(self, rows: Mask) -> float:
        return float(self.weights[np.unique(self.classes[rows])].sum())

    def _mean(self, k: int, rows: Mask) -> float:
        counts = np.bincount(self.classes[rows], minlength=len(self.weights))
        sums = np.bincount(self.classes[rows], self.values[rows, k], len(self.weights))
        means = sums / np.maximum(counts, 1)
        return float((self.weights * means)[counts > 0].sum()) / self._weight(rows)


def _drawn(member: Mask, classes: Ints, draws: int, rng: np.random.Generator) -> Iterator[Floats]:
    """Members drawn anew, as many of each class: 0 or 1, float [at most AT_ONCE, n], and again."""
    by_class = [np.flatnonzero(classes == one) for one in range(int(classes.max()) + 1)]
    counts = [int(member[rows].sum()) for rows in by_class]
    for start in range(0, draws, AT_ONCE):
        keys = rng.random((min(AT_ONCE, draws - start), len(member)))
        drawn = np.zeros(keys.shape)
        for rows, count in zip(by_class, counts, strict=True):
            if count:
                own = keys[:, rows]
                drawn[:, rows] = own <= np.partition(own, count - 1, axis=1)[:, count - 1, None]
        yield drawn


def _p_values(z: Floats) -> Floats:
    """The share of sums that are at least as large, of each of them, itself included."""
    ascending = np.sort(z)
    return 1.0 - np.searchsorted(ascending, z, side="left") / len(z)
