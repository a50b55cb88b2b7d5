"""A generator that emits, for each latent point, an independent distribution over every column.

The mixture over latent points ties the columns together. Because each component is a product, its
characteristic function is a product of per-column ones in closed form: no sampling of categories
inside training, hence no relaxation, and much less gradient noise than drawing records.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn


class MixtureGenerator(nn.Module):
    """Latent point and class → bin logits: linear–batch norm–ReLU twice, then linear.

    Batch norm is sound here: the network sees latents only, never a record.

    Args:
      classes: number of classes, ≥ 1; a one-hot of the class joins the latent.

    Source: PEARL (ICLR 2022) App. H (architecture for tables).
    """

    def __init__(self, *, latent: int, classes: int, hidden: int, bins: int):
        super().__init__()
        self.latent = latent
        self.classes = classes
        self.layers = nn.Sequential(
            nn.Linear(latent + classes, hidden),
            nn.BatchNorm1d(hidden),
            nn.ReLU(),
            nn.Linear(hidden, hidden),
            nn.BatchNorm1d(hidden),
            nn.ReLU(),
            nn.Linear(hidden, bins),
        )

    def forward(self, z: Tensor, y: Tensor) -> Tensor:
        """Bin logits.

        Args:
          z: float32 [b, latent], standard normal.
          y: int64 [b], class of each row.

        Returns:
          float32 [b, bins].
        """
        hot = nn.functional.one_hot(y, self.classes).to(z.dtype)
        logits: Tensor = self.layers(torch.cat([z, hot], dim=1))
        return logits
