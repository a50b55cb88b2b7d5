"""Adversarial training: critics learn privately, a generator learns from critics alone."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self, TypeVar

import torch
from torch import Tensor, nn

from core.models.steps.training.adam import Adam
from core.models.steps.training.dp_optimizer import DPAdam, warm_decay
from core.models.steps.training.snapshot_ensemble import Snapshots
from core.models.synthesizer import Settings
from core.privacy.dpsgd.clipping import clipped_sum
from core.privacy.dpsgd.dense import Dense, GradFactor
from core.privacy.dpsgd.gradient import ClippedGradient, SampledRelease

N = TypeVar("N")


@dataclass(frozen=True, kw_only=True)
class AdversarialConfig:
    """How both sides are trained.

    Attributes:
      fakes: generated records a step, of either side.
      clip_norm: of one record's critic gradient, C > 0, or inf.
      box: largest absolute critic weight over the largest its layer starts with; 0 for none.
      averaging: decay of the running average of generator weights.
      snapshots: generators and critics kept over the last quarter, evenly spaced; 0 keeps none.
    """

    steps: int
    critic_steps: int
    fakes: int
    rate: float
    critic_rate: float
    clip_norm: float
    box: float
    seed: int
    label: str = ""
    averaging: float = 0.99
    snapshots: int = 0

    @classmethod
    def of(cls, settings: Settings, **others: Any) -> Self:
        """With the settings that have the names of attributes, and what stands beside them."""
        named = {n: v for n, v in settings.model_dump().items() if n in cls.__dataclass_fields__}
        return cls(**{**named, **others})


class AdversarialTrainer(ABC):
    """The generator's side of a private GAN, and how the two sides take turns.

    What a subclass needs for `critic_mechanism` must be set before this is initialised.

    Args:
      critic: all critics' parameters; the generator follows them to their device.
      fakes_apart: whether generated records pull the critic in a gradient of their own, beside the
        released one; else `critic_mechanism` sees to them.

    Attributes:
      averaged: running averages of the generator's parameters.
    """

    def __init__(
        self,
        generator: nn.Module,
        critic: Dense,
        release: SampledRelease,
        *,
        config: AdversarialConfig,
        fakes_apart: bool = True,
    ):
        self.config = config
        self._device = critic.flat.device
        self.generator = generator.to(self._device)
        self.averaged = [p.detach().clone() for p in generator.parameters()]
        self.critic = critic
        self.done = 0
        self.snapshots = Snapshots(config.snapshots, config.steps)
        self._random = torch.Generator().manual_seed(config.seed)
        bound = config.box * critic.init_bounds() if config.box else None
        if bound is not None:
            with torch.no_grad():
                critic.flat.clamp_(-bound, bound)
        self.critic_optimizer = DPAdam(
            critic,
            self.critic_mechanism(),
            release,
            rate=config.critic_rate,
            steps=config.steps * config.critic_steps,
            public_gradient=self._add_fake_gradient if fakes_apart else None,
            weight_bound=bound,
            label=config.label,
        )
        self._fake_gradient = torch.zeros(critic.size, device=self._device)
        self._generator_adam = Adam(generator.parameters(), config.rate, decays=(0.5, 0.9))

    @abstractmethod
    def critic_mechanism(self) -> ClippedGradient:
        """The critic's gradient at real records."""

    @abstractmethod
    def fake_grad_factors(self) -> list[GradFactor]:
        """The critic's gradient factors at `fakes` generated records: touches no private data."""

    @abstractmethod
    def generator_loss(self) -> Tensor:
        """What the generator lowers, float32 [], from fresh latents."""

    def step(self) -> None:
        """`critic_steps` private steps of the critic, then one of the generator."""
        config, private = self.config, self.critic_optimizer
        for _ in range(min(config.critic_steps, private.steps - private.done)):
            private.step()
        rate = config.rate * _rate_factor(self.done, config.steps)
        self._generator_adam.descend(self.generator_loss(), rate)
        self.done += 1
        with torch.no_grad():
            decay = warm_decay(config.averaging, self.done)
            parameters = [p.detach() for p in self.generator.parameters()]
            torch._foreach_lerp_(self.averaged, parameters, 1.0 - decay)
        self.snapshots.add_if_due(self.done, self.generator, self.critic.flat)

    def metrics(self) -> dict[str, float]:
        """What the private steps tell; see `DPAdam.metrics`."""
        return self.critic_optimizer.metrics()

    @torch.no_grad()
    def _add_fake_gradient(self, gradient: Tensor) -> None:
        """Add the clipped mean gradient at generated records: touches no private data."""
        count = self.config.fakes
        clipped_sum(
            self.fake_grad_factors(),
            clip_norm=self.config.clip_norm,
            mask=torch.ones(count, device=self._device),
            views=self.critic.views(self._fake_gradient),
        )
        gradient.add_(self._fake_gradient, alpha=1.0 / count)

    def weights(self) -> dict[str, Tensor]:
        """The generator's averaged weights by name, on the CPU."""
        names = [name for name, _ in self.generator.named_parameters()]
        return {n: a.detach().cpu().clone() for n, a in zip(names, self.averaged, strict=True)}

    def history(self) -> dict[str, Tensor]:
        """The snapshots; see `Snapshots.history`."""
        return self.snapshots.history(self.generator, self.critic.flat)

    def state_dict(self) -> dict[str, Any]:
        """Everything needed to go on, tensors and plain values only."""
        return {
            "generator": self.generator.state_dict(),
            "averaged": self.averaged,
            "adam": self._generator_adam.state_dict(),
            "descent": self.critic_optimizer.state_dict(),
            "random": self._random.get_state(),
            "snapshots": self.snapshots.pairs,
        }

    def load_state_dict(self, state: dict[str, Any] | None, *, charged: int) -> None:
        """Go on from `state_dict` or from the start; see `DPAdam.load_state_dict` for `charged`."""
        private = self.critic_optimizer
        private.load_state_dict(None if state is None else state["descent"], charged=charged)
        self.done = private.done // self.config.critic_steps
        if state is None:
            return
        self.generator.load_state_dict(state["generator"])
        self.averaged = [p.to(self._device) for p in state["averaged"]]
        self._generator_adam.load_state_dict(state["adam"])
        self._random.set_state(state["random"])
        self.snapshots.pairs = list(state["snapshots"])


def seeded(build: Callable[[], N], seed: int) -> N:
    """Networks whose initial weights follow from a seed; torch's own stream stays as it was."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return build()


def _rate_factor(step: int, steps: int) -> float:
    """Learning rate over its peak: constant for half of the steps, then down to a tenth."""
    return min(1.0, 0.1 + 1.8 * (1.0 - step / steps))
