"""Mixtures of products: networks that give each of some fixed latents a distribution per column.

Within a component columns are independent, so every marginal of a mixture has a closed form; the
components together tie columns to one another. Latents stay as they were drawn: what is trained is
one finite mixture, and the network makes it smooth.

Several mixtures follow the same noise, but each errs in its own way where the releases say little.
Rows drawn from all of them keep what they agree on, and their errors average out: further steps,
which would tie one mixture to the noise, then bring rare labels closer at no loss. They share no
parameter, and are computed side by side.

Source: Liu, Vietri and Wu, NeurIPS 2021 (GEM); Lakshminarayanan, Pritzel and Blundell, "Simple and
Scalable Predictive Uncertainty Estimation using Deep Ensembles", NeurIPS 2017 (members differ by
their random beginning alone).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

import torch
from torch import Tensor, nn

from core.models.steps.counting.scales import ColumnScale

NEVER = -1e4  # a logit that makes a share zero
ANCHORED = 3.0  # how far, in log units, a component starts from the column's own shares


class LatentMixtures(nn.Module):
    """Shares of every column's cells for each component of each mixture.

    Batch norm is sound here: the network sees latents only, never a record.

    Args:
      latents: float32 [mixtures, latent, components], drawn once.
      base: float32 [cells], logarithms of the released shares, where all components start.
      starts: float32 [mixtures, cells, components], see `anchors`.
      anchored: columns whose components start apart; the others start at `base`.
      barred: bool [mixtures, cells, components], what components never have; None of nothing.
    """

    barred: Tensor | None

    def __init__(
        self,
        latents: Tensor,
        base: Tensor,
        starts: Tensor,
        *,
        anchored: Collection[int],
        sizes: Sequence[int],
        hidden: int,
        barred: Tensor | None = None,
    ):
        super().__init__()
        self.sizes = list(sizes)
        count, width, components = latents.shape
        self.layers = nn.Sequential(
            _Linear(count, width, hidden),
            _NormReLU(count, hidden),
            _Linear(count, hidden, hidden),
            _NormReLU(count, hidden),
            _Linear(count, hidden, sum(self.sizes)),
        )
        self.weights = nn.Parameter(torch.zeros(count, components))
        far = [ANCHORED if column in anchored else 0.0 for column in range(len(self.sizes))]
        self.scale = nn.Parameter(torch.tensor(far).repeat(count, 1))
        repeats = torch.arange(len(self.sizes)).repeat_interleave(torch.tensor(self.sizes))
        for name, value in (
            ("latents", latents), ("base", base), ("starts", starts), ("column", repeats),
            ("barred", barred),
        ):  # fmt: skip
            self.register_buffer(name, value, persistent=False)

    def forward(self) -> tuple[Tensor, Tensor]:
        """Weights, float32 [mixtures, components]; shares [mixtures, cells, components].

        Those of a mixture sum to one, and a component's of each column.
        """
        scale = self.scale.index_select(1, self.get_buffer("column"))
        far = scale[:, :, None] * self.get_buffer("starts")
        logits = self.layers(self.get_buffer("latents")) + self.get_buffer("base")[:, None] + far
        if self.barred is not None:
            logits = logits.masked_fill(self.barred, NEVER)
        shares = [torch.softmax(part, dim=1) for part in torch.split(logits, self.sizes, dim=1)]
        return torch.softmax(self.weights, dim=1), torch.cat(shares, dim=1)

    def by_column(self, shares: Tensor) -> tuple[Tensor, ...]:
        """Those of each column by themselves."""
        return torch.split(shares, self.sizes, dim=1)


class _Linear(nn.Module):
    """An affine map of each mixture; starts as torch's own do."""

    def __init__(self, count: int, width: int, out: int):
        super().__init__()
        bound = 1.0 / math.sqrt(width)
        self.weight = nn.Parameter(torch.empty(count, out, width).uniform_(-bound, bound))
        self.bias = nn.Parameter(torch.empty(count, out, 1).uniform_(-bound, bound))

    def forward(self, values: Tensor) -> Tensor:
        """[mixtures, width, components] → [mixtures, out, components]."""
        return torch.baddbmm(self.bias, self.weight, values)


class _NormReLU(nn.Module):
    """Batch norm over each mixture's components, then what is positive."""

    def __init__(self, count: int, width: int):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(count * width))
        self.bias = nn.Parameter(torch.zeros(count * width))

    def forward(self, values: Tensor) -> Tensor:
        """[mixtures, width, components], in and out."""
        flat = values.reshape(1, -1, values.shape[2])
        flat = nn.functional.batch_norm(flat, None, None, self.weight, self.bias, training=True)
        return torch.relu_(flat).view_as(values)


def anchors(
    scales: Sequence[ColumnScale],
    shares: Sequence[Tensor],
    components: int,
    random: torch.Generator,
) -> Tensor:
    """For each component and column, 1 at a cell drawn by the shares, falling off along a line.

    Components that start at random records turn a product of many columns' deviations, which has
    no slope where all of them are alike, into a matter of weights.

    Returns:
      Float32 [components, cells].
    """
    parts = []
    for scale, share in zip(scales, shares, strict=True):
        picked = torch.multinomial(share.float() + 1e-6, components, True, generator=random)
        start = nn.functional.one_hot(picked, scale.size).float()
        if scale.line > 4:
            width = max(1.5, scale.line / 8.0)
            cells = torch.arange(scale.line, dtype=torch.float32)
            near = torch.exp(-0.5 * ((cells - picked[:, None]) / width).square())
            on_line = (picked < scale.line)[:, None]
            start[:, : scale.line] = torch.where(on_line, near, start[:, : scale.line])
        parts.append(start)
    return torch.cat(parts, dim=1)
