"""One column in both tables as shares per bin or label: what the Review page draws."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from core.quality.aligned_tables import Cells, Feature, Features
from core.quality.metrics.marginals import tvd
from core.quality.report.types import ColumnPicture
from core.table.bins import MAX_LABELS, REST_LABEL, edges_of
from core.table.schema import Kind

__all__ = ["column_pictures"]

Floats = NDArray[np.float64]


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
        labels.append(REST_LABEL)
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
    low, high = (float(span.min()), float(span.max())) if len(span) else (np.nan, np.nan)
    edges, atoms = edges_of(feature.column, low, high)
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
