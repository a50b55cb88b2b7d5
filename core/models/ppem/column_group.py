"""ColumnGroup: some of a domain's columns, with bins and heads of their own."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from core.encoding.codec import Codec, Codes
from core.models.steps.training.column_bins import column_bins
from core.models.steps.training.heads import WAVES, Heads


class ColumnGroup:
    """Some columns of a record.

    Args:
      names: modelled columns, at least one; the group keeps this order.

    Attributes:
      positions: int64 [Σ bins], where each bin of the group lies among all bins of the domain.
      seen_at: int64 [width], where each column of its view lies in that of the whole record.
    """

    def __init__(self, codec: Codec, names: Sequence[str], *, device: str = "cpu"):
        self._blocks = tuple(codec.block(name) for name in names)
        self.heads = Heads(Codec(codec.domain.project(names)), device=device)
        self.width = self.heads.critic_width
        counts = [column.count for column in column_bins(codec)]
        by_column = torch.split(torch.arange(sum(counts)), counts)
        self.positions = torch.cat([by_column[block.index] for block in self._blocks])
        self.seen_at = _critic_columns(codec, names)

    def view(self, codes: Codes) -> Tensor:
        """Codes of whole records → float32 [b, width], the group's columns as critics see them."""
        return self.heads.critic_view(codes.project(self._blocks))

    def columns(self, names: Sequence[str]) -> Tensor:
        """Where some of the group's columns lie in its view, int64 [·]; see `seen_at`."""
        return _critic_columns(self.heads.codec, names)


def _critic_columns(codec: Codec, names: Sequence[str]) -> Tensor:
    """Where columns lie in a record as critics see it (`Heads.critic_view`), int64 [·].

    First as the codec lays them out, then the waves of their numbers.
    """
    blocks = [codec.block(name) for name in names]
    starts = [(block.start, block.width) for block in blocks]
    starts += [(codec.width + WAVES * b.number, WAVES) for b in blocks if b.number is not None]
    return torch.cat([torch.arange(start, start + width) for start, width in starts])
