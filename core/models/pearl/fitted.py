"""PEARL as a trained model: a generator, and the released class shares."""

from __future__ import annotations

import torch
from torch import Tensor

from core.models.pearl.design import condition_block
from core.models.pearl.mixture_generator import MixtureGenerator
from core.models.pearl.plan import Pearl
from core.models.pearl.private_embedding import unconditional_bins
from core.models.pearl.settings import PearlSettings
from core.models.shared.column_bins import draw_codes
from core.models.shared.fitted import FittedGenerator
from core.table.codec import Codec, Codes

__all__ = ["FILE", "fitted_pearl", "new_generator"]

FILE = "pearl.json"  # name of the JSON description


def new_generator(codec: Codec, settings: PearlSettings) -> MixtureGenerator:
    """An untrained generator for a domain."""
    block = condition_block(codec)
    return MixtureGenerator(
        latent=settings.latent,
        classes=1 if block is None else len(block.states),
        hidden=settings.hidden,
        bins=sum(column.count for column in unconditional_bins(codec)),
    )


def fitted_pearl(
    codec: Codec, settings: PearlSettings, generator: MixtureGenerator, shares: Tensor
) -> FittedGenerator:
    """The model around a generator; it follows as the generator learns, on any device.

    Args:
      codec: of the domain.
      settings: of the model.
      generator: trained, or in training.
      shares: float [classes], released.
    """
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
    )
