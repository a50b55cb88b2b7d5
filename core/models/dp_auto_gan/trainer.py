"""DP-auto-GAN's training: an autoencoder, then a GAN that makes codes for its decoder."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor

from core.encoding.codec import Codec
from core.models.base_sampler import FittedGenerator, read_generator
from core.models.dp_auto_gan.autoencoder import AutoEncoder
from core.models.dp_auto_gan.plan import AUTOENCODER, DpAutoGan, DpAutoGanSettings
from core.models.step import FitContext
from core.models.steps.training.adversarial import seeded
from core.models.steps.training.dp_optimizer import DPAdam
from core.models.steps.training.gan_trainer import Generator, gan_ensemble, train_gan
from core.models.steps.training.heads import Heads
from core.models.steps.training.phases import CRITIC
from core.models.steps.training.snapshot_ensemble import SnapshotEnsemble
from core.models.steps.training.training_loop import Checkpoint, private, train
from core.privacy.dpsgd.gradient import ClippedGradient
from core.privacy.guarded import PrivateTable
from core.privacy.plan import Plan

AVERAGING = 0.99  # decay of the running average of the autoencoder's parameters


def fit(table: PrivateTable, plan: Plan, context: FitContext) -> FittedGenerator:
    """See `Synthesizer.fit`."""
    settings = DpAutoGanSettings(**plan.settings)
    heads = Heads(Codec(table.domain), device=context.device)
    checkpoint = Checkpoint.open(context, "dp_auto_gan.pt", table.meter)
    start = torch.Generator().manual_seed(checkpoint.seed)
    autoencoder = AutoEncoder(heads, settings, device=context.device, generator=start)
    _train_autoencoder(table, settings, autoencoder, checkpoint, context)

    def fitted(weights: dict[str, Tensor], history: dict[str, Tensor]) -> FittedGenerator:
        return _fitted(heads, settings, weights, autoencoder.networks.flat, history)

    return train_gan(
        table,
        context,
        checkpoint,
        heads=heads,
        settings=settings,
        generator=seeded(lambda: _generator(settings, autoencoder), checkpoint.seed + 1),
        fitted=fitted,
        seed=checkpoint.seed + 2,
        label=CRITIC,
    )


def _train_autoencoder(
    table: PrivateTable,
    settings: DpAutoGanSettings,
    autoencoder: AutoEncoder,
    checkpoint: Checkpoint,
    context: FitContext,
) -> None:
    """The first phase; only what was kept of it where the second has begun."""
    networks = autoencoder.networks
    optimizer = DPAdam(
        networks,
        ClippedGradient(
            networks=networks,
            grad_factors=autoencoder.grad_factors,
            clip_norm=settings.encoder_clip,
        ),
        table.sampled(AUTOENCODER, view=autoencoder.heads.view, device=context.device),
        rate=settings.encoder_rate,
        steps=settings.encoder_steps,
        averaging=AVERAGING,
        label=AUTOENCODER,
    )
    state = checkpoint.state
    optimizer.load_state_dict(state.get("descent"), charged=table.meter.runs(AUTOENCODER))
    if "game" not in state:
        train(
            private(table.plan.phase(AUTOENCODER)),
            optimizer,
            steps=settings.encoder_steps,
            checkpoint=checkpoint,
            key="descent",
            preview=list,
            on_event=context.on_event,
        )
    networks.load(optimizer.average)


def load(folder: Path) -> FittedGenerator:
    """See `Synthesizer.load`."""
    codec, values, weights, history = read_generator(folder)
    settings = DpAutoGanSettings(**values["settings"])
    return _fitted(Heads(codec), settings, weights, weights.pop(AUTOENCODER), history)


def ensemble(fitted: FittedGenerator) -> SnapshotEnsemble:
    """The snapshots of a fit, for boosting; see `core.models.pgb.plan`."""
    settings = DpAutoGanSettings(**fitted.settings)
    autoencoder = AutoEncoder(Heads(fitted.codec), settings)
    autoencoder.networks.load(fitted.weights[AUTOENCODER])
    return gan_ensemble(fitted, _generator(settings, autoencoder), settings.critic_hidden)


def _generator(settings: DpAutoGanSettings, autoencoder: AutoEncoder) -> Generator:
    return Generator(
        latent=settings.noise,
        hidden=(settings.hidden,) * 3,
        outputs=settings.latent,
        decode=autoencoder.decode,
    )


def _fitted(
    heads: Heads,
    settings: DpAutoGanSettings,
    weights: dict[str, Tensor],
    flat: Tensor,
    history: dict[str, Tensor],
) -> FittedGenerator:
    autoencoder = AutoEncoder(heads, settings)
    autoencoder.networks.load(flat.detach().cpu())
    generator = _generator(settings, autoencoder)
    generator.load_state_dict(weights)
    return FittedGenerator(
        heads.codec,
        model=DpAutoGan.card.id,
        settings=settings.model_dump(),
        weights={**weights, AUTOENCODER: autoencoder.networks.flat.detach()},
        draw_chunk=heads.drawing(generator.draw),
        history=history,
    )
