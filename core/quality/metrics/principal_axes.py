"""Principal axes of the real table, and both tables on them: dots, densities, k-way marginals.

For a marginal each axis is cut in equal-width bins over the real range, with cells outside it.

Source: DP-auto-GAN (ICLR 2020 submission) §4, k-way PCA marginal.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.message import Message
from core.quality.aligned_tables import AlignedTable, Features
from core.quality.comparison import Comparison
from core.quality.metrics.family import Measured, Metric, Step, family
from core.quality.metrics.marginals import marginal_distance
from core.quality.report.types import Density, Projection

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

AXES = 3
AXIS_BINS = 10  # of an axis in a marginal: a thousand cells on three axes
PICTURE_BINS = 24
NAMED_SHARE = 0.15  # of an axis's loadings, from which on a column names it
FIT_ROWS = 20_000  # rows the axes are computed from
POINTS = 1_500  # dots drawn a side

PCA_3WAY = Metric(
    key="pca_3way",
    title="Principal components: distance",
    goal="lower",
    meaning="Total variation distance on the first three principal components together, ten bins "
    "each: shows whether rows cluster in the same regions.",
    source="DP-auto-GAN (ICLR 2020 submission) §4, k-way PCA marginal with k = 3",
)


@dataclass(frozen=True)
class Axes:
    """The first principal axes of the real table.

    Its centre [width], orthonormal columns [width, k], and share of the variance on each [k].
    """

    centre: Floats
    directions: Floats
    explained: Floats

    def project(self, x: Floats) -> Floats:
        """[n, width] → [n, k]."""
        return np.asarray((x - self.centre) @ self.directions, dtype=np.float64)


def principal_axes(x: Floats, k: int = 2) -> Axes:
    """The k strongest axes of rows [n, width], their largest loading positive, or zero."""
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


def axes_of(real: AlignedTable, *, seed: int = 0) -> Axes:
    """The first two principal axes of the encoded real table (of a subsample when it is large)."""
    rng = np.random.default_rng((seed, AXES))
    return principal_axes(real.sample(FIT_ROWS, rng).encode())


def drivers(features: Features, axes: Axes) -> list[list[str]]:
    """For each axis the columns that hold most of its loadings, at most two, strongest first."""
    ends = np.cumsum([feature.width for feature in features.items])
    loads = np.cumsum(axes.directions**2, axis=0)[ends - 1]
    shares = np.diff(loads, axis=0, prepend=0.0)  # [columns, k]
    return [
        [features.names[i] for i in np.argsort(-share)[:2] if share[i] >= NAMED_SHARE]
        for share in shares.T
    ]


def pca_marginals(real: AlignedTable, synthetic: AlignedTable, *, seed: int = 0) -> list[float]:
    """TVD on the first one, two and three axes together, each in [0, 1] and never falling."""
    a, b = _projected(real, synthetic, seed=seed, k=AXES)
    codes = [_codes(side, a, AXIS_BINS) for side in (a, b)]
    sizes = np.full(AXES, AXIS_BINS + 2)
    return [marginal_distance(codes[0], codes[1], sizes, range(k + 1)) for k in range(AXES)]


def density(real: AlignedTable, synthetic: AlignedTable, *, seed: int = 0) -> Density:
    """Shares of rows in the cells of a grid over the first two axes, which holds both tables."""
    a, b = _projected(real, synthetic, seed=seed, k=2)
    both = np.concatenate([a, b])
    x, y = (np.linspace(*_range(both[:, axis]), PICTURE_BINS + 1) for axis in (0, 1))
    grids = [
        np.histogram2d(side[:, 1], side[:, 0], bins=[y, x])[0] / max(len(side), 1)
        for side in (a, b)
    ]
    return Density(
        x=np.round(x, 5).tolist(),
        y=np.round(y, 5).tolist(),
        real=np.round(grids[0], 6).tolist(),
        synthetic=np.round(grids[1], 6).tolist(),
    )


def projection(
    tables: Comparison, *, wscore: float | None = None, spread: float | None = None
) -> Projection:
    """Both tables, and that before boosting, as dots on the first two axes of the real one."""
    axes, rng = axes_of(tables.real, seed=tables.seed), tables.rng(3)

    def dots(table: AlignedTable | None) -> list[tuple[float, float]]:
        if table is None:
            return []
        encoded = table.sample(POINTS, rng).encode()
        return list(np.round(axes.project(encoded), 4).tolist())

    return Projection(
        real=dots(tables.real),
        synthetic=dots(tables.synthetic),
        before=dots(tables.before),
        explained=(float(axes.explained[0]), float(axes.explained[1])),
        drivers=drivers(tables.real.features, axes),
        wscore=wscore,
        spread=spread,
    )


@family(PCA_3WAY, text="Computing principal components", order=70, cost=0.3)
def strongest_directions(tables: Comparison, _: Step) -> Measured:
    """Both tables on the principal axes of the real one."""
    real, seed = tables.real, tables.seed
    one, two, three = pca_marginals(real, tables.synthetic, seed=seed)
    score = PCA_3WAY.score(
        three,
        ceiling=pca_marginals(real, tables.resampled, seed=seed)[-1],
        note=Message(
            "{one:.3f} on the first component alone, {two:.3f} on the first two.", one=one, two=two
        ),
    )
    grid = density(real, tables.synthetic, seed=seed)
    return Measured([score], {"pca": projection(tables), "density": grid})


def _projected(
    real: AlignedTable, synthetic: AlignedTable, *, seed: int, k: int
) -> tuple[Floats, Floats]:
    rng = np.random.default_rng((seed, AXES))
    x, y = (table.sample(FIT_ROWS, rng).encode() for table in (real, synthetic))
    axes = principal_axes(x, k)
    return axes.project(x), axes.project(y)


def _codes(x: Floats, real: Floats, bins: int) -> Ints:
    """Cells [n, k]: 0 … bins - 1 inside the real range, then below and above it."""
    out = np.zeros(x.shape, dtype=np.int64)
    for axis in range(x.shape[1]):
        low, high = _range(real[:, axis])
        bin_index = np.clip(np.floor((x[:, axis] - low) / (high - low) * bins), 0, bins - 1)
        bin_index = np.where(x[:, axis] < low, bins, bin_index)
        out[:, axis] = np.where(x[:, axis] > high, bins + 1, bin_index).astype(np.int64)
    return out


def _range(values: Floats) -> tuple[float, float]:
    """Lowest and highest value, widened by rounding errors; a constant gets a unit of room."""
    low, high = float(values.min()), float(values.max())
    room = 1e-9 * max(high - low, 1e-9) if high > low else 0.5
    return low - room, high + room
