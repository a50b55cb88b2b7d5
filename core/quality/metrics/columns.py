"""Single columns in both tables: shares per bin or label, for the Review page, and distances."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from core.encoding.bins import MAX_LABELS, REST_LABEL, bin_counts, edges_of
from core.quality.aligned_tables import HOT_LABELS, AlignedTable, Feature
from core.quality.comparison import Comparison, table_half_width
from core.quality.metrics.family import Measured, Metric, Step, family
from core.quality.metrics.marginals import one_way
from core.quality.report.types import MISSING, ColumnPicture, ProbabilityPoint
from core.schema.column import Kind

Floats = NDArray[np.float64]
Values = NDArray[np.generic]

TVD_1WAY = Metric(
    key="tvd_1way",
    title="Single columns: distance",
    goal="lower",
    meaning="Average total variation distance between a column's real and synthetic distributions: "
    "0 means identical, 1 means no overlap.",
    source="1-way marginals, as in P3GM (ICDE 2021); numbers in 16 equal-width bins",
)


def column_pictures(real: AlignedTable, synthetic: AlignedTable) -> dict[str, ColumnPicture]:
    """A picture of every compared column, by name; n ≥ 1 on both sides."""
    distances = one_way(real, synthetic)
    return {
        feature.name: (_numeric if feature.numeric else _listed)(
            feature,
            real.values[feature.name],
            synthetic.values[feature.name],
            distances[feature.name],
        )
        for feature in real.features.items
    }


def dimension_probability(real: AlignedTable, synthetic: AlignedTable) -> list[ProbabilityPoint]:
    """Share of every label of listed columns, and of "missing" anywhere, in both tables.

    For a binary table this is the published dimension-wise probability plot; others show at most
    the 60 most frequent labels of a column. Source: Choi et al. 2017; DP-auto-GAN §4.
    """
    points = []
    for feature in real.features.items:
        values = [table.values[feature.name] for table in (real, synthetic)]
        gaps = [float(t.missing(feature.name).mean()) if t.n else 0.0 for t in (real, synthetic)]
        rows: list[tuple[str, float, float]] = []
        if not feature.numeric:
            p, q = (_label_shares(feature, codes)[1:].tolist() for codes in values)
            rows = list(zip(feature.labels[:HOT_LABELS], p, q, strict=False))
        if feature.missing:
            rows.append((MISSING, gaps[0], gaps[1]))
        points += [
            ProbabilityPoint(column=feature.name, label=label, real=a, synthetic=b)
            for label, a, b in rows
        ]
    return points


@family(TVD_1WAY, text="Comparing single columns", order=10, cost=0.1)
def single_columns(tables: Comparison, _: Step) -> Measured:
    """Every column by itself: the pictures that come first."""
    real, synthetic = tables.real, tables.synthetic
    pictures = column_pictures(real, synthetic)

    def mean_tvd(a: AlignedTable, b: AlignedTable) -> float:
        return float(np.mean(list(one_way(a, b).values())))

    before = None
    if tables.before is not None:
        before = mean_tvd(tables.beside_before, tables.before)
    score = TVD_1WAY.score(
        float(np.mean([picture.tvd for picture in pictures.values()])),
        half_width=table_half_width(mean_tvd, real, synthetic, seed=tables.seed),
        ceiling=mean_tvd(real, tables.resampled),
        before=before,
    )
    points = dimension_probability(real, synthetic)
    return Measured([score], {"columns": pictures, "dimension_probability": points})


def _label_shares(feature: Feature, codes: Values) -> Floats:
    counts = np.bincount(codes.astype(np.int64) + 1, minlength=len(feature.labels) + 1)
    return np.asarray(counts / max(len(codes), 1), dtype=np.float64)


def _listed(feature: Feature, real: Values, synthetic: Values, distance: float) -> ColumnPicture:
    labels, many = list(feature.labels[:MAX_LABELS]), len(feature.labels) > MAX_LABELS
    whole = [_label_shares(feature, codes) for codes in (real, synthetic)]
    shares = [share[1 : MAX_LABELS + 1].tolist() for share in whole]
    if many:
        labels.append(REST_LABEL)
        shares = [
            [*few, float(share[MAX_LABELS + 1 :].sum())]
            for few, share in zip(shares, whole, strict=True)
        ]
    elif feature.column.kind is Kind.ORDERED:
        rank = {label: i for i, label in enumerate(feature.column.categories or ())}
        order = sorted(range(len(labels)), key=lambda i: rank.get(labels[i], len(rank)))
        labels = [labels[i] for i in order]
        shares = [[share[i] for i in order] for share in shares]
    return ColumnPicture(
        kind=feature.column.kind.value,
        labels=labels,
        real=shares[0],
        synthetic=shares[1],
        missing_real=float(whole[0][0]),
        missing_synthetic=float(whole[1][0]),
        tvd=distance,
    )


def _numeric(feature: Feature, real: Values, synthetic: Values, distance: float) -> ColumnPicture:
    a, b = real.astype(np.float64), synthetic.astype(np.float64)
    present, shown = a[~np.isnan(a)], b[~np.isnan(b)]
    low, high = _ends(present if len(present) else shown)
    outside = (shown < low) | (shown > high)
    edges, atoms = edges_of(feature.column, *_ends(np.concatenate([present, shown])))
    return ColumnPicture(
        kind=feature.column.kind.value,
        scale=feature.column.scale,
        edges=edges.tolist(),
        step=feature.column.step,
        real=_bin_shares(a, edges, atoms),
        synthetic=_bin_shares(b, edges, atoms),
        missing_real=float(np.isnan(a).mean()) if len(a) else 0.0,
        missing_synthetic=float(np.isnan(b).mean()) if len(b) else 0.0,
        outside=float(outside.sum() / max(len(b), 1)),
        tvd=distance,
    )


def _ends(values: Floats) -> tuple[float, float]:
    return (float(values.min()), float(values.max())) if len(values) else (np.nan, np.nan)


def _bin_shares(values: Floats, edges: Floats, atoms: Floats) -> list[float]:
    """Share of all rows in each bin; values beyond the edges count in the end bins."""
    if not len(edges):
        return []
    counts = bin_counts(values[~np.isnan(values)], edges, atoms)
    return list((counts / max(len(values), 1)).tolist())
