"""outside_report: what may be shown to people outside, made without opening the real table.

It takes the synthetic table, the declared domain, and histograms of real columns where a plan paid
to release them with noise. Bins come from the declaration, axes from the synthetic rows, so nothing
here depends on real rows but through the release.
"""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
from pydantic import BaseModel, ConfigDict

from core.quality.aligned_tables import Cells, Features, sample_rows
from core.quality.metrics.association import associations
from core.quality.metrics.marginals import tvd
from core.quality.metrics.registry import metric
from core.quality.metrics.transport import axes_of
from core.quality.report.builder import capped
from core.quality.report.types import AssociationTable, ColumnPicture, Projection, Report, Score
from core.table.bins import MAX_LABELS, REST_LABEL
from core.table.codec import Codec
from core.table.schema import Schema

__all__ = ["Overlay", "outside_report"]

ROWS = 100_000
ASSOCIATION_ROWS = 20_000
POINTS = 1_500
NOT_SHOWN = "Nothing on this page was computed from real rows."
WITH_NOISE = (
    "Real shares were released once with Gaussian noise, which the plan paid for; everything else "
    "on this page comes from the synthetic table alone."
)


class Overlay(BaseModel):
    """Histograms of real columns as a plan released them.

    Attributes:
      n: records they count, public.
      noise_std: standard deviation of the noise on each count.
      counts: by column, in the bins of `core.privacy.mechanisms.histograms`, "missing" last.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    n: int
    noise_std: float
    counts: dict[str, list[float]]


def outside_report(
    synthetic: pd.DataFrame, schema: Schema, *, overlay: Overlay | None = None, seed: int = 0
) -> Report:
    """The report for people outside.

    Args:
      synthetic: ≥ 1 row.
      schema: with a declared domain.
      overlay: what was released of real columns, if anything.
      seed: of subsamples.

    Raises:
      ValueError: the table has no rows.
    """
    if not len(synthetic):
        raise ValueError("A report needs at least one synthetic row.")
    rng = np.random.default_rng(seed)
    frame = synthetic.iloc[sample_rows(len(synthetic), ROWS, rng)]
    features, cells = _read(frame, schema)
    pictures = _pictures(frame, schema, overlay)
    return Report(
        view="outside",
        complete=True,
        rows_real=0 if overlay is None else overlay.n,
        rows_synthetic=len(synthetic),
        scores=_scores(pictures, overlay),
        columns=pictures,
        pca=_plane(features, cells, rng, seed),
        associations=_strengths(features, capped(cells, rows=ASSOCIATION_ROWS, rng=rng)),
        notes=[NOT_SHOWN if overlay is None else WITH_NOISE],
    )


def _read(frame: pd.DataFrame, schema: Schema) -> tuple[Features, Cells]:
    features, cells = Features.fit(schema, frame)
    return features, cells[0]


def _pictures(
    frame: pd.DataFrame, schema: Schema, overlay: Overlay | None
) -> dict[str, ColumnPicture]:
    """Every modelled column in its public bins."""
    import torch

    from core.privacy.mechanisms.histograms import Histograms

    codec = Codec(schema.domain())
    shown = Histograms.of(codec, [block.column.name for block in codec.blocks])
    codes = codec.encode(frame).to("cpu")
    counted = shown.split(shown.statistic(codes, torch.ones(len(frame))).tolist())
    found = {}
    for one in shown.bins:
        column, name = one.block.column, one.block.column.name
        made = np.array(counted[name])
        real = None
        if overlay is not None and name in overlay.counts:
            real = np.array(overlay.counts[name])
        labels = None
        if not one.edges:
            every = column.categories or ()
            labels = [*every[:MAX_LABELS], *([REST_LABEL] if len(every) > MAX_LABELS else [])]
        gaps = one.block.missing_state is not None
        n = 1 if overlay is None else overlay.n
        shares, missing = _shares(made, len(frame), gaps)
        noisy, absent = _shares(real, n, gaps) if real is not None else ([], None)
        found[name] = ColumnPicture(
            kind=column.kind.value,
            scale=column.scale,
            labels=labels,
            edges=list(one.edges) or None,
            real=noisy,
            synthetic=shares,
            missing_real=absent,
            missing_synthetic=missing or 0.0,
            tvd=None if real is None else tvd(np.clip(real, 0.0, None), made),
            noise=None if real is None or overlay is None else 1.96 * overlay.noise_std / n,
        )
    return found


def _shares(counts: np.ndarray, n: int, gaps: bool) -> tuple[list[float], float | None]:
    """Shares of the bins, and of missing values; noise below zero is cut off."""
    share = np.clip(counts / n, 0.0, None)
    whole = share[:-1] if gaps else share
    return [float(x) for x in whole], float(share[-1]) if gaps else 0.0


def _scores(pictures: dict[str, ColumnPicture], overlay: Overlay | None) -> list[Score]:
    """The mean distance of single columns, beside what the noise alone would show."""
    found = [picture.tvd for picture in pictures.values() if picture.tvd is not None]
    if overlay is None or not found:
        return []
    bins = np.mean([len(counts) for counts in overlay.counts.values()])
    # E|N| = σ √(2/π) in each bin; half of their sum is the distance of equal tables.
    floor = min(1.0, 0.5 * float(bins) * overlay.noise_std * math.sqrt(2 / math.pi) / overlay.n)
    note = "Measured against noisy shares; noise alone shows the distance given for real data."
    return [metric("tvd_1way").score(float(np.mean(found)), ceiling=floor, note=note)]


def _plane(features: Features, cells: Cells, rng: np.random.Generator, seed: int) -> Projection:
    axes = axes_of(features, cells, seed=seed)
    dots = axes.project(features.encode(capped(cells, rows=POINTS, rng=rng)))
    return Projection(
        real=[],
        synthetic=np.round(dots, 4).tolist(),
        explained=(float(axes.explained[0]), float(axes.explained[1])),
    )


def _strengths(features: Features, cells: Cells) -> AssociationTable:
    found = np.round(associations(features, cells), 4)
    return AssociationTable(columns=list(features.names), real=[], synthetic=found.tolist())
