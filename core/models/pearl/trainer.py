"""PEARL's training: a generator that matches the private embedding."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from core.encoding.codec import Codec, Codes
from core.models.base_sampler import FittedGenerator, read_generator
from core.models.events import PhaseStarted
from core.models.pearl.design import condition_block
from core.models.pearl.matching import EmbeddingMatcher, MixtureGenerator
from core.models.pearl.plan import Pearl, PearlSettings
from core.models.pearl.private_embedding import (
    stored_frequencies,
    stored_target,
    unconditional_bins,
)
from core.models.scan_focus.conditionals import MixtureConditionals
from core.models.step import FitContext
from core.models.steps.counting.placing import Placing
from core.models.steps.training.adversarial import seeded
from core.models.steps.training.column_bins import draw_codes
from core.models.steps.training.training_loop import Checkpoint, train

COMPONENTS = 2048  # latents of which walks take the pairs of a window
FILE = "pearl.json"  # name of the JSON description


def train_generator(
    codec: Codec, settings: PearlSettings, checkpoint: Checkpoint, context: FitContext
) -> FittedGenerator:
    """A generator that matches the embedding in the checkpoint."""
    matcher = _matcher(codec, settings, checkpoint.state, device=context.device)
    if isinstance(context.start, FittedGenerator) and not matcher.done:
        matcher.generator.load_state_dict(context.start.weights)
    shares = checkpoint.state["shares"]
    train(
        PhaseStarted(name="training", title="Training the generator (reads no private data)"),
        matcher,
        steps=settings.steps,
        checkpoint=checkpoint,
        key="matcher",
        preview=lambda: _fitted(codec, settings, matcher.generator, shares).preview(),
        on_event=context.on_event,
    )
    return _fitted(codec, settings, matcher.generator.to("cpu").eval(), shares)


def load(folder: Path) -> FittedGenerator:
    """See `Synthesizer.load`."""
    codec, values, weights, _ = read_generator(folder, FILE)
    settings = PearlSettings(**values["settings"])
    generator = _new_generator(codec, settings)
    generator.load_state_dict(weights)
    return _fitted(codec, settings, generator.eval(), torch.tensor(values["shares"]))


def _matcher(
    codec: Codec, settings: PearlSettings, state: dict[str, Any], *, device: str
) -> EmbeddingMatcher:
    """The training state, fresh or as it was when `state` was kept."""
    matcher = EmbeddingMatcher(
        seeded(lambda: _new_generator(codec, settings), state["seed"]),
        stored_frequencies(codec, state),
        stored_target(state),
        noise_level=state["noise_level"],
        one_way_weight=state["one_way_weight"],
        settings=settings,
        seed=state["seed"] + 1,
        device=device,
    )
    if state["matcher"] is not None:
        matcher.load_state_dict(state["matcher"])
    return matcher


def _new_generator(codec: Codec, settings: PearlSettings) -> MixtureGenerator:
    block = condition_block(codec)
    return MixtureGenerator(
        latent=settings.latent,
        classes=1 if block is None else len(block.states),
        hidden=settings.hidden,
        bins=sum(column.count for column in unconditional_bins(codec)),
    )


def _fitted(
    codec: Codec, settings: PearlSettings, generator: MixtureGenerator, shares: Tensor
) -> FittedGenerator:
    """The model around a generator; it follows as the generator learns, on any device."""
    block, bins, shares = condition_block(codec), unconditional_bins(codec), shares.cpu()

    def draw_chunk(rows: int, random: torch.Generator) -> Codes:
        device = next(generator.parameters()).device
        was_training = generator.training
        if was_training:  # a finished one is drawn from by several threads at once
            generator.eval()  # batch norm by its running means
        y = torch.multinomial(shares, rows, replacement=True, generator=random)
        z = torch.randn((rows, generator.latent), generator=random)
        logits = generator(z.to(device), y.to(device))
        if was_training:
            generator.train()
        fixed = {} if block is None else {block.index: y}
        return draw_codes(codec, bins, logits, generator=random, fixed=fixed)

    return FittedGenerator(
        codec,
        model=Pearl.card.id,
        settings=settings.model_dump(),
        weights=generator.state_dict(),
        draw_chunk=draw_chunk,
        file=FILE,
        constants={"shares": shares.tolist()},
        conditionals=None if block is not None else partial(_conditionals, codec, generator),
    )


@torch.no_grad()
def _conditionals(codec: Codec, generator: MixtureGenerator) -> MixtureConditionals:
    """A mixture of what the generator makes of so many latents, of tables without a class."""
    bins, random = unconditional_bins(codec), torch.Generator().manual_seed(0)
    z = torch.randn((COMPONENTS, generator.latent), generator=random)
    logits = generator(z, torch.zeros(COMPONENTS, dtype=torch.int64))
    sizes = [column.count for column in bins]
    shares = torch.cat([torch.softmax(one, dim=1) for one in torch.split(logits, sizes, 1)], 1)
    barred = torch.zeros((2, 0, sum(sizes)), dtype=torch.bool)
    even = torch.full((COMPONENTS,), 1.0 / COMPONENTS)
    weights = {"weights": even, "shares": shares, "barred": barred}
    return MixtureConditionals(codec, Placing.plain(bins), weights, sizes)
