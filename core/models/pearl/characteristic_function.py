"""Characteristic functions of a mixed table at sparse random frequencies.

A frequency t picks one or two columns and gives each a random one-dimensional frequency; the
table's characteristic function there is E[exp(i Σ_c t_c(x_c))], a random projection of a one- or
two-column marginal. The paper draws t over all coordinates at once, which for a table of a dozen
columns puts nearly all frequencies where the characteristic function is too small to tell from
noise. Sparse frequencies keep the estimator and its sensitivity (|exp| = 1 whatever t is) and spend
the budget on marginals; given the class, on two-column marginals within each class.

One *group* holds one frequency for every column; the pairs of a group share them, so the features
of a record are m complex numbers and all pairs of the group are one matrix product.

Source: PEARL (ICLR 2022) §4.1; sensitivities re-derived for zero-out with real and imaginary noise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from core.encoding.codec import Codes
from core.models.pearl.design import Design
from core.models.steps.training.column_bins import ColumnBins
from core.privacy.mechanisms.additive import Mechanism

ROWS_AT_ONCE = 1024  # features of this many records are in memory together
# Float32 features have modulus 1 up to rounding; the stated sensitivity covers it.
ROUNDING = 1.0 + 1e-6


@dataclass(frozen=True)
class Frequencies:
    """Random frequencies, data-free and public.

    Attributes:
      lines: per column, float32 [groups], the frequency along [0, 1] of a numeric column.
      widths: per column, float32 [groups], the scale each line frequency was drawn with.
      phases: per column, float32 [atoms, groups], the angle of each category, spike or missing.
    """

    bins: tuple[ColumnBins, ...]
    lines: tuple[Tensor, ...]
    widths: tuple[Tensor, ...]
    phases: tuple[Tensor, ...]

    @property
    def groups(self) -> int:
        """How many frequencies each column has."""
        return int(self.phases[0].shape[1])

    @classmethod
    def draw(
        cls,
        bins: tuple[ColumnBins, ...],
        groups: int,
        *,
        distances: tuple[float, ...],
        octaves: tuple[float, float],
        generator: torch.Generator,
    ) -> Frequencies:
        """Line frequencies N(0, (s/d)²) with s log-uniform over `octaves`; angles uniform.

        Args:
          distances: per column, the mean distance d of two records along [0, 1] (public or
            released); ignored for listed columns.
          octaves: lowest and highest s, both > 0: small s sees the mean, large s fine detail.
        """
        low, high = (math.log(s) for s in octaves)
        lines, widths, phases = [], [], []
        for column, distance in zip(bins, distances, strict=True):
            s = torch.exp(low + (high - low) * torch.rand(groups, generator=generator))
            lines.append(torch.randn(groups, generator=generator) * s / distance)
            widths.append(s / distance)
            angle = torch.rand((column.atoms, groups), generator=generator)
            phases.append(2.0 * math.pi * angle)
        return cls(bins, tuple(lines), tuple(widths), tuple(phases))

    def to(self, device: str) -> Frequencies:
        """The same frequencies on a device."""
        return Frequencies(
            self.bins,
            tuple(x.to(device) for x in self.lines),
            tuple(x.to(device) for x in self.widths),
            tuple(x.to(device) for x in self.phases),
        )

    def of_rows(self, rows: Codes) -> Tensor:
        """exp(i t_c(x_c)) of records: complex64 [b, groups, m], every modulus 1."""
        angles = []
        for c, column in enumerate(self.bins):
            block = column.block
            state = rows.states[:, block.index]
            if block.number is None:
                angles.append(self.phases[c][state])  # [b, groups]
                continue
            along = rows.values[:, block.number, None] * self.lines[c]
            if column.atoms:
                atom = self.phases[c][(state - 1).clamp_min(0)]
                along = torch.where((state > 0)[:, None], atom, along)
            angles.append(along)
        angle = torch.stack(angles, dim=2)  # [b, groups, m]
        return torch.complex(torch.cos(angle), torch.sin(angle))

    def of_bins(self) -> tuple[Tensor, ...]:
        """E[exp(i t_c(x_c)) | bin]: per column float32 [count, 2, groups], real and imaginary.

        A cell of width w spreads its mass evenly, which multiplies by sin(tw/2)/(tw/2).
        """
        tables = []
        for c, column in enumerate(self.bins):
            parts = []
            if column.cells:
                centres = torch.as_tensor(column.centres, dtype=torch.float32)
                angle = centres.to(self.lines[c].device)[:, None] * self.lines[c]
                # torch.sinc(x) is sin(πx)/(πx)
                fade = torch.sinc(self.lines[c] * column.width / (2.0 * math.pi))
                parts.append(torch.stack([torch.cos(angle) * fade, torch.sin(angle) * fade], dim=1))
            if column.atoms:
                angle = self.phases[c]
                parts.append(torch.stack([torch.cos(angle), torch.sin(angle)], dim=1))
            tables.append(torch.cat(parts, dim=0))
        return tuple(tables)


@dataclass(frozen=True)
class Embedding(Mechanism):
    """Class-wise sums of characteristic functions at all one- and two-column frequencies.

    The statistic is Σᵢ (φ(xᵢ) ⊗ e_yᵢ, w e_yᵢ), real and imaginary parts as separate coordinates,
    one-column frequencies weighted by λ. With G groups and m columns a record moves it by exactly
    √(G (m(m-1)/2 + λ² m) + w²): each complex coordinate has modulus 1, and one class is hit.

    Source: PEARL (ICLR 2022) §4.1; Δ for zero-out, φ(⊥) = 0.
    """

    frequencies: Frequencies
    design: Design
    noise: Literal["gaussian"] = "gaussian"

    @property
    def sensitivity(self) -> float:
        """Δ₂ under zero-out."""
        return ROUNDING * self.design.sensitivity

    def statistic(self, rows: Codes, mask: Tensor) -> Tensor:
        """Σᵢ mᵢ f(xᵢ): float64 [classes · 2 · G · (m(m-1)/2 + m) + classes].

        Layout: see `split_release`.
        """
        frequencies = self.frequencies.to(str(mask.device))
        d, where = self.design, mask.device
        upper = torch.triu_indices(d.columns, d.columns, offset=1, device=where)
        shape = (d.classes, d.groups)
        pairs = torch.zeros((*shape, d.pairs), dtype=torch.complex128, device=where)
        ones = torch.zeros((*shape, d.columns), dtype=torch.complex128, device=where)
        counts = torch.zeros(d.classes, dtype=torch.float64, device=where)
        for start in range(0, len(rows), ROWS_AT_ONCE):
            part = rows.slice(start, start + ROWS_AT_ONCE).to(str(mask.device))
            present = mask[start : start + ROWS_AT_ONCE]
            # Summed in double precision: what rounding does to the other records' sum must stay
            # far below the rounding allowance of the sensitivity.
            features = frequencies.of_rows(part).to(torch.complex128)  # [b, G, m]
            for y in range(d.classes):
                chosen = present > 0
                if d.condition is not None:
                    chosen &= part.states[:, d.condition] == y
                weights = present[chosen].to(torch.float64)
                mine = features[chosen].permute(1, 2, 0)  # [G, m, b]
                weighted = mine * weights
                gram = weighted @ mine.transpose(1, 2)  # [G, m, m], no conjugate: frequencies add
                pairs[y] += gram[:, upper[0], upper[1]]
                ones[y] += weighted.sum(dim=2)
                counts[y] += weights.sum()
        flat = [torch.view_as_real(pairs), torch.view_as_real(ones) * d.one_way_weight]
        return torch.cat([*(x.flatten() for x in flat), counts * d.class_weight])


@dataclass(frozen=True)
class Target:
    """A released embedding as the generator's target: joint with the class, per record.

    Attributes:
      pairs: complex64 [classes, G, m(m-1)/2], noisy E[φ_a φ_b 1{y}].
      ones: complex64 [classes, G, m], noisy λ E[φ_a 1{y}].
      shares: float32 [classes], noisy class shares, positive, summing to 1.
    """

    pairs: Tensor
    ones: Tensor
    shares: Tensor

    def to(self, device: str) -> Target:
        """The same target on a device."""
        return Target(self.pairs.to(device), self.ones.to(device), self.shares.to(device))


def split_release(release: Tensor, design: Design, n: int) -> Target:
    """A release of `Embedding` as a target; post-processing.

    Args:
      release: the mechanism's noisy statistic, float64, flat.
    """
    shape = (design.classes, design.groups)
    sizes = [
        math.prod(shape) * design.pairs * 2,
        math.prod(shape) * design.columns * 2,
        design.classes,
    ]
    two, one, counts = torch.split(release.double() / n, sizes)
    shares = torch.ones(1)
    if design.class_weight > 0:
        positive = (counts / design.class_weight).clamp_min(1.0 / n)
        shares = (positive / positive.sum()).float()
    pairs = torch.view_as_complex(two.reshape(*shape, design.pairs, 2))
    ones = torch.view_as_complex(one.reshape(*shape, design.columns, 2))
    return Target(pairs.to(torch.complex64), ones.to(torch.complex64), shares)


@dataclass(frozen=True)
class PairDistance(Mechanism):
    """Per numeric column, the distance of disjoint pairs of records along [0, 1], summed.

    The statistic is Σ over pairs of places (2j, 2j+1) of (|u - u'|_c, 1)_c where both cells lie on
    the line, 0 otherwise. Zeroing out a record removes one pair, and where somebody else then takes
    the place (`core.encoding.key_groups`) that pair is another; q distances and q counts are each
    in [0, 1]: Δ = √(2q). The paper's figure needs codes in [0, 1], which ours are by construction,
    and all n(n-1)/2 pairs; disjoint pairs give the same sensitivity in O(n).

    Attributes:
      numbers: block indices and value indices of the numeric columns, q of them.

    Source: PEARL (ICLR 2022) App. D, corrected.
    """

    numbers: tuple[tuple[int, int], ...]
    noise: Literal["gaussian"] = "gaussian"
    group_size: int = 2

    @property
    def sensitivity(self) -> float:
        """Δ₂ under zero-out."""
        return ROUNDING * math.sqrt(2.0 * len(self.numbers))

    def statistic(self, rows: Codes, mask: Tensor) -> Tensor:
        """Sums of distances, then counts: float64 [2, q]. Rows pair up as they come."""
        rows = rows.to(str(mask.device))
        whole = len(rows) // 2 * 2
        index = [i for i, _ in self.numbers]
        value = [v for _, v in self.numbers]
        on_line = (rows.states[:whole, index] == 0) & (mask[:whole, None] > 0)
        u = rows.values[:whole, value].clamp(0.0, 1.0)
        both = (on_line[0::2] & on_line[1::2]).double()  # [pairs, q]
        distance = (u[0::2] - u[1::2]).abs().double() * both
        return torch.stack([distance.sum(dim=0), both.sum(dim=0)])
