"""FineLook: where numbers lie within a range that round ones say little of."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.privacy.discovery.bins_in_a_row import Counts, reach
from core.privacy.discovery.ranges import FAR, NARROW, FirstLook, Narrowed
from core.privacy.discovery.thresholds import FEW_RECORDS, cell_threshold
from core.schema.labels import snap
from core.schema.round_bounds import rung

MOST_HIDDEN = 0.15  # of the records: what lies outside of a narrowed range, and its noise, at most
_UNITS = 20  # of a narrowed range, at most: its ends are multiples of one


@dataclass(frozen=True)
class FineLook:
    """Noisy counts of equal bins of what a first look found.

    Attributes:
      counts: float64 [bins], each with noise of the standard deviation `std`.
      step: of the column; 0 for none.
    """

    counts: Counts
    std: float
    step: float

    def narrowed(self, look: FirstLook) -> Narrowed | None:
        """Where records lie, outward to round numbers, with all atoms; None where noise hides it.

        And how many lie outside, ≥ 0, which are few as far as counts tell. Records of a value that
        many hold say nothing of where the others lie, if there are others.
        """
        bins, (low, high) = len(self.counts), look.bins
        width = (high - low) / bins
        found = np.flatnonzero(self.counts > cell_threshold(self.std, bins))
        found = found if len(found) else self._clearest()
        if not len(found):
            return None
        first = reach(self.counts, int(found[0]), 0, self.std)
        end = reach(self.counts, int(found[-1]), bins - 1, self.std) + 1
        peaks = {min(int((value - low) / width), bins - 1) for value in look.peaks}
        counts = np.where(np.isin(np.arange(bins), list(peaks)), 0.0, self.counts)
        held = look.inside - float((self.counts - counts).sum())
        if held <= FEW_RECORDS * look.inside + self.std * math.sqrt(len(peaks)):
            counts, held = self.counts, look.inside
        lost, error = self._outside(counts, first, end, held)
        if lost > FEW_RECORDS * held:
            grown, long = self._grown(counts, first, end, held), end - first > bins // NARROW
            if grown is not None:
                first, end = grown
                lost, error = self._outside(counts, first, end, held)
            elif long or lost > FEW_RECORDS * held + error:
                return None
        if max(0.0, lost) + error > MOST_HIDDEN * look.inside:
            return None
        near, far = sorted((abs(low), abs(high)))
        if near < FAR * far and end - first > bins // NARROW:
            return None  # then that range does not lie far from zero
        low, high = low + first * width, low + end * width
        unit = max(rung((high - low) / _UNITS), self.step)
        low, high = snap(np.array([math.floor(low / unit), math.ceil(high / unit)]) * unit, unit)
        ends = min([low, *look.atoms]), max([high, *look.atoms])
        return Narrowed(*ends, max(0.0, lost), error)

    def _outside(self, counts: Counts, first: int, end: int, held: float) -> tuple[float, float]:
        """How many of what is held lie beyond a range, and the standard deviation of its noise.

        Both what the range lacks and what is counted beyond it say so, by as many bins as each has.
        """
        bins, own = len(counts), end - first
        lacking = held - float(counts[first:end].sum())
        beyond = float(counts[:first].sum() + counts[end:].sum())
        lost = ((bins - own) * lacking + own * beyond) / bins
        return lost, self.std * math.sqrt(own * (bins - own) / bins)

    def _clearest(self) -> NDArray[np.int64]:
        """The ends of bins in a row that exceed noise together; none where it may pass for them.

        Of a bell these are 1.4 standard deviations to either side, so half as many are added there.
        """
        before, bins = np.concatenate([[0.0], np.cumsum(self.counts)]), len(self.counts)
        lengths = [2**k for k in range(1, bins.bit_length()) if 2**k <= bins // NARROW]
        above = [(before[k:] - before[:-k]) / math.sqrt(k) for k in lengths]
        least = cell_threshold(self.std, bins * max(1, len(lengths)))
        best = max(range(len(lengths)), key=lambda i: above[i].max(), default=None)
        if best is None or above[best].max() <= least:
            return np.zeros(0, dtype=np.int64)
        start, length = int(above[best].argmax()), lengths[best]
        ends = np.array([start - length // 2, start + length + length // 2 - 1])
        return np.asarray(np.clip(ends, 0, bins - 1))

    def _grown(self, counts: Counts, first: int, end: int, held: float) -> tuple[int, int] | None:
        """The shortest range around another that counts nearly all of what is held.

        None where that is long.
        """
        before, bins = np.concatenate([[0.0], np.cumsum(counts)]), len(counts)
        for length in range(end - first, bins // NARROW + 1):
            starts = np.arange(max(0, end - length), min(first, bins - length) + 1)
            own = before[starts + length] - before[starts]
            if own.max() >= (1.0 - FEW_RECORDS) * held:
                start = int(starts[own.argmax()])
                return start, start + length
        return None
