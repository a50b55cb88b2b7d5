"""Per-record randomness as it must not be: drawn by place in the batch, from the user's seed.

Test-only: nothing of this may ever be imported by core.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor


def by_place_p3gm(
    honest: Callable[..., Any], seed: int, *, rewind: bool = False
) -> Callable[..., Any]:
    """`ElboGradient.grad_factors` with latent noise from one seeded stream, whoever comes first."""
    stream = torch.Generator().manual_seed(seed + 1)

    def grad_factors(self: Any, rows: Tensor) -> Any:
        if rewind:
            stream.manual_seed(seed + 1)
        width = self.draws.normals
        drawn = torch.randn((len(rows), width), generator=stream)
        return honest(self, torch.cat([rows[:, : rows.shape[1] - width], drawn], dim=1))

    return grad_factors


def by_place_ppem(
    honest: Callable[..., Any], seed: int, *, rewind: bool = False
) -> Callable[..., Any]:
    """`EnergyGanTrainer` whose records' generated partners come from the generator's own stream."""
    own = torch.Generator().manual_seed(seed + 2)

    def record_grad_factors(self: Any, rows: Tensor) -> Any:
        stream = own if rewind else self._random
        if rewind:
            stream.manual_seed(seed + 2)
        normals, uniforms = self.draws
        record = rows[:, : rows.shape[1] - normals - uniforms]
        z = torch.randn((len(rows), normals), generator=stream)
        uniform = torch.rand((len(rows), uniforms), generator=stream)
        return honest(self, torch.cat([record, z, uniform], dim=1))

    return record_grad_factors
