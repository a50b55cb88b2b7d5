"""Part: some of a domain's columns, with a codec of their own."""

from __future__ import annotations

from collections.abc import Sequence

from core.table.codec import Codec, Codes
from core.table.schema import Domain

__all__ = ["Part"]


class Part:
    """Some modelled columns.

    Args:
      whole: codec of the domain.
      names: modelled columns, at least one; the part keeps this order.

    Attributes:
      codec: of these columns alone.
    """

    def __init__(self, whole: Codec, names: Sequence[str]):
        self.blocks = tuple(whole.block(name) for name in names)
        self.codec = Codec(Domain(columns=tuple(block.column for block in self.blocks)))
        self._states = [block.index for block in self.blocks]
        self._values = [block.number for block in self.blocks if block.number is not None]

    def take(self, codes: Codes) -> Codes:
        """Codes of whole records → codes of the part; NumPy or torch."""
        return Codes(codes.states[:, self._states], codes.values[:, self._values])
