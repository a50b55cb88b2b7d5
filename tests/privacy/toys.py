"""Honest toy mechanisms and toy tables: what the harness must let pass."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from dp_accounting.gaussian_mechanism import get_sigma_gaussian
from torch import Tensor

from core.encoding.codec import Codes
from core.privacy.accounting.accountant import guarantee
from core.privacy.mechanisms.additive import Mechanism, Rows, clip_rows
from core.privacy.mechanisms.noise import NoiseKind
from core.privacy.plan import Budget, Guarantee, Phase, Plan
from core.schema.column import Column, Kind
from core.schema.schema import Domain, Schema

WIDTH = 3
N = 1000  # records of an account


def domain() -> Domain:
    columns = tuple(
        Column(name=f"x{i}", kind=Kind.NUMBER, low=-1.0, high=1.0, dtype="float64")
        for i in range(WIDTH)
    )
    return Schema(columns=columns).domain()


def wide_domain(width: int) -> Domain:
    """Numbers in [0, 1], more of them than a toy table has."""
    columns = tuple(
        Column(name=f"x{i}", kind=Kind.NUMBER, low=0.0, high=1.0, dtype="float64")
        for i in range(width)
    )
    return Schema(columns=columns).domain()


def table(values: np.ndarray) -> Codes:
    """Codes holding these numbers, float [n, WIDTH]."""
    return Codes(np.zeros(values.shape, dtype=np.int32), np.asarray(values, dtype=np.float64))


def random_table(n: int, seed: int) -> Codes:
    return table(np.random.default_rng(seed).normal(scale=2.0, size=(n, WIDTH)))


def phase(name: str = "sum", noise_multiplier: float = 1.0, **more: Any) -> Phase:
    return Phase(
        name=name, title=name, what=name, share=0.5, noise_multiplier=noise_multiplier, **more
    )


def plan(
    n: int,
    phases: Sequence[Phase],
    *,
    private: bool = True,
    delta: float = 1e-6,
    claim: Guarantee | None = None,
) -> Plan:
    """A plan of these phases; `claim` saves working out what they cost where nobody asks."""
    claim = guarantee(phases, delta) if claim is None else claim
    epsilon = claim.epsilon if private else math.inf
    return Plan(
        model="toy",
        n=n,
        budget=Budget(epsilon=epsilon, delta=delta),
        phases=tuple(phases),
        guarantee=claim,
    )


def gaussian_plan(wanted: float, delta: float = 1e-6) -> Plan:
    """One Gaussian sum that costs ε = `wanted`."""
    sigma = get_sigma_gaussian(wanted, delta) * (1 + 1e-9)
    return plan(N, [phase(noise_multiplier=sigma)], delta=delta)


def values_of(rows: Rows) -> Tensor:
    return rows.to("cpu").values.double()  # type: ignore[attr-defined, no-any-return]


@dataclass
class ClippedSum(Mechanism):
    """Σ mᵢ clip(xᵢ, R): Δ₂ = R."""

    radius: float = 1.0
    noise: NoiseKind = "gaussian"

    @property
    def sensitivity(self) -> float:
        return self.radius

    def statistic(self, rows: Rows, mask: Tensor) -> Tensor:
        clipped = clip_rows(values_of(rows), self.radius)  # [b, WIDTH]
        return mask.double() @ clipped


@dataclass
class Waves(Mechanism):
    """Σ mᵢ (cos⟨ω, xᵢ⟩, sin⟨ω, xᵢ⟩) over k frequencies: every record has norm √k exactly."""

    frequencies: Tensor  # [k, WIDTH]
    noise: NoiseKind = "gaussian"

    @property
    def sensitivity(self) -> float:
        return math.sqrt(len(self.frequencies))

    def statistic(self, rows: Rows, mask: Tensor) -> Tensor:
        angle = values_of(rows) @ self.frequencies.double().T  # [b, k]
        return torch.stack([mask.double() @ angle.cos(), mask.double() @ angle.sin()])  # [2, k]


def waves(k: int = 8) -> Waves:
    return Waves(torch.from_numpy(np.random.default_rng(5).normal(size=(k, WIDTH))))


@dataclass
class Histogram(Mechanism):
    """Counts by sign of the first number: Δ₁ = 1."""

    noise: NoiseKind = "laplace"
    sensitivity: float = 1.0

    def statistic(self, rows: Rows, mask: Tensor) -> Tensor:
        positive = (values_of(rows)[:, 0] > 0).double()
        return torch.stack([mask.double() @ positive, mask.double() @ (1.0 - positive)])


@dataclass
class Repeated(Mechanism):
    """One-dimensional ClippedSum written `draws` times: one release gives that many noise draws.

    As a release of all of them its Δ would be √draws; it is declared for one, because tests read
    the entries as independent runs of the one-dimensional mechanism.
    """

    draws: int
    declared: float = 1.0
    noise: NoiseKind = "gaussian"

    @property
    def sensitivity(self) -> float:
        return self.declared

    def statistic(self, rows: Rows, mask: Tensor) -> Tensor:
        first = values_of(rows)[:, 0].clamp(-1.0, 1.0)
        return (mask.double() @ first).repeat(self.draws)  # [draws]
