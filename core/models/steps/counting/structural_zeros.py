"""Structural zeros: cells of pairs of columns that no record lies in, found privately.

Counts of pairs say where records are lacking, and one release tells of all those places whether any
record lies there after all. A record that lies in several adds a little to each, so that a thousand
places cost no more than one. Sought are single labels that exclude each other or of which one
implies the other, and half-lines: all values below one, or from it on, that exclude or imply a
label. Where that value lies is told by the same release.

Source: Bishop, Fienberg and Holland, "Discrete Multivariate Analysis", 1975, chapter 5 (tables with
structural zeros).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from core.encoding.codec import Codes
from core.models.steps.counting.counts import LEAST_NOISE, PairTarget
from core.models.steps.counting.scales import ColumnScale
from core.privacy.mechanisms.additive import Mechanism

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
SUSPECT = 0.5  # of the records that independent columns would show: the other of two hypotheses
RARE = 0.04  # of these, the most a zero may hold, two standard deviations above its estimate
EVIDENCE = 2.0  # logarithm of the likelihood ratio by which zero must be the likelier
AROUND = 3  # cells to either side of where a half-line seems to end that are asked one by one
MOST_CANDIDATES = 1000
ENTRIES_AT_ONCE = 4_000_000  # records times places in memory together
ROUNDS = 10  # of proportional fitting
LEAST_SHARE = 1e-12  # of a margin while it is fitted


@dataclass(frozen=True)
class StructuralZero:
    """Cells of two columns that go together in no record.

    Attributes:
      left, right: bool [cells] of each column.
    """

    columns: tuple[int, int]
    left: Tensor
    right: Tensor


@dataclass(frozen=True)
class BrokenZeros(Mechanism):
    """How many records lie in each of some places that seem empty.

    One that lies in k of them adds 1/√k to each, a vector of length one: Δ₂ = 1.
    """

    scales: tuple[ColumnScale, ...]
    zeros: tuple[StructuralZero, ...]
    noise: Literal["gaussian"] = "gaussian"

    @property
    def sensitivity(self) -> float:
        """Δ₂ under zero-out."""
        return 1.0

    def statistic(self, rows: Codes, mask: Tensor) -> Tensor:
        """Float64 [zeros]: Σᵢ mᵢ of what record i adds to each."""
        rows, weights = rows.to(str(mask.device)), mask.to(torch.float64)
        needed = sorted({column for zero in self.zeros for column in zero.columns})
        cells = {column: self.scales[column].index(rows) for column in needed}
        total = torch.zeros(len(self.zeros), dtype=torch.float64, device=mask.device)
        rows_at_once = max(1, ENTRIES_AT_ONCE // len(self.zeros))
        for start in range(0, len(weights), rows_at_once):
            part = slice(start, start + rows_at_once)
            some = {column: cell[part] for column, cell in cells.items()}
            inside = torch.stack([_inside(zero, some) for zero in self.zeros]).double()
            total += self._shared(inside) @ weights[part]
        return total

    def _shared(self, inside: Tensor) -> Tensor:
        """What each record adds, [zeros, rows], of where it lies."""
        return inside / inside.sum(dim=0).clamp_min(1.0).sqrt()


def _inside(zero: StructuralZero, cells: Mapping[int, Tensor]) -> Tensor:
    first, second = (cells[column] for column in zero.columns)
    return zero.left.to(first.device)[first] & zero.right.to(second.device)[second]


@dataclass(frozen=True)
class Candidate:
    """Cells of a first column that seem not to go with cells of a second: those before a cut.

    Or those from the cut on with all other cells of the second, or both.

    Attributes:
      order: int64 [k], cells of the first column.
      right: bool [cells] of the second column.
      asked: whether before the cut, and from it on.
      cuts: first and last place in `order` where the cut may be.
      expected, seen: float64 [2, k], before the cut and from it on: records of each cell if the
        columns were independent, and as released.
      noise: standard deviation of one cell's count.
      size: cells of the first column.
    """

    columns: tuple[int, int]
    order: NDArray[np.int64]
    right: Mask
    asked: tuple[bool, bool]
    cuts: tuple[int, int]
    expected: Floats
    seen: Floats
    noise: float
    size: int

    @property
    def parts(self) -> tuple[tuple[int, slice], ...]:
        """Side and places of all that is asked: what lies beyond all cuts, and cells between."""
        low, high = self.cuts
        between = [slice(place, place + 1) for place in range(low, high)]
        sides = ([slice(0, low), *between], [*between, slice(high, len(self.order))])
        return tuple((i, part) for i in (0, 1) if self.asked[i] for part in sides[i])

    def zero(self, side: int, places: slice) -> StructuralZero:
        """Cells at some places with those of the second column."""
        left = np.isin(np.arange(self.size), self.order[places])
        right = self.right if side == 0 else ~self.right
        return StructuralZero(self.columns, torch.from_numpy(left), torch.from_numpy(right))

    def kept(self, counts: Floats, noise: float) -> Iterator[StructuralZero]:
        """Of each side what holds next to nothing by both releases, at the likeliest cut.

        Args:
          counts: float64 [parts], released.
          noise: standard deviation of one.
        """
        parts = self.parts
        before = self.noise**2 * np.array([max(1, p.stop - p.start) for _, p in parts])
        after = np.full(len(parts), noise**2)
        expected, seen = (
            np.array([cells[side, part].sum() for side, part in parts])
            for cells in (self.expected, self.seen)
        )
        # a record may lie in several places and adds less to each
        evidence = _evidence(seen, expected, before) + _evidence(counts, 0.5 * expected, after)

        def within(cut: int, side: int) -> Mask:
            return np.array(
                [
                    i == side and (part.stop <= cut if i == 0 else part.start >= cut)
                    for i, part in parts
                ],
                dtype=bool,
            )

        first, last = self.cuts
        cut = max(
            range(first, last + 1),
            key=lambda cut: evidence[within(cut, 0) | within(cut, 1)].sum(),
        )
        for side, places in enumerate((slice(0, cut), slice(cut, len(self.order)))):
            chosen = within(cut, side)
            if not chosen.any() or evidence[chosen].sum() <= EVIDENCE:
                continue
            precision = np.array([1.0 / before[chosen].sum(), 1.0 / after[chosen].sum()])
            records = precision @ [seen[chosen].sum(), counts[chosen].sum()] / precision.sum()
            most = RARE * expected[chosen].sum()
            if max(0.0, records) + 2.0 / np.sqrt(precision.sum()) <= most:
                yield self.zero(side, places)


def _evidence(seen: Any, expected: Any, variance: Any) -> Any:
    """Logarithm of how much likelier no records are than `SUSPECT` of the expected ones."""
    some = SUSPECT * expected
    return some * (some - 2.0 * seen) / (2.0 * variance)


def candidates(
    pairs: Sequence[PairTarget],
    scales: Sequence[ColumnScale],
    shares: Sequence[Floats],
    n: int,
    left_out: frozenset[int],
) -> tuple[Candidate, ...]:
    """Where counts of pairs lack records beyond their noise; the clearest first.

    Args:
      pairs: as they were released.
      shares: released shares of each column's cells.
      left_out: columns of which nothing is asked.
    """
    found: list[tuple[float, Candidate]] = []
    for pair in pairs:
        if left_out & set(pair.columns):
            continue
        joint = pair.shares.double().sum(dim=0).numpy() * n
        noise = max(pair.noise * n * len(pair.shares) ** 0.5, LEAST_NOISE)
        for columns, table in ((pair.columns, joint), (pair.columns[::-1], joint.T)):
            rows, second = n * shares[columns[0]], shares[columns[1]]
            first_line, second_line = (scales[column].line for column in columns)
            both = len(second) == 2  # not the one is the other
            for label in range(second_line, len(second) - both):
                expected = rows * np.array([[second[label]], [1.0 - second[label]]])
                seen = np.array([table[:, label], rows - table[:, label]])
                right = np.arange(len(second)) == label
                for sign in (1, -1):  # before the cut that label, or all but it
                    whole = Candidate(
                        columns, np.arange(len(rows)), right ^ (sign < 0), (True, True), (0, 0),
                        expected[::sign], seen[::sign], noise, len(rows),
                    )  # fmt: skip
                    found += _lacking(whole, first_line)
    found.sort(key=lambda one: -one[0])
    return tuple(candidate for _, candidate in found[:MOST_CANDIDATES])


def _lacking(whole: Candidate, line: int) -> Iterator[tuple[float, Candidate]]:
    """The half-lines and single labels for which there is evidence, and how much."""
    evidence = _evidence(whole.seen, whole.expected, whole.noise**2)
    for cell in np.flatnonzero(evidence[0, line:] > EVIDENCE) + line:
        score, here = float(evidence[0, cell]), slice(cell, cell + 1)
        yield score, _part(whole, here, (True, False), (1, 1))
    if line:
        before = np.concatenate([[0.0], np.cumsum(evidence[0, :line])])
        after = np.concatenate([np.cumsum(evidence[1, :line][::-1])[::-1], [0.0]])
        asked = bool(before.max() > EVIDENCE), bool(after.max() > EVIDENCE)
        if any(asked):
            score = asked[0] * before + asked[1] * after
            cut = int(np.argmax(score))
            cuts = max(0, cut - AROUND), min(line, cut + AROUND)
            yield float(score.max()), _part(whole, slice(0, line), asked, cuts)


def _part(
    whole: Candidate, places: slice, asked: tuple[bool, bool], cuts: tuple[int, int]
) -> Candidate:
    return replace(
        whole, order=whole.order[places], asked=asked, cuts=cuts,
        expected=whole.expected[:, places], seen=whole.seen[:, places],
    )  # fmt: skip


def zeros_of(
    pairs: Sequence[PairTarget],
    scales: Sequence[ColumnScale],
    shares: Sequence[Floats],
    n: int,
    left_out: frozenset[int],
    release: Callable[[BrokenZeros], Tensor],
    multiplier: float,
) -> tuple[StructuralZero, ...]:
    """The zeros of a table, by one release; see `candidates`.

    Where pairs suggest none it asks how many records there are, for what is planned is made.
    """
    found = candidates(pairs, scales, shares, n, left_out)
    every = (torch.ones(scales[c].size, dtype=torch.bool) for c in pairs[0].columns)
    asked = asked_zeros(found) or (StructuralZero(pairs[0].columns, *every),)
    mechanism = BrokenZeros(tuple(scales), asked)
    counts = release(mechanism).numpy()
    return kept_zeros(found, counts, multiplier * mechanism.sensitivity)


def asked_zeros(found: Sequence[Candidate]) -> tuple[StructuralZero, ...]:
    """All parts of all candidates, which one release tells of."""
    return tuple(one.zero(side, part) for one in found for side, part in one.parts)


def kept_zeros(
    found: Sequence[Candidate], counts: Floats, noise: float
) -> tuple[StructuralZero, ...]:
    """What candidates hold next to no records.

    Args:
      counts: float64, released, of the `asked_zeros`.
      noise: standard deviation of one.
    """
    starts = np.cumsum([0, *(len(one.parts) for one in found)])
    noise = max(noise, LEAST_NOISE)
    return tuple(
        zero
        for one, start in zip(found, starts, strict=False)
        for zero in one.kept(counts[start : start + len(one.parts)], noise)
    )


def emptied(pairs: Sequence[PairTarget], zeros: Sequence[StructuralZero]) -> tuple[PairTarget, ...]:
    """Targets with nothing where there are zeros, and each column's own counts all the same."""
    empty: dict[tuple[int, int], Tensor] = {}
    for zero in zeros:
        cells, (first, second) = zero.left[:, None] & zero.right, zero.columns
        for columns, mask in (((first, second), cells), ((second, first), cells.t())):
            empty[columns] = empty.get(columns, torch.zeros_like(mask)) | mask
    return tuple(
        replace(pair, shares=_emptied(pair.shares, empty[pair.columns]))
        if pair.columns in empty
        else pair
        for pair in pairs
    )


def _emptied(shares: Tensor, empty: Tensor) -> Tensor:
    """Of [classes, a, b], by iterative proportional fitting to the margins of each class."""
    shares = shares.clamp_min(0.0)
    margins = [(axis, shares.sum(dim=axis, keepdim=True)) for axis in (2, 1)]
    shares = shares * ~empty
    for _ in range(ROUNDS):
        for axis, margin in margins:
            whole = shares.sum(dim=axis, keepdim=True).clamp_min(LEAST_SHARE)
            shares = shares * (margin / whole)
    return shares
