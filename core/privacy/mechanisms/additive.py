"""What a private mechanism is: an additive statistic over records and how far one can move it.

A mechanism knows nothing of noise or budgets. `core.privacy.guarded.PrivateTable` evaluates its
statistic, adds the noise the plan holds and charges for it; tests evaluate the statistic directly
to check the sensitivity. The neighbouring relation is zero-out: one record is replaced by ⊥, which
contributes nothing, and the number of records is public.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from core.privacy.mechanisms.noise import NoiseKind

if TYPE_CHECKING:
    from torch import Tensor


RowView = Callable[[Any], "Tensor"]  # rows → float [b, width], each from its own record

_PROBED = 64  # rows that `check_parts` looks at, or two groups where a group is larger
_SLACK = 1e-3  # of Δ: far above rounding, far below what a tie between records does


class NotAdditiveError(RuntimeError):
    """A statistic that is not a sum over records, so its stated sensitivity means nothing."""


class Rows(Protocol):
    """Encoded rows, on whatever device they are; see `core.encoding.codec.Codes`."""

    def __len__(self) -> int: ...

    def slice(self, start: int, stop: int) -> Rows:
        """Rows start … stop - 1."""

    def take(self, index: object) -> Rows:
        """The rows at an integer array of positions."""

    def to(self, device: str) -> Rows:
        """The same rows as torch tensors on a device."""


class Statistic(Protocol):
    """An additive statistic of records with bounded sensitivity."""

    @property
    def sensitivity(self) -> float:
        """Δ > 0 under zero-out: removing one record's contribution moves `statistic` by at most Δ.

        In the L2 norm for "gaussian" and the L1 norm for "laplace".
        """

    @property
    def group_size(self) -> int:
        """How many consecutive rows one summand looks at, ≥ 1."""
        return 1

    @property
    def rounded_entries(self) -> int:
        """How many of the last entries count what a rounding error may tip, ≥ 0."""
        return 0

    def statistic(self, rows: Any, mask: Tensor) -> Tensor:
        """Σᵢ mᵢ f(xᵢ), before noise.

        One over disjoint pairs of consecutive rows sums m₂ᵢ m₂ᵢ₊₁ f(x₂ᵢ, x₂ᵢ₊₁), one over groups
        likewise; it says so by `group_size`, and chunks start at multiples of it. A row's position
        in the table is public, and an absent one keeps it. People stand where their own key puts
        them (`core.encoding.key_groups`), and a position where nobody stands is absent.

        Args:
          rows: b records on some device, of the type the table holds (see `Rows`).
          mask: float [b], 0 = the record is ⊥ and contributes 0. Where groups are of one, also a
            weight in between: the statistic is linear in it, so that weights of several rows that
            sum to one move it no further than one row.

        Returns:
          Any fixed shape; float64, or float32 summed with care. One whose number of entries depends
            on records states a public bound on it in `entries`, since the noise's scale must not.
        """


@runtime_checkable
class Mechanism(Statistic, Protocol):
    """A `Statistic` that is released with noise."""

    @property
    def entries(self) -> int | None:
        """A public bound on the number of entries; None where that depends on no record."""
        return None

    @property
    def noise(self) -> NoiseKind:
        """Which noise Δ is stated for."""


def clip_rows(x: Tensor, radius: float) -> Tensor:
    """Scale rows [n, d] onto the L2 ball: xᵢ · min(1, R/‖xᵢ‖), public R > 0.

    Every row norm is ≤ R up to one rounding; a row that is not finite becomes zero, so that no
    record can break the bound. Source: P3GM (ICDE 2021) §II-D.
    """
    import torch  # pages import this module, and compute nothing

    if not 0.0 < radius < float("inf"):
        raise ValueError(f"The radius of the ball must be positive and finite, got {radius}.")
    norms = torch.linalg.vector_norm(x, dim=1, keepdim=True)  # [n, 1]
    factor = (radius / norms.clamp_min(torch.finfo(x.dtype).tiny)).clamp_max(1.0)
    return torch.where(torch.isfinite(norms), x * factor, torch.zeros_like(x))


def check_parts(mechanism: Statistic, rows: Any, mask: Tensor) -> bool:
    """Compare the statistic of some rows with the sum over two parts of them.

    Sensitivities are stated for sums over records (or fixed groups of them). A statistic that looks
    further, divides by what it sees, or draws random numbers of its own, fails here.

    Returns:
      Whether there were rows enough to tell. What is not finite is refused by a release for itself.

    Raises:
      NotAdditiveError: the parts do not add up.
    """
    import torch  # pages import this module, and compute nothing

    size = mechanism.group_size
    count = min(len(rows) // size, max(2, _PROBED // size))
    if count < 2:
        return False
    middle, end = (count // 2 | 1) * size, count * size  # an odd number of groups

    def of(start: int, stop: int) -> Tensor:
        part = rows.slice(start, stop) if hasattr(rows, "slice") else rows[start:stop]
        statistic: Tensor = mechanism.statistic(part, mask[start:stop])
        return statistic.detach().flatten().to("cpu", torch.float64)

    whole, parts = of(0, end), of(0, middle) + of(middle, end)
    gap = (whole - parts)[: len(whole) - mechanism.rounded_entries].abs()
    if float(gap.nan_to_num(0.0, 0.0, 0.0).max()) > _SLACK * mechanism.sensitivity:
        raise NotAdditiveError(
            f"{type(mechanism).__name__}: the statistic of a batch is not the sum of its parts, so "
            "its sensitivity does not hold. Nothing was released. Please report this as a fault of "
            "the model."
        )
    return True
