"""Part: some of a domain's columns, with slots and heads of their own."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from core.models.shared.heads import WAVES, Heads
from core.table.codec import Codec, Codes

__all__ = ["Part", "critic_columns"]


class Part:
    """The columns of one part of a record.

    Args:
      codec: of the whole domain.
      names: modelled columns, at least one; the part keeps this order.
      device: where tensors live.

    Attributes:
      heads: of these columns alone.
      width: of a record's part as critics see it.
      places: int64 [slots], where each of this part's slots lies among all slots of the domain.
      seen_at: int64 [width], where each column of its view lies in that of the whole record.
    """

    def __init__(self, codec: Codec, names: Sequence[str], *, device: str = "cpu"):
        self._blocks = blocks = tuple(codec.block(name) for name in names)
        self.heads = Heads(Codec(codec.domain.project(names)), device=device)
        self.width = self.heads.critic_width
        counts = [slots.count for slots in Heads(codec).slots]
        starts = [sum(counts[:i]) for i in range(len(counts))]
        self.places = torch.cat(
            [torch.arange(starts[b.index], starts[b.index] + counts[b.index]) for b in blocks]
        )
        self.seen_at = torch.empty(self.width, dtype=torch.int64)
        for name in names:
            self.seen_at[self.columns([name])] = critic_columns(codec, [name])

    def view(self, codes: Codes) -> Tensor:
        """Codes of whole records → float32 [b, width], the part as critics see it."""
        return self.heads.critic_view(codes.project(self._blocks))

    def columns(self, names: Sequence[str]) -> Tensor:
        """Where some of the part's columns lie in its view, int64 [·]; see `critic_columns`."""
        return critic_columns(self.heads.codec, names)


def critic_columns(codec: Codec, names: Sequence[str]) -> Tensor:
    """Where columns lie in a record as critics see it (`Heads.critic_view`), int64 [·].

    First as the codec lays them out, then the waves of their numbers.
    """
    blocks = [codec.block(name) for name in names]
    found = [torch.arange(b.start, b.start + b.width) for b in blocks]
    for block in blocks:
        if block.number is not None:
            first = codec.width + WAVES * block.number
            found.append(torch.arange(first, first + WAVES))
    return torch.cat(found)
