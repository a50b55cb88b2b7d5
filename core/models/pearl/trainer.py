"""PEARL's training: the private embedding once, then a generator that matches it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from core.models.events import Emitter, PhaseStarted, Wish
from core.models.pearl.fitted import FILE, fitted_pearl, new_generator
from core.models.pearl.matching import EmbeddingMatcher, MatchingConfig
from core.models.pearl.private_embedding import (
    release_embedding,
    stored_frequencies,
    stored_target,
)
from core.models.pearl.settings import PearlSettings
from core.models.shared.adversarial import seeded
from core.models.shared.fitted import FittedGenerator, read_generator
from core.models.shared.training_loop import Checkpoint, train
from core.models.synthesizer import FitContext
from core.privacy.guarded import PrivateTable
from core.privacy.plan import Plan
from core.table.codec import Codec

__all__ = ["fit", "load"]


def fit(table: PrivateTable, plan: Plan, context: FitContext) -> FittedGenerator:
    """See `Synthesizer.fit`."""
    settings, codec = PearlSettings(**plan.settings), Codec(table.domain)
    checkpoint = Checkpoint.open(context, "pearl.pt", table.meter)
    if "matcher" not in checkpoint.state:
        embedding = release_embedding(
            table,
            codec,
            frequencies=settings.frequencies,
            seed=checkpoint.seed,
            device=context.device,
            emitter=Emitter(context.observe, obeys=(Wish.CANCEL,)),  # kept when all is released
        )
        checkpoint.keep(**embedding)
    matcher = _matcher(codec, settings, checkpoint.state, device=context.device)
    shares = checkpoint.state["shares"]
    train(
        PhaseStarted(name="training", title="Training the generator (touches no private data)"),
        matcher,
        steps=settings.steps,
        checkpoint=checkpoint,
        key="matcher",
        preview=lambda: fitted_pearl(codec, settings, matcher.generator, shares).preview(),
        observe=context.observe,
    )
    return fitted_pearl(codec, settings, matcher.generator.to("cpu").eval(), shares)


def load(folder: Path) -> FittedGenerator:
    """See `Synthesizer.load`."""
    codec, values, weights, _ = read_generator(folder, FILE)
    settings = PearlSettings(**values["settings"])
    generator = new_generator(codec, settings)
    generator.load_state_dict(weights)
    return fitted_pearl(codec, settings, generator.eval(), torch.tensor(values["shares"]))


def _matcher(
    codec: Codec, settings: PearlSettings, state: dict[str, Any], *, device: str
) -> EmbeddingMatcher:
    """The training state, fresh or as it was when `state` was kept."""
    matcher = EmbeddingMatcher(
        seeded(lambda: new_generator(codec, settings), state["seed"]),
        stored_frequencies(codec, state),
        stored_target(state),
        noise_level=state["noise_level"],
        one_way_weight=state["one_way_weight"],
        config=MatchingConfig(
            steps=settings.steps,
            batch=settings.batch,
            groups=settings.groups_per_step,
            rate=settings.rate,
            critic_strength=settings.critic,
            seed=state["seed"] + 1,
        ),
        device=device,
    )
    if state["matcher"] is not None:
        matcher.load_state_dict(state["matcher"])
    return matcher
