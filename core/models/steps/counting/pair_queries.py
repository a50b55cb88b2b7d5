"""What is counted of pairs of columns: which of them, with what weight, and which class by class.

All of it follows from the scan, which was released. A pair that does not go together differently in
the classes is counted once and not in each: a sum over classes would carry the noise of all. Then
each column is counted class by class as well, which is what such a pair has to do with the class.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.models.steps.counting.design import ALL_PAIRS, Design

__all__ = ["BY_NOISE", "BY_SIGHT", "CLEAR", "LOUD", "RULES", "Asked", "Rule", "ask"]

Floats = NDArray[np.float64]
PAIR_SNR_THRESHOLD = 3.0  # standard deviations above what noise alone shows, of a pair
FEWEST_PAIRS, PAIRS_A_COLUMN = 1, 6
QUIET = 6  # power of the share of pairs that show nothing, by which columns get of their weight
CLEAR = 10_000.0  # records a unit of the pairs' noise, beyond which they are weighed by sight
LOUD = 0.04  # standard deviation of the scan, as a share of records, beyond which likewise
MOSTLY = 0.8  # share of pairs that must be alike in all classes for any to be counted so
A_FEW = 0.2  # share of pairs of rare labels that may be left open; of more, each class is counted
BY_CLASS = 0.35  # share of all weight that columns get where no pair is counted class by class


@dataclass(frozen=True)
class Part:
    """A part of the pairs' weight.

    Attributes:
      share: of the pairs' weight.
      energy: power of what was seen of a pair; 0 for the same whatever was seen.
      cells: power of its number of cells: more of them, more noise in all.
    """

    share: float
    energy: float
    cells: float


@dataclass(frozen=True)
class Rule:
    """How weight follows from the scan.

    Attributes:
      parts: of the pairs' weight; their shares sum to one.
      together: whether the classes of pairs that do not differ between them are counted together.
      quiet: share of the pairs' weight that columns get where no pair stands out.
      drowned: whether those of rare labels are, whatever they show of classes.
    """

    parts: tuple[Part, ...]
    together: bool
    quiet: float
    drowned: bool = False


_EARLIER = (Part(0.3, energy=0.0, cells=0.0), Part(0.7, energy=0.5, cells=0.0))
# The first is of earlier versions, whose fits go on as they were begun. By sight, what goes
# together most is matched most: where there is little noise the mixture limits what is learnt, and
# where there is much nothing else can be learnt. Between the two all pairs come to like distances.
BY_SIGHT, BY_NOISE = 1, 3
_EVENLY = (Part(0.6, energy=0.0, cells=1 / 3), Part(0.4, energy=0.25, cells=1 / 3))
RULES = (
    Rule(_EARLIER, together=False, quiet=0.0),
    Rule(_EARLIER, together=False, quiet=0.5),
    Rule(_EVENLY, together=True, quiet=0.5),  # of earlier versions too
    Rule(_EVENLY, together=True, quiet=0.5, drowned=True),
)


@dataclass(frozen=True)
class Asked:
    """The counts that are asked for; squared weights sum to one.

    Attributes:
      pairs: block indices, clearest first.
      weights: float64 [pairs], squared weight of each.
      by_class: bool [pairs], whether each class is counted apart.
      alike: bool [pairs], whether classes that are counted together are taken to be alike.
      columns: squared weight of all columns together, each counted class by class; may be 0.
    """

    pairs: tuple[tuple[int, ...], ...]
    weights: Floats
    by_class: NDArray[np.bool_]
    alike: NDArray[np.bool_]
    columns: float


def ask(
    design: Design, sizes: Sequence[int], above: Floats, score: Floats,
    differs: Floats | None, rule: Rule, drowned: Callable[[tuple[int, ...], float], bool],
) -> Asked:  # fmt: skip
    """What is counted of a table.

    Args:
      above: float64 [pairs], energy of each beyond independence within each class.
      score: float64 [pairs], the same in standard deviations of noise.
      differs: float64 [pairs], how far a pair differs between classes, in standard deviations; None
        where there is one class. Without it every class is counted apart.
      rule: one of `RULES`.
      drowned: of a pair and its squared weight, whether the noise hides nearly all of its cells
        class by class.
    """
    order = np.argsort(-score, kind="stable")
    if len(order) > ALL_PAIRS:
        clear = int((score > PAIR_SNR_THRESHOLD).sum())
        order = order[: min(PAIRS_A_COLUMN * design.columns, max(FEWEST_PAIRS, clear))]
    pairs = tuple(design.pairs[i] for i in order)
    cells = np.array([sizes[a] * sizes[b] for a, b in pairs], dtype=np.float64)
    seen = np.maximum(above[order], 0.0)
    seen = seen if seen.any() else np.ones(len(order))
    each = (part.share * _shared(cells**part.cells * seen**part.energy) for part in rule.parts)
    weights = np.sum(list(each), axis=0)
    alike, hidden = np.zeros(len(order), dtype=bool), np.zeros(len(order), dtype=bool)
    if rule.together and differs is not None:
        alike = _alike(differs[order])
        if rule.drowned:
            weighted = zip(pairs, weights.tolist(), strict=True)
            hidden = np.array([drowned(pair, weight) for pair, weight in weighted], dtype=bool)
            hidden &= float(hidden.mean()) <= A_FEW
    quiet = rule.quiet * float((score[order] <= PAIR_SNR_THRESHOLD).mean()) ** QUIET
    apart = ~(alike | hidden)
    tied = {column for pair, one in zip(pairs, apart, strict=True) if one for column in pair}
    untied = {column for pair in pairs for column in pair} - tied  # to the class, by any pair
    columns = max(quiet, BY_CLASS * float((~apart if untied else alike).mean()))
    return Asked(pairs, weights * (1.0 - columns), apart, alike, columns)


def _shared(sizes: Floats) -> Floats:
    return np.asarray(sizes / sizes.sum())


def _alike(differs: Floats) -> NDArray[np.bool_]:
    """The pairs that differ least between classes, as many as all together show only noise.

    None where those are fewer than `MOSTLY`: where many pairs differ, small differences are to be
    expected in the others too, and they add up.

    >>> _alike(np.array([3.0, -0.5, 0.7, -0.3, 0.1])).tolist()
    [False, True, True, True, True]
    >>> _alike(np.array([3.0, -0.5, 2.0, -1.5])).tolist()
    [False, False, False, False]
    """
    ascending = np.argsort(differs, kind="stable")
    alike = np.zeros(len(differs), dtype=bool)
    alike[ascending] = np.cumsum(differs[ascending]) <= 1e-9
    return alike & bool(alike.mean() >= MOSTLY)
