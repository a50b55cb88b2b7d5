"""Principal axes of the real table, and Wasserstein scores on them and on the whole space.

`Wscore(R, S) = 1 − W₂(R, S) / max‖x − y‖` and, on a projection P with explained variance v,
`Wscore(R, S, P) = 1 − W₂(RP, SP) / (√v · max‖x − y‖)`; 1 is identical. The maximum is over all
records that the encoding allows, not over those present, so it is one number for every synthetic
table. W₂ is the exact optimal transport distance between subsamples, averaged over seeds: even two
samples of one table score below 1, most of all on the whole space, so compare with the ceiling.
Source: DP-auto-GAN (ICLR 2020 submission) §4 and Appendix D.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.quality.aligned_tables import Cells, Features, sample_rows

# POT imports every array library it finds; torch alone costs seconds and 200 MB.
os.environ.setdefault("POT_BACKEND_DISABLE_PYTORCH", "1")
import ot  # noqa: E402

__all__ = ["Axes", "Wasserstein", "principal_axes", "sliced_score", "wasserstein_scores"]

Floats = NDArray[np.float64]
ROWS = 2_000  # rows a side for exact transport: seconds, and the published protocol's size
REPEATS = 3
FIT_ROWS = 20_000  # rows the axes are computed from
DIRECTIONS = 64
CHUNK = 50_000  # rows encoded at once


@dataclass(frozen=True)
class Axes:
    """The first principal axes of the real table.

    Attributes:
      centre: mean of the real rows [width].
      directions: orthonormal columns [width, k].
      explained: share of the real variance on each axis [k], in [0, 1].
    """

    centre: Floats
    directions: Floats
    explained: Floats

    def project(self, x: Floats) -> Floats:
        """[n, width] → [n, k]."""
        return np.asarray((x - self.centre) @ self.directions, dtype=np.float64)


@dataclass(frozen=True)
class Wasserstein:
    """Scores over the repetitions, each in [0, 1]; mean and standard deviation.

    Attributes:
      whole, whole_spread: on all encoded coordinates.
      plane, plane_spread: on the first two principal axes.
    """

    whole: float
    whole_spread: float
    plane: float
    plane_spread: float


def principal_axes(x: Floats, k: int = 2) -> Axes:
    """The k strongest axes of the rows x [n, width], n ≥ 1, from their covariance.

    Axes beyond the width are zero. Signs are fixed (largest loading positive), so that the same
    table gives the same picture.
    """
    centre = x.mean(axis=0)
    spread = x - centre
    values, vectors = np.linalg.eigh(spread.T @ spread / max(len(x), 1))
    order = np.argsort(values)[::-1][:k]
    directions = np.zeros((x.shape[1], k))
    explained = np.zeros(k)
    directions[:, : len(order)] = vectors[:, order]
    total = float(values.clip(0.0).sum())
    if total > 0.0:
        explained[: len(order)] = values[order].clip(0.0) / total
    strongest = np.abs(directions).argmax(axis=0)
    signs = np.sign(directions[strongest, np.arange(k)])
    return Axes(centre, directions * np.where(signs == 0, 1.0, signs), explained)


def wasserstein_scores(
    features: Features,
    real: Cells,
    synthetic: Cells,
    *,
    rows: int = ROWS,
    repeats: int = REPEATS,
    seed: int = 0,
) -> Wasserstein:
    """Whole-space and 2-axis Wasserstein scores on subsamples of at most `rows` rows a side.

    Raises:
      ValueError: a table has no rows, or no column is compared.
    """
    if real.n == 0 or synthetic.n == 0 or len(features) == 0:
        raise ValueError("Wasserstein scores need rows on both sides and a column to compare.")
    axes = axes_of(features, real, seed=seed)
    farthest, v = features.diameter, float(axes.explained.sum())
    whole, plane = [], []
    for repeat in range(repeats):
        rng = np.random.default_rng((seed, repeat))
        x = features.encode(real.take(sample_rows(real.n, rows, rng)))
        y = features.encode(synthetic.take(sample_rows(synthetic.n, rows, rng)))
        whole.append(_score(x, y, farthest))
        if v == 0.0:  # a constant real table has no axes: its plane says no more than the whole
            plane.append(whole[-1])
            continue
        plane.append(_score(axes.project(x), axes.project(y), np.sqrt(v) * farthest))
    return Wasserstein(
        float(np.mean(whole)), float(np.std(whole)), float(np.mean(plane)), float(np.std(plane))
    )


def sliced_score(
    features: Features,
    real: Cells,
    synthetic: Cells,
    *,
    directions: int = DIRECTIONS,
    seed: int = 0,
) -> tuple[float, float]:
    """Sliced Wasserstein score of all rows, in [0, 1], and its standard error over directions.

    On each of many random unit directions the two tables are sorted and compared, which takes
    n log n time and memory for one number a row and direction. SW₂ is at most W₂ / √d, so that the
    score is never below the score of the whole space.

    Raises:
      ValueError: a table has no rows, or no column is compared.

    Source: Bonneel, Rabin, Peyré and Pfister, "Sliced and Radon Wasserstein barycenters of
    measures", 2015.
    """
    if real.n == 0 or synthetic.n == 0 or len(features) == 0:
        raise ValueError("Wasserstein scores need rows on both sides and a column to compare.")
    rng = np.random.default_rng((seed, DIRECTIONS))
    width = sum(feature.width for feature in features.items)
    to = rng.normal(size=(width, directions)) if width else np.zeros((0, directions))
    to /= np.maximum(np.sqrt((to**2).sum(axis=0)), 1e-300)
    a, b = (_along(features, cells, to) for cells in (real, synthetic))
    squared = np.array([float(ot.wasserstein_1d(a[:, i], b[:, i], p=2)) for i in range(directions)])
    scale = features.diameter
    if scale == 0.0:
        return (1.0 if not squared.any() else 0.0), 0.0
    distance = float(np.sqrt(width * max(squared.mean(), 0.0)))
    error = float(squared.std(ddof=1) / np.sqrt(directions)) if directions > 1 else 0.0
    # of a root: half the relative error of what is under it
    spread = 0.5 * np.sqrt(width / max(squared.mean(), 1e-300)) * error / scale
    return max(0.0, 1.0 - distance / scale), float(spread)


def _along(features: Features, cells: Cells, to: Floats) -> NDArray[np.float32]:
    """Every row on every direction, float32 [n, directions], a stretch of rows at a time."""
    out = np.empty((cells.n, to.shape[1]), dtype=np.float32)
    for start in range(0, cells.n, CHUNK):
        rows = np.arange(start, min(start + CHUNK, cells.n))
        out[rows] = features.encode(cells.take(rows)) @ to
    return out


def axes_of(features: Features, real: Cells, *, seed: int = 0) -> Axes:
    """The first two principal axes of the encoded real table (of a subsample when it is large)."""
    rows = sample_rows(real.n, FIT_ROWS, np.random.default_rng((seed, REPEATS)))
    return principal_axes(features.encode(real.take(rows)))


def _squared(x: Floats, y: Floats) -> Floats:
    """Squared Euclidean distances [n, m]."""
    gram = (x**2).sum(axis=1)[:, None] + (y**2).sum(axis=1)[None, :] - 2.0 * (x @ y.T)
    return np.asarray(np.maximum(gram, 0.0), dtype=np.float64)


def _score(x: Floats, y: Floats, scale: float) -> float:
    """1 − W₂ / scale, not below 0 (W₂ on a plane can exceed √v · diameter); constants score 1."""
    cost = _squared(x, y)
    distance = float(np.sqrt(max(ot.emd2([], [], cost, numItermax=2_000_000), 0.0)))
    if scale == 0.0:
        return 1.0 if distance == 0.0 else 0.0
    return max(0.0, 1.0 - distance / scale)
