"""How far whole numbers go, where each of a few small ones has a bin in which noise may hide it."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from core.privacy.discovery.bins_in_a_row import Counts
from core.privacy.discovery.grids import ROUND, SINGLE, PublicGrid, value_grid
from core.privacy.discovery.planning import BOUNDS, SINGLY, Levels
from core.privacy.discovery.thresholds import EVIDENCE, log_ratio_of_none
from core.schema.calendar import last_number, named_fields

LAST_YEAR = 2100.0


def gone_on(grid: PublicGrid, bins: Counts, at: int, step: int, std: float, least: float) -> int:
    """The bin of a small whole number to which records may go on from the last one that was found.

    Such numbers have a bin each, in which noise may hide what is left of a distribution that thins
    out. So bounds go on to the next round number unless counts speak against it: against records
    that thin out from the last bin on by half over its own width, or over that of all bins up to
    the last round number.

    Args:
      step: 1 upwards, -1 downwards.
      least: records from which on it matters where they lie.
    """
    edges = np.array(grid.edges)
    held, noise, width = bins[at], std, edges[at + 1] - edges[at]
    while held > max(noise, least) and len(block := _to_round(edges, at, step)):
        seen, many = np.cumsum(bins[block]), np.arange(1.0, len(block) + 1.0)
        likely = held * (1.0 - 0.5 ** (many / width))
        if log_ratio_of_none(likely, seen, std * np.sqrt(many)).max() > EVIDENCE:
            break
        at, held, noise, width = int(block[-1]), seen[-1], std * math.sqrt(len(block)), many[-1]
    return at


def _to_round(edges: NDArray[np.float64], at: int, step: int) -> NDArray[np.int64]:
    """The bins of single numbers behind one, up to the next round number; none beyond zero."""
    outer = edges[1:] if step > 0 else edges[:-1]
    ahead = np.arange(at + step, len(outer) if step > 0 else -1, step)
    ends = np.flatnonzero(np.isin(np.abs(outer[ahead]), ROUND))
    block = ahead[: ends[0] + 1] if len(ends) else ahead[:0]
    single = edges[block + 1] - edges[block] == 1.0
    same_sign = (edges[at] >= 0.0) == (edges[block] >= 0.0)
    return block if bool((single & same_sign).all()) else block[:0]


def begins_at_zero(bins: Counts, zeros: float, first: int, clear: int, levels: Levels) -> bool:
    """Whether numbers of which 1 is the first that has a bin begin with 0, which has none.

    Args:
      clear: the first bin that was found by itself; before it, noise may hide zeros, too.
    """
    if zeros > levels.neighbour:
        return True
    each = float(bins[first:clear].mean()) if first < clear else 0.0
    evidence = log_ratio_of_none(each, zeros, levels.std[BOUNDS])
    return first < clear and bool(evidence <= EVIDENCE)


def within_field(
    name: str, grid: PublicGrid, ends: list[float], bins: Counts, single: Counts, std: float
) -> list[float]:
    """The ends, up to the last number of the date's field that a name says: days end at 31.

    Unless half as many records seem to lie beyond it as would if all numbers were as frequent.

    Args:
      single: counts of each number that has a cell of its own; others if there are none.
    """
    low, high = min(ends), max(ends)
    last = last_number(name, low)
    if last is None or high <= last:
        return ends
    edges = np.array(grid.edges)
    inside = (edges[:-1] >= low) & (edges[1:] - 1.0 <= high)
    beyond = bins[inside & (edges[:-1] > last)]
    between = (SINGLE > last) & (SINGLE < edges[edges > last].min()) & (SINGLE % 1.0 == 0.0)
    rest = single[1:-2][between] if len(single) == value_grid().size else single[:0]
    likely = 0.5 * float(bins[inside].sum()) * (high - last) / (high + 1.0 - low)
    noise = max(1.0, std * math.sqrt(len(beyond) + len(rest) / SINGLY**2))
    if log_ratio_of_none(likely, float(beyond.sum() + rest.sum()), noise) < 0.0:
        return ends
    return [*(end for end in ends if end < last), last]


def up_to_our_time(name: str, low: float, high: float) -> float:
    """The upper bound of a column: of years, by its name and where they begin, not far from now."""
    years = "year" in named_fields(name) and 1000.0 <= low < LAST_YEAR
    return min(high, LAST_YEAR) if years else high
