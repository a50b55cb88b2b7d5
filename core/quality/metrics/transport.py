"""Wasserstein scores: how far rows must be moved, on the principal axes and on the whole space.

`Wscore(R, S) = 1 − W₂(R, S) / max‖x − y‖` and, on a projection P with explained variance v,
`Wscore(R, S, P) = 1 − W₂(RP, SP) / (√v · max‖x − y‖)`; 1 is identical. The maximum is over all
records that the encoding allows. W₂ is exact between subsamples, averaged over seeds: two samples
of one table score below 1, most of all on the whole space, so compare with the ceiling. Source:
DP-auto-GAN (ICLR 2020 submission) §4 and Appendix D.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.message import Message, ReportedError
from core.quality.aligned_tables import AlignedTable
from core.quality.comparison import Comparison
from core.quality.metrics.estimators import side_by_side
from core.quality.metrics.family import Measured, Metric, Step, family
from core.quality.metrics.principal_axes import axes_of, projection

# POT imports every array library it finds; torch alone costs seconds and 200 MB.
os.environ.setdefault("POT_BACKEND_DISABLE_PYTORCH", "1")
import ot  # noqa: E402

Floats = NDArray[np.float64]
ROWS = 2_000  # rows a side for exact transport: seconds, and the published protocol's size
REPEATS = 3
DIRECTIONS = 64
CHUNK = 50_000  # rows encoded at once

WSCORE_PCA = Metric(
    key="wscore_pca",
    title="Overall shape in two dimensions (Wasserstein)",
    goal="higher",
    meaning="How little the synthetic points would have to move to match the real ones, on the "
    "first two principal components. Differences below 0.015 are not meaningful.",
    source="DP-auto-GAN (ICLR 2020 submission) §4: 1 − W₂ / (√v · largest distance), 2,000 rows a "
    "side, mean of 3 draws",
)
WSCORE_WHOLE = Metric(
    key="wscore_whole",
    title="Overall shape (Wasserstein)",
    goal="higher",
    meaning="How little the synthetic rows would have to move to match the real ones, across all "
    "columns. Even two samples of one large table do not reach 1.",
    source="DP-auto-GAN (ICLR 2020 submission) §4: 1 − W₂ / largest distance, 2,000 rows a side, "
    "mean of 3 draws",
)
SLICED = Metric(
    key="sliced",
    title="Overall shape from many directions (sliced Wasserstein)",
    goal="higher",
    meaning="How little the synthetic rows would have to move to match the real ones, seen from "
    "many random directions. Uses every row, even of very large tables.",
    source="Bonneel et al. 2015: 1 − √d · SW₂ / largest distance, 64 directions",
)


@dataclass(frozen=True)
class Wasserstein:
    """Scores over the repetitions, each in [0, 1]; mean and standard deviation."""

    whole: float
    whole_spread: float
    plane: float
    plane_spread: float


def wasserstein_scores(
    real: AlignedTable,
    synthetic: AlignedTable,
    *,
    rows: int = ROWS,
    repeats: int = REPEATS,
    seed: int = 0,
) -> Wasserstein:
    """Whole-space and 2-axis Wasserstein scores on subsamples of at most `rows` rows a side."""
    _require_rows(real, synthetic)
    axes = axes_of(real, seed=seed)
    farthest, v = real.features.diameter, float(axes.explained.sum())
    whole, plane = [], []
    for repeat in range(repeats):
        rng = np.random.default_rng((seed, repeat))
        x, y = (table.sample(rows, rng).encode() for table in (real, synthetic))
        spaces = [(x, y, farthest)]
        if v > 0.0:  # a constant real table has no axes: its plane says no more than the whole
            spaces.append((axes.project(x), axes.project(y), np.sqrt(v) * farthest))
        scores = list(side_by_side(lambda one: _score(*one), spaces))
        whole.append(scores[0])
        plane.append(scores[-1])
    return Wasserstein(
        float(np.mean(whole)), float(np.std(whole)), float(np.mean(plane)), float(np.std(plane))
    )


def sliced_score(
    real: AlignedTable, synthetic: AlignedTable, *, directions: int = DIRECTIONS, seed: int = 0
) -> tuple[float, float]:
    """Sliced Wasserstein score of all rows, in [0, 1], and its standard error over directions.

    On each of many random unit directions the two tables are sorted and compared. SW₂ is at most W₂
    / √d, so that the score is never below that of the whole space.

    Source: Bonneel, Rabin, Peyré and Pfister, "Sliced and Radon Wasserstein barycenters of
    measures", 2015.
    """
    _require_rows(real, synthetic)
    rng = np.random.default_rng((seed, DIRECTIONS))
    width = sum(feature.width for feature in real.features.items)
    to = rng.normal(size=(width, directions)) if width else np.zeros((0, directions))
    to /= np.maximum(np.sqrt((to**2).sum(axis=0)), 1e-300)
    a, b = (_along(table, to) for table in (real, synthetic))
    squared = np.array([float(ot.wasserstein_1d(a[:, i], b[:, i], p=2)) for i in range(directions)])
    scale = real.features.diameter
    if scale == 0.0:
        return (1.0 if not squared.any() else 0.0), 0.0
    distance = float(np.sqrt(width * max(squared.mean(), 0.0)))
    error = float(squared.std(ddof=1) / np.sqrt(directions)) if directions > 1 else 0.0
    # of a root: half the relative error of what is under it
    spread = 0.5 * np.sqrt(width / max(squared.mean(), 1e-300)) * error / scale
    return max(0.0, 1.0 - distance / scale), float(spread)


@family(WSCORE_PCA, WSCORE_WHOLE, text="Measuring Wasserstein scores", order=80, cost=5.0)
def wasserstein(tables: Comparison, step: Step) -> Measured:
    """How far rows must be moved, by exact transport of samples."""
    real, seed = tables.real, tables.seed
    synthetic = wasserstein_scores(real, tables.synthetic, seed=seed)
    step(Message("Measuring Wasserstein scores"), 0.6)
    ceiling = wasserstein_scores(real, tables.resampled, repeats=1, seed=seed)
    before = None
    if tables.before is not None:
        step(Message("Comparing with the model's own table"), 0.8)
        before = wasserstein_scores(tables.beside_before, tables.before, repeats=1, seed=seed)
    return Measured(
        [
            WSCORE_PCA.score(
                synthetic.plane,
                spread=synthetic.plane_spread,
                ceiling=ceiling.plane,
                before=before and before.plane,
            ),
            WSCORE_WHOLE.score(
                synthetic.whole,
                spread=synthetic.whole_spread,
                ceiling=ceiling.whole,
                before=before and before.whole,
            ),
        ],
        {"pca": projection(tables, wscore=synthetic.plane, spread=synthetic.plane_spread)},
    )


@family(SLICED, text="Measuring Wasserstein scores from many directions", order=90, cost=0.6)
def sliced_wasserstein(tables: Comparison, _: Step) -> Measured:
    """How far rows must be moved, by slices of all rows."""
    real, seed = tables.real, tables.seed
    score, spread = sliced_score(real, tables.synthetic, seed=seed)
    ceiling = sliced_score(real, tables.resampled, seed=seed)[0]
    return Measured([SLICED.score(score, spread=spread, ceiling=ceiling)])


def _require_rows(*tables: AlignedTable) -> None:
    if not all(len(table.features) and table.n for table in tables):
        raise ReportedError("Wasserstein scores need rows on both sides and a column to compare.")


def _along(table: AlignedTable, to: Floats) -> NDArray[np.float32]:
    out = np.empty((table.n, to.shape[1]), dtype=np.float32)
    for start in range(0, table.n, CHUNK):
        rows = np.arange(start, min(start + CHUNK, table.n))
        out[rows] = table.take(rows).encode() @ to
    return out


def _score(x: Floats, y: Floats, scale: float) -> float:
    """1 − W₂ / scale, not below 0 (W₂ on a plane can exceed √v · diameter); constants score 1."""
    squared = (x**2).sum(axis=1)[:, None] + (y**2).sum(axis=1)[None, :] - 2.0 * (x @ y.T)  # [n, m]
    cost = ot.emd2([], [], np.maximum(squared, 0.0), numItermax=2_000_000)
    distance = float(np.sqrt(max(cost, 0.0)))
    if scale == 0.0:
        return 1.0 if distance == 0.0 else 0.0
    return max(0.0, 1.0 - distance / scale)
