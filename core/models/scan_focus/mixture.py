"""A mixture of products: a network that gives each of some fixed latents a distribution per column.

Within a component columns are independent, so every marginal of the mixture has a closed form; the
components together tie columns to one another. Latents stay as they were drawn: what is trained is
one finite mixture, and the network makes it smooth.

Source: Liu, Vietri and Wu, NeurIPS 2021 (GEM).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import torch
from torch import Tensor, nn

from core.models.steps.counting.scales import ColumnScale

ANCHORED = 3.0  # how far, in log units, a component starts from the column's own shares


class LatentMixture(nn.Module):
    """Shares of every column's cells for each component.

    Batch norm is sound here: the network sees latents only, never a record.

    Args:
      latents: float32 [components, latent], drawn once.
      base: float32 [cells], logarithms of the released shares, where all components start.
      starts: float32 [components, cells], see `anchors`.
      anchored: columns whose components start apart; the others start at `base`.
    """

    def __init__(
        self,
        latents: Tensor,
        base: Tensor,
        starts: Tensor,
        *,
        anchored: Collection[int],
        sizes: Sequence[int],
        hidden: int,
    ):
        super().__init__()
        self.sizes = list(sizes)
        self.layers = nn.Sequential(
            nn.Linear(latents.shape[1], hidden),
            nn.BatchNorm1d(hidden),
            nn.ReLU(),
            nn.Linear(hidden, hidden),
            nn.BatchNorm1d(hidden),
            nn.ReLU(),
            nn.Linear(hidden, sum(self.sizes)),
        )
        self.weights = nn.Parameter(torch.zeros(len(latents)))
        far = [ANCHORED if column in anchored else 0.0 for column in range(len(self.sizes))]
        self.scale = nn.Parameter(torch.tensor(far))
        repeats = torch.arange(len(self.sizes)).repeat_interleave(torch.tensor(self.sizes))
        for name, value in (
            ("latents", latents), ("base", base), ("starts", starts), ("column", repeats),
        ):  # fmt: skip
            self.register_buffer(name, value, persistent=False)

    def forward(self) -> tuple[Tensor, list[Tensor]]:
        """Float32 [components], summing to one; a column, [components, cells], to one a row."""
        far = self.scale[self.get_buffer("column")] * self.get_buffer("starts")
        logits = self.layers(self.get_buffer("latents")) + self.get_buffer("base") + far
        shares = [torch.softmax(part, dim=1) for part in torch.split(logits, self.sizes, dim=1)]
        return torch.softmax(self.weights, dim=0), shares


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
