"""PEARL's training: the private embedding once, then a generator that matches it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from core.models.events import Emitter
from core.models.pearl.fitted import PearlFitted, new_generator
from core.models.pearl.matching import Matcher, Pace
from core.models.pearl.private_embedding import released, take_fingerprint, target_of
from core.models.pearl.settings import PearlSettings
from core.models.shared.training_loop import Checkpoint, TrainingLoop
from core.models.synthesizer import FitContext
from core.privacy.guarded import PrivateTable
from core.privacy.plan import Plan
from core.table.codec import Codec

__all__ = ["fit", "load"]


def fit(table: PrivateTable, plan: Plan, context: FitContext) -> PearlFitted:
    """See `Synthesizer.fit`."""
    settings, codec = PearlSettings(**plan.settings), Codec(table.domain)
    checkpoint = Checkpoint.open(context, "pearl.pt", table.meter)
    if "matcher" not in checkpoint.state:
        embedding = take_fingerprint(
            table,
            codec,
            frequencies=settings.frequencies,
            seed=checkpoint.seed,
            device=context.device,
            emitter=Emitter(context.observe),
        )
        checkpoint.keep(**embedding)
    matcher = _matcher(codec, settings, checkpoint.state, device=context.device)
    fitted = PearlFitted(codec, settings, matcher.generator, checkpoint.state["shares"])
    TrainingLoop(
        name="training",
        title="Training the generator (touches no private data)",
        start=matcher.step_count,
        steps=settings.steps,
        step=matcher.step,
        metrics=matcher.metrics,
        preview=fitted.preview,
        keep=lambda: checkpoint.keep(matcher=matcher.state_dict()),
    ).run(context.observe)
    matcher.generator.to("cpu")
    return fitted


def load(folder: Path) -> PearlFitted:
    """See `Synthesizer.load`."""
    return PearlFitted.load(folder)


def _matcher(
    codec: Codec, settings: PearlSettings, state: dict[str, Any], *, device: str
) -> Matcher:
    """The training state, fresh or as it was when `state` was kept."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(state["seed"])
        generator = new_generator(codec, settings)
    matcher = Matcher(
        generator,
        released(codec, state),
        target_of(state),
        noise_level=state["noise_level"],
        one_way_weight=state["one_way_weight"],
        critic_strength=settings.critic,
        pace=Pace(
            steps=settings.steps,
            batch=settings.batch,
            groups=settings.groups_per_step,
            rate=settings.rate,
            critic_rate=settings.rate,
        ),
        seed=state["seed"] + 1,
        device=device,
    )
    if state["matcher"] is not None:
        matcher.load_state_dict(state["matcher"])
    return matcher
