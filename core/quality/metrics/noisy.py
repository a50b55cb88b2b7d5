"""How near a synthetic table is to the real one, from noisy counts alone: free post-processing.

With y = h̃/n - q for the released counts h̃ (noise of standard deviation s on each share) and a
synthetic table's shares q, the score of one marginal is

    ½ Σ_cells (|y| - s √(2/π)),

the total variation distance less what noise alone would show; the score of a table is the mean over
marginals. In expectation it is 0 when real and synthetic shares are equal, grows with the
difference of each cell, and never exceeds the total variation distance.

Where tagged columns are hidden, records count by their weight under the shift, so what the counts
add up to is not public but estimated from them, see `Total`. Its noise is added to that of each
share, which then is at most s √(1 + q²v) for v the variance of the estimate over that of a count.

Standard errors come from the Gaussian Poincaré inequality, Var f(h̃) ≤ s² E‖∇f‖²: for one table the
gradient is ±½ in every cell. For the difference of two tables measured against the same release it
is ±1 in the cells where the noise puts the real share between the two synthetic ones, and 0 in all
others.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict

from core.message import Message

Floats = NDArray[np.float64]
SURE = 1.96  # standard errors on either side of a 95 % interval


@dataclass(frozen=True)
class Total:
    """What noisy counts of a marginal's cells add up to.

    `value`, in records, is > 0; its `variance` is in units of that of the noise on one count, 0
    where it is public.
    """

    value: float
    variance: float

    @classmethod
    def of(cls, counts: Sequence[Sequence[float]], noise_std: float) -> Total:
        """The estimate of least variance from counts of marginals that have one total.

        Where noise drowns the counts, one standard deviation of it stands for the total.
        """
        precision = [1.0 / len(cells) for cells in counts]
        sums = [weight * sum(cells) for weight, cells in zip(precision, counts, strict=True)]
        variance = 1.0 / sum(precision)
        return cls(max(sum(sums) * variance, noise_std * math.sqrt(variance)), variance)

    def inflation(self, shares: Floats) -> Floats:
        """By how much its noise widens that of shares, at most; ≥ 1, of the shares' shape."""
        return np.sqrt(1.0 + self.variance * np.square(shares))


class NoisyCells(BaseModel):
    """Counts of real records in public cells, as a plan released them.

    Attributes:
      key: names the cells; only counts of one key can be compared.
      shifted: whether a record counts as much as the shift of tagged columns keeps of such ones.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    key: str
    n: int
    noise_std: float
    sizes: tuple[int, ...]
    counts: tuple[float, ...]
    shifted: bool = False

    @property
    def total(self) -> Total:
        """What the counts of each marginal add up to."""
        if not self.shifted:
            return Total(float(self.n), 0.0)
        parts = np.split(np.array(self.counts), np.cumsum(self.sizes)[:-1])
        return Total.of([part.tolist() for part in parts], self.noise_std)

    @property
    def share_std(self) -> float:
        """Standard deviation s of the noise on each share, that of the total apart."""
        return self.noise_std / self.total.value


class SyntheticCells(BaseModel):
    """Counts of synthetic records, or people, in the same cells."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    key: str
    rows: int
    counts: tuple[float, ...]

    @property
    def shares(self) -> Floats:
        """Float64 [cells]; they sum to 1 in each marginal."""
        return np.array(self.counts) / self.rows


@dataclass(frozen=True)
class NoisyScore:
    """A mean total variation distance less what noise shows, with the error that noise gives it.

    Lower is closer; at most 1, and below 0 by chance.
    """

    value: float
    standard_error: float

    @property
    def half_width(self) -> float:
        """Half of a 95 % interval."""
        return SURE * self.standard_error


def combined(releases: Sequence[NoisyCells]) -> NoisyCells:
    """Releases of the same cells as one, weighted by their precision."""
    keys = {one.key for one in releases}
    if len(keys) != 1:
        raise ValueError(f"Counts of {len(keys)} kinds of cells cannot be combined.")
    if len(releases) == 1:
        return releases[0]
    precision = np.array([one.noise_std**-2 for one in releases])
    counts = precision @ np.array([one.counts for one in releases]) / precision.sum()
    update = {"noise_std": float(precision.sum() ** -0.5), "counts": tuple(counts.tolist())}
    return releases[0].model_copy(update=update)


def score(released: NoisyCells, made: SyntheticCells) -> NoisyScore:
    """How near a table is; see the module."""
    gap, s, marginals = _gap(released, made), released.share_std, len(released.sizes)
    wide = s * released.total.inflation(made.shares)
    total = 0.5 * float(np.abs(gap).sum() - wide.sum() * math.sqrt(2.0 / math.pi))
    of_total = marginals * math.sqrt(released.total.variance)  # shares sum to 1 in each marginal
    return NoisyScore(total / marginals, 0.5 * s * (math.sqrt(len(gap)) + of_total) / marginals)


def ranked(released: NoisyCells, made: Mapping[str, SyntheticCells]) -> dict[str, NoisyScore]:
    """The score of each table by name, the closest first: the choice that noisy counts make."""
    scores = {name: score(released, counts) for name, counts in made.items()}
    return dict(sorted(scores.items(), key=lambda item: item[1].value))


def difference(released: NoisyCells, one: SyntheticCells, other: SyntheticCells) -> NoisyScore:
    """How much farther the first table is than the other, against the same release."""
    from scipy.special import ndtr  # half a second, which pages that score nothing can save

    s, marginals = released.share_std, len(released.sizes)
    a, b = _gap(released, one), _gap(released, other)
    between = np.abs(ndtr(a / s) - ndtr(b / s))  # chance that the noise puts the share between
    value = 0.5 * float((np.abs(a) - np.abs(b)).sum()) / marginals
    # the noise of the total moves a share by as much as the share is
    larger = np.maximum(one.shares, other.shares)
    of_total = math.sqrt(released.total.variance) * float((between * larger).sum())
    return NoisyScore(value, s * (math.sqrt(float(between.sum())) + of_total) / marginals)


def words(gap: NoisyScore) -> str:
    """What a difference of scores says, in a sentence.

    >>> words(NoisyScore(0.004, 0.003))
    'The difference of 0.0040 is within the noise (± 0.0059): the two cannot be told apart.'
    """
    values = {"gap": abs(gap.value), "noise": gap.half_width}
    if abs(gap.value) <= gap.half_width:
        return Message(
            "The difference of {gap:.4f} is within the noise (± {noise:.4f}): the two cannot be "
            "told apart.",
            **values,
        )
    return Message(
        "The difference of {gap:.4f} is larger than the noise (± {noise:.4f}).", **values
    )


def _gap(released: NoisyCells, made: SyntheticCells) -> Floats:
    if released.key != made.key:
        raise ValueError("These counts are of different cells and cannot be compared.")
    return np.array(released.counts) / released.total.value - made.shares
