"""The mechanisms of scan and focus broken in the ways such code breaks; tests only."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from core.encoding.codec import Codes
from core.models.steps.counting.counts import RelationCounts, SetCounts
from core.models.steps.counting.scales import FineHistograms
from core.models.steps.counting.scan import Scan
from core.models.steps.counting.zeros.structural_zeros import BrokenZeros


class ForgetsCoarseCells(FineHistograms):
    """Counts the coarse cells too and states the sensitivity of the fine ones."""

    @property
    def sensitivity(self) -> float:
        return math.sqrt(len(self.grids))


class CountsSetsOnce(Scan):
    """Takes all sign patterns of a set for one number."""

    @property
    def sensitivity(self) -> float:
        return math.sqrt(self.design.scanned)


class SignsOfAbsentRecords(Scan):
    """Blanks the codes of absent records, whose signs are then counted all the same."""

    def statistic(self, rows: Codes, mask: Tensor) -> Tensor:
        keep, there = mask.bool()[:, None], rows.to("cpu")
        blank = Codes(there.states * keep, there.values * keep)
        return super().statistic(blank, torch.ones_like(mask))


class CentredSigns(Scan):
    """Subtracts what the other records show, so that each moves everybody's share."""

    def statistic(self, rows: Codes, mask: Tensor) -> Tensor:
        total = super().statistic(rows, mask)
        return total - total.abs().sign() * mask.sum() / 2.0


class ForgetsWeights(SetCounts):
    """States the sensitivity of counts without weights."""

    @property
    def sensitivity(self) -> float:
        return math.sqrt(len(self.queries)) * min(query.weight for query in self.queries)


class CountsSpikesWholeToo(SetCounts):
    """Counts a spike's records by their values and once more as a whole, and states one count."""

    def statistic(self, rows: Codes, mask: Tensor) -> Tensor:
        counts = super().statistic(rows, mask)
        scale = self.scales[0].scale
        counts[: scale.size] = torch.bincount(
            scale.index(rows.to("cpu")), mask, minlength=scale.size
        )
        return counts


class ForgetsColumnsByClass(SetCounts):
    """States the sensitivity of pairs alone, as if the class with each column came for free."""

    @property
    def sensitivity(self) -> float:
        label = self.queries[-1].columns[0]  # pairs of features come first
        pairs = [q for q in self.queries if len(q.columns) == 1 or q.columns[0] != label]
        return math.sqrt(sum(query.weight**2 for query in pairs))


class ForgetsPairsOfAllClasses(SetCounts):
    """States the sensitivity of counts within classes alone, as if rare labels came for free."""

    @property
    def sensitivity(self) -> float:
        label = self.queries[-1].columns[0]
        within = [q for q in self.queries if q.columns[0] == label]
        return math.sqrt(sum(query.weight**2 for query in within))


class BothOfEachSum(RelationCounts):
    """Counts a record that adds up among those that do not as well."""

    def statistic(self, rows: Codes, mask: Tensor) -> Tensor:
        sums, compared, _ = self.split(super().statistic(rows, mask))
        sums = torch.stack([sums[:, 0], sums.sum(dim=1)], dim=1)
        return torch.cat([sums.flatten(), compared.flatten()])


class EqualIsBelowToo(RelationCounts):
    """Counts every record among those of which the first number is below as well."""

    def statistic(self, rows: Codes, mask: Tensor) -> Tensor:
        sums, compared, _ = self.split(super().statistic(rows, mask))
        below = compared.sum(dim=1, keepdim=True)
        return torch.cat([sums.flatten(), torch.cat([below, compared[:, 1:]], dim=1).flatten()])


class ForgetsCoarseDifferences(RelationCounts):
    """States the sensitivity of a difference's fine cells alone."""

    @property
    def sensitivity(self) -> float:
        others = len(self.totals) + len(self.compared)
        return math.sqrt(others + self.weight**2 * len(self.differences))


class WholeInEachZero(BrokenZeros):
    """Counts a record fully in each of the places where it lies."""

    def _shared(self, lies_in: Tensor) -> Tensor:
        return torch.ones_like(lies_in)
