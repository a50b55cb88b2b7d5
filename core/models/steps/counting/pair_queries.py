"""Which pairs of columns are counted, with what weight, and which class by class.

Which pairs, and which class by class, follows from the scan, which was released. A pair that does
not go together differently in the classes is counted once and not in each: a sum over classes would
carry the noise of all. Then each column is counted class by class as well, which is what such a
pair has to do with the class. What the first counts show says how later ones are weighed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.encoding.codec import Codec
from core.models.steps.counting.counts import PairTarget
from core.models.steps.counting.design import MOST_CLASSES, Design
from core.models.steps.counting.scales import ColumnScale
from core.schema.column import Kind

Floats = NDArray[np.float64]
PAIR_SNR_THRESHOLD = 3.0  # standard deviations above what noise alone shows, of a significant pair
FEWEST_PAIRS, PAIRS_A_COLUMN = 1, 6
LEAST_NOISE = 1e-9  # of a share, where there is no noise
LEAST_AGAIN = 1e-6  # of all weight, for any pair: whatever is found, as much is released again
COLUMN_WEIGHT = 0.5  # share of all weight that columns get where no pair is significant
COLUMN_WEIGHT_POWER = 6  # of the share of pairs that are not, by which columns get of that weight
MIN_ALIKE_PAIRS_SHARE = 0.8  # of pairs that are alike in all classes, for any to be counted so
MAX_NOISE_DOMINATED_SHARE = 0.2  # of pairs of rare labels; of more, each class is counted
COLUMN_WEIGHT_JOINED = 0.35  # of columns where no pair is counted class by class
NOISE_CELLS_SHARE = 0.9  # share of a pair's cells with fewer records than noise, class by class
TRUST = 0.5  # most weight by energies: what noise hides in one pair, many show together


@dataclass(frozen=True)
class PairsSeen:
    """What the scan says of each pair before any is counted; float64 [pairs].

    Attributes:
      score: how far beyond independence, in standard deviations of what noise alone shows.
      energy: squared distance to independence within each class, an upper estimate, positive.
      differs: how far it differs between classes, in standard deviations; None with one class.
      importance: of its error among all.
      clear: whether a pair that shows nothing has nothing to show; else noise may hide it.
    """

    score: Floats
    energy: Floats
    differs: Floats | None
    importance: Floats
    clear: bool


@dataclass(frozen=True)
class PairQueries:
    """The counts that are asked for; squared weights sum to one.

    Attributes:
      pairs: block indices, clearest first.
      weights: float64 [pairs], squared weight of each when they are first counted.
      importance: float64 [pairs], of their errors among all.
      by_class: bool [pairs], whether each class is counted apart.
      alike: bool [pairs], whether classes that are counted together are taken to be alike.
      columns: squared weight of all columns together, each counted class by class; may be 0.
    """

    pairs: tuple[tuple[int, ...], ...]
    weights: Floats
    importance: Floats
    by_class: NDArray[np.bool_]
    alike: NDArray[np.bool_]
    columns: float


def select_pairs(
    design: Design,
    sizes: Sequence[int],
    seen: PairsSeen,
    *,
    noise: float,
    noise_dominated: Callable[[tuple[int, ...], float], bool] | None,
) -> PairQueries:
    """What is counted of a table.

    Args:
      seen: what the scan says of each pair.
      noise: standard deviation of a share that all of the weight would be spent on.
      noise_dominated: of a pair and its squared weight, whether nearly all of its cells hold fewer
        records than noise, class by class; None where every class is counted apart.
    """
    order = np.argsort(-seen.score, kind="stable")
    order = order[seen.importance[order] > 0.0]
    if design.wide:
        clear = order[seen.score[order] > PAIR_SNR_THRESHOLD]
        matters = np.argsort(-(seen.importance * seen.score)[clear], kind="stable")
        few = clear[matters][: PAIRS_A_COLUMN * design.columns]
        order = few if len(few) else order[:FEWEST_PAIRS]
    pairs = tuple(design.pairs[i] for i in order)
    cells = np.array([sizes[a] * sizes[b] for a, b in pairs], dtype=np.float64)
    importance = seen.importance[order]
    weights = _trusted(importance, cells * noise**2, seen.energy[order], TRUST)
    alike, hidden = np.zeros(len(order), dtype=bool), np.zeros(len(order), dtype=bool)
    if noise_dominated is not None and seen.differs is not None:
        alike = _alike(seen.differs[order])
        weighted = zip(pairs, weights.tolist(), strict=True)
        hidden = np.array([noise_dominated(pair, weight) for pair, weight in weighted], dtype=bool)
        hidden &= float(hidden.mean()) <= MAX_NOISE_DOMINATED_SHARE
    insignificant = float((seen.score[order] <= PAIR_SNR_THRESHOLD).mean()) * seen.clear
    apart = ~(alike | hidden)
    tied = {column for pair, one in zip(pairs, apart, strict=True) if one for column in pair}
    untied = {column for pair in pairs for column in pair} - tied  # to the class, by any pair
    joined = float((~apart if untied else alike).mean())
    columns = max(COLUMN_WEIGHT * insignificant**COLUMN_WEIGHT_POWER, COLUMN_WEIGHT_JOINED * joined)
    return PairQueries(pairs, weights * (1.0 - columns), importance, apart, alike, columns)


def weights_again(
    asked: PairQueries, counted: Sequence[PairTarget], energy: Floats, noise: float
) -> Floats:
    """Squared weights of the next counts of pairs, which make up for what the first ones lack.

    Energies are trusted less where pairs show less beyond noise than noise: they are mostly luck.

    Args:
      counted: the same pairs, as far as they were released.
      energy: float64 [pairs], what they lose if they are not counted, see `beyond_independence`.
      noise: standard deviation of a share that all of the next weight would be spent on.
    """
    left = 1.0 - asked.columns
    precision = np.array([max(pair.noise, LEAST_NOISE) ** -2 for pair in counted])
    whole = float(precision.sum()) + left / noise**2
    cells = np.array([pair.shares.numel() for pair in counted], dtype=np.float64)
    of_noise = cells / precision
    shown = float((energy - of_noise * np.sqrt(2.0 / cells)).sum() / of_noise.sum())
    weights = _trusted(asked.importance, cells / whole, energy, TRUST * min(1.0, max(0.0, shown)))
    more = np.maximum(LEAST_AGAIN, weights - precision / whole)
    return np.asarray(more * (left / float(more.sum())))


def _trusted(importance: Floats, variance: Floats, energy: Floats, trust: float) -> Floats:
    """So much by energies, the rest as if every pair had much to show; `least_error_weights`."""
    known = least_error_weights(importance, variance, energy)
    unknown = least_error_weights(importance, variance, np.full(len(energy), np.inf))
    return trust * known + (1.0 - trust) * unknown


def grouping_column(
    design: Design,
    codec: Codec,
    counts: Sequence[Floats],
    sizes: Sequence[int],
    noise_multiplier: float,
) -> int | None:
    """The list by whose labels people will compare: its block index.

    A target of many labels. Without a target, the list with the most groups, counted by their size
    (one over the sum of squared shares), if a usual one stands clear of noise. Where nothing
    depends on it, its pairs get little weight by their energy.

    Args:
      counts: of each column's cells, released.
      noise_multiplier: of the counts of pairs.
    """
    if design.condition is not None:
        return None
    if codec.domain.target is not None:
        block = codec.block(codec.domain.target)
        return block.index if block.number is None else None
    groups = {}
    for block in codec.blocks:
        if block.column.kind is Kind.CATEGORY:
            shares = np.maximum(counts[block.index], 0.0)
            groups[block.index] = float(shares.sum() ** 2 / max(np.square(shares).sum(), 1e-9))
    best = max(groups, key=lambda index: groups[index], default=None)
    if best is None or groups[best] <= MOST_CLASSES:
        return None
    # a column's cells have a group's records between them, and noise each
    noise = noise_multiplier * math.sqrt(len(design.features))
    cells = float(np.median([sizes[column] for column in design.features]))
    return best if counts[best].sum() / groups[best] > noise * cells else None


def pair_importance(design: Design, grouping: int | None) -> Floats:
    """How often each pair's error counts, float64 [pairs], where pairs are looked at within groups.

    Two columns within groups err as the pair of both and the pairs of each with the group do. So a
    pair with the grouping column counts once for each other column, and any other pair once.
    """
    if grouping is None:
        return np.ones(len(design.pairs))
    grouped = (np.array(design.pairs) == grouping).any(axis=1)
    return np.where(grouped, max(1.0, len(design.features) - 2.0), 1.0)


def least_error_weights(importance: Floats, variance: Floats, energy: Floats) -> Floats:
    """Squared weights w of counts with which the expected error of all together is least.

    Counts whose noise has energy v/w are shrunk to what is expected without them, which lies E
    from the truth: what is left has energy E·v / (w·E + v) (James and Stein). Its root, times the
    importance i, is the error; the sum of errors is least where w = max(0, ∛(i²v)·t - v/E), with t
    such that all add up to one. What noise hides anyway gets nothing.

    Args:
      importance: float64 [counts], of one's error among all, positive.
      variance: float64 [counts], energy of its noise if it had all of the weight.
      energy: float64 [counts], expected where it is not counted, positive; inf if nothing is known.

    Returns:
      Float64 [counts], not negative, summing to one.

    >>> each = np.ones(3)
    >>> least_error_weights(each, 0.01 * each, np.array([1.0, 1.0, 1e-6])).round(3).tolist()
    [0.5, 0.5, 0.0]
    >>> least_error_weights(np.array([1.0, 1.0, 8.0]), 1e-9 * each, each).round(2).tolist()
    [0.17, 0.17, 0.67]
    """
    steep, hidden = np.cbrt(importance**2 * variance), variance / np.maximum(energy, 1e-300)
    order = np.argsort(hidden / steep)  # as they come in when t rises
    level = (1.0 + np.cumsum(hidden[order])) / np.cumsum(steep[order])
    last = int(np.flatnonzero(level * steep[order] > hidden[order])[-1])
    return np.asarray(np.maximum(0.0, level[last] * steep - hidden))


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


def noise_dominates(
    scales: Sequence[ColumnScale], shares: Sequence[Floats], pair: Sequence[int], records: float
) -> bool:
    """Whether two lists' cells hold fewer records than noise in nearly all places.

    Their labels are rare: what a few go with shows of all classes at once, if at all.

    Args:
      records: of a class, in standard deviations of the noise of one of the pair's counts.
    """
    if any(scales[column].line for column in pair):
        return False  # neighbouring cells say the same
    expected = records * np.outer(*(shares[column] for column in pair))
    return bool((expected < 1.0).mean() >= NOISE_CELLS_SHARE)
