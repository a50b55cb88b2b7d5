"""CentredRecords: encoded records as points around a public centre, for linear projections.

One-hot coordinates are centred at equal shares and numbers at the middle of their declared range,
stretched to [-1, 1], so that a record's largest norm is known from the domain alone and smaller
than that of the raw encoding; the noise of second moments grows with its square.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from core.encoding.codec import Codec


class CentredRecords:
    """The affine map of a domain's records.

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
