"""The adversarial game: a critic that learns privately, a generator that learns from the critic."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from core.models.shared.dp_optimizer import Descent
from core.models.shared.gan_settings import GanSettings
from core.models.shared.snapshots import Snapshots
from core.privacy.dpsgd.clipping import clipped_sum
from core.privacy.dpsgd.dense import Dense, GradFactor
from core.privacy.dpsgd.gradient import ClippedGradient, SampledRelease

__all__ = ["Game", "Generator", "Pace", "Render", "fall", "new_critic"]

CRITIC = "critic"  # name of the critic's stack


class Render(Protocol):
    """From a generator's outputs to records."""

    def __call__(self, outputs: Tensor, /, *, generator: torch.Generator) -> Tensor:
        """Float32 [b, outputs] → [b, width], differentiable."""
        ...


class Generator(nn.Module):
    """Latent points → outputs: linear layers with layer norm, leaky ReLU and residual links.

    Layer norm and not batch norm, so that a generated record does not depend on its neighbours and
    averaged weights need no statistics of their own.

    Args:
      latent: width of the latent.
      hidden: widths of the hidden layers; equal neighbours are joined by residual links.
      outputs: width of the output.
    """

    def __init__(self, *, latent: int, hidden: tuple[int, ...], outputs: int):
        super().__init__()
        self.latent = latent
        widths = (latent, *hidden)
        self.layers = nn.ModuleList(
            nn.Sequential(nn.Linear(i, o), nn.LayerNorm(o), nn.LeakyReLU(0.2))
            for i, o in zip(widths, hidden, strict=False)
        )
        self.last = nn.Linear(widths[-1], outputs)

    def forward(self, z: Tensor) -> Tensor:
        """Float32 [b, latent] → [b, outputs]."""
        for layer in self.layers:
            h = layer(z)
            z = z + h if h.shape == z.shape else h
        out: Tensor = self.last(z)
        return out

    def draw(self, rows: int, random: torch.Generator) -> Tensor:
        """Outputs [rows, outputs] at fresh latent points, for a generator on the CPU."""
        out: Tensor = self(torch.randn((rows, self.latent), generator=random))
        return out


@dataclass(frozen=True, kw_only=True)
class Pace:
    """How the game is played.

    Attributes:
      steps: generator steps in all.
      critic_steps: private critic steps before each.
      fakes: generated records a step, of either player.
      rate, critic_rate: peak learning rates.
      clip_norm: of one record's critic gradient, C > 0, or inf.
      box: largest absolute critic weight, as a share of the largest its layer starts with.
      averaging: decay of the running average of generator weights.
      snapshots: pairs of players kept over the last quarter, evenly spaced; 0 keeps none.
    """

    steps: int
    critic_steps: int
    fakes: int
    rate: float
    critic_rate: float
    clip_norm: float
    box: float
    averaging: float = 0.99
    snapshots: int = 0

    @classmethod
    def of(cls, settings: GanSettings) -> Pace:
        """As the settings say."""
        return cls(**settings.model_dump(include=set(cls.__dataclass_fields__)))


def new_critic(width: int, hidden: int, seed: int, device: str) -> Dense:
    """A critic width → hidden → hidden/2 → 1, from data-free randomness."""
    random = torch.Generator().manual_seed(seed)
    widths = {CRITIC: (width, hidden, max(1, hidden // 2), 1)}
    return Dense(widths, generator=random, device=device)


class Game:
    """Generator against critic.

    Args:
      generator: latent → whatever `render` takes.
      render: (outputs [b, outputs], generator=) → records [b, width] as the critic sees them,
        differentiable.
      critic: a `Dense` with a stack named "critic", width → 1.
      release: of the private phase: gradients at real records [b, width].
      pace: how to play.
      seed: of data-free randomness.
    """

    def __init__(
        self,
        generator: Generator,
        render: Render,
        critic: Dense,
        release: SampledRelease,
        *,
        pace: Pace,
        seed: int,
        device: str,
    ):
        self.generator = generator.to(device)
        self.averaged = [p.detach().clone() for p in self.generator.parameters()]
        self.critic = critic
        with torch.no_grad():
            bound = pace.box * critic.init_bounds()
            critic.flat.clamp_(-bound, bound)
        self.pace = pace
        self.done = 0
        self.snapshots = Snapshots(pace.snapshots, pace.steps)
        self._render = render
        self._random = torch.Generator(device).manual_seed(seed)
        self._device = device
        real = ClippedGradient(
            networks=critic,
            grad_factors=lambda x: self._grad_factors(x, -1.0),
            clip_norm=pace.clip_norm,
        )
        self.descent = Descent(
            critic,
            real,
            release,
            rate=pace.critic_rate,
            steps=pace.steps * pace.critic_steps,
            free=self._fake_side,
            bound=bound,
        )
        self._other = torch.zeros(critic.size, device=device)
        self._optimiser = torch.optim.Adam(
            self.generator.parameters(), lr=pace.rate, betas=(0.5, 0.9), fused=True
        )
        self._score = torch.zeros((), device=device)

    def step(self) -> None:
        """`critic_steps` private steps of the critic, then one of the generator."""
        for _ in range(min(self.pace.critic_steps, self.descent.steps - self.descent.done)):
            self.descent.step()
        self._optimiser.param_groups[0]["lr"] = self.pace.rate * fall(self.done, self.pace.steps)
        self._optimiser.zero_grad(set_to_none=True)
        score = self.critic[CRITIC](self._records()).mean()
        (-score).backward()  # type: ignore[no-untyped-call]
        self._optimiser.step()
        self._score = score.detach()
        self.done += 1
        with torch.no_grad():
            keep = min(self.pace.averaging, self.done / (self.done + 10.0))
            torch._foreach_lerp_(
                self.averaged, [p.detach() for p in self.generator.parameters()], 1.0 - keep
            )
        self.snapshots.look(self.done, self.generator, self.critic.flat)

    def metrics(self) -> dict[str, float]:
        """What the critic's descent tells."""
        return self.descent.metrics()

    def _latents(self) -> Tensor:
        shape = (self.pace.fakes, self.generator.latent)
        return torch.randn(shape, generator=self._random, device=self._device)

    def _records(self) -> Tensor:
        return self._render(self.generator(self._latents()), generator=self._random)

    def _grad_factors(self, x: Tensor, sign: float) -> list[GradFactor]:
        """Gradient factors of the critic for the loss sign · D(x)."""
        stack = self.critic[CRITIC]
        tape = stack.forward(x)
        return stack.backward(tape, torch.full_like(tape.out, sign))[0]

    @torch.no_grad()
    def _fake_side(self, gradient: Tensor) -> None:
        """Add the clipped gradient at generated records, of mean D: touches no private data."""
        records = self._records()
        ones = torch.ones(len(records), device=self._device)
        clipped_sum(
            self._grad_factors(records, 1.0),
            clip_norm=self.pace.clip_norm,
            mask=ones,
            views=self.critic.views(self._other),
        )
        gradient.add_(self._other, alpha=1.0 / len(records))

    def history(self) -> dict[str, Tensor]:
        """See `Snapshots.history`."""
        return self.snapshots.history()

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
        }

    def go_on(self, state: dict[str, Any] | None, *, charged: int) -> None:
        """Go on from `state_dict` or from the start; see `Descent.go_on` for `charged`."""
        self.descent.go_on(None if state is None else state["descent"], charged=charged)
        self.done = self.descent.done // self.pace.critic_steps
        if state is None:
            return
        self.generator.load_state_dict(state["generator"])
        self.averaged = [p.to(self._device) for p in state["averaged"]]
        self._optimiser.load_state_dict(state["optimiser"])
        self._random.set_state(state["random"].cpu())
        self.snapshots.pairs = list(state["snapshots"])


def fall(step: int, steps: int) -> float:
    """Learning rate over its peak: constant for half of the steps, then down to a tenth."""
    return min(1.0, 0.1 + 1.8 * (1.0 - step / steps))
