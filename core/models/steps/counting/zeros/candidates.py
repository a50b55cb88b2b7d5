"""Where counts of pairs lack records: what is asked of such places, and what is kept of them.

See `structural_zeros` for what that is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import expit

from core.models.steps.counting.counts import LEAST_NOISE, PairTarget
from core.models.steps.counting.scales import ColumnScale
from core.models.steps.counting.zeros.ordered_codes import LabelsOfCodes, labels_of_codes
from core.models.steps.counting.zeros.orders import Order, orders
from core.models.steps.counting.zeros.row_noise import (
    MOST_SHARE,
    SUSPECT,
    RowNoise,
    Told,
    evidence_of_none,
    holds_none,
)
from core.models.steps.counting.zeros.structural_zeros import StructuralZero
from core.privacy.discovery.thresholds import EVIDENCE

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
AROUND = 3  # places to either side of where a half-line seems to end that it may end at as well, if
UNSURE = 6.0  # … its logarithmic likelihood is less by no more than this
LONGEST_LABELS = 20  # values of a number that are looked at like labels
MOST_PLACES = 3000  # that are asked about; memory grows with their square
WORTH = 0.01  # of all records, that a cell is asked about for if pairs cannot tell
UNLIKELY = 1.0  # logarithm by which single cells may be the likelier to hold records, and be asked
OTHERS = 1.0  # of the places that are asked, the most that any record is expected in


@dataclass(frozen=True)
class Side:
    """What counts of pairs say of the whole cells on one side of each of some cuts.

    Attributes:
      evidence: float64 [cuts], how much likelier it is that they hold none, see `RowNoise`.
      seen, variance: float64 [cuts], how many they hold, and of that.
      spread: standard deviation of the count of one cell.
    """

    evidence: Floats
    seen: Floats
    variance: Floats
    spread: float

    def at(self, cut: int) -> Told:
        """What they say at one of the cuts."""
        evidence, seen, variance = self.evidence[cut], self.seen[cut], self.variance[cut]
        return Told(float(evidence), float(seen), float(variance), self.spread)


@dataclass(frozen=True)
class Candidate:
    """Bins of a first column that seem not to go with cells of a second: those before a cut.

    Or those from the cut on with all other cells of the second, or both.

    Attributes:
      right: bool [cells] of the second column.
      expected: float64 [2, bins], records before the cut and from it on in each bin of the first
        column, atoms included, if the columns were independent.
      ends: the first bin that is meant and the one after the last.
      cuts: ascending, where the cut may be; `likelihood`, float64 [cuts], logarithm, of each.
      sides: before the cut, and from it on; None where nothing seems to be lacking.
    """

    columns: tuple[int, int]
    right: Mask
    expected: Floats
    ends: tuple[int, int]
    cuts: tuple[int, ...]
    likelihood: Floats
    sides: tuple[Side | None, Side | None]

    @property
    def parts(self) -> tuple[tuple[int, int, int], ...]:
        """Side, and bins from … to, of all that is asked: beyond all cuts, and between them."""
        between = list(pairwise(self.cuts))
        before = [(0, *part) for part in ((self.ends[0], self.cuts[0]), *between)]
        after = [(1, *part) for part in (*between, (self.cuts[-1], self.ends[1]))]
        return tuple(
            (side, first, end)
            for side, first, end in (*before, *after)
            if self.sides[side] and first < end
        )

    @property
    def asked(self) -> tuple[StructuralZero, ...]:
        """The parts as places."""
        return tuple(self.zero(*part) for part in self.parts)

    @property
    def clearest(self) -> float:
        """The most evidence of a side."""
        return max(float(side.evidence.max()) for side in self.sides if side)

    def zero(self, side: int, first: int, end: int) -> StructuralZero:
        """Bins from … to of the first column with cells of the second."""
        bins = torch.arange(self.expected.shape[1])
        right = torch.from_numpy(self.right if side == 0 else ~self.right)
        return StructuralZero(self.columns, (bins >= first) & (bins < end), right)

    @cached_property
    def in_parts(self) -> Floats:
        """Float64 [parts], records in each if the columns were independent."""
        before = np.pad(self.expected, ((0, 0), (1, 0))).cumsum(axis=1)
        return np.array(
            [before[side, end] - before[side, first] for side, first, end in self.parts]
        )

    @property
    def beforehand(self) -> Floats:
        """Float64 [parts], how much likelier each is empty before it is asked about, logarithm."""
        beyond = {(0, self.cuts[0]), (1, self.ends[1])}  # side, and end, of what no cut ends in
        return np.array([self.clearest * ((side, end) in beyond) for side, _, end in self.parts])

    @property
    def records(self) -> float:
        """How many may lie there: those of the other hypothesis, as likely as it is."""
        return SUSPECT * float(self.in_parts.sum() * expit(-self.clearest))

    def kept(self, counts: Floats, noise: float, adds: Floats) -> Iterator[StructuralZero]:
        """Of each side what holds next to nothing by both releases, at the likeliest cut.

        Args:
          counts: float64 [parts], released.
          noise: standard deviation of one.
          adds: float64 [parts], what a record there is expected to add to its count.
        """
        side, first, end = np.array(self.parts).T
        expected = self.in_parts
        evidence = evidence_of_none(expected, counts, noise, adds)
        within = np.array(
            [[(side == 0) & (end <= cut), (side == 1) & (first >= cut)] for cut in self.cuts]
        )  # [cuts, 2, parts]
        best = int(np.argmax(self.likelihood + (within @ evidence).sum(axis=1)))
        outermost = 0, len(self.cuts) - 1  # where no cell is cut, in case it cannot be
        for i, one in enumerate(self.sides):
            for cut in dict.fromkeys((best, outermost[i])):
                chosen = within[cut, i]
                here = expected[chosen], counts[chosen], noise, adds[chosen]
                if one and holds_none(one.at(cut), *here):
                    ends = (self.ends[0], self.cuts[cut]), (self.cuts[cut], self.ends[1])
                    yield self.zero(i, *ends[i])
                    break


def candidates(
    pairs: Sequence[PairTarget],
    scales: Sequence[ColumnScale],
    shares: Sequence[Floats],
    noise: Sequence[Floats],
    n: int,
    left_out: Set[int],
    asking: float,
) -> tuple[AnyCandidate, ...]:
    """Where counts of pairs lack records beyond their noise; the clearest first.

    And where they might, and the release that asks of it could make up for what they do not say.

    Args:
      pairs: as they were released.
      shares: released shares of each column's cells; `noise`, deviations of their counts.
      left_out: columns of which nothing is asked.
      asking: standard deviation of that release.
    """
    found: list[AnyCandidate] = []
    asking = max(asking, LEAST_NOISE)
    for pair in pairs:
        if left_out & set(pair.columns):
            continue
        joint = pair.shares.double().sum(dim=0).numpy() * n
        one = max(pair.noise * n * len(pair.shares) ** 0.5, LEAST_NOISE)
        for (first, second), table in ((pair.columns, joint), (pair.columns[::-1], joint.T)):
            rows, labels = n * shares[first], shares[second]
            few = scales[second].exact and len(labels) <= LONGEST_LABELS
            both = len(labels) == 2  # not the one is the other
            sides = (scales[first], scales[second]), table, (shares[first], shares[second])
            if not scales[first].line or not scales[second].line:  # two numbers were compared
                found += orders((first, second), *sides, n, one)
            if (
                scales[second].exact
                and not scales[first].line
                and LONGEST_LABELS < len(rows) > len(labels)
            ):
                found += labels_of_codes((first, second), table, rows, noise[first], one)
            for label in range(0 if few else scales[second].line, len(labels) - both):
                known = RowNoise(one, float(noise[second][label]), len(rows))
                counts = known.fitted(table[:, label], n * labels[label])
                right, share = np.arange(len(labels)) == label, float(labels[label])
                row = _Row(
                    (first, second), scales[first], right, rows, share, counts, known, asking
                )
                # two labels that exclude each other are asked about once
                found += row.candidates(atoms=first < second or label < scales[second].line)
                found += row.all_but_it.candidates(atoms=first < second or not both)
    found.sort(key=lambda candidate: -candidate.clearest)
    return _few_others(found, n)


def _few_others(found: Sequence[AnyCandidate], n: int) -> tuple[AnyCandidate, ...]:
    """The clearest, of which a record is expected in few: it adds less to each of several."""
    chosen: list[AnyCandidate] = []
    others, places = 0.0, 0
    for one in found:
        more, parts = _others([one], n), len(one.in_parts)
        if others + more <= OTHERS and places + parts <= MOST_PLACES:
            others, places = others + more, places + parts
            chosen.append(one)
    return tuple(chosen)


def _others(found: Sequence[AnyCandidate], n: int) -> float:
    """In how many places a record is expected."""
    return sum(one.records for one in found if isinstance(one, Candidate)) / n


AnyCandidate = Candidate | LabelsOfCodes | Order


@dataclass(frozen=True)
class _Row:
    """A label of a second column, or all but it, in the cells of a first.

    Attributes:
      right: bool [cells of the second], which is meant.
      rows: float64 [cells], records of each; `share`, of all records that are meant.
      counts: float64 [cells], fitted, of those that are meant.
      asking: standard deviation of the release that asks of places.
    """

    columns: tuple[int, int]
    scale: ColumnScale
    right: Mask
    rows: Floats
    share: float
    counts: Floats
    noise: RowNoise
    asking: float

    @property
    def all_but_it(self) -> _Row:
        """The same of all other labels."""
        counts = self.rows - self.counts
        return replace(self, right=~self.right, share=1.0 - self.share, counts=counts)

    def candidates(self, *, atoms: bool = True) -> Iterator[Candidate]:
        """Half-lines and single atoms for which there is evidence."""
        line, fine, run = self.scale.line, self.scale.grid.cells, self.scale.in_order
        expected = self.share * self.rows
        evidence = self.noise.of_each(self.counts, expected)[line:]
        to_come = 0.5 * (SUSPECT * expected[line:] / self.asking) ** 2  # if it is told to be empty
        maybe = (evidence + to_come > EVIDENCE) & (evidence > -UNLIKELY)
        maybe &= (evidence > EVIDENCE) | (expected[line:] > WORTH * float(self.rows.sum()))
        for atom in np.flatnonzero(maybe) if atoms else ():
            cell, beyond = int(line + atom), np.array([fine + atom + 1])
            yield self._candidate((cell, cell + 1), beyond, (True, False))
        if not run:
            return
        edges = self.scale.starts[: run + 1]
        before, after = (
            self._candidate((0, run), edges, asked) for asked in ((True, False), (False, True))
        )
        if line and max(before.clearest, after.clearest) > EVIDENCE:
            cuts, likelihood = self._fine_cuts()
            both = self._candidate((0, line), cuts, likelihood=likelihood)
            likeliest = int(both.likelihood.argmax())
            together = sum(float(side.evidence[likeliest]) for side in both.sides if side)
            if together > before.clearest + after.clearest - UNSURE:
                yield both
                return
        for one in (before, after):
            if one.clearest > EVIDENCE:
                # what lies on either side of where labels end is asked of each by itself
                cuts = edges[_near(one.likelihood) if line else [int(one.likelihood.argmax())]]
                yield self._candidate((0, run), cuts, (one is before, one is after))

    def _candidate(
        self,
        cells: tuple[int, int],
        cuts: NDArray[np.int64],
        asked: tuple[bool, bool] = (True, True),
        likelihood: Floats | None = None,
    ) -> Candidate:
        """That of cells from … to, cut at bins; where it ends is as likely as it is empty."""
        here = slice(*cells)
        starts = self.scale.starts[cells[0] : cells[1] + 1]
        each, counts = self.rows[here], self.counts[here]
        before = after = None
        if asked[0]:
            whole = np.searchsorted(starts, cuts, side="right") - 1
            before = self._side(counts, self.share * each, whole)
        if asked[1]:
            whole = len(starts) - 1 - np.searchsorted(starts, cuts)
            after = self._side((each - counts)[::-1], (1.0 - self.share) * each[::-1], whole)
        if likelihood is None:
            likelihood = next(side.evidence for side in (before, after) if side)
        shares = np.array([[self.share], [1.0 - self.share]])
        return Candidate(
            self.columns, self.right, shares * self._records, (int(starts[0]), int(starts[-1])),
            tuple(cuts.tolist()), likelihood, (before, after),
        )  # fmt: skip

    def _side(self, seen: Floats, expected: Floats, whole: NDArray[np.int64]) -> Side:
        """That of so many whole cells at each cut, counted from the end of the line."""
        sums = np.append(0.0, np.cumsum(seen))
        variance = self.noise.variance(whole)
        evidence = self.noise.evidence(seen, expected)[whole]
        spread = min(self.noise.deviation, MOST_SHARE * float(self.rows.sum()))
        return Side(evidence, sums[whole], variance, spread)

    @cached_property
    def _records(self) -> Floats:
        """Float64 [bins], records of each."""
        return self.scale.in_bins(self.rows)

    def _fine_cuts(self) -> tuple[NDArray[np.int64], Floats]:
        """Where none before may be meant and all from there on, and the likelihood of each.

        A cell in which that changes holds as many that are meant as lie from there on.
        """
        line, fine = self.scale.line, self.scale.grid.cells
        rows, counts = self.rows[:line], self.counts[:line]
        none = np.append(0.0, np.cumsum(counts**2))
        every = np.append(0.0, np.cumsum((rows - counts)[::-1] ** 2))[::-1]
        cell = self.scale.cell_of[:fine]
        to_come = (cell + 1.0 - np.append(0.0, self.scale.keys[:-1])) * rows[cell]
        off = none[cell] + (counts[cell] - to_come) ** 2 + every[cell + 1]
        likelihood = -np.append(off, none[-1]) / (2.0 * self.noise.deviation**2)
        near = np.flatnonzero(likelihood > likelihood.max() - UNSURE)
        few = np.linspace(near[0], near[-1], 2 * AROUND + 1).round().astype(np.int64)
        starts = self.scale.starts[: line + 1]
        around = starts[np.searchsorted(starts, near[0], side="right") - 1]
        beyond = starts[np.searchsorted(starts, near[-1])]
        cuts = np.unique([*few, likelihood.argmax(), around, beyond])
        return cuts, likelihood[cuts]


def _near(score: Floats) -> NDArray[np.int64]:
    """Places around the best that may be it as well, the best among them."""
    best = int(score.argmax())
    near = np.arange(max(0, best - AROUND), min(len(score), best + AROUND + 1))
    near = near[score[near] > score[best] - UNSURE]
    return np.arange(near[0], near[-1] + 1)
