"""Which pairs of columns are counted, with what weight, and which class by class.

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

Floats = NDArray[np.float64]
PAIR_SNR_THRESHOLD = 3.0  # standard deviations above what noise alone shows, of a significant pair
FEWEST_PAIRS, PAIRS_A_COLUMN = 1, 6
COLUMN_WEIGHT = 0.5  # share of all weight that columns get where no pair is significant
COLUMN_WEIGHT_POWER = 6  # of the share of pairs that are not, by which columns get of that weight
MIN_ALIKE_PAIRS_SHARE = 0.8  # of pairs that are alike in all classes, for any to be counted so
MAX_NOISE_DOMINATED_SHARE = 0.2  # of pairs of rare labels; of more, each class is counted
COLUMN_WEIGHT_JOINED = 0.35  # of columns where no pair is counted class by class


@dataclass(frozen=True)
class WeightingScheme:
    """How squared weight is shared among pairs, and whether classes may be counted together.

    Attributes:
      parts: (share of the weight, power of a pair's energy in the scan, power of its number of
        cells); shares sum to one.
      joins_classes: whether pairs that do not differ between classes are counted once for all.
    """

    parts: tuple[tuple[float, float, float], ...]
    joins_classes: bool


# By energy, the strongest pairs are counted most exactly: where there is little noise the mixture
# limits what is learnt, and where there is much nothing else can be learnt. Between the two, all
# pairs come to like distances.
BY_ENERGY, BY_CELLS = "by_energy", "by_cells"
WEIGHTING_SCHEMES = {
    BY_ENERGY: WeightingScheme(((0.3, 0.0, 0.0), (0.7, 0.5, 0.0)), joins_classes=False),
    BY_CELLS: WeightingScheme(((0.6, 0.0, 1 / 3), (0.4, 0.25, 1 / 3)), joins_classes=True),
}


@dataclass(frozen=True)
class PairQueries:
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


def select_pairs(
    design: Design, sizes: Sequence[int], above: Floats, score: Floats, differs: Floats | None,
    scheme: WeightingScheme, noise_dominated: Callable[[tuple[int, ...], float], bool],
) -> PairQueries:  # fmt: skip
    """What is counted of a table.

    Args:
      above: float64 [pairs], energy of each beyond independence within each class.
      score: float64 [pairs], the same in standard deviations of noise.
      differs: float64 [pairs], how far a pair differs between classes, in standard deviations; None
        where there is one class. Without it every class is counted apart.
      noise_dominated: of a pair and its squared weight, whether nearly all of its cells hold fewer
        records than noise, class by class.
    """
    order = np.argsort(-score, kind="stable")
    if len(order) > ALL_PAIRS:
        significant = int((score > PAIR_SNR_THRESHOLD).sum())
        order = order[: min(PAIRS_A_COLUMN * design.columns, max(FEWEST_PAIRS, significant))]
    pairs = tuple(design.pairs[i] for i in order)
    cells = np.array([sizes[a] * sizes[b] for a, b in pairs], dtype=np.float64)
    energy = np.maximum(above[order], 0.0)
    energy = energy if energy.any() else np.ones(len(order))
    each = [
        part * _shared(cells**by_cells * energy**by_energy)
        for part, by_energy, by_cells in scheme.parts
    ]
    weights = np.sum(each, axis=0)
    alike, hidden = np.zeros(len(order), dtype=bool), np.zeros(len(order), dtype=bool)
    if scheme.joins_classes and differs is not None:
        alike = _alike(differs[order])
        weighted = zip(pairs, weights.tolist(), strict=True)
        hidden = np.array([noise_dominated(pair, weight) for pair, weight in weighted], dtype=bool)
        hidden &= float(hidden.mean()) <= MAX_NOISE_DOMINATED_SHARE
    insignificant = float((score[order] <= PAIR_SNR_THRESHOLD).mean())
    apart = ~(alike | hidden)
    tied = {column for pair, one in zip(pairs, apart, strict=True) if one for column in pair}
    untied = {column for pair in pairs for column in pair} - tied  # to the class, by any pair
    joined = float((~apart if untied else alike).mean())
    columns = max(COLUMN_WEIGHT * insignificant**COLUMN_WEIGHT_POWER, COLUMN_WEIGHT_JOINED * joined)
    return PairQueries(pairs, weights * (1.0 - columns), apart, alike, columns)


def _shared(sizes: Floats) -> Floats:
    return np.asarray(sizes / sizes.sum())


def _alike(differs: Floats) -> NDArray[np.bool_]:
    """The pairs that differ least between classes, as many as all together show only noise.

    None where those are fewer than `MIN_ALIKE_PAIRS_SHARE`: where many pairs differ, small
    differences are to be expected in the others too, and they add up.

    >>> _alike(np.array([3.0, -0.5, 0.7, -0.3, 0.1])).tolist()
    [False, True, True, True, True]
    >>> _alike(np.array([3.0, -0.5, 2.0, -1.5])).tolist()
    [False, False, False, False]
    """
    ascending = np.argsort(differs, kind="stable")
    alike = np.zeros(len(differs), dtype=bool)
    alike[ascending] = np.cumsum(differs[ascending]) <= 1e-9
    return alike & bool(alike.mean() >= MIN_ALIKE_PAIRS_SHARE)
