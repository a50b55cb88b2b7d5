"""Cells of a line, merged from a noisy histogram of fine ones; post-processing."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from core.models.steps.counting.lines.densities import COARSE

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
FEWEST_CELLS_A_LINE = 4
CELL_SNR_THRESHOLD = 3.0  # standard deviations that a cell stands above the noise
# … that a run of records does where a column may end: a hundred empty cells in a row hold many
# runs, of which one stands three above in every tenth column
RUN_SNR_THRESHOLD = 5.0
# … that a value must, to be kept apart among a thousand others: once a second count has told, and
# before, when of a thousand empty cells one or two are kept apart in vain
SPIKE_SNR_THRESHOLD, CANDIDATE_SNR_THRESHOLD = 4.5, 3.0


def spikes(
    counts: Floats,
    noise: float | Floats,
    most: int,
    values: Floats,
    threshold: float = SPIKE_SNR_THRESHOLD,
) -> Mask:
    """Fine cells that stand above their neighbours and noise, bool [fine cells].

    Args:
      noise: standard deviation of each count.
      most: cells that all are merged to; a spike holds a third of a fair share of records.
      values: float64 [fine cells], 0 where none can be; such cells are no neighbours.
    """
    some = np.flatnonzero(values)
    own, spread = counts[some], np.broadcast_to(noise, len(counts))[some]
    around = np.array([np.median(own[max(0, i - 3) : i + 4]) for i in range(len(own))])
    above = own - np.maximum(around, 0.0)
    found = np.zeros(len(counts), dtype=bool)
    fair = fair_share(own, most)
    found[some] = (above > threshold * spread) & (own > 3.0 * around) & (own > 0.3 * fair)
    return found


def fair_share(counts: Floats, most: int) -> float:
    """Records of each of so many cells that hold as many as each other."""
    return max(float(counts.sum()), 1.0) / most


def merged(
    counts: Floats,
    noise: float,
    most: int,
    cuts: frozenset[int],
    values: Floats,
    *,
    sure: bool = False,
    alone: Mask | None = None,
) -> NDArray[np.int64]:
    """Ascending cells of counts: each of a fair share and clear of noise, spikes alone.

    None waits for more than a quarter of all to be clear: a single cell shows nothing. Where it
    matters that records are `sure` to be there, each waits until `RUN_SNR_THRESHOLD` says so.

    No cell reaches across the fine cells `cuts`, each of which begins one. Those that have no value
    belong to the next one's.

    Args:
      alone: bool [fine cells], each of which is a cell; `spikes` where it is None.
    """
    alone = spikes(counts, noise, most, values) if alone is None else alone
    fine = len(counts)
    some = np.flatnonzero(values)
    if 0 < len(some) < fine:
        cuts = frozenset(np.searchsorted(some, sorted(cuts)).tolist())
        of_some = merged(
            counts[some], noise, most, cuts, values[some], sure=sure, alone=alone[some]
        )
        next_one = np.searchsorted(some, np.arange(fine)).clip(0, len(some) - 1)
        return np.asarray(of_some[next_one])
    fair = fair_share(counts, most)
    enough = math.inf if sure else counts.sum() / FEWEST_CELLS_A_LINE
    threshold = RUN_SNR_THRESHOLD if sure else CELL_SNR_THRESHOLD
    cells = np.zeros(fine, dtype=np.int64)
    cell, held, size = 0, 0.0, 0
    for i in range(fine):
        if size and (alone[i] or i in cuts):
            cell, held, size = cell + 1, 0.0, 0
        cells[i] = cell
        held, size = held + counts[i], size + 1
        clear = threshold * noise * math.sqrt(_counted(size))
        if alone[i] or held >= max(fair, min(clear, enough)):
            cell, held, size = cell + 1, 0.0, 0
    if (
        size and cell and held < 0.5 * fair and fine - size not in cuts
    ):  # what is left over joins its neighbour
        cells[cells == cell] = cell - 1
    return cells


def _counted(size: int) -> float:
    """Variance of the count of a run of fine cells, in units of one's: coarse cells help."""
    return min(float(size), size / COARSE + COARSE - 1.0)


def without_candidates(
    cells: NDArray[np.int64], candidates: Mask, counts: Floats, fair: float, cuts: frozenset[int]
) -> NDArray[np.int64]:
    """Ascending cells where candidates are no cells of their own any more.

    Each joins the cell behind it, and the one before too if that has less than a fair share, since
    it ended for the candidate alone.

    Args:
      cells: int64 [fine cells]; `counts`, float64 [cells].
      candidates: bool [fine cells].
    """
    begins = np.diff(cells, prepend=-1) > 0
    for at in np.flatnonzero(candidates):
        cell, behind = int(cells[at]), int(np.searchsorted(cells, cells[at], side="right"))
        last = behind == len(cells) or behind in cuts
        begins[behind : behind + 1] &= last
        first = int(np.searchsorted(cells, cell))
        if cell and first not in cuts and (last or counts[cell - 1] < fair):
            begins[first] = False
    return np.asarray(np.cumsum(begins) - 1)
