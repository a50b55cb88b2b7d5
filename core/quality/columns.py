"""One column in both tables as shares per bin or label: what the Review page draws."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from core.quality.marginals import tvd
from core.quality.prepare import Cells, Feature, Features
from core.quality.types import ColumnPicture
from core.table.codec import Line
from core.table.schema import Column, Kind

__all__ = ["column_pictures"]

Floats = NDArray[np.float64]

MAX_BINS = 30
MAX_LABELS = 20
OTHER = "(other)"


def column_pictures(features: Features, real: Cells, synthetic: Cells) -> dict[str, ColumnPicture]:
    """A picture of every compared column, by name."""
    return {
        feature.name: _picture(feature, real.values[feature.name], synthetic.values[feature.name])
        for feature in features.items
    }


def _picture(
    feature: Feature, real: NDArray[np.generic], synthetic: NDArray[np.generic]
) -> ColumnPicture:
    if not feature.numeric:
        return _listed(feature, real, synthetic)
    return _numeric(feature, real.astype(np.float64), synthetic.astype(np.float64))


def _distance(feature: Feature, real: NDArray[np.generic], synthetic: NDArray[np.generic]) -> float:
    a, cells = feature.bins(real)
    b, _ = feature.bins(synthetic)
    return tvd(
        np.bincount(a, minlength=cells).astype(np.float64),
        np.bincount(b, minlength=cells).astype(np.float64),
    )


def _listed(
    feature: Feature, real: NDArray[np.generic], synthetic: NDArray[np.generic]
) -> ColumnPicture:
    def shares(codes: NDArray[np.generic]) -> tuple[list[float], float]:
        whole = np.bincount(codes.astype(np.int64) + 1, minlength=len(feature.labels) + 1)
        share = whole / max(len(codes), 1)
        named = share[1:]
        if len(named) > MAX_LABELS:
            named = np.append(named[:MAX_LABELS], named[MAX_LABELS:].sum())
        return named.tolist(), float(share[0])

    a, gaps = shares(real)
    b, gaps_synthetic = shares(synthetic)
    labels = list(feature.labels[:MAX_LABELS])
    if len(feature.labels) > MAX_LABELS:
        labels.append(OTHER)
    elif feature.column.kind is Kind.ORDERED:
        place = {label: i for i, label in enumerate(feature.column.categories or ())}
        order = sorted(range(len(labels)), key=lambda i: place.get(labels[i], len(place)))
        labels = [labels[i] for i in order]
        a, b = [a[i] for i in order], [b[i] for i in order]
    return ColumnPicture(
        kind=feature.column.kind.value,
        labels=labels,
        real=a,
        synthetic=b,
        missing_real=gaps,
        missing_synthetic=gaps_synthetic,
        tvd=_distance(feature, real, synthetic),
    )


def _numeric(feature: Feature, real: Floats, synthetic: Floats) -> ColumnPicture:
    present = real[~np.isnan(real)]
    shown = synthetic[~np.isnan(synthetic)]
    span = present if len(present) else shown
    edges, atoms = _edges(feature.column, span)
    outside = (shown < edges[0]) | (shown > edges[-1]) if len(edges) else np.zeros(0, dtype=bool)
    return ColumnPicture(
        kind=feature.column.kind.value,
        scale=feature.column.scale,
        edges=edges.tolist(),
        real=_shares(real, edges, atoms),
        synthetic=_shares(synthetic, edges, atoms),
        missing_real=float(np.isnan(real).mean()) if len(real) else 0.0,
        missing_synthetic=float(np.isnan(synthetic).mean()) if len(synthetic) else 0.0,
        outside=float(outside.sum() / max(len(synthetic), 1)),
        tvd=_distance(feature, real, synthetic),
    )


def _edges(column: Column, present: Floats) -> tuple[Floats, Floats]:
    """Bin edges over the values present, and the atoms drawn as bins of zero width.

    Log-scale columns get edges evenly spaced on the column's own scale, and each declared spike a
    bin of its own (the edge twice), so that neither the spike nor the tail hides the other. Whole
    steps are never cut: bins of a stepped column are a whole number of steps wide.
    """
    if not len(present):
        return np.zeros(0), np.zeros(0)
    low, high = float(present.min()), float(present.max())
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


def _shares(values: Floats, edges: Floats, atoms: Floats) -> list[float]:
    """Share of all rows in each bin; values beyond the edges count in the end bins."""
    if not len(edges):
        return []
    total = max(len(values), 1)
    present = np.clip(values[~np.isnan(values)], edges[0], edges[-1])
    on_atom = np.isin(present, atoms)
    counts = np.zeros(len(edges) - 1)
    # side="right" puts a value that equals an edge in the bin to its right, past a zero-width bin.
    at = np.searchsorted(edges, present[~on_atom], side="right") - 1
    counts += np.bincount(np.clip(at, 0, len(counts) - 1), minlength=len(counts))
    for atom in atoms:
        counts[np.searchsorted(edges, atom, side="left")] += int((present == atom).sum())
    return list((counts / total).tolist())
