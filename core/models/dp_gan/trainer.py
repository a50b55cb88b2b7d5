"""DP-GAN's training: a GAN on records themselves."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from torch import Tensor

from core.encoding.codec import Codec
from core.models.base_sampler import FittedGenerator, read_generator
from core.models.dp_gan.plan import DpGan, DpGanSettings
from core.models.step import FitContext
from core.models.steps.training.adversarial import seeded
from core.models.steps.training.gan_trainer import Generator, gan_ensemble, train_gan
from core.models.steps.training.heads import Heads
from core.models.steps.training.snapshot_ensemble import SnapshotEnsemble
from core.models.steps.training.training_loop import Checkpoint
from core.privacy.guarded import PrivateTable
from core.privacy.plan import Plan


def fit(table: PrivateTable, plan: Plan, context: FitContext) -> FittedGenerator:
    """See `Synthesizer.fit`."""
    settings = DpGanSettings(**plan.settings)
    heads = Heads(Codec(table.domain), device=context.device)
    checkpoint = Checkpoint.open(context, "dp_gan.pt", table.meter)
    return train_gan(
        table,
        context,
        checkpoint,
        heads=heads,
        settings=settings,
        generator=seeded(lambda: _generator(heads, settings), checkpoint.seed),
        fitted=partial(_fitted, heads, settings),
        seed=checkpoint.seed,
    )


def load(folder: Path) -> FittedGenerator:
    """See `Synthesizer.load`."""
    codec, values, weights, history = read_generator(folder)
    return _fitted(Heads(codec), DpGanSettings(**values["settings"]), weights, history)


def ensemble(fitted: FittedGenerator) -> SnapshotEnsemble:
    """The snapshots of a fit, for boosting; see `core.models.pgb.plan`."""
    settings = DpGanSettings(**fitted.settings)
    generator = _generator(Heads(fitted.codec), settings)
    return gan_ensemble(fitted, generator, settings.critic_hidden)


def _generator(heads: Heads, settings: DpGanSettings) -> Generator:
    return Generator(latent=settings.latent, hidden=(settings.hidden,) * 3, outputs=heads.total)


def _fitted(
    heads: Heads, settings: DpGanSettings, weights: dict[str, Tensor], history: dict[str, Tensor]
) -> FittedGenerator:
    generator = _generator(heads, settings)
    generator.load_state_dict(weights)
    return FittedGenerator(
        heads.codec,
        model=DpGan.card.id,
        settings=settings.model_dump(),
        weights=weights,
        draw_chunk=heads.drawing(generator.draw),
        history=history,
    )
