"""Checks that any mechanism and any release must pass; each raises `Caught` when it fails.

Chances of failing by accident are below 1e-7 for each check.
"""

from __future__ import annotations

import numpy as np
import torch
from scipy import stats
from torch import Tensor

from core.privacy.mechanisms.additive import Mechanism, Rows

TOLERANCE = 1e-6  # how far float rounding may carry a statistic beyond Δ
FALSE_POSITIVE_RATE = 1e-8  # two-sided chance of an accidental failure of one test statistic


class Caught(AssertionError):
    """A mechanism or release that breaks its promise."""


def size(x: Tensor, noise: str) -> float:
    """The norm a sensitivity is stated in."""
    order = 2 if noise == "gaussian" else 1
    return float(torch.linalg.vector_norm(x.double().flatten(), ord=order))


def moves(mechanism: Mechanism, rows: Rows, mask: Tensor | None = None) -> list[float]:
    """How far dropping each record that is present moves the statistic, as a share of Δ."""
    mask = torch.ones(len(rows), dtype=torch.float64) if mask is None else mask.double()
    full = mechanism.statistic(rows, mask)
    found = []
    for i in mask.nonzero().flatten().tolist():
        without = mask.clone()
        without[i] = 0.0
        moved = mechanism.statistic(rows, without) - full
        found.append(size(moved, mechanism.noise) / mechanism.sensitivity)
    return found


def check_sensitivity(
    mechanism: Mechanism, rows: Rows, mask: Tensor | None = None, tolerance: float = TOLERANCE
) -> None:
    """No record, dropped among these, moves the statistic by more than Δ."""
    worst = max(moves(mechanism, rows, mask), default=0.0)
    if not worst <= 1.0 + tolerance:
        raise Caught(f"one record moves the statistic by {worst:.6f} Δ")


def check_tight(mechanism: Mechanism, extremal: Rows, least: float = 0.95) -> None:
    """Some record of an extremal table reaches nearly Δ, so that Δ is not idly large."""
    worst = max(moves(mechanism, extremal))
    if not worst >= least:
        raise Caught(f"the extremal table moves the statistic by only {worst:.4f} Δ")


def check_zero_out(mechanism: Mechanism, rows: Rows, other: Rows) -> None:
    """A masked record contributes nothing, whatever it holds; without records there is nothing.

    Args:
      mechanism: what is checked.
      rows: b records.
      other: b other records.
    """
    b = len(rows)
    nobody = mechanism.statistic(rows, torch.zeros(b, dtype=torch.float64))
    if bool((nobody != 0).any()):
        raise Caught("a table of absent records has a statistic other than zero")
    half = (torch.arange(b) % 4 < 2).double()
    mixed = _mix(rows, other, half)
    if not torch.equal(mechanism.statistic(rows, half), mechanism.statistic(mixed, half)):
        raise Caught("the statistic depends on what an absent record holds")


def check_isolation(mechanism: Mechanism, rows: Rows, other: Rows) -> None:
    """Swapping record 0 leaves every other record's own contribution bit-identical."""
    swapped, present = _swap_first(rows, other)
    for i, alone in enumerate(present[1:], start=1):
        if not torch.equal(mechanism.statistic(rows, alone), mechanism.statistic(swapped, alone)):
            raise Caught(f"record {i} contributes otherwise after record 0 was swapped")


def check_additive(
    mechanism: Mechanism, rows: Rows, other: Rows, tolerance: float = TOLERANCE
) -> None:
    """Among all others too, what a record adds does not depend on record 0.

    Not for statistics of pairs, where two partners share a contribution.
    """
    swapped, present = _swap_first(rows, other)
    everybody = torch.ones(len(rows), dtype=torch.float64)
    for i, alone in enumerate(present[1:], start=1):
        before, after = (
            mechanism.statistic(r, everybody) - mechanism.statistic(r, everybody - alone)
            for r in (rows, swapped)
        )
        if not size(before - after, mechanism.noise) <= tolerance * mechanism.sensitivity:
            raise Caught(f"record {i} adds something else after record 0 was swapped")


def check_promises(
    mechanism: Mechanism, rows: Rows, other: Rows, tolerance: float = TOLERANCE
) -> None:
    """Sensitivity (with a third of the records absent too), zero-out, isolation and additivity.

    Args:
      mechanism: what is checked.
      rows: b records.
      other: b other records.
      tolerance: of sensitivity and additivity, as a share of Δ.
    """
    check_sensitivity(mechanism, rows, tolerance=tolerance)
    check_sensitivity(mechanism, rows, torch.arange(len(rows)) % 3 > 0, tolerance)
    check_zero_out(mechanism, rows, other)
    check_isolation(mechanism, rows, other)
    check_additive(mechanism, rows, other, tolerance)


def _swap_first(rows: Rows, other: Rows) -> tuple[Rows, Tensor]:
    """`rows` with record 0 of `other`, and the masks of single records, float64 [b, b]."""
    present = torch.eye(len(rows), dtype=torch.float64)
    return _mix(rows, other, 1.0 - present[0]), present


def _mix(rows: Rows, other: Rows, keep: Tensor) -> Rows:
    """`rows` where keep is 1, `other` where it is 0."""
    fields = {}
    for name in ("states", "values"):
        mine, theirs = np.array(getattr(rows, name)), np.array(getattr(other, name))
        fields[name] = np.where(keep.numpy()[:, None] > 0, mine, theirs).astype(mine.dtype)
    return type(rows)(**fields)


def check_gaussian(draws: np.ndarray, std: float) -> None:
    """Draws [k, d] are independent normals with mean 0 and this standard deviation.

    χ² on the sum of squares of all and of each column, Kolmogorov–Smirnov on the shape,
    correlations of all pairs of columns and of neighbouring rows.
    """
    z = np.asarray(draws, dtype=np.float64) / std
    k, d = z.shape
    _check_chi2(float((z**2).sum()), k * d, 1)
    for column in (z**2).sum(axis=0):
        _check_chi2(float(column), k, d)
    if stats.kstest(z.ravel(), "norm").pvalue < FALSE_POSITIVE_RATE:
        raise Caught("noise is not normal")
    products = z.T @ z / np.sqrt(k)  # [d, d], each about N(0, 1) off the diagonal
    pairs = products[np.triu_indices(d, 1)]
    lagged = (z[1:] * z[:-1]).sum(axis=0) / np.sqrt(k - 1)
    worst = np.abs(np.concatenate([pairs, lagged])).max()
    tests = len(pairs) + len(lagged)
    if worst > 1.1 * stats.norm.isf(
        FALSE_POSITIVE_RATE / 2 / tests
    ):  # a product's tail is a little heavier
        raise Caught("noise of different coordinates or draws is correlated")


def _check_chi2(total: float, freedom: int, tests: int) -> None:
    p = 2 * min(stats.chi2.cdf(total, freedom), stats.chi2.sf(total, freedom))
    if p < FALSE_POSITIVE_RATE / tests:
        raise Caught(f"noise has standard deviation {np.sqrt(total / freedom):.4f} of what is due")


def check_distinguishing(
    inside: np.ndarray, outside: np.ndarray, *, epsilon: float, delta: float
) -> float:
    """No threshold on the output tells whether the record is in, beyond (ε, δ).

    The threshold is chosen on half of the draws and judged on the other half by Clopper–Pearson
    bounds.

    Args:
      inside: outputs with the record, [k]; larger means more likely inside.
      outside: outputs without it, [k].
      epsilon, delta: what is claimed.

    Returns:
      The lower bound found for P - e^ε Q; ≤ δ with probability ≥ 1 - 1e-8 when the claim holds.
    """
    half = len(inside) // 2
    thresholds = np.quantile(np.concatenate([inside[:half], outside[:half]]), _QUANTILES)
    seen = _above(inside[:half], thresholds) - np.exp(epsilon) * _above(outside[:half], thresholds)
    best = thresholds[int(np.argmax(seen))]
    rest_in, rest_out = inside[half:], outside[half:]
    p = stats.beta.ppf(FALSE_POSITIVE_RATE / 2, (rest_in > best).sum(), (rest_in <= best).sum() + 1)
    q = stats.beta.isf(
        FALSE_POSITIVE_RATE / 2, (rest_out > best).sum() + 1, (rest_out <= best).sum()
    )
    found = float(np.nan_to_num(p) - np.exp(epsilon) * q)
    if found > delta:
        raise Caught(f"P - e^ε Q is at least {found:.4f}; δ = {delta:.4f} is claimed")
    return found


_QUANTILES = np.linspace(0.002, 0.998, 499)


def _above(x: np.ndarray, thresholds: np.ndarray) -> np.ndarray:
    return 1.0 - np.searchsorted(np.sort(x), thresholds, side="right") / len(x)
