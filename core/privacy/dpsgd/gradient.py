"""DP-SGD: random batches, per-record clipping, noise, and a public normaliser.

`ClippedGradient.statistic` is the sum over a batch of clipped per-record gradients, additive over
records and zero for an absent one. It runs thousands of times on Poisson batches:
`core.privacy.guarded.PrivateTable.sampled` gives a `SampledRelease` for that, whose `step` charges,
draws a batch, computes, adds noise and divides by the expected batch size. The realised size never
leaves.

What a statistic draws for a record (`ClippedGradient.draws`) comes with the record's row: fresh,
secret, and gone with the record when it is left out. A statistic that draws for itself is refused,
as is one whose parts do not add up. What looks at a whole batch is a term of its own
(`batch_term`), computed once a batch.

Where a record is a person with several rows, batches draw people and rows come as [b, m, width],
with weights [b, m] that sum to one for each person and are 0 where there is no row. What is clipped
is the mean of a person's gradients.

One more number rides along: how many records of the batch were clipped, with a weight of a tenth of
the clip norm, which makes the joint sensitivity √(C² + (C/10)²), half a percent more.

Source: Abadi et al., "Deep learning with differential privacy", 2016; Poisson sampling and the
fixed normaliser as in the accountant's definition of `PoissonSampledDpEvent`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from core.encoding.person_rows import PersonRows
from core.privacy.dpsgd.clipping import CANCELLING, clipped_sum
from core.privacy.dpsgd.dense import Dense, GradFactor
from core.privacy.dpsgd.stream import Draws, SecretStream
from core.privacy.mechanisms.additive import Mechanism, check_parts
from core.privacy.mechanisms.noise import NoiseSource

COUNT_WEIGHT = 0.1  # of the clip norm: what being clipped adds to the last coordinate
ROWS_AT_ONCE = 16_384  # a larger batch is summed in parts
LEAST_AT_ONCE = 16  # records; a graphics card without room for so few has none for training
_ROUNDING = 1e-5, 1e-7  # extra noise for float32 sums: a share, and a share per record of a batch
# passes of one record may pull against each other as far as `clipping.CANCELLING` allows
_ROUNDING_OF_PASSES = _ROUNDING[0] * CANCELLING**-0.5, _ROUNDING[1] * CANCELLING**-0.5


def clipped_weight(scale: Tensor, mask: Tensor, clip_norm: float) -> Tensor:
    """The last coordinate: the weight of each present record that `clipped_sum` scaled."""
    if mask.dim() == 2:
        mask = (mask > 0).any(dim=1).to(scale)
    weight = COUNT_WEIGHT * clip_norm if math.isfinite(clip_norm) else 0.0
    return (scale < mask).sum() * weight


@dataclass(frozen=True, kw_only=True)
class ClippedGradient(Mechanism):
    """The gradient of hand-written passes through a `Dense`; its last entry counts clipped records.

    Attributes:
      grad_factors: rows [b, width + draws] → the factors of every pass through every layer; a
        record's entries may depend on its row and on public or released values alone.
      clip_norm: C > 0; inf for no privacy.
      draws: how many random numbers follow a record in its row.
      several_passes: whether a row may pass a layer several times; noise then covers more rounding.
    """

    networks: Dense
    grad_factors: Callable[[Tensor], list[GradFactor]]
    clip_norm: float
    draws: Draws = Draws()
    several_passes: bool = False
    noise: Literal["gaussian"] = "gaussian"

    @property
    def sensitivity(self) -> float:
        """Δ = √(C² + (C/10)²)."""
        if not self.clip_norm > 0.0:
            raise ValueError(f"The clip norm must be positive, got {self.clip_norm}.")
        return self.clip_norm * math.hypot(1.0, COUNT_WEIGHT)

    @property
    def rounded_entries(self) -> int:
        """One: a record whose norm is about C is clipped or not by rounding."""
        return 1

    @property
    def size(self) -> int:
        """Number of parameters; the statistic has one entry more."""
        return self.networks.size

    @torch.no_grad()
    def statistic(self, rows: Tensor, mask: Tensor, *, out: Tensor | None = None) -> Tensor:
        """Float32 [size + 1], Σᵢ mᵢ (clipped gradient, weight if it was clipped).

        Args:
          rows: float32 [b, width + draws], b ≥ 0; a record's summand is a function of its row. Or
            [b, m, width + draws], b people with m rows or fewer, whose summand is the clipped mean.
          mask: float [b]; of people [b, m], what each row counts for.

        Raises:
          ValueError: a row passes a layer several times, and nothing said so.
        """
        total = torch.zeros(self.size + 1, device=rows.device) if out is None else out
        grad_factors = self.grad_factors(rows.flatten(0, -2))
        layers = {factor.layer.start for factor in grad_factors}
        if len(layers) < len(grad_factors) and not self.several_passes:
            raise ValueError("A row passes a layer several times without `several_passes`.")
        views = self.networks.views(total)
        scale = clipped_sum(grad_factors, clip_norm=self.clip_norm, mask=mask, views=views)
        total[-1] = clipped_weight(scale, mask, self.clip_norm)
        return total

    def batch_term(self, rows: Tensor) -> Tensor | None:
        """What looks at a whole batch, float32 [size], clipped by itself and added once; or None.

        Its bound is part of `sensitivity`. `rows`, [·, width + draws], are those of the batch, or
        the first `ROWS_AT_ONCE` of a larger one; a person's rows one by one.
        """
        return None


@dataclass(frozen=True)
class NoisyGradient:
    """What one step released.

    Attributes:
      mean: float32 [size], noisy sum over the expected batch size; overwritten by the next step.
      clipped: float32 [], the share of records that were clipped, noisy: it may leave [0, 1].
      std: standard deviation of the noise in each entry of `mean`.
    """

    mean: Tensor
    clipped: Tensor
    std: float


class SampledRelease:
    """A planned phase of noisy gradients; made by `PrivateTable.sampled` and by nothing else.

    Args:
      rate: Poisson rate in (0, 1], public.
      noise_multiplier: σ over sensitivity; 0 without privacy.
      read_rows: positions int64 [b] → rows float32 [b, width] on the device.
      present: bool [n], False where a record is ⊥; None when all are there.
      charge: counts one run of the phase, before anything is read; raises when none is left.
      people: where each record's rows lie, at most `most_rows` each; None where it has one.
    """

    __slots__ = (
        "__charge",
        "__read_rows",
        "_at_once",
        "_buffer",
        "_checked",
        "_most_rows",
        "_n",
        "_noise",
        "_ones",
        "_people",
        "_present",
        "_rate",
        "_stream",
    )

    def __init__(
        self,
        *,
        n: int,
        rate: float,
        noise_multiplier: float,
        read_rows: Callable[[NDArray[np.int64]], Tensor],
        charge: Callable[[], None],
        source: NoiseSource,
        device: str,
        present: NDArray[np.bool_] | None = None,
        people: PersonRows | None = None,
        most_rows: int = 1,
    ):
        self.__read_rows = read_rows
        self.__charge = charge
        self._n, self._rate, self._noise = n, rate, noise_multiplier
        self._present = present
        self._people, self._most_rows = people, most_rows
        self._checked = False
        self._at_once = max(1, ROWS_AT_ONCE // most_rows)
        self._stream = SecretStream(source, device=device)
        self._ones = torch.ones(ROWS_AT_ONCE, device=device)
        self._buffer = torch.zeros(0, device=device)

    @property
    def expected_batch(self) -> float:
        """Rate · n, the public normaliser."""
        return self._rate * self._n

    def step(self, mechanism: ClippedGradient) -> NoisyGradient:
        """Charge, draw a batch, sum its clipped gradients, add noise.

        Raises:
          UnplannedReleaseError: no run of the phase is left; nothing was read.
          ValueError: noise is planned and the mechanism clips nothing.
          NotAdditiveError: the statistic of a batch is not the sum of its parts; nothing was
            released, and what was charged stays charged.
        """
        std = self._std(mechanism)
        self.__charge()
        chosen = self._stream.batch(self._n, self._rate)
        if self._present is not None:
            chosen = chosen[self._present[chosen]]
        total = self._sum(mechanism, chosen)
        self._stream.add_normals(total, std)
        total /= self.expected_batch
        weight = COUNT_WEIGHT * mechanism.clip_norm
        clipped = total[-1] / weight if math.isfinite(weight) else torch.zeros_like(total[-1])
        return NoisyGradient(total[:-1], clipped, std / self.expected_batch)

    def _std(self, mechanism: ClippedGradient) -> float:
        """σΔ', with Δ' a little above Δ for the rounding of float32 sums over a batch."""
        if not self._noise:
            return 0.0
        if not math.isfinite(mechanism.sensitivity):
            raise ValueError("A private gradient needs a finite clip norm. Nothing was released.")
        often = self._people is not None or mechanism.several_passes
        share, per_record = _ROUNDING_OF_PASSES if often else _ROUNDING
        widened = mechanism.sensitivity * (1.0 + share + per_record * self.expected_batch)
        return self._noise * widened

    def _sum(self, mechanism: ClippedGradient, chosen: NDArray[np.int64]) -> Tensor:
        """Σ over the batch; in smaller parts from here on where a graphics card has no more memory.

        Nothing of a batch is released before all of it is summed, so a second try costs nothing.
        """
        while True:
            try:
                return self._in_parts(mechanism, chosen)
            except torch.OutOfMemoryError:
                fewer = min(self._at_once, len(chosen)) // 2
                if fewer < LEAST_AT_ONCE:
                    raise
                self._at_once = fewer
            torch.cuda.empty_cache()  # here, where nothing of the attempt is held any more

    def _in_parts(self, mechanism: ClippedGradient, chosen: NDArray[np.int64]) -> Tensor:
        """Σ over the batch, in the buffer; a batch too large for one pass is summed in parts."""
        if len(self._buffer) != mechanism.size + 1:
            self._buffer = torch.zeros(mechanism.size + 1, device=self._ones.device)
        at_once = self._at_once
        rows, mask = self._batch(mechanism, chosen[:at_once])
        if not self._checked and self._noise:
            self._checked = check_parts(mechanism, rows, mask)
        mechanism.statistic(rows, mask, out=self._buffer)
        once = mechanism.batch_term(rows if self._people is None else rows[mask > 0])
        if once is not None:
            self._buffer[:-1] += once
        for start in range(at_once, len(chosen), at_once):
            rows, mask = self._batch(mechanism, chosen[start : start + at_once])
            self._buffer += mechanism.statistic(rows, mask)
        return self._buffer

    def _batch(
        self, mechanism: ClippedGradient, chosen: NDArray[np.int64]
    ) -> tuple[Tensor, Tensor]:
        """Records with their own draws, float32 [b, width + draws], and what they count for, [b].

        Of people [b, m, width + draws] and [b, m], with m as the longest of them needs.
        """
        if self._people is None:
            return self._rows(mechanism, chosen, chosen), self._ones[: len(chosen)]
        index, weights = self._people.padded(chosen)
        # a place for each row that a record may have, whoever else is in the batch
        draw_indices = chosen[:, None] * self._most_rows + np.arange(index.shape[1])
        rows = self._rows(mechanism, index.reshape(-1), draw_indices.reshape(-1))
        mask = torch.from_numpy(weights).to(self._ones.device)
        return rows.reshape(*index.shape, rows.shape[1]), mask

    def _rows(
        self, mechanism: ClippedGradient, index: NDArray[np.int64], draw_indices: NDArray[np.int64]
    ) -> Tensor:
        """Rows at `index`, each with the draws at `draw_indices`, below n · m, behind it."""
        rows = self.__read_rows(index)
        if not any(mechanism.draws):
            return rows
        draws = self._stream.draws(draw_indices, self._n * self._most_rows, mechanism.draws)
        return torch.cat([rows, draws], dim=1)
