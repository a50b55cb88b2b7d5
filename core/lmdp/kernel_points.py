"""A group's columns as points for kernels, scaled by what synthetic records alone show."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from core.encoding.codec import Codec, Codes


class KernelPoints:
    """Tagged columns of records → points that kernels can compare.

    A number is its position, centred and scaled by what synthetic records show; a category or a
    special state is some ones among zeros. So two numbers 1.4 standard deviations apart are as far
    from each other as two categories.
    """

    def __init__(self, codec: Codec, names: Sequence[str], scaling: Sequence[tuple[float, float]]):
        self.names = tuple(names)
        self.scaling = tuple((float(mean), float(spread)) for mean, spread in scaling)
        self._blocks = tuple(codec.block(name) for name in names)
        self._codec = Codec(codec.domain.project(names))

    @classmethod
    def of(cls, codec: Codec, names: Sequence[str], synthetic: Codes) -> KernelPoints:
        """With the scaling that synthetic records give; never call it on real ones."""
        scaling = []
        for block in (codec.block(name) for name in names):
            if block.number is not None:
                position = synthetic.values[:, block.number][synthetic.states[:, block.index] == 0]
                spread = float(position.std()) if len(position) else 0.0
                scaling.append((float(position.mean()) if len(position) else 0.5, spread or 1.0))
        return cls(codec, names, scaling)

    def __call__(self, codes: Codes) -> Tensor:
        """Codes of whole records → float64 [n, d] on their device (the CPU for NumPy codes)."""
        tagged = codes.project(self._blocks)
        if not isinstance(tagged.states, Tensor):
            tagged = tagged.to("cpu")
        points = self._codec.expand(tagged).double()
        numeric = (block for block in self._codec.blocks if block.number is not None)
        for block, (mean, spread) in zip(numeric, self.scaling, strict=True):
            on_line = tagged.states[:, block.index] == 0
            points[:, block.start] = (points[:, block.start] - mean) / spread * on_line
        return points
