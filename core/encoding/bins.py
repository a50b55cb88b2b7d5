"""Bins and groups of bins that columns are drawn and compared in: a matter of declarations alone.

Few cells keep noise low: where marginals are compared, single columns are cut in at most 12 groups
of neighbouring bins, each column of a pair in at most 5; "missing" is a group of its own.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from core.encoding.codec import Line
from core.schema.column import Column, Kind

Floats = NDArray[np.float64]

MAX_BINS = 30
MAX_LABELS = 20  # of a list; the rest are drawn together
REST_LABEL = "(other)"
SINGLE_GROUPS, PAIR_GROUPS = 12, 5
MOST_PAIRS = 60


def edges_of(
    column: Column, low: float, high: float, most: int = MAX_BINS
) -> tuple[Floats, Floats]:
    """Bin edges from low to high (NaN: none), and the atoms drawn as bins of zero width.

    Log-scale columns get edges evenly spaced on their own scale, and each declared spike a bin of
    its own (the edge twice), so that neither hides the other. Bins of a stepped column are a whole
    number of steps wide.
    """
    if np.isnan(low):
        return np.zeros(0), np.zeros(0)
    if low == high:
        return np.array([low, high]), np.array([low])
    if column.scale == "log":
        return _log_edges(column, low, high, most)
    if column.step > 0:
        steps = round((high - low) / column.step) + 1
        width = column.step * max(1, int(np.ceil(steps / most)))
        bins = int(np.ceil(steps * column.step / width - 1e-9))
        # Centred on whole numbers; a day's bar starts on the day.
        start = low if column.kind is Kind.DATETIME else low - column.step / 2
        edges = start + width * np.arange(bins + 1)
        return edges.astype(np.float64), np.zeros(0)
    return np.linspace(low, high, most + 1), np.zeros(0)


def bin_counts(values: Floats, edges: Floats, atoms: Floats) -> NDArray[np.int64]:
    """Of values that are there, int64 [bins]; those beyond the edges count in the end bins.

    Args:
      edges, atoms: see `edges_of`; at least two edges.
    """
    present = np.clip(values, edges[0], edges[-1])
    on_atom = np.isin(present, atoms)
    # side="right" puts a value that equals an edge in the bin to its right, past a zero-width bin.
    at = np.searchsorted(edges, present[~on_atom], side="right") - 1
    last = len(edges) - 2
    counts = np.bincount(np.clip(at, 0, last), minlength=last + 1)
    for atom in atoms:
        counts[np.searchsorted(edges, atom, side="left")] += int((present == atom).sum())
    return counts


def _log_edges(column: Column, low: float, high: float, most: int) -> tuple[Floats, Floats]:
    bounded = column.model_copy(update={"low": low, "high": high})
    line = Line.of(bounded)
    atoms = np.array(sorted({spike for spike in column.spikes if low <= spike <= high}))
    edges = line.value(np.linspace(0.0, 1.0, most + 1))
    edges[0], edges[-1] = low, high
    edges = np.unique(np.concatenate([edges, atoms]))  # snapping to steps merges the finest bins
    return np.sort(np.concatenate([edges, atoms])), atoms


def pairs_of(names: Sequence[str], target: str | None = None) -> tuple[tuple[str, str], ...]:
    """Pairs of columns, at most 60: those with the target first; nearer columns before others.

    >>> pairs_of(["a", "b", "c"], "c")
    (('b', 'c'), ('a', 'c'), ('a', 'b'))
    """
    m = len(names)
    near = [(names[i], names[i + step]) for step in range(1, m) for i in range(m - step)]
    # a stable sort: within both kinds the nearest stay in front
    return tuple(sorted(near, key=lambda pair: target not in pair)[:MOST_PAIRS])


def groups_of_bins(bins: int, *, missing: bool, groups: int) -> tuple[int, ...]:
    """For each bin, the group of neighbouring ones it belongs to; a last "missing" has its own.

    >>> groups_of_bins(5, missing=True, groups=2)
    (0, 0, 1, 1, 2)
    """
    body = bins - missing
    count = min(body, groups)
    return tuple(i * count // body for i in range(body)) + ((count,) if missing else ())
