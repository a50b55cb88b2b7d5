"""The GAN of records: a Wasserstein critic learns privately, a generator learns from the critic."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from core.models.base_sampler import FittedGenerator
from core.models.step import FitContext
from core.models.steps.training.adversarial import AdversarialConfig, AdversarialTrainer
from core.models.steps.training.draws import normals
from core.models.steps.training.heads import Heads
from core.models.steps.training.phases import CRITIC
from core.models.steps.training.settings import GanSettings
from core.models.steps.training.snapshot_ensemble import SnapshotEnsemble, unpacked
from core.models.steps.training.training_loop import Checkpoint, private, train
from core.privacy.dpsgd.dense import Dense, GradFactor
from core.privacy.dpsgd.gradient import ClippedGradient, SampledRelease
from core.privacy.guarded import PrivateTable


class Generator(nn.Module):
    """Latent points → outputs: linear layers with layer norm, leaky ReLU and residual links.

    Layer norm and not batch norm, so that a generated record does not depend on its neighbours and
    averaged weights need no statistics of their own.

    Args:
      hidden: widths of the hidden layers; equal neighbours are joined by residual links.
      decode: fixed and differentiable, from there to the outputs; None leaves them as they are.
    """

    def __init__(
        self,
        *,
        latent: int,
        hidden: tuple[int, ...],
        outputs: int,
        decode: Callable[[Tensor], Tensor] | None = None,
    ):
        super().__init__()
        self.latent = latent
        self._decode = decode
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
        return out if self._decode is None else self._decode(out)

    def draw(self, rows: int, random: torch.Generator) -> Tensor:
        """Outputs [rows, outputs] at fresh latent points, for a generator on the CPU."""
        out: Tensor = self(torch.randn((rows, self.latent), generator=random))
        return out


def new_critic(width: int, hidden: int, seed: int, device: str) -> Dense:
    """A critic from data-free randomness; see `critic_widths`."""
    random = torch.Generator().manual_seed(seed)
    return Dense({CRITIC: critic_widths(width, hidden)}, generator=random, device=device)


def critic_widths(width: int, hidden: int) -> tuple[int, ...]:
    """A critic's layers: width → hidden → hidden/2 → 1."""
    return width, hidden, max(1, hidden // 2), 1


class GanTrainer(AdversarialTrainer):
    """Generator against critic.

    Args:
      render: (outputs [b, ·], randomness) → records [b, width] as the critic sees them,
        differentiable.
      release: of the private phase: gradients at real records [b, width].
    """

    def __init__(
        self,
        generator: Generator,
        render: Callable[[Tensor, torch.Generator], Tensor],
        critic: Dense,
        release: SampledRelease,
        *,
        config: AdversarialConfig,
    ):
        self._render, self._latent = render, generator.latent
        super().__init__(generator, critic, release, config=config)

    def critic_mechanism(self) -> ClippedGradient:
        """See `AdversarialTrainer`: of the loss -D(x)."""
        return ClippedGradient(
            networks=self.critic,
            grad_factors=lambda x: self._grad_factors(x, -1.0),
            clip_norm=self.config.clip_norm,
        )

    def fake_grad_factors(self) -> list[GradFactor]:
        """See `AdversarialTrainer`: of the loss D(x̃)."""
        return self._grad_factors(self._records(), 1.0)

    def generator_loss(self) -> Tensor:
        """See `AdversarialTrainer`: minus the mean of D(x̃)."""
        return -self.critic[CRITIC](self._records()).mean()

    def _records(self) -> Tensor:
        shape = (self.config.fakes, self._latent)
        latents = normals(shape, self._random, self._device)
        return self._render(self.generator(latents), self._random)

    def _grad_factors(self, x: Tensor, sign: float) -> list[GradFactor]:
        critic = self.critic[CRITIC]
        tape = critic.forward(x)
        return critic.backward(tape, torch.full_like(tape.out, sign))[0]


def train_gan(
    table: PrivateTable,
    context: FitContext,
    checkpoint: Checkpoint,
    *,
    heads: Heads,
    settings: GanSettings,
    generator: Generator,
    fitted: Callable[[dict[str, Tensor], dict[str, Tensor]], FittedGenerator],
    seed: int,
    label: str = "",
) -> FittedGenerator:
    """The private phase `CRITIC` of a model whose generator emits bin logits.

    Args:
      table: gives the critic's gradients at real records.
      checkpoint: holds the trainer's state under "game".
      fitted: from the generator's weights, and from snapshots or {}, to the trained model.
      seed: of data-free randomness, beside that which made the generator.
    """
    device, temperature = context.device, settings.temperature
    trainer = GanTrainer(
        generator,
        lambda logits, random: heads.relaxed(logits, temperature=temperature, generator=random),
        new_critic(heads.critic_width, settings.critic_hidden, seed, device),
        table.sampled(CRITIC, view=heads.critic_view, device=device),
        config=AdversarialConfig.of(settings, seed=seed + 1, label=label),
    )
    trainer.load_state_dict(checkpoint.state.get("game"), charged=table.meter.runs(CRITIC))
    train(
        private(table.plan.phase(CRITIC)),
        trainer,
        steps=settings.steps,
        checkpoint=checkpoint,
        key="game",
        preview=lambda: fitted(trainer.weights(), {}).preview(),
        on_event=context.on_event,
    )
    return fitted(trainer.weights(), trainer.history())


def gan_ensemble(
    fitted: FittedGenerator, generator: Generator, critic_hidden: int
) -> SnapshotEnsemble:
    """The snapshots that `train_gan` left in a fitted model, on the CPU."""

    def emit(flat: Tensor, rows: int, random: torch.Generator) -> Tensor:
        nn.utils.vector_to_parameters(flat, generator.parameters())
        return generator.draw(rows, random)

    heads, history = Heads(fitted.codec), fitted.history
    critics = unpacked(history["critics"], critic_widths(heads.critic_width, critic_hidden))
    return SnapshotEnsemble(heads, history["generators"], emit, critics)
