"""EnergyGanTrainer: an energy learns privately, a generator learns from the energy alone.

The energy's loss is E(x) + [m - E(x̃)]₊ at real x and generated x̃, with a Lipschitz penalty at
points between them; the generator's is E(x̃). A conditional energy scores some columns of a record
given the others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from core.models.ppem.energy import Energy, lipschitz
from core.models.ppem.plan import CRITICAL, STATISTIC
from core.models.ppem.stein_penalty import SteinPenalty
from core.models.steps.training.adversarial import AdversarialConfig, AdversarialTrainer
from core.models.steps.training.draws import normals
from core.models.steps.training.heads import Heads
from core.privacy.dpsgd.dense import Dense, GradFactor
from core.privacy.dpsgd.gradient import ClippedGradient, SampledRelease
from core.privacy.dpsgd.penalty import PenalisedGradient
from core.privacy.dpsgd.stream import Draws


class SplitGenerator(nn.Module):
    """Latent points, and what is given, → outputs; residual links and layer norm.

    The latent and the given part have first layers of their own. Layer norm and not batch norm, so
    that a generated record does not depend on its neighbours.
    """

    def __init__(self, *, latent: int, given: int, hidden: int, outputs: int):
        super().__init__()
        self.latent, self.given = latent, given
        own = hidden - hidden // 2 if given else hidden
        self.own = nn.Linear(latent, own)
        self.condition = nn.Linear(given, hidden - own) if given else None
        self.layers = nn.ModuleList(
            nn.Sequential(nn.LayerNorm(hidden), nn.LeakyReLU(0.2), nn.Linear(hidden, hidden))
            for _ in range(2)
        )
        self.last = nn.Sequential(
            nn.LayerNorm(hidden), nn.LeakyReLU(0.2), nn.Linear(hidden, outputs)
        )

    def forward(self, z: Tensor, given: Tensor | None = None) -> Tensor:
        """Float32 [b, latent] and [b, given] → [b, outputs]."""
        h = self.own(z)
        if self.condition is not None:
            assert given is not None
            h = torch.cat([h, self.condition(given)], dim=1)
        for layer in self.layers:
            h = h + layer(h)
        out: Tensor = self.last(h)
        return out


@dataclass(frozen=True, kw_only=True)
class EnergyGanConfig(AdversarialConfig):
    """See `AdversarialConfig`, with an energy for a critic.

    Attributes:
      penalty_clip: of the batch-level penalty, over the clip norm.
      penalty: weight λ_α of the α-LMDP penalty; 0 for none.
    """

    penalty_clip: float
    margin: float
    lipschitz: float
    penalty: float
    temperature: float


class EnergyGanTrainer(AdversarialTrainer):
    """Energies against a generator.

    Args:
      release: of the private phase: a record's row is what is given, if anything, then the columns
        that are generated.
      given: (b, random) → what to generate for, in training of the generator; None without.
      penalties: one a protected group, whose energy is among `energies`.
    """

    config: EnergyGanConfig
    generator: SplitGenerator

    def __init__(
        self,
        generator: SplitGenerator,
        networks: Dense,
        energies: Sequence[Energy],
        heads: Heads,
        release: SampledRelease,
        *,
        config: EnergyGanConfig,
        given: Callable[[int, torch.Generator], Tensor] | None = None,
        penalties: Sequence[SteinPenalty] = (),
    ):
        self.energies, self.penalties = tuple(energies), tuple(penalties)
        self._heads, self._given = heads, given
        # metrics come by the clock, so they draw from a stream of their own
        self._metrics_random = torch.Generator().manual_seed(config.seed + 1)
        self._expected_batch = release.expected_batch
        super().__init__(generator, networks, release, config=config, fakes_apart=given is None)

    @property
    def draws(self) -> Draws:
        """What a record's row brings beside it: a latent point, a uniform a bin, a place between.

        They are the record's own, so that its generated partner depends on no other record.
        """
        return Draws(normals=self.generator.latent, uniforms=self._heads.total + 1)

    def critic_mechanism(self) -> ClippedGradient | PenalisedGradient:
        """See `AdversarialTrainer`; penalised where groups are protected."""
        if not (self.penalties and self.config.penalty):
            return ClippedGradient(
                networks=self.critic,
                grad_factors=self._record_grad_factors,
                clip_norm=self.config.clip_norm,
                draws=self.draws,
                several_passes=True,
            )
        return PenalisedGradient(
            networks=self.critic,
            grad_factors=self._record_grad_factors,
            penalty=self._penalty_grad_factors,
            clip_norm=self.config.clip_norm,
            draws=self.draws,
            several_passes=True,
            penalty_clip=self.config.penalty_clip * self.config.clip_norm,
        )

    def fake_grad_factors(self) -> list[GradFactor]:
        """See `AdversarialTrainer`: of [m - E(x̃)]₊."""
        return self._margin_grad_factors(self._sample(self.config.fakes, self._random))

    def generator_loss(self) -> Tensor:
        """See `AdversarialTrainer`: the mean of E(x̃); now and then penalties look at x̃ too."""
        config, random = self.config, self._random
        given = None if self._given is None else self._given(config.fakes, random)
        logits = self.generator(self._latents(config.fakes, random), given)
        rows = self._heads.relaxed(logits, temperature=config.temperature, generator=random)
        if given is not None:
            rows = torch.cat([rows, given], dim=1)
        if self.done % 20 == 0:
            for penalty in self.penalties:
                penalty.update_bandwidth(rows.detach())
        return torch.stack([energy(rows).mean() for energy in self.energies]).sum()

    def metrics(self) -> dict[str, float]:
        """What the private steps tell, and the least convincing group's Stein statistic.

        The statistic is of generated records: it touches no private data.
        """
        metrics = super().metrics()
        if self.penalties:
            rows = self._sample(1 + self.config.fakes, self._metrics_random)
            metrics[STATISTIC] = min(penalty.statistic(rows) for penalty in self.penalties)
            metrics[CRITICAL] = self.penalties[0].critical
        return metrics

    def _latents(self, count: int, random: torch.Generator) -> Tensor:
        shape = (count, self.generator.latent)
        return normals(shape, random, self._device)

    @torch.no_grad()
    def _sample(self, count: int, random: torch.Generator) -> Tensor:
        logits = self.generator(self._latents(count, random))
        return self._heads.sample_critic_input(logits, generator=random)

    @torch.no_grad()
    def _record_grad_factors(self, rows: Tensor) -> list[GradFactor]:
        """Factors for E(x) + the Lipschitz penalty, and for [m - E(x̃)]₊ with x̃ made from x's."""
        own, given, z, uniform, mix = self._parts(rows)
        one_hot = self._heads.sample_one_hot(self.generator(z, given), uniform=uniform)
        fake = self._heads.critic_input(one_hot)
        between = torch.lerp(fake, own, mix)
        real = own
        if given is not None:
            real, fake, between = (torch.cat([x, given], 1) for x in (own, fake, between))
        grad_factors = self._score_grad_factors(real, torch.ones_like)
        if given is not None:
            grad_factors += self._margin_grad_factors(fake)
        return grad_factors + self._lipschitz_grad_factors(between)

    def _parts(self, rows: Tensor) -> tuple[Tensor, Tensor | None, Tensor, Tensor, Tensor]:
        """Rows of the release, and of what records draw, apart.

        Returns:
          The generated columns, what is given or None, latents, uniforms a bin, mixtures [b, 1].
        """
        before, latent, total = self.generator.given, self.generator.latent, self._heads.total
        width = rows.shape[1] - before - sum(self.draws)
        given, own, z, uniform, mix = torch.split(rows, [before, width, latent, total, 1], dim=1)
        return own, given if before else None, z, uniform, mix

    def _score_grad_factors(
        self, rows: Tensor, derivative: Callable[[Tensor], Tensor]
    ) -> list[GradFactor]:
        """Factors for a function of E at each row; `derivative` is by E, float32 [b, 1] → same."""
        tapes = [energy.forward(rows) for energy in self.energies]
        gradient = derivative(torch.stack([tape.out for tape in tapes]).sum(dim=0))
        grad_factors: list[GradFactor] = []
        for energy, tape in zip(self.energies, tapes, strict=True):
            grad_factors += energy.backward(tape, gradient)
        return grad_factors

    def _margin_grad_factors(self, fake: Tensor) -> list[GradFactor]:
        """Gradient factors for [m - E(x̃)]₊."""
        margin = self.config.margin
        return self._score_grad_factors(fake, lambda score: -(score < margin).to(score.dtype))

    def _lipschitz_grad_factors(self, between: Tensor) -> list[GradFactor]:
        """Gradient factors for λ(|∇E| - 1)², E the sum of the energies."""
        if not self.config.lipschitz:
            return []
        tapes = [energy.forward(between) for energy in self.energies]
        gradients = [e.input_gradient(tape) for e, tape in zip(self.energies, tapes, strict=True)]
        total = torch.zeros_like(between)
        for energy, (gradient, _) in zip(self.energies, gradients, strict=True):
            total.index_add_(1, energy.first, gradient)
        direction = lipschitz(total, self.config.lipschitz)
        grad_factors: list[GradFactor] = []
        for energy, tape, (_, factors) in zip(self.energies, tapes, gradients, strict=True):
            own = direction.index_select(1, energy.first)
            grad_factors += energy.double_backward(tape, factors, own)
        return grad_factors

    def _penalty_grad_factors(self, rows: Tensor) -> list[GradFactor]:
        """Factors for λ_α Σ [critical - Ŝ]₊ over protected groups, in units of a sum over rows."""
        own = self._parts(rows)[0]
        weight = self.config.penalty * self._expected_batch
        return [f for penalty in self.penalties for f in penalty.grad_factors(own, weight)]

    def state_dict(self) -> dict[str, Any]:
        """See `AdversarialTrainer.state_dict`."""
        bandwidths = [penalty.bandwidth for penalty in self.penalties]
        return {**super().state_dict(), "bandwidths": bandwidths}

    def load_state_dict(self, state: dict[str, Any] | None, *, charged: int) -> None:
        """See `AdversarialTrainer.load_state_dict`."""
        super().load_state_dict(state, charged=charged)
        if state is not None:
            for penalty, bandwidth in zip(self.penalties, state["bandwidths"], strict=True):
                penalty.bandwidth = bandwidth
