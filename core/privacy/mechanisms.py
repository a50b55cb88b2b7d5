"""What a private mechanism is: an additive statistic over records and how far one can move it.

A mechanism knows nothing of noise or budgets. `core.privacy.guarded.PrivateTable` evaluates its
statistic, adds the noise the plan holds and charges for it; tests evaluate the statistic directly
to check the sensitivity. The neighbouring relation is zero-out: one record is replaced by ⊥, which
contributes nothing, and the number of records is public.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, Self, runtime_checkable

from core.privacy.noise import NoiseKind

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["Mechanism", "Rows", "clip_rows"]


class Rows(Protocol):
    """Encoded rows, before and after they are moved to a device; see `core.table.codec.Codes`."""

    def __len__(self) -> int: ...

    def slice(self, start: int, stop: int) -> Self:
        """Rows start … stop - 1."""
        ...

    def take(self, index: object) -> Self:
        """The rows at an integer array of positions."""
        ...

    def to(self, device: str) -> Self:
        """The same rows as torch tensors on a device."""
        ...


@runtime_checkable
class Mechanism(Protocol):
    """An additive statistic of records with bounded sensitivity.

    Attributes:
      sensitivity: Δ > 0 under zero-out: removing one record's contribution moves `statistic` by at
        most Δ, in the L2 norm for "gaussian" and the L1 norm for "laplace".
      noise: which noise Δ is stated for.
    """

    @property
    def sensitivity(self) -> float:
        """Δ, see above."""
        ...

    @property
    def noise(self) -> NoiseKind:
        """Which noise is added."""
        ...

    def statistic(self, rows: Any, mask: Tensor) -> Tensor:
        """Σᵢ mᵢ f(xᵢ), before noise.

        A mechanism over disjoint pairs of consecutive rows uses m₂ᵢ m₂ᵢ₊₁ f(x₂ᵢ, x₂ᵢ₊₁); chunks
        start at even rows, so pairs never straddle two calls.

        Args:
          rows: b records on some device, of the type the table holds (see `Rows`).
          mask: float [b], 1 = present, 0 = the record is ⊥ and contributes 0.

        Returns:
          Any fixed shape; float64, or float32 summed with care. Statistics of chunks are added.
        """
        ...


def clip_rows(x: Tensor, radius: float) -> Tensor:
    """Scale rows onto the L2 ball: xᵢ · min(1, R/‖xᵢ‖).

    Args:
      x: float [n, d]; a zeroed-out record is the zero row.
      radius: R > 0, public, same unit as x.

    Returns:
      Same shape and type, every row norm ≤ R up to one rounding; a row that is not finite becomes
      zero, so that no record can break the bound.

    Raises:
      ValueError: radius ≤ 0 or not finite (the value is echoed; rows never are).

    Source: P3GM (ICDE 2021) §II-D.
    """
    import torch

    if not 0.0 < radius < float("inf"):
        raise ValueError(f"The radius of the ball must be positive and finite, got {radius}.")
    norms = torch.linalg.vector_norm(x, dim=1, keepdim=True)  # [n, 1]
    factor = (radius / norms.clamp_min(torch.finfo(x.dtype).tiny)).clamp_max(1.0)
    return torch.where(torch.isfinite(norms), x * factor, torch.zeros_like(x))
