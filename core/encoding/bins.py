"""Bins that a column is drawn in: a matter of its declaration and a range, never of its values."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from core.encoding.codec import Line
from core.schema.schema import Column, Kind

__all__ = ["MAX_BINS", "MAX_LABELS", "REST_LABEL", "edges_of"]

Floats = NDArray[np.float64]

MAX_BINS = 30
MAX_LABELS = 20  # of a list; the rest are drawn together
REST_LABEL = "(other)"


def edges_of(column: Column, low: float, high: float) -> tuple[Floats, Floats]:
    """Bin edges from low to high, and the atoms drawn as bins of zero width.

    Log-scale columns get edges evenly spaced on the column's own scale, and each declared spike a
    bin of its own (the edge twice), so that neither the spike nor the tail hides the other. Whole
    steps are never cut: bins of a stepped column are a whole number of steps wide.

    Args:
      low, high: the range to cover, low ≤ high; NaN where nothing is known, which gives no bins.
    """
    if np.isnan(low):
        return np.zeros(0), np.zeros(0)
    if low == high:
        return np.array([low, high]), np.array([low])
    if column.scale == "log":
        return _log_edges(column, low, high)
    if column.step > 0:
        steps = round((high - low) / column.step) + 1
        width = column.step * max(1, int(np.ceil(steps / MAX_BINS)))
        bins = int(np.ceil(steps * column.step / width - 1e-9))
        # Centred on whole numbers; a day's bar starts on the day.
        start = low if column.kind is Kind.DATETIME else low - column.step / 2
        edges = start + width * np.arange(bins + 1)
        return edges.astype(np.float64), np.zeros(0)
    return np.linspace(low, high, MAX_BINS + 1), np.zeros(0)


def _log_edges(column: Column, low: float, high: float) -> tuple[Floats, Floats]:
    bounded = column.model_copy(update={"low": low, "high": high})
    line = Line.of(bounded)
    atoms = np.array(sorted({spike for spike in column.spikes if low <= spike <= high}))
    edges = line.value(np.linspace(0.0, 1.0, MAX_BINS + 1))
    edges[0], edges[-1] = low, high
    edges = np.unique(np.concatenate([edges, atoms]))  # snapping to steps merges the finest bins
    return np.sort(np.concatenate([edges, atoms])), atoms
