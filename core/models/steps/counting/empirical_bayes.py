"""Rows of a counted pair that look alike are estimated together, and columns likewise.

A row is one cell of the first column against all cells of the second, in each class. What was
released of it is noise and little else where few records have it, but it is likely of one of the
shapes that the rows of this pair have. How common each shape is follows from all rows by maximum
likelihood; a row becomes the mean of shapes, given what was released of it. Means are closer
together than what they estimate, so in the end what lies beyond independence is stretched to the
energy that the release shows above its noise. Post-processing of releases.

Source: Kiefer and Wolfowitz 1956, and Jiang and Zhang, "General maximum likelihood empirical Bayes
estimation of normal means", Annals of Statistics 2009; the stretching: Louis, "Estimating a
population of parameter values using Bayes and empirical Bayes methods", JASA 1984.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
PASSES = 2  # over rows, then columns
ROUNDS = 20  # of expectation and maximisation, of how common each shape is
FITS = 5  # of proportional fitting, between passes
MOST = 1.5  # what lies beyond independence is stretched by at most
FEWEST = 3  # cells: two columns of fewer have hardly a row to learn from
LEAST = 1e-12  # of a cell's share, where it is divided by


def pooled(
    estimate: Floats, released: Floats, first: Floats, second: Floats, noise: float
) -> Floats:
    """A pair's shares of cells, estimated from what all its rows and columns look like.

    Args:
      estimate: [classes, a, b], shares with noise shrunk away, whose rows are the shapes.
      first, second: [classes, a] and [classes, b], shares of each column within each class.
      noise: standard deviation of a released share; without any they are returned.

    Returns:
      Float64 [classes, a, b], not negative, with the given shares of both columns.
    """
    if noise <= 0.0:
        return released
    if max(estimate.shape[1:]) < FEWEST:
        return fitted_margins(estimate, first, second)
    table = estimate
    rows_first = estimate.shape[1] >= estimate.shape[2]
    for turn in range(2 * PASSES):
        if (turn % 2 == 0) == rows_first:
            table = _by_shape(table, released, first, noise)
        else:
            turned = _by_shape(table.swapaxes(1, 2), released.swapaxes(1, 2), second, noise)
            table = turned.swapaxes(1, 2)
        table = fitted_margins(table, first, second)
    alone = independent(first, second)
    shown = float(np.square(released - alone).sum()) - released.size * noise**2
    gap = table - alone
    stretch = np.sqrt(max(1.0, shown / max(float(np.square(gap).sum()), LEAST**2)))
    return fitted_margins(alone + min(stretch, MOST) * gap, first, second)


def independent(first: Floats, second: Floats) -> Floats:
    """Shares of a pair that is independent within each class, float64 [classes, a, b].

    Args:
      first, second: [classes, a] and [classes, b], shares of each column within each class.
    """
    whole = np.maximum(first.sum(axis=1), LEAST)
    return np.asarray(first[:, :, None] * second[:, None, :] / whole[:, None, None])


def fitted_margins(table: Floats, first: Floats, second: Floats) -> Floats:
    """A table that is not negative, with given shares of both columns, nearest by odds ratios.

    Args:
      table: [classes, a, b].
      first, second: [classes, a] and [classes, b].

    Source: Deming and Stephan 1940, iterative proportional fitting.
    """
    table = np.maximum(table, LEAST)
    for _ in range(FITS):
        for margin, axis in ((first[:, :, None], 2), (second[:, None, :], 1)):
            whole = np.maximum(table.sum(axis=axis, keepdims=True), LEAST)
            table = table * (np.maximum(margin, 0.0) / whole)
    return table


def _by_shape(table: Floats, released: Floats, margin: Floats, noise: float) -> Floats:
    """Each row of float64 [classes, a, b] as the mean of all rows' shapes, given its release."""
    sizes = np.maximum(margin, 0.0)
    table = np.maximum(table, 0.0)
    shapes = table / np.maximum(table.sum(axis=2, keepdims=True), LEAST)
    # Of row i and shape k: released · expected - |expected|² / 2, the rest is the same for all k.
    fit = np.einsum("yi,yib,ykb->ik", sizes, released, shapes, optimize=True)
    fit -= 0.5 * np.square(sizes).T @ np.square(shapes).sum(axis=2)
    fit /= noise**2
    likelihood = np.exp(fit - fit.max(axis=1, keepdims=True))
    common = np.full(len(fit), 1.0 / len(fit))
    for _ in range(ROUNDS):
        given = likelihood * common
        given /= given.sum(axis=1, keepdims=True)
        common = given.mean(axis=0)
    return np.asarray(sizes[:, :, None] * np.einsum("ik,ykb->yib", given, shapes, optimize=True))
