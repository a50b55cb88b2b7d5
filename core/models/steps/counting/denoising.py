"""Denoising of counted pairs: what noise alone would show is shrunk away, band by band.

A pair's counts are compared with what columns that are independent within each class would show.
The difference is turned into waves along numbers, and over the classes into what they share and
what tells them apart; each block of like waves is shrunk by the share of its energy that is noise.
Half of what is matched is that and half is estimated from rows and columns that look alike: errors
of the first are mostly noise, which a model that follows many pairs averages out; those of the
second are smaller and do not average out. Post-processing of releases.

Source: James and Stein 1961 (positive part), block by block as in Cai, "Adaptive wavelet
estimation: a block thresholding and oracle inequality approach", Annals of Statistics 1999.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.fft import dct

from core.models.steps.counting.counts import PairTarget
from core.models.steps.counting.empirical_bayes import independent, pooled
from core.models.steps.counting.scales import ColumnScale

Floats = NDArray[np.float64]
POOLED = 0.5  # share of a target that is estimated from rows and columns that look alike
ROUNDS = 30  # of proportional fitting
LEAST_SHARE = 1e-9  # of a cell while it is fitted: noise leaves some below zero
LEAST_HEIGHT = 1e-4  # of waves where a cell holds nobody, against those of cells of equal shares
ATOM = -1  # the band of a category, a spike, or missing


def denoised(
    pairs: Sequence[PairTarget],
    scales: Sequence[ColumnScale],
    shares: Sequence[Floats],
    within: Mapping[int, tuple[Floats, float]],
    none: Mapping[int, int] | None = None,
) -> tuple[PairTarget, ...]:
    """The same pairs with noise shrunk away, each within each class.

    A pair whose classes were counted together and are alike goes together so in each; see
    `_class_given`. Of others whose classes were counted together nothing is said of each.

    Args:
      pairs: released, within each class or of all together.
      shares: released shares of each column's cells.
      within: by column, shares of its cells within each class as they were counted apart, float64
        [classes, cells], and their standard deviation; may be empty.
      none: by column, the cell of records that have no window; see `_apart`.
    """
    margins = _margins(pairs, shares, within)
    waves = {column: _waves(scales[column], shares[column]) for column in margins}
    targets = []
    for pair in pairs:
        first, second = pair.columns
        joint, product, sides = _compared(pair, margins, none)
        shrunk = product + _shrunk(joint - product, waves[first], waves[second], pair.noise)
        alike = pooled(shrunk, joint, *sides, pair.noise)
        targets.append(_each_class(pair, (1.0 - POOLED) * shrunk + POOLED * alike, margins))
    return tuple(targets)


def as_released(
    pairs: Sequence[PairTarget],
    shares: Sequence[Floats],
    within: Mapping[int, tuple[Floats, float]],
) -> tuple[PairTarget, ...]:
    """The same pairs with all their noise, each within each class; see `denoised`."""
    margins = _margins(pairs, shares, within)
    return tuple(_each_class(pair, pair.shares.double().numpy(), margins) for pair in pairs)


def _each_class(pair: PairTarget, matched: Floats, margins: Mapping[int, Floats]) -> PairTarget:
    """A pair with other shares, within each class where it is alike in all."""
    within_each, noise = [margins[column] for column in pair.columns], pair.noise
    if len(matched) < len(within_each[0]) and pair.alike:
        matched = matched * _class_given(matched[0], *within_each)
        noise *= math.sqrt(1.0 / len(matched))  # of their sum, as it was counted
    return replace(pair, shares=torch.from_numpy(matched).float(), noise=noise)


def beyond_independence(
    pairs: Sequence[PairTarget],
    shares: Sequence[Floats],
    within: Mapping[int, tuple[Floats, float]],
    none: Mapping[int, int] | None = None,
) -> Floats:
    """Float64 [pairs], squared distance to independence within each class; what noise adds is off.

    A standard deviation of the noise's own energy above the estimate, so never zero. See `denoised`
    for the arguments.
    """
    margins, energy = _margins(pairs, shares, within), []
    for pair in pairs:
        joint, product, _ = _compared(pair, margins, none)
        noise = max(pair.noise, LEAST_SHARE) ** 2
        above = float(np.square(joint - product).sum()) - joint.size * noise
        energy.append(max(0.0, above) + math.sqrt(2.0 * joint.size) * noise)
    return np.array(energy)


def _compared(
    pair: PairTarget, margins: Mapping[int, Floats], none: Mapping[int, int] | None
) -> tuple[Floats, Floats, tuple[Floats, Floats]]:
    """A pair's shares, what independent columns would show, and the shares of either column."""
    first, second = pair.columns
    joint, sides = pair.shares.double().numpy(), (margins[first], margins[second])
    product = independent(*sides)
    if len(joint) < len(product):
        product = product.sum(axis=0, keepdims=True)
        sides = sides[0].sum(axis=0, keepdims=True), sides[1].sum(axis=0, keepdims=True)
    if none and not none.keys().isdisjoint(pair.columns):
        product = _apart(joint[0], none.get(first), none.get(second))[None]
    return joint, product, sides


def _apart(joint: Floats, first: int | None, second: int | None) -> Floats:
    """What columns of windows would show if they were independent among records that have one.

    Args:
      joint: [a, b], released.
      first, second: the cells of records without a window, at least one.
    """
    if second is None:
        return _apart(joint.T, None, first).T
    table, there = np.maximum(joint, 0.0), np.ones(joint.shape[1], dtype=bool)
    there[second] = False
    rows, columns = joint[:, there].sum(axis=1), joint[:, there].sum(axis=0)
    product = np.zeros_like(joint)
    if first is None:
        product[:, second] = table[:, second]
    else:
        product[first, second] = table[first, second]
        rows[first] = 0.0
    both = np.maximum(rows, 0.0), np.maximum(columns, 0.0)
    product[:, there] = np.outer(*both) / max(float(both[1].sum()), LEAST_SHARE)
    return np.asarray(product)


def _class_given(together: Floats, first: Floats, second: Floats) -> Floats:
    """Each class's share of the cells of a pair that goes together alike in all classes.

    Alike means that classes have the same odds ratios, so that no three-way interaction is left:
    the table is found by iterative proportional fitting.

    Args:
      together: [a, b], of all classes.
      first, second: [classes, a] and [classes, b], of each column within each class.

    Returns:
      Float64 [classes, a, b], summing to one over classes.

    Source: Bishop, Fienberg and Holland, "Discrete Multivariate Analysis", 1975, section 3.5.
    """
    whole = np.maximum(together, LEAST_SHARE)
    table = np.ones((len(first), 1, 1)) * whole / len(first)
    for _ in range(ROUNDS):
        for axis, margin in ((2, first[:, :, None]), (1, second[:, None, :])):
            table = table * (margin / np.maximum(table.sum(axis=axis, keepdims=True), 1e-300))
        table = table * (whole / np.maximum(table.sum(axis=0), 1e-300))
    return np.asarray(table / np.maximum(table.sum(axis=0), 1e-300))


def _margins(
    pairs: Sequence[PairTarget],
    shares: Sequence[Floats],
    within: Mapping[int, tuple[Floats, float]],
) -> dict[int, Floats]:
    """Of each counted column, float64 [classes, cells], from all that says something of classes.

    A pair whose classes were counted together says no more than `shares` do.
    """
    apart = [pair for pair in pairs if len(pair.shares) > 1] or ([] if within else pairs)
    sums: dict[int, tuple[Floats, float]] = {}

    def add(column: int, margin: Floats, variance: float) -> None:
        weight = 1.0 / max(variance, 1e-24)
        before, total = sums.get(column, (0.0, 0.0))
        sums[column] = (before + weight * margin, total + weight)

    for pair in apart:
        joint = pair.shares.double().numpy()
        for column, axis in zip(pair.columns, (2, 1), strict=True):
            add(column, joint.sum(axis=axis), joint.shape[axis] * pair.noise**2)
    for column, (margin, noise) in within.items():
        add(column, margin, noise**2)
    margins = {}
    for column, (weighted, total) in sums.items():
        margin = np.maximum(weighted / total, 0.0)
        whole = np.maximum(margin.sum(axis=0), 1e-12)
        margins[column] = margin * (shares[column] / whole)
    return margins


def _waves(scale: ColumnScale, shares: Floats) -> tuple[Floats, NDArray[np.int64]]:
    """An orthonormal basis of a column's cells, one a row, and the band of each; atoms as is.

    What two numbers show beyond independence is the product of their shares times something smooth
    in their ranks, so waves run along ranks and are as high as shares are: few of them say all.
    """
    basis, band = np.eye(scale.size), np.full(scale.size, ATOM)
    if (cells := scale.in_order) > 1:
        each = np.arange(cells)
        high = np.maximum(shares[:cells], 0.0) + LEAST_HEIGHT / cells
        ranks = (np.cumsum(high) - high / 2.0) / high.sum()
        waves = np.cos(np.pi * np.outer(ranks, each)) * high[:, None]
        basis[:cells, :cells] = np.linalg.qr(waves)[0].T
        band[:cells] = np.log2(each + 1.0).astype(np.int64)
    return basis, band


def _blocks(left: NDArray[np.int64], right: NDArray[np.int64]) -> Iterator[tuple[Any, Any]]:
    """Cells along both axes that are shrunk together: like bands, and each atom by itself.

    Of two lists the longer one is taken label by label, so that a rare label which goes with few
    others is not drowned by the rest.
    """
    for a in np.unique(left):
        for b in np.unique(right):
            rows, columns = np.flatnonzero(left == a), np.flatnonzero(right == b)
            if a == ATOM and (b != ATOM or len(rows) >= len(columns)):
                yield from (([row], columns) for row in rows)
            elif b == ATOM:
                yield from ((rows, [column]) for column in columns)
            else:
                yield rows, columns


def _shrunk(
    gap: Floats,
    rows: tuple[Floats, NDArray[np.int64]],
    columns: tuple[Floats, NDArray[np.int64]],
    noise: float,
) -> Floats:
    """What is left of float64 [classes, a, b] once each band is shrunk by its share of noise."""
    (left, left_band), (right, right_band) = rows, columns
    classes = dct(np.eye(len(gap)), norm="ortho", axis=0)  # the first row adds them up
    waves = np.einsum("yz,zab->yab", classes, left @ gap @ right.T)
    for y in ([0], range(1, len(gap))):
        for a, b in _blocks(left_band, right_band) if len(y) else ():
            block = np.ix_(y, a, b)
            energy = float(np.square(waves[block]).sum())
            expected = waves[block].size * noise**2
            keep = max(0.0, 1.0 - expected / energy) if energy > 0.0 else 0.0
            waves[block] *= keep
    return np.asarray(np.einsum("zy,zab->yab", classes, left.T @ waves @ right))
