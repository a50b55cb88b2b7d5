"""The scan: one release of sign products over every small set of columns, within each class.

Each column gets sign patterns over its cells, balanced by the released shares, so that a product of
signs over a set of columns has mean near zero unless the columns go together. The product is ±1
however many columns it has: its noise grows only with the root of how many sets are asked, never
with the number of their cells. So a parity of four columns shows as clearly as a pair.

Source: PEARL (ICLR 2022) §4.1, at frequencies whose phases are 0 and π.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Literal, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from core.encoding.codec import Codes
from core.models.steps.counting.design import Design
from core.models.steps.counting.scales import ColumnScale
from core.privacy.mechanisms.additive import Mechanism

Floats = NDArray[np.float64]
MOST_SCAN_NOISE_SHARE = 0.04  # of records, with which a scan tells what matters
ROWS_AT_ONCE = 1024  # products of this many records are in memory together


def draw_signs(
    scales: Sequence[ColumnScale],
    shares: Sequence[Floats],
    count: int,
    seed: int,
    none: Mapping[int, int] | None = None,
) -> tuple[Tensor, ...]:
    """Sign patterns of each column: float64 [cells, count] of ±1.

    The first pattern of a number splits it at the median, the second takes the middle half apart;
    further ones have one to four random cuts. Atoms are dealt out so that both signs weigh alike.

    Args:
      shares: released shares of each column's cells.
      none: by column, a cell of records that have none of its values and count for nothing, 0.
    """
    random = np.random.default_rng(seed)
    patterns = []
    for column, (scale, share) in enumerate(zip(scales, shares, strict=True)):
        signs = np.ones((scale.size, count))
        ranks = scale.ranks(share)
        for k in range(count):
            cuts = k + 1 if k < 2 else int(random.integers(1, 5))
            offset = (0.0, 0.5)[k] if k < 2 else random.random()
            stretch = np.floor(ranks * (cuts + 1) + offset)
            signs[: scale.line, k] = np.where(stretch % 2 == 0, 1.0, -1.0)
            atoms = np.arange(scale.line, scale.size)
            order = atoms[np.argsort(-share[atoms], kind="stable")] if k == 0 else None
            balance = 0.0
            for atom in random.permutation(atoms) if order is None else order:
                signs[atom, k] = -1.0 if balance > 0.0 else 1.0
                balance += signs[atom, k] * share[atom]
        if none and column in none:
            signs[none[column]] = 0.0
        patterns.append(torch.from_numpy(signs))
    return tuple(patterns)


@dataclass(frozen=True)
class Scan(Mechanism):
    """Sums of sign products over sets of columns, joint with the class.

    The statistic is Σᵢ e_yᵢ ⊗ (Π_{c∈S} s_c,g(xᵢ))_{g,S}. Each product is ±1 or 0 and a record is in
    one class, so zeroing it out moves it by Δ₂ = √(G · number of sets) at most.

    Attributes:
      signs: float64 [cells, G] a column.
    """

    scales: tuple[ColumnScale, ...]
    signs: tuple[Tensor, ...]
    design: Design
    noise: Literal["gaussian"] = "gaussian"

    @property
    def sensitivity(self) -> float:
        """Δ₂ under zero-out."""
        return math.sqrt(self.design.signs * self.design.scanned)

    def statistic(self, rows: Codes, mask: Tensor) -> Tensor:
        """Float64 [classes · G · number of sets]; layout: see `split`."""
        device, d = mask.device, self.design
        total = torch.zeros((d.classes, d.signs, d.scanned), dtype=torch.float64, device=device)
        halves = [_halves(torch.tensor(sets, device=device)) for sets in d.sets]
        for start in range(0, len(rows), ROWS_AT_ONCE):
            part = rows.slice(start, start + ROWS_AT_ONCE).to(str(device))
            weights = mask[start : start + ROWS_AT_ONCE].to(torch.float64)
            values = torch.stack(
                [
                    pattern.to(device)[scale.index(part)]
                    for scale, pattern in zip(self.scales, self.signs, strict=True)
                ]
            )  # [columns, b, G]
            for y in range(d.classes):
                chosen = weights > 0
                if d.condition is not None:
                    chosen &= part.states[:, d.condition] == y
                total[y] += _sums(values[:, chosen], weights[chosen], halves)
        return total.flatten()

    def split(self, release: Tensor, n: int) -> list[Tensor]:
        """A release as shares of n, by size of set: float64 [classes, G, sets of that size]."""
        d = self.design
        shape = (d.classes, d.signs, d.scanned)
        return list(torch.split((release / n).reshape(shape), [len(s) for s in d.sets], dim=2))


class _Half(NamedTuple):
    """One part of each set of a size: the different ones, and which of them each set has."""

    parts: Tensor  # int64 [parts, columns of a part]
    part: Tensor  # int64 [sets]

    def products(self, signs: Tensor) -> Tensor:
        """Of the signs [columns, b] of each part, [parts, b]."""
        return reduce(torch.mul, (signs[column] for column in self.parts.unbind(dim=1)))


def _halves(sets: Tensor) -> tuple[_Half, ...]:
    """Two parts of sets [sets, columns of a set], or the one of single columns."""
    middle = (sets.shape[1] + 1) // 2
    sides = (side for side in (sets[:, :middle], sets[:, middle:]) if side.shape[1])
    return tuple(_Half(*torch.unique(side, dim=0, return_inverse=True)) for side in sides)


def _sums(values: Tensor, weights: Tensor, halves: Sequence[tuple[_Half, ...]]) -> Tensor:
    """Weighted sums of products, float64 [G, sets], of signs [columns, b, G].

    A set's product is that of two parts', and few parts make many sets: one matrix product.
    """
    groups = []
    for signs in values.unbind(dim=2):  # [columns, b]
        sums = []
        for first, *second in halves:
            weighted = first.products(signs) * weights
            if second:
                table = weighted @ second[0].products(signs).t()
                sums.append(table[first.part, second[0].part])
            else:
                sums.append(weighted.sum(dim=1)[first.part])
        groups.append(torch.cat(sums))
    return torch.stack(groups)


@dataclass(frozen=True)
class Scanned:
    """A released scan, and how far it is from what somebody expects; post-processing.

    Attributes:
      sums: by size of set, float64 [classes, G, sets]: shares of n.
      noise: standard deviation of one number.
    """

    sums: list[Tensor]
    noise: float

    @property
    def clear(self) -> bool:
        """Whether a set that shows nothing has little to show; else noise may hide it."""
        return self.noise <= MOST_SCAN_NOISE_SHARE

    def energy(self, size: int, expected: Tensor) -> tuple[Floats, Floats]:
        """How much of the scan of each set of `size` columns `expected` leaves unexplained.

        Args:
          expected: like `sums[size - 1]`.

        Returns:
          Float64 [sets] each: squared difference with the noise's own share taken off, and the same
          in standard deviations of what noise alone would show.
        """
        gap = self.sums[size - 1] - expected
        noise = max(self.noise, 1e-12) ** 2
        above = (gap.square() - noise).sum(dim=(0, 1))
        spread = noise * math.sqrt(2.0 * gap.shape[0] * gap.shape[1])
        return above.numpy(), (above / spread).numpy()

    def together(
        self, pairs: Sequence[tuple[int, ...]], expected: Tensor
    ) -> dict[tuple[int, ...], tuple[float, float]]:
        """How much each pair goes together: its `energy` a sign, and halves of both columns.

        The latter is the mean product of the first signs, which split numbers at their medians.
        """
        energy = self.energy(2, expected)[0] / self.sums[1].shape[1]
        halves = self.sums[1][:, 0].sum(dim=0)
        return dict(zip(pairs, zip(energy.tolist(), halves.tolist(), strict=True), strict=True))

    def beyond_independence(
        self, shares: Tensor, members: Tensor, known: Tensor, spread: Tensor, chance: Floats
    ) -> Floats:
        """How far pairs lie beyond what columns that are independent within each class show.

        What is expected of a pair is itself made from noisy numbers: its noise is counted too.

        Args:
          shares, members: as in `independent`.
          known: float64 [G, columns], the mean of each column's signs over all classes, counted
            apart from the scan.
          spread: float64 [columns], variance of one of these.
          chance: float64 [classes], variance that chance alone gives to one number.

        Returns:
          Float64 [pairs], as `normal_score`.
        """
        weight = self.noise**2 / (len(shares) * self.noise**2 + spread)
        sums = self.sums[0] + weight * (known - self.sums[0].sum(dim=0))  # the classes add up
        within = shares[:, None, None]
        means = (sums / within).clamp(-1.0, 1.0)
        noise = self.noise**2 * (1.0 - weight) / within**2  # [classes, 1, columns], of a mean
        square = (means.square() - noise).clamp(min=0.0)
        a, b = members.unbind(dim=1)
        both = square[:, :, a] * noise[:, :, b] + (square + noise)[:, :, b] * noise[:, :, a]
        variances = self.noise**2 + torch.from_numpy(chance)[:, None, None] + within**2 * both
        gap = self.sums[1] - within * means[:, :, a] * means[:, :, b]
        squares = gap.square().sum(dim=(0, 1)).numpy()
        return normal_score(squares, variances.flatten(0, 1).numpy())

    def differing(self, size: int, expected: Tensor, shares: Floats, variances: Floats) -> Floats:
        """How far what `expected` leaves unexplained of each set differs between classes.

        Args:
          expected: like `sums[size - 1]`.
          shares: float64 [classes], of the classes, positive, summing to one.
          variances: float64 [classes], of one number, by noise and by chance.

        Returns:
          Float64 [sets], in standard deviations of noise and chance together.
        """
        left = (self.sums[size - 1] - expected).numpy()  # [classes, G, sets]
        gap = left - shares[:, None, None] * left.sum(axis=0)  # zero where classes do not matter
        spread = (1.0 - 2.0 * shares) * variances + np.square(shares) * variances.sum()
        above = np.square(gap).sum(axis=(0, 1)) - gap.shape[1] * spread.sum()
        return np.asarray(above / math.sqrt(2.0 * gap.shape[1] * np.square(variances).sum()))

    def independent(self, shares: Tensor, members: Tensor) -> Tensor:
        """What pairs would show if columns were independent within each class.

        Args:
          shares: float64 [classes], positive, summing to one.
          members: int64 [pairs, 2], positions among the single columns.
        """
        means = (self.sums[0] / shares[:, None, None]).clamp(-1.0, 1.0)
        return shares[:, None, None] * means[:, :, members[:, 0]] * means[:, :, members[:, 1]]


def normal_score(squares: Floats, variances: Floats) -> Floats:
    """How far sums of squares of normal numbers lie beyond what luck shows.

    Few squares are now and then five of their standard deviations above their mean; a normal number
    is not. So a sum is told as the normal number that is as rare (Satterthwaite, Biometrics 1946;
    Wilson and Hilferty, PNAS 1931).

    Args:
      squares: float64 [sets], sums over k numbers.
      variances: float64 [k, sets] or [k, 1], of each number by luck alone, positive.

    Returns:
      Float64 [sets], standard deviations of one normal number.

    >>> normal_score(np.array([4.0, 18.1, 40.0]), np.ones((4, 1))).round(1).tolist()
    [0.2, 3.0, 5.1]
    """
    mean, spread = variances.sum(axis=0), np.square(variances).sum(axis=0)
    width = 2.0 * spread / (9.0 * mean**2)  # two ninths of one over the degrees of freedom
    return np.asarray((np.cbrt(squares / mean) - (1.0 - width)) / np.sqrt(width))
