"""Which sets of columns go together beyond noise and chance, for people to see; post-processing."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import islice
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import ndtri
from torch import Tensor

from core.encoding.codec import Codec
from core.models.events import Interaction
from core.models.steps.counting.design import Design
from core.models.steps.counting.scan import Scanned, normal_score

Floats = NDArray[np.float64]
MOST_REPORTED = 300  # sets that are shown to people
FALSE_POSITIVE_RATE = 0.01  # of tables of independent columns, those in which a set is reported


class Known(Protocol):
    """What of `Releases` it is told by."""

    codec: Codec
    design: Design
    signs: tuple[Tensor, ...]
    column_counts: list[Floats]
    column_noise: list[Floats]

    @property
    def records(self) -> int:
        """Of the table."""

    @property
    def tagged(self) -> frozenset[int]:
        """Blocks of columns whose distribution is hidden."""

    @property
    def pairs_by_class(self) -> tuple[Tensor, Tensor]:
        """See `Scanned.independent`."""

    @property
    def larger_sets(self) -> list[tuple[list[int], float]]:
        """Sets of three or more columns that were counted, with their `Scanned.energy`."""

    def class_shares(self) -> Floats:
        """Of the classes, [classes]."""

    def scan_variances(self) -> Floats:
        """Of one number of the scan within each class, [classes]."""

    def differing(self, size: int, expected: Tensor) -> Floats:
        """How far the scan of each set of `size` columns differs between classes."""


class Significance:
    """What a scan that was released says of sets, by all else that is known so far."""

    def __init__(self, known: Known, scanned: Scanned):
        self.known, self.design, self.scanned = known, known.design, scanned

    @property
    def sets(self) -> tuple[Interaction, ...]:
        """Sets of columns that go together beyond noise and chance, clearest first; free to show.

        Chance is what independent columns would show without noise. A set with a tagged column is
        left out, and nothing is said of a tagged target: the scan is of real columns.
        """
        larger = self.known.larger_sets
        clear = ((tuple(columns), self._normal_score(z)) for columns, z in larger)
        shown = [*self._pairs, *self._shown(clear)]
        return tuple(sorted(shown, key=lambda one: -one.score)[:MOST_REPORTED])

    @cached_property
    def _pairs(self) -> tuple[Interaction, ...]:
        known, spread = self._signs_counted()
        chance = self.known.class_shares() / self.known.records
        by_class = self.known.pairs_by_class
        scores = self.scanned.beyond_independence(*by_class, known, spread, chance)
        pairs, clearest = self.design.pairs, np.argsort(-scores, kind="stable")
        shown = self._shown((pairs[i], float(scores[i])) for i in clearest)
        return tuple(islice(shown, MOST_REPORTED))

    def _shown(self, scores: Iterable[tuple[tuple[int, ...], float]]) -> Iterator[Interaction]:
        """Of scores in falling order, those beyond noise and chance, without a tagged column."""
        name_of = [block.column.name for block in self.known.codec.blocks]
        hidden_target = self.design.condition in self.known.tagged
        for columns, score in scores:
            if score <= self._threshold:
                return
            if not self.known.tagged & set(columns):
                names = tuple(name_of[c] for c in columns)
                target = not hidden_target and self._differs(columns)
                yield Interaction(columns=names, score=score, target=target)

    def _signs_counted(self) -> tuple[Tensor, Tensor]:
        """Mean of each pair member's signs by the columns' own counts, and its variance."""
        known = self.known
        each = [
            (torch.from_numpy(known.column_counts[c]) @ known.signs[c], known.column_noise[c])
            for c in self.design.features
        ]
        n = known.records
        means = torch.stack([total / n for total, _ in each], dim=1)
        return means, torch.tensor([float(np.square(one / n).sum()) for _, one in each])

    def _normal_score(self, z: float) -> float:
        """What `Scanned.energy` gives of a set → how far beyond noise and chance together."""
        noise, signs = self.scanned.noise**2, self.design.signs
        each = signs * self.design.classes
        squares = np.array([noise * (each + z * math.sqrt(2.0 * each))])
        variances = np.tile(self.known.scan_variances(), signs)[:, None]
        return float(normal_score(squares, variances)[0])

    def _differs(self, columns: tuple[int, ...]) -> bool:
        index = bisect_left(self.design.sets[len(columns) - 1], columns)  # sets are in order
        return bool(self._by_class[len(columns) - 1][index] > self._threshold)

    @cached_property
    def _by_class(self) -> list[Floats]:
        """How far each set's scan differs between classes, by size of set."""
        sums = enumerate(self.scanned.sums, start=1)
        return [self.known.differing(size, torch.zeros_like(one)) for size, one in sums]

    @cached_property
    def _threshold(self) -> float:
        """Beyond how many standard deviations a set is told, by how many were looked at."""
        return float(-ndtri(FALSE_POSITIVE_RATE / self.design.scanned))
