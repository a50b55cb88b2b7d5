"""The design of a private embedding: sizes and weights from public facts; needs no torch.

Plan and fit must agree on it, on phase names and on the conditioning column.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from core.encoding.codec import Block, Codec

EMBEDDING, DISTANCE = "embedding", "distance"  # PEARL's phases
MOST_CLASSES = 20  # a target with more states is learned as an ordinary column
ONE_WAY_SHARE = 0.3  # of the squared sensitivity, to one-column frequencies
CLASS_SHARE = 0.01  # of the squared sensitivity, to the class counts
GROUPS = (4, 256)  # fewest and most frequencies a column gets


@dataclass(frozen=True)
class Design:
    """How a table is measured.

    Attributes:
      columns: m ≥ 1, columns that are measured (all modelled ones but the class).
      groups: G, frequencies a column gets.
      condition: index of the class column among blocks, or None.
      classes: how many states it has; 1 without a class.
      one_way_weight: λ > 0, weight of one-column frequencies.
      class_weight: w ≥ 0, weight of the class counts; 0 without a class.
    """

    columns: int
    groups: int
    condition: int | None
    classes: int
    one_way_weight: float
    class_weight: float

    @classmethod
    def of(cls, codec: Codec, frequencies: int) -> Design:
        """The design for a domain and a wanted number of complex frequencies in all."""
        block = condition_block(codec)
        columns = len(codec.blocks) - (0 if block is None else 1)
        per_group = columns * (columns + 1) // 2
        groups = min(GROUPS[1], max(GROUPS[0], round(frequencies / per_group)))
        pairs = columns * (columns - 1) / 2
        one_way = math.sqrt(ONE_WAY_SHARE / (1 - ONE_WAY_SHARE) * pairs / columns) if pairs else 1.0
        bare = cls(columns, groups, None, 1, one_way, 0.0)
        if block is None:
            return bare
        weight = math.sqrt(CLASS_SHARE) * bare.sensitivity
        return cls(columns, groups, block.index, len(block.states), one_way, weight)

    @property
    def pairs(self) -> int:
        """Pairs of columns."""
        return self.columns * (self.columns - 1) // 2

    @property
    def sensitivity(self) -> float:
        """√(G (m(m-1)/2 + λ² m) + w²): the L2 norm of one record's contribution.

        Each complex coordinate has modulus 1, and a record is in one class. For two columns, nine
        groups: √(9·(1 + 2) + 3²).

        >>> Design(2, 9, 0, 2, one_way_weight=1.0, class_weight=3.0).sensitivity
        6.0
        """
        each = self.pairs + self.one_way_weight**2 * self.columns
        return math.sqrt(self.groups * each + self.class_weight**2)

    def noise(self, noise_multiplier: float, n: int) -> float:
        """Root mean square noise of one complex number of the embedding, per record."""
        return math.sqrt(2.0) * noise_multiplier * self.sensitivity / n


def condition_block(codec: Codec) -> Block | None:
    """The target's block when it is a list of at most `MOST_CLASSES` states, else None."""
    return codec.target_block(MOST_CLASSES) if len(codec.blocks) > 1 else None
