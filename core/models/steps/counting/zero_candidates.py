"""Where counts of pairs lack records: what is asked of such places, and what is kept of them.

See `structural_zeros` for what that is.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np
import torch
from numpy.typing import NDArray

from core.models.steps.counting.counts import LEAST_NOISE, PairTarget
from core.models.steps.counting.ordered_codes import LabelsOfCodes, labels_of_codes
from core.models.steps.counting.scales import ColumnScale
from core.models.steps.counting.structural_zeros import EVIDENCE, StructuralZero

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
SUSPECT = 0.5  # of the records that independent columns would show: the other of two hypotheses
RARE = 0.04  # of these, the most a zero may hold, two standard deviations above its estimate
AROUND = 3  # places to either side of where a half-line seems to end that it may end at as well, if
UNSURE = 6.0  # … its logarithmic likelihood is less by no more than this
LONGEST_LABELS = 20  # values of a number that are looked at like labels
MOST_CANDIDATES = 1000


@dataclass(frozen=True)
class RowNoise:
    """Noise of the counts of a label in the cells of another column, whose total is known as well.

    Counts are taken to have been fitted to the total, so that what lies in some cells is told by
    these, and by all others.

    Attributes:
      deviation: of one count as released; `total`, of the label's own count.
    """

    deviation: float
    total: float
    cells: int

    def fitted(self, counts: Floats, total: float) -> Floats:
        """Counts that were released → nearer to their total."""
        return np.asarray(counts + (total - counts.sum()) * self._pull(0.0))

    def variance(self, some: int) -> float:
        """Of the sum of so many fitted counts."""
        return float(some * self.deviation**2 * (1.0 - some * self._pull(0.0)))

    def evidence(self, seen: Floats, expected: Floats) -> Floats:
        """Of the first 0, 1, … of some cells, how much likelier it is that they hold none.

        Logarithm of the likelihood ratio to `SUSPECT` of the expected records; float64 [k + 1].
        """
        some = SUSPECT * expected
        less = some - 2.0 * seen
        each, together, beyond = (
            np.append(0.0, np.cumsum(values)) for values in (some * less, some, less)
        )
        pull = self._pull(np.arange(len(each), dtype=np.float64))
        return np.asarray((each + pull * together * beyond) / (2.0 * self.deviation**2))

    def of_each(self, seen: Floats, expected: Floats) -> Floats:
        """The same of single cells, float64 [k]."""
        some = SUSPECT * expected
        pull = 1.0 + self._pull(1.0)
        return np.asarray(pull * some * (some - 2.0 * seen) / (2.0 * self.deviation**2))

    def _pull(self, some: Floats | float) -> Floats:
        return np.asarray(1.0 / (self.cells - some + (self.total / self.deviation) ** 2))


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

    def kept(self, counts: Floats, noise: float) -> Iterator[StructuralZero]:
        """Of each side what holds next to nothing by both releases, at the likeliest cut.

        Args:
          counts: float64 [parts], released.
          noise: standard deviation of one.
        """
        side, first, end = np.array(self.parts).T
        before = np.cumsum(np.pad(self.expected, ((0, 0), (1, 0))), axis=1)
        expected = before[side, end] - before[side, first]
        some = SUSPECT * 0.5 * expected  # a record may lie in several places and adds less to each
        evidence = some * (some - 2.0 * counts) / (2.0 * noise**2)
        within = np.array(
            [[(side == 0) & (end <= cut), (side == 1) & (first >= cut)] for cut in self.cuts]
        )  # [cuts, 2, parts]
        best = int(np.argmax(self.likelihood + (within @ evidence).sum(axis=1)))
        outermost = 0, len(self.cuts) - 1  # where no cell is cut, in case it cannot be
        for i, one in enumerate(self.sides):
            for cut in dict.fromkeys((best, outermost[i])):
                chosen = within[cut, i]
                here = evidence[chosen], expected[chosen], counts[chosen], noise
                if one and _holds_none(one, cut, *here):
                    ends = (self.ends[0], self.cuts[cut]), (self.cuts[cut], self.ends[1])
                    yield self.zero(i, *ends[i])
                    break


def _holds_none(
    side: Side, cut: int, evidence: Floats, expected: Floats, counts: Floats, noise: float
) -> bool:
    """Whether both releases say so, and the most it may hold is rare or less than noise."""
    if not len(counts) or side.evidence[cut] + evidence.sum() <= EVIDENCE:
        return False
    precision = np.array([1.0 / side.variance[cut], 1.0 / (len(counts) * noise**2)])
    sums = np.array([side.seen[cut], counts.sum()])
    records = max(0.0, float(precision @ sums / precision.sum()))
    most = records + 2.0 / math.sqrt(precision.sum())
    return bool(most <= max(RARE * expected.sum(), side.spread))


def candidates(
    pairs: Sequence[PairTarget],
    scales: Sequence[ColumnScale],
    shares: Sequence[Floats],
    noise: Sequence[Floats],
    n: int,
    left_out: Set[int],
) -> tuple[Candidate | LabelsOfCodes, ...]:
    """Where counts of pairs lack records beyond their noise; the clearest first.

    Args:
      pairs: as they were released.
      shares: released shares of each column's cells; `noise`, deviations of their counts.
      left_out: columns of which nothing is asked.
    """
    found: list[Candidate | LabelsOfCodes] = []
    for pair in pairs:
        if left_out & set(pair.columns):
            continue
        joint = pair.shares.double().sum(dim=0).numpy() * n
        one = max(pair.noise * n * len(pair.shares) ** 0.5, LEAST_NOISE)
        for (first, second), table in ((pair.columns, joint), (pair.columns[::-1], joint.T)):
            rows, labels = n * shares[first], shares[second]
            few = scales[second].exact and len(labels) <= LONGEST_LABELS
            both = len(labels) == 2  # not the one is the other
            if (
                scales[second].exact
                and not scales[first].line
                and LONGEST_LABELS < len(rows) > len(labels)
            ):
                found += labels_of_codes((first, second), table, rows, one)
            for label in range(0 if few else scales[second].line, len(labels) - both):
                known = RowNoise(one, float(noise[second][label]), len(rows))
                counts = known.fitted(table[:, label], n * labels[label])
                right, share = np.arange(len(labels)) == label, float(labels[label])
                row = _Row((first, second), scales[first], right, rows, share, counts, known)
                # two labels that exclude each other are asked about once
                found += row.candidates(atoms=first < second or label < scales[second].line)
                found += row.all_but_it.candidates()
    found.sort(key=lambda candidate: -candidate.clearest)
    return tuple(found[:MOST_CANDIDATES])


@dataclass(frozen=True)
class _Row:
    """A label of a second column, or all but it, in the cells of a first.

    Attributes:
      right: bool [cells of the second], which is meant.
      rows: float64 [cells], records of each; `share`, of all records that are meant.
      counts: float64 [cells], fitted, of those that are meant.
    """

    columns: tuple[int, int]
    scale: ColumnScale
    right: Mask
    rows: Floats
    share: float
    counts: Floats
    noise: RowNoise

    @property
    def all_but_it(self) -> _Row:
        """The same of all other labels."""
        counts = self.rows - self.counts
        return replace(self, right=~self.right, share=1.0 - self.share, counts=counts)

    def candidates(self, *, atoms: bool = True) -> Iterator[Candidate]:
        """Half-lines and single atoms for which there is evidence."""
        line, fine = self.scale.line, self.scale.grid.cells
        evidence = self.noise.of_each(self.counts, self.share * self.rows)[line:]
        for atom in np.flatnonzero(evidence > EVIDENCE) if atoms else ():
            cell, beyond = int(line + atom), np.array([fine + atom + 1])
            yield self._candidate((cell, cell + 1), beyond, (True, False))
        if not line:
            return
        edges = np.searchsorted(self.scale.cell_of[:fine], np.arange(line + 1))
        before, after = (
            self._candidate((0, line), edges, asked) for asked in ((True, False), (False, True))
        )
        if max(before.clearest, after.clearest) > EVIDENCE:
            cuts, likelihood = self._fine_cuts()
            both = self._candidate((0, line), cuts, likelihood=likelihood)
            likeliest = int(both.likelihood.argmax())
            together = sum(float(side.evidence[likeliest]) for side in both.sides if side)
            if together > before.clearest + after.clearest - UNSURE:
                yield both
                return
        for one in (before, after):
            if one.clearest > EVIDENCE:
                cuts = edges[_near(one.likelihood)]
                yield self._candidate((0, line), cuts, (one is before, one is after))

    def _candidate(
        self,
        cells: tuple[int, int],
        cuts: NDArray[np.int64],
        asked: tuple[bool, bool] = (True, True),
        likelihood: Floats | None = None,
    ) -> Candidate:
        """That of cells from … to, cut at bins; where it ends is as likely as it is empty."""
        here = slice(*cells)
        starts = np.searchsorted(self.scale.cell_of, np.arange(cells[0], cells[1] + 1))
        before = np.searchsorted(starts, cuts, side="right") - 1  # whole cells on either side
        after = len(starts) - 1 - np.searchsorted(starts, cuts)
        each, counts = self.rows[here], self.counts[here]
        sides = (
            self._side(counts, self.share * each, before),
            self._side((each - counts)[::-1], (1.0 - self.share) * each[::-1], after),
        )
        if likelihood is None:
            likelihood = sides[asked.index(True)].evidence
        shares = np.array([[self.share], [1.0 - self.share]])
        return Candidate(
            self.columns, self.right, shares * self._records, (int(starts[0]), int(starts[-1])),
            tuple(cuts.tolist()), likelihood,
            (sides[0] if asked[0] else None, sides[1] if asked[1] else None),
        )  # fmt: skip

    def _side(self, seen: Floats, expected: Floats, whole: NDArray[np.int64]) -> Side:
        """That of so many whole cells at each cut, counted from the end of the line."""
        sums = np.append(0.0, np.cumsum(seen))
        variance = np.array([self.noise.variance(some) if some else np.inf for some in whole])
        evidence = self.noise.evidence(seen, expected)[whole]
        return Side(evidence, sums[whole], variance, self.noise.deviation)

    @cached_property
    def _records(self) -> Floats:
        """Float64 [bins], records of each."""
        inside = np.ones(len(self.scale.cell_of))
        inside[: self.scale.grid.cells] = np.diff(self.scale.keys, prepend=0.0)
        return inside * self.rows[self.scale.cell_of]

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
        starts = np.searchsorted(cell, np.arange(line + 1))
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


def asked_zeros(found: Sequence[Candidate | LabelsOfCodes]) -> tuple[StructuralZero, ...]:
    """All parts of all candidates, which one release tells of."""
    return tuple(zero for one in found for zero in one.asked)


def kept_zeros(
    found: Sequence[Candidate | LabelsOfCodes], counts: Floats, noise: float
) -> tuple[StructuralZero, ...]:
    """What candidates hold next to no records.

    Args:
      counts: float64, released, of the `asked_zeros`.
      noise: standard deviation of one.
    """
    starts = np.cumsum([0, *(len(one.asked) for one in found)])
    noise = max(noise, LEAST_NOISE)
    return tuple(
        zero
        for one, start in zip(found, starts, strict=False)
        for zero in one.kept(counts[start : start + len(one.asked)], noise)
    )
