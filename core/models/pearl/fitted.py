"""PearlFitted: a generator and the released class shares, as a trained model."""

from __future__ import annotations

import json
from pathlib import Path

import torch
from safetensors.torch import load_file
from torch import Tensor

from core.models.pearl.conditioning import condition_block
from core.models.pearl.mixture_generator import MixtureGenerator
from core.models.pearl.plan import Pearl
from core.models.pearl.private_embedding import unconditional
from core.models.pearl.settings import PearlSettings
from core.models.shared.column_bins import draw_codes
from core.models.shared.fitted import FittedModel, chunks, write_json, write_tensors
from core.table.codec import Codec, Codes, concat_codes
from core.table.schema import Domain

__all__ = ["PearlFitted", "new_generator"]


def new_generator(codec: Codec, settings: PearlSettings) -> MixtureGenerator:
    """An untrained generator for a domain."""
    block = condition_block(codec)
    return MixtureGenerator(
        latent=settings.latent,
        classes=1 if block is None else len(block.states),
        hidden=settings.hidden,
        slots=sum(column.count for column in unconditional(codec)),
    )


class PearlFitted(FittedModel):
    """See the module.

    Args:
      codec: of the domain.
      settings: of the model.
      generator: trained, on any device.
      shares: float [classes], released.
    """

    def __init__(
        self,
        codec: Codec,
        settings: PearlSettings,
        generator: MixtureGenerator,
        shares: Tensor,
    ):
        super().__init__(codec)
        self._settings = settings
        self._generator = generator
        self._shares = shares.cpu()

    def draw(self, rows: int, random: torch.Generator) -> Codes:
        """See `FittedModel.draw`."""
        block, slots = condition_block(self.codec), unconditional(self.codec)
        device = next(self._generator.parameters()).device
        was_training = self._generator.training
        self._generator.eval()  # batch norm by its running means
        parts = []
        for b in chunks(rows):
            y = torch.multinomial(self._shares, b, replacement=True, generator=random)
            z = torch.randn((b, self._generator.latent), generator=random)
            logits = self._generator(z.to(device), y.to(device))
            fixed = {} if block is None else {block.index: y}
            parts.append(draw_codes(self.codec, slots, logits, generator=random, fixed=fixed))
        self._generator.train(was_training)
        return concat_codes(parts)

    def save(self, folder: Path) -> None:
        """See `Fitted.save`: weights.safetensors and pearl.json."""
        folder.mkdir(parents=True, exist_ok=True)
        write_tensors(self._generator.state_dict(), folder / "weights.safetensors")
        text = {
            "model": Pearl.card.id,
            "domain": self.domain.model_dump(mode="json"),
            "settings": self._settings.model_dump(),
            "shares": self._shares.tolist(),
        }
        write_json(text, folder / "pearl.json")

    @classmethod
    def load(cls, folder: Path) -> PearlFitted:
        """The model `save` wrote."""
        text = json.loads((folder / "pearl.json").read_text(encoding="utf-8"))
        codec = Codec(Domain.model_validate(text["domain"]))
        settings = PearlSettings(**text["settings"])
        generator = new_generator(codec, settings)
        generator.load_state_dict(load_file(folder / "weights.safetensors"))
        return cls(codec, settings, generator, torch.tensor(text["shares"]))
