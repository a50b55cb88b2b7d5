"""P3GM's second phase: a decoder, and the spread of each record's latent point, trained privately.

The latent mean of a record is its projection by released directions and never trains. A network
says how uncertain the point is; the decoder turns a drawn point into bin logits. The loss of one
record is Σ cross-entropy + β·KL(point ‖ mixture), gradients are written out by hand.

Source: P3GM (ICDE 2021) §IV-C; KL to a mixture by the variational bound of Hershey & Olsen, 2007.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from core.encoding.codec import Codec
from core.models.steps.training.heads import Heads
from core.privacy.dpsgd.dense import Dense, GradFactor
from core.privacy.dpsgd.stream import Draws
from core.privacy.mechanisms.additive import clip_rows
from core.privacy.mechanisms.mixture import Mixture
from core.privacy.mechanisms.moments import Principal

DECODER, SPREAD = "decoder", "spread"  # names of networks
_LOG_SPREAD = (-6.0, 2.0)  # range of a latent point's log variance
_LEAST_VARIANCE = 1e-3  # of a direction, before it is scaled to one


class CentredRecords:
    """Encoded records as points around a public centre, for linear projections.

    One-hot coordinates are centred at equal shares and numbers at the middle of their declared
    range, stretched to [-1, 1], so that a record's largest norm is known from the domain alone and
    smaller than that of the raw encoding; the noise of second moments grows with its square.

    Args:
      target_weight: stretch of the target's coordinates, > 0; a heavier target is kept better by a
        projection to few coordinates.

    Attributes:
      width: of the codec's expanded vector, before and after.
      radius: the largest norm any record can have.
    """

    def __init__(self, codec: Codec, *, target_weight: float = 1.0, device: str = "cpu"):
        self.width = codec.width
        centre, stretch = torch.zeros(codec.width), torch.ones(codec.width)
        square = 0.0
        for block in codec.blocks:
            weight = target_weight if block.column.name == codec.domain.target else 1.0
            hot = block.start
            if block.number is not None:
                centre[hot], stretch[hot] = 0.5, 2.0 * weight
                square += weight**2
                hot += 1
            count = block.start + block.width - hot
            if count:
                centre[hot : hot + count] = 1.0 / count
                stretch[hot : hot + count] = weight
                square += weight**2 * (1.0 - 1.0 / count)
        self.radius = math.sqrt(square) if square else 1.0
        self._centre, self._stretch = centre.to(device), stretch.to(device)

    def __call__(self, expanded: Tensor) -> Tensor:
        """Float32 [b, width] in [0, 1] → [b, width], every norm ≤ radius."""
        # few rows of a full graphics card come on the processor
        where = expanded.device
        return (expanded - self._centre.to(where)) * self._stretch.to(where)


@dataclass(frozen=True)
class Projection:
    """Expanded records → latent means, centred and then by released directions.

    Attributes:
      principal: released; None keeps all coordinates (low-dimensional tables).
      radius: latent points lie within.
    """

    centred: CentredRecords
    principal: Principal | None
    radius: float

    @property
    def width(self) -> int:
        """d', coordinates of a latent point."""
        return self.centred.width if self.principal is None else len(self.principal.variances)

    def __call__(self, expanded: Tensor) -> Tensor:
        """Float32 [b, width] → [b, d'], about unit variance a coordinate, norm ≤ radius."""
        z = self.centred(expanded)
        if self.principal is not None:
            spread = self.principal.variances.clamp_min(_LEAST_VARIANCE).sqrt()
            z = self.principal.project(z) / spread.to(z)
        return clip_rows(z, self.radius)


class ElboGradient:
    """Per-record gradients of the second phase.

    Args:
      networks: network "decoder" d' → S, and "spread" width → d' unless records have no spread.
      weight: β ≥ 0 of the KL term.

    Attributes:
      draws: what a record's row must bring: a normal a latent coordinate, if points are uncertain.
    """

    def __init__(
        self,
        heads: Heads,
        projection: Projection,
        networks: Dense,
        mixture: Mixture,
        *,
        weight: float,
        spread: bool,
    ):
        self._heads = heads
        self._projection = projection
        self._networks = networks
        self._weight = weight
        self._spread = spread
        self.draws = Draws(normals=projection.width if spread else 0)
        device = networks.flat.device
        self._means = mixture.means.to(device, torch.float32)  # [K, d']
        self._variances = mixture.variances.to(device, torch.float32)
        self._log_weights = mixture.weights.log().to(device, torch.float32)

    def grad_factors(self, rows: Tensor) -> list[GradFactor]:
        """Rows as `Heads.view` makes them, `draws` behind [b, ·] → gradient factors of layers."""
        record, normals = rows.tensor_split([rows.shape[1] - self.draws.normals], dim=1)
        expanded, bins = self._heads.split(record)
        mean = self._projection(expanded)
        if not self._spread:
            return self._decode(mean, bins, to_input=False)[0]
        network = self._networks[SPREAD]
        tape = network.forward(self._projection.centred(expanded))
        log_spread = tape.out.clamp(*_LOG_SPREAD)
        scatter = normals * (0.5 * log_spread).exp()
        grad_factors, input_gradient = self._decode(mean + scatter, bins, to_input=True)
        assert input_gradient is not None
        gradient = 0.5 * input_gradient * scatter + self._weight * self._pull(mean, log_spread)
        gradient *= (tape.out == log_spread).to(gradient.dtype)
        return network.backward(tape, gradient)[0] + grad_factors

    def _decode(
        self, z: Tensor, bins: Tensor, *, to_input: bool
    ) -> tuple[list[GradFactor], Tensor | None]:
        network = self._networks[DECODER]
        tape = network.forward(z)
        return network.backward(tape, self._heads.gradient(tape.out, bins), to_input=to_input)

    def _pull(self, mean: Tensor, log_spread: Tensor) -> Tensor:
        """∂KL/∂ log variance, float32 [b, d']: a mean over components near the point.

        KL(N ‖ Σ_k w_k N_k) is bounded by -log Σ_k w_k exp(-KL(N ‖ N_k)).
        """
        spread = log_spread.exp().unsqueeze(1)  # [b, 1, d']
        ratio = spread / self._variances  # [b, K, d']
        gap = (mean.unsqueeze(1) - self._means).square() / self._variances
        each = 0.5 * (self._variances.log() - log_spread.unsqueeze(1) + ratio + gap - 1.0).sum(2)
        near = torch.softmax(self._log_weights - each, dim=1)  # [b, K]
        return 0.5 * (near.unsqueeze(2) * (ratio - 1.0)).sum(dim=1)
