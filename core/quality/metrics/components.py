"""k-way PCA marginals: tables compared on the real one's strongest directions.

Each axis is cut in equal-width bins over the real rows' range, with cells of its own for rows
outside it. On one, two or three axes together the distance is the total variation between the two
tables' shares of cells. The two-axis shares are also what the density picture shows.

Source: DP-auto-GAN (ICLR 2020 submission) §4, k-way PCA marginal.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from core.quality.aligned_tables import Cells, Features, sample_rows
from core.quality.metrics.marginals import tvd
from core.quality.metrics.transport import FIT_ROWS, principal_axes
from core.quality.report.types import Density

__all__ = ["AXES", "density", "pca_marginals"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

AXES = 3
AXIS_BINS = 10  # of an axis in a marginal: a thousand cells on three axes
PICTURE_BINS = 24


def pca_marginals(
    features: Features, real: Cells, synthetic: Cells, *, rows: int = FIT_ROWS, seed: int = 0
) -> list[float]:
    """TVD on the first one, two and three axes together, each in [0, 1] and never falling."""
    a, b = _projected(features, real, synthetic, rows=rows, seed=seed, k=AXES)
    codes = [_codes(side, a, AXIS_BINS) for side in (a, b)]
    width, found = AXIS_BINS + 2, []
    joint = [np.zeros(len(side), dtype=np.int64) for side in codes]
    for axis in range(AXES):
        joint = [whole * width + side[:, axis] for whole, side in zip(joint, codes, strict=True)]
        p, q = (np.bincount(side, minlength=width ** (axis + 1)) for side in joint)
        found.append(tvd(p.astype(np.float64), q.astype(np.float64)))
    return found


def density(
    features: Features, real: Cells, synthetic: Cells, *, rows: int = FIT_ROWS, seed: int = 0
) -> Density:
    """Shares of rows in the cells of a grid over the first two axes; rows outside are left out."""
    a, b = _projected(features, real, synthetic, rows=rows, seed=seed, k=2)
    edges = [np.linspace(*_range(a[:, axis]), PICTURE_BINS + 1) for axis in (0, 1)]
    grids = [
        np.histogram2d(side[:, 1], side[:, 0], bins=[edges[1], edges[0]])[0] / max(len(side), 1)
        for side in (a, b)
    ]
    return Density(
        x=np.round(edges[0], 5).tolist(),
        y=np.round(edges[1], 5).tolist(),
        real=np.round(grids[0], 6).tolist(),
        synthetic=np.round(grids[1], 6).tolist(),
    )


def _projected(
    features: Features, real: Cells, synthetic: Cells, *, rows: int, seed: int, k: int
) -> tuple[Floats, Floats]:
    """Both tables, at most `rows` rows each, on the k strongest axes of the real one."""
    rng = np.random.default_rng((seed, AXES))
    x, y = (
        features.encode(cells.take(sample_rows(cells.n, rows, rng))) for cells in (real, synthetic)
    )
    axes = principal_axes(x, k)
    return axes.project(x), axes.project(y)


def _codes(x: Floats, real: Floats, bins: int) -> Ints:
    """Cells [n, k]: 0 … bins - 1 inside the real range, then below and above it."""
    out = np.zeros(x.shape, dtype=np.int64)
    for axis in range(x.shape[1]):
        low, high = _range(real[:, axis])
        place = np.clip(np.floor((x[:, axis] - low) / (high - low) * bins), 0, bins - 1)
        place = np.where(x[:, axis] < low, bins, place)
        out[:, axis] = np.where(x[:, axis] > high, bins + 1, place).astype(np.int64)
    return out


def _range(values: Floats) -> tuple[float, float]:
    """Lowest and highest value, widened by rounding errors; a constant gets a unit of room."""
    low, high = float(values.min()), float(values.max())
    room = 1e-9 * max(high - low, 1e-9) if high > low else 0.5
    return low - room, high + room
