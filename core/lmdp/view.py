"""View: a group's columns as points, in a frame that comes from synthetic records alone."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from core.table.codec import Codec, Codes
from core.table.projection import Part

__all__ = ["View"]


class View:
    """Tagged columns of records → points that kernels can compare.

    A number is its position, centred and scaled by what synthetic records show; a category or a
    special state is some ones among zeros. So two numbers 1.4 standard deviations apart are as far
    from each other as two categories.

    Args:
      codec: of the whole domain.
      names: the group's columns.
      frame: mean and standard deviation of each numeric column's positions, in that order.
    """

    def __init__(self, codec: Codec, names: Sequence[str], frame: Sequence[tuple[float, float]]):
        self.names = tuple(names)
        self.frame = tuple((float(mean), float(spread)) for mean, spread in frame)
        self._part = Part(codec, names)
        self._numbers = [block for block in self._part.codec.blocks if block.number is not None]

    @classmethod
    def of(cls, codec: Codec, names: Sequence[str], synthetic: Codes) -> View:
        """The frame that synthetic records give; never call it on real ones."""
        part = Part(codec, names)
        codes = part.take(synthetic)
        frame = []
        for block in part.codec.blocks:
            if block.number is not None:
                place = codes.values[:, block.number][codes.states[:, block.index] == 0]
                spread = float(place.std()) if len(place) else 0.0
                frame.append((float(place.mean()) if len(place) else 0.5, spread or 1.0))
        return cls(codec, names, frame)

    def __call__(self, codes: Codes) -> Tensor:
        """Codes of whole records → float64 [n, d] on their device (the CPU for NumPy codes)."""
        own = self._part.take(codes)
        if not isinstance(own.states, Tensor):
            own = own.to("cpu")
        points = self._part.codec.expand(own).double()
        for block, (mean, spread) in zip(self._numbers, self.frame, strict=True):
            on_line = own.states[:, block.index] == 0
            points[:, block.start] = (points[:, block.start] - mean) / spread * on_line
        return points
