"""DP-auto-GAN's training: an autoencoder, then a GAN that makes codes for its decoder."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor

from core.models.dp_auto_gan.autoencoder import AutoEncoder
from core.models.dp_auto_gan.plan import AUTOENCODER, CRITIC, DpAutoGan
from core.models.dp_auto_gan.settings import DpAutoGanSettings
from core.models.shared.dp_optimizer import Descent
from core.models.shared.fitted import SlotFitted, read_fitted
from core.models.shared.gan_trainer import Game, Generator, Pace, new_critic
from core.models.shared.heads import Heads
from core.models.shared.snapshot_ensemble import Players
from core.models.shared.training_loop import Checkpoint, private_loop
from core.models.synthesizer import FitContext
from core.privacy.dpsgd.gradient import ClippedGradient
from core.privacy.guarded import PrivateTable
from core.privacy.plan import Plan
from core.table.codec import Codec

__all__ = ["ensemble", "fit", "load"]

AVERAGING = 0.99  # decay of the running average of the autoencoder's parameters


def fit(table: PrivateTable, plan: Plan, context: FitContext) -> SlotFitted:
    """See `Synthesizer.fit`."""
    settings = DpAutoGanSettings(**plan.settings)
    heads = Heads(Codec(table.domain), device=context.device)
    checkpoint = Checkpoint.open(context, "dp_auto_gan.pt", table.meter)
    autoencoder = _train_autoencoder(table, plan, settings, heads, checkpoint, context)
    return _train_gan(table, plan, settings, autoencoder, checkpoint, context)


def _train_autoencoder(
    table: PrivateTable,
    plan: Plan,
    settings: DpAutoGanSettings,
    heads: Heads,
    checkpoint: Checkpoint,
    context: FitContext,
) -> AutoEncoder:
    """The first phase; only what was kept of it where the second has begun."""
    start = torch.Generator().manual_seed(checkpoint.seed)
    autoencoder = _autoencoder(heads, settings, device=context.device, generator=start)
    networks = autoencoder.networks
    optimizer = Descent(
        networks,
        ClippedGradient(
            networks=networks,
            grad_factors=autoencoder.grad_factors,
            clip_norm=settings.encoder_clip,
        ),
        table.sampled(AUTOENCODER, view=heads.view, device=context.device),
        rate=settings.encoder_rate,
        steps=settings.encoder_steps,
        averaging=AVERAGING,
    )
    optimizer.go_on(checkpoint.state.get("descent"), charged=table.meter.runs(AUTOENCODER))
    if "game" not in checkpoint.state:
        private_loop(
            plan.phase(AUTOENCODER),
            optimizer,
            steps=settings.encoder_steps,
            checkpoint=checkpoint,
            key="descent",
            preview=list,
            metrics=lambda: _named(AUTOENCODER, optimizer.metrics()),
        ).run(context.observe)
    networks.load(optimizer.average)
    return autoencoder


def _train_gan(
    table: PrivateTable,
    plan: Plan,
    settings: DpAutoGanSettings,
    autoencoder: AutoEncoder,
    checkpoint: Checkpoint,
    context: FitContext,
) -> SlotFitted:
    """The second phase: a GAN in latent space, with the decoder as it is."""
    heads, seed, device = autoencoder.heads, checkpoint.seed, context.device

    def render(outputs: Tensor, *, generator: torch.Generator) -> Tensor:
        logits = autoencoder.decode(outputs)
        return heads.relaxed(logits, temperature=settings.temperature, generator=generator)

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed + 1)
        generator = _generator(settings)
    trainer = Game(
        generator,
        render,
        new_critic(heads.critic_width, settings.critic_hidden, seed + 2, device),
        table.sampled(CRITIC, view=heads.critic_view, device=device),
        pace=Pace.of(settings),
        seed=seed + 3,
        device=device,
    )
    trainer.go_on(checkpoint.state.get("game"), charged=table.meter.runs(CRITIC))

    def fitted(history: dict[str, Tensor] | None = None) -> SlotFitted:
        return _fitted(heads, settings, trainer.weights(), autoencoder.networks.flat, history)

    private_loop(
        plan.phase(CRITIC),
        trainer,
        steps=settings.steps,
        checkpoint=checkpoint,
        key="game",
        preview=lambda: fitted().preview(),
        metrics=lambda: _named(CRITIC, trainer.metrics()),
    ).run(context.observe)
    return fitted(trainer.history())


def load(folder: Path) -> SlotFitted:
    """See `Synthesizer.load`."""
    heads, settings, weights, history = read_fitted(folder)
    flat = weights.pop(AUTOENCODER)
    return _fitted(heads, DpAutoGanSettings(**settings), weights, flat, history)


def ensemble(fitted: SlotFitted) -> Players:
    """The snapshots of a fit, for boosting; see `core.models.pgb.plan`."""
    settings, heads = DpAutoGanSettings(**fitted.settings), fitted.heads
    generator = _generator(settings)
    autoencoder = _autoencoder(heads, settings)
    autoencoder.networks.load(fitted.weights[AUTOENCODER])

    def emit(flat: Tensor, rows: int, random: torch.Generator) -> Tensor:
        torch.nn.utils.vector_to_parameters(flat, generator.parameters())
        return autoencoder.decode(generator.draw(rows, random))

    return Players.of(fitted, emit, settings.critic_hidden)


def _named(phase: str, metrics: dict[str, float]) -> dict[str, float]:
    """Metrics of one phase, told apart from the other's."""
    return {f"{phase}: {name}": value for name, value in metrics.items()}


def _generator(settings: DpAutoGanSettings) -> Generator:
    return Generator(latent=settings.noise, hidden=(settings.hidden,) * 3, outputs=settings.latent)


def _autoencoder(
    heads: Heads,
    settings: DpAutoGanSettings,
    *,
    device: str = "cpu",
    generator: torch.Generator | None = None,
) -> AutoEncoder:
    return AutoEncoder(
        heads,
        hidden=settings.encoder_hidden,
        latent=settings.latent,
        device=device,
        generator=generator,
    )


def _fitted(
    heads: Heads,
    settings: DpAutoGanSettings,
    weights: dict[str, Tensor],
    flat: Tensor,
    history: dict[str, Tensor] | None,
) -> SlotFitted:
    """A generator with these weights before a decoder with those, on the CPU."""
    generator = _generator(settings)
    generator.load_state_dict(weights)
    autoencoder = _autoencoder(heads, settings)
    autoencoder.networks.load(flat.detach().cpu())

    def emit(rows: int, random: torch.Generator) -> Tensor:
        return autoencoder.decode(generator.draw(rows, random))

    return SlotFitted(
        heads,
        model=DpAutoGan.card.id,
        settings=settings.model_dump(),
        weights={**weights, AUTOENCODER: autoencoder.networks.flat.detach()},
        emit=emit,
        history=history,
    )
