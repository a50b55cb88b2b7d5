"""Pair: an energy that learns privately and a generator that learns from the energy alone.

The energy's loss is E(x) + [m - E(x̃)]₊ at real x and generated x̃, with a Lipschitz penalty at
points between them; the generator's is E(x̃). A conditional pair scores one part of a record given
the other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from core.models.ppem.energy import Energy, lipschitz
from core.models.ppem.stein_penalty import Stein
from core.models.shared.dp_optimizer import Descent
from core.models.shared.gan_trainer import fall
from core.models.shared.heads import Heads
from core.models.shared.snapshots import Snapshots
from core.privacy.dpsgd.clipping import clipped_sum
from core.privacy.dpsgd.dense import Dense, GradFactor
from core.privacy.dpsgd.gradient import ClippedGradient, SampledRelease
from core.privacy.dpsgd.penalty import PenalisedGradient
from core.privacy.dpsgd.stream import Draws

__all__ = ["Margin", "Pair", "SplitGenerator"]


class SplitGenerator(nn.Module):
    """Latent points, and what is given, → outputs; residual links and layer norm.

    The latent and the given part have first layers of their own. Layer norm and not batch norm, so
    that a generated record does not depend on its neighbours.

    Args:
      latent: width of the latent.
      given: width of what is conditioned on; 0 for nothing.
      hidden: width of each of three hidden layers.
      outputs: width of the output.
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
class Margin:
    """How a pair is trained.

    Attributes:
      steps: generator steps in all.
      energy_steps: private energy steps before each.
      fakes: generated records a step, of either player.
      rate, energy_rate: peak learning rates.
      clip_norm: of one record's energy gradient, C > 0, or inf.
      penalty_clip: of the batch-level penalty, over C.
      margin: m > 0.
      lipschitz: weight of the Lipschitz penalty.
      box: largest absolute weight of the energy over the largest its layer starts with; 0 for none.
      strength: λ_α of the α-LMDP penalty; 0 for none.
      temperature: of the Gumbel-softmax.
      averaging: decay of the running average of generator weights.
      snapshots: pairs of players kept over the last quarter, for boosting.
    """

    steps: int
    energy_steps: int
    fakes: int
    rate: float
    energy_rate: float
    clip_norm: float
    penalty_clip: float
    margin: float
    lipschitz: float
    box: float
    strength: float
    temperature: float
    averaging: float = 0.99
    snapshots: int = 0


Split = Callable[[Tensor], "tuple[Tensor, Tensor | None]"]


class Pair:
    """Energies against a generator.

    Args:
      networks: holds the energies' layers.
      energies: whose sum is the energy.
      generator: of the part that is generated.
      heads: of that part.
      split: rows of the release [b, w] → the generated part and what is given (or None); what a
        record draws is cut off before.
      given: (b, random) → what to generate for, in training of the generator; None without.
      release: of the private phase.
      how: see `Margin`.
      steins: one a protected group, whose energy is among `energies`.
      seed: of data-free randomness.
    """

    def __init__(
        self,
        networks: Dense,
        energies: Sequence[Energy],
        generator: SplitGenerator,
        heads: Heads,
        split: Split,
        release: SampledRelease,
        *,
        how: Margin,
        seed: int,
        device: str,
        given: Callable[[int, torch.Generator], Tensor] | None = None,
        steins: Sequence[Stein] = (),
    ):
        self.networks, self.energies = networks, tuple(energies)
        self.generator = generator.to(device)
        self.averaged = [p.detach().clone() for p in self.generator.parameters()]
        self.how, self.steins = how, tuple(steins)
        self.done = 0
        self.snapshots = Snapshots(how.snapshots, how.steps)
        self._heads, self._split, self._given = heads, split, given
        self._random = torch.Generator(device).manual_seed(seed)
        self._shown = torch.Generator(device).manual_seed(seed + 1)  # metrics come by the clock
        self._device = device
        self._expected = release.expected_batch
        bound = how.box * networks.init_bounds() if how.box else None
        if bound is not None:
            with torch.no_grad():
                networks.flat.clamp_(-bound, bound)
        self.descent = Descent(
            networks,
            self._mechanism(),
            release,
            rate=how.energy_rate,
            steps=how.steps * how.energy_steps,
            free=None if given is not None else self._fake_side,
            bound=bound,
        )
        self._other = torch.zeros(networks.size, device=device)
        self._optimiser = torch.optim.Adam(
            self.generator.parameters(), lr=how.rate, betas=(0.5, 0.9), fused=True
        )

    @property
    def draws(self) -> Draws:
        """What a record's row brings beside it: a latent point, a uniform a slot, a place between.

        They are the record's own, so that its generated partner depends on no other record.
        """
        return Draws(normals=self.generator.latent, uniforms=self._heads.total + 1)

    def _mechanism(self) -> ClippedGradient | PenalisedGradient:
        if not (self.steins and self.how.strength):
            return ClippedGradient(
                networks=self.networks,
                grad_factors=self._real_side,
                clip_norm=self.how.clip_norm,
                draws=self.draws,
            )
        return PenalisedGradient(
            networks=self.networks,
            grad_factors=self._real_side,
            penalty=self._penalty,
            clip_norm=self.how.clip_norm,
            draws=self.draws,
            penalty_clip=self.how.penalty_clip * self.how.clip_norm,
        )

    def step(self) -> None:
        """`energy_steps` private steps of the energy, then one of the generator."""
        how = self.how
        for _ in range(min(how.energy_steps, self.descent.steps - self.descent.done)):
            self.descent.step()
        self._optimiser.param_groups[0]["lr"] = how.rate * fall(self.done, how.steps)
        self._optimiser.zero_grad(set_to_none=True)
        given = None if self._given is None else self._given(how.fakes, self._random)
        made = self._make(how.fakes, given)
        rows = made if given is None else torch.cat([made, given], dim=1)
        torch.stack([energy(rows).mean() for energy in self.energies]).sum().backward()  # type: ignore[no-untyped-call]
        self._optimiser.step()
        self.done += 1
        with torch.no_grad():
            keep = min(how.averaging, self.done / (self.done + 10.0))
            torch._foreach_lerp_(
                self.averaged, [p.detach() for p in self.generator.parameters()], 1.0 - keep
            )
            self.snapshots.look(self.done, self.generator, self.networks.flat)
            if self.done % 20 == 1:
                for stein in self.steins:
                    stein.look(rows)

    def metrics(self) -> dict[str, float]:
        """What the descent tells."""
        return self.descent.metrics()

    @torch.no_grad()
    def statistics(self) -> list[float]:
        """Ŝ of generated records under each protected group's energy: touches no private data."""
        rows = self._make(1 + self.how.fakes, None, self._shown)
        return [stein.statistic(rows) for stein in self.steins]

    def _make(
        self, count: int, given: Tensor | None, random: torch.Generator | None = None
    ) -> Tensor:
        random = self._random if random is None else random
        z = torch.randn((count, self.generator.latent), generator=random, device=self._device)
        logits, heads = self.generator(z, given), self._heads
        if torch.is_grad_enabled():
            return heads.relaxed(logits, temperature=self.how.temperature, generator=random)
        uniform = torch.rand(logits.shape, generator=random, device=self._device)
        return heads.seen(heads.chosen(logits, uniform=uniform))

    @torch.no_grad()
    def _real_side(self, rows: Tensor) -> list[GradFactor]:
        """Factors for E(x) + the Lipschitz penalty, and for [m - E(x̃)]₊ with x̃ made from x's."""
        record, z, uniform, mix = self._drawn(rows)
        own, given = self._split(record)
        logits = self.generator(z, given)
        made = self._heads.seen(self._heads.chosen(logits, uniform=uniform))
        between = torch.lerp(made, own, mix)
        if given is not None:
            made, between = torch.cat([made, given], 1), torch.cat([between, given], 1)
            rows = torch.cat([own, given], 1)
        grad_factors: list[GradFactor] = []
        runs = [energy.forward(rows) for energy in self.energies]
        for energy, run in zip(self.energies, runs, strict=True):
            grad_factors += energy.backward(run, torch.ones_like(run.out))
        if given is not None:
            grad_factors += self._margin_grad_factors(made)
        grad_factors += self._lipschitz_grad_factors(between)
        return grad_factors

    def _drawn(self, rows: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Rows of the release → records [b, w], latents, uniforms a slot, and mixtures [b, 1]."""
        latent, total = self.generator.latent, self._heads.total
        width = rows.shape[1] - sum(self.draws)
        record, z, uniform, mix = torch.split(rows, [width, latent, total, 1], dim=1)
        return record, z, uniform, mix

    def _lipschitz_grad_factors(self, between: Tensor) -> list[GradFactor]:
        """Gradient factors for λ(|∇E| - 1)², E the sum of the energies."""
        if not self.how.lipschitz:
            return []
        runs = [energy.forward(between) for energy in self.energies]
        found = [energy.slope(run) for energy, run in zip(self.energies, runs, strict=True)]
        total = torch.zeros_like(between)
        for energy, (slope, _) in zip(self.energies, found, strict=True):
            total.index_add_(1, energy.first, slope)
        direction = lipschitz(total, self.how.lipschitz)
        grad_factors: list[GradFactor] = []
        for energy, run, (_, made) in zip(self.energies, runs, found, strict=True):
            grad_factors += energy.double_backward(
                run, made, direction.index_select(1, energy.first)
            )
        return grad_factors

    def _margin_grad_factors(self, made: Tensor) -> list[GradFactor]:
        """Gradient factors for [m - E(x̃)]₊."""
        runs = [energy.forward(made) for energy in self.energies]
        total = torch.stack([run.out for run in runs]).sum(dim=0)
        inside = -(total < self.how.margin).to(total.dtype)
        grad_factors: list[GradFactor] = []
        for energy, run in zip(self.energies, runs, strict=True):
            grad_factors += energy.backward(run, inside)
        return grad_factors

    @torch.no_grad()
    def _fake_side(self, gradient: Tensor) -> None:
        """Add the clipped gradient of [m - E(x̃)]₊ at generated records: no private data."""
        ones = torch.ones(self.how.fakes, device=self._device)
        clipped_sum(
            self._margin_grad_factors(self._make(self.how.fakes, None)),
            clip_norm=self.how.clip_norm,
            mask=ones,
            views=self.networks.views(self._other),
        )
        gradient.add_(self._other, alpha=1.0 / self.how.fakes)

    def _penalty(self, rows: Tensor) -> list[GradFactor]:
        """Factors for λ_α Σ [critical - Ŝ]₊ over protected groups, in units of a sum over rows."""
        own, _ = self._split(self._drawn(rows)[0])
        grad_factors: list[GradFactor] = []
        for stein in self.steins:
            grad_factors += stein.grad_factors(own, self.how.strength * self._expected)
        return grad_factors

    def weights(self) -> dict[str, Tensor]:
        """The generator's averaged weights by name, on the CPU."""
        names = [name for name, _ in self.generator.named_parameters()]
        return {n: a.detach().cpu().clone() for n, a in zip(names, self.averaged, strict=True)}

    def state_dict(self) -> dict[str, Any]:
        """Everything needed to go on, tensors and plain values only."""
        return {
            "generator": self.generator.state_dict(),
            "averaged": self.averaged,
            "optimiser": self._optimiser.state_dict(),
            "descent": self.descent.state_dict(),
            "random": self._random.get_state(),
            "snapshots": self.snapshots.pairs,
            "bandwidths": [stein.bandwidth for stein in self.steins],
        }

    def go_on(self, state: dict[str, Any] | None, *, charged: int) -> None:
        """Go on from `state_dict` or from the start; see `Descent.go_on` for `charged`."""
        self.descent.go_on(None if state is None else state["descent"], charged=charged)
        self.done = self.descent.done // self.how.energy_steps
        if state is None:
            return
        self.generator.load_state_dict(state["generator"])
        self.averaged = [p.to(self._device) for p in state["averaged"]]
        self._optimiser.load_state_dict(state["optimiser"])
        self._random.set_state(state["random"].cpu())
        self.snapshots.pairs = list(state["snapshots"])
        for stein, bandwidth in zip(self.steins, state["bandwidths"], strict=True):
            stein.bandwidth = bandwidth
