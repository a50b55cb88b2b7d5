"""DP-GAN's training: a GAN on records themselves."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import torch
from torch import Tensor

from core.models.dp_gan.plan import CRITIC, DpGan
from core.models.dp_gan.settings import DpGanSettings
from core.models.shared.fitted import SlotFitted, read_fitted
from core.models.shared.gan_trainer import Game, Generator, Pace, new_critic
from core.models.shared.heads import Heads
from core.models.shared.snapshot_ensemble import Players
from core.models.shared.training_loop import Checkpoint, private_loop
from core.models.synthesizer import FitContext
from core.privacy.guarded import PrivateTable
from core.privacy.plan import Plan
from core.table.codec import Codec

__all__ = ["ensemble", "fit", "load"]


def fit(table: PrivateTable, plan: Plan, context: FitContext) -> SlotFitted:
    """See `Synthesizer.fit`."""
    settings = DpGanSettings(**plan.settings)
    heads = Heads(Codec(table.domain), device=context.device)
    checkpoint = Checkpoint.open(context, "dp_gan.pt", table.meter)
    seed, device = checkpoint.seed, context.device
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        generator = _generator(heads, settings)
    trainer = Game(
        generator,
        partial(heads.relaxed, temperature=settings.temperature),
        new_critic(heads.critic_width, settings.critic_hidden, seed, device),
        table.sampled(CRITIC, view=heads.critic_view, device=device),
        pace=Pace.of(settings),
        seed=seed + 1,
        device=device,
    )
    trainer.go_on(checkpoint.state.get("game"), charged=table.meter.runs(CRITIC))
    private_loop(
        plan.phase(CRITIC),
        trainer,
        steps=settings.steps,
        checkpoint=checkpoint,
        key="game",
        preview=lambda: _fitted(heads, settings, trainer.weights()).preview(),
    ).run(context.observe)
    return _fitted(heads, settings, trainer.weights(), trainer.history())


def load(folder: Path) -> SlotFitted:
    """See `Synthesizer.load`."""
    heads, settings, weights, history = read_fitted(folder)
    return _fitted(heads, DpGanSettings(**settings), weights, history)


def ensemble(fitted: SlotFitted) -> Players:
    """The snapshots of a fit, for boosting; see `core.models.pgb.plan`."""
    settings = DpGanSettings(**fitted.settings)
    generator = _generator(fitted.heads, settings)

    def emit(flat: Tensor, rows: int, random: torch.Generator) -> Tensor:
        torch.nn.utils.vector_to_parameters(flat, generator.parameters())
        return generator.draw(rows, random)

    return Players.of(fitted, emit, settings.critic_hidden)


def _generator(heads: Heads, settings: DpGanSettings) -> Generator:
    return Generator(latent=settings.latent, hidden=(settings.hidden,) * 3, outputs=heads.total)


def _fitted(
    heads: Heads,
    settings: DpGanSettings,
    weights: dict[str, Tensor],
    history: dict[str, Tensor] | None = None,
) -> SlotFitted:
    """A generator with these weights, on the CPU."""
    generator = _generator(heads, settings)
    generator.load_state_dict(weights)
    return SlotFitted(
        heads,
        model=DpGan.card.id,
        settings=settings.model_dump(),
        weights=weights,
        emit=generator.draw,
        history=history,
    )
