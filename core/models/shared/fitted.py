"""Trained models: how records are drawn and previewed, and models that emit slot logits."""

from __future__ import annotations

import json
import secrets
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from core.models.shared.heads import Heads
from core.models.synthesizer import Fitted
from core.table.codec import Codec, Codes, concat_codes
from core.table.schema import Domain

__all__ = ["FittedModel", "SlotFitted", "chunks", "read_fitted", "write_json", "write_tensors"]

ROWS_AT_ONCE = 8192
Emit = Callable[[int, torch.Generator], Tensor]


class FittedModel(ABC):
    """A trained model; what it draws touches no private data.

    Attributes:
      codec: of the declared domain that it writes.
      domain: that domain.
    """

    def __init__(self, codec: Codec):
        self.codec = codec
        self.domain = codec.domain

    @property
    def baseline(self) -> Fitted | None:
        """See `Fitted`."""
        return None

    def sample(self, rows: int, seed: int | None = None) -> pd.DataFrame:
        """See `Fitted.sample`."""
        if rows < 1:
            raise ValueError(f"At least one row must be asked for, got {rows}.")
        random = torch.Generator().manual_seed(secrets.randbits(63) if seed is None else seed)
        with torch.no_grad():
            codes = self.draw(rows, random)
        return self.codec.decode_codes(codes)

    @abstractmethod
    def draw(self, rows: int, random: torch.Generator) -> Codes:
        """NumPy codes of `rows` ≥ 1 records, from data-free randomness on the CPU."""

    @abstractmethod
    def save(self, folder: Path) -> None:
        """See `Fitted.save`."""

    def preview(self, rows: int = 8) -> list[dict[str, Any]]:
        """A few synthetic records with JSON values, for people to watch."""
        text = self.sample(rows).to_json(orient="records", date_format="iso")
        records: list[dict[str, Any]] = json.loads(text)
        return records


class SlotFitted(FittedModel):
    """A trained model that turns data-free randomness into slot logits.

    Args:
      heads: of the domain.
      model: registry id.
      settings: JSON values needed to build the model again.
      weights: everything `emit` reads, by name; stored as safetensors.
      emit: (rows, generator on the CPU) → float32 [rows, S].
      history: further tensors that go to a file of their own, or nothing.

    Attributes:
      heads, settings, weights, history: as given.
    """

    def __init__(
        self,
        heads: Heads,
        *,
        model: str,
        settings: dict[str, Any],
        weights: dict[str, Tensor],
        emit: Emit,
        history: dict[str, Tensor] | None = None,
    ):
        super().__init__(heads.codec)
        self.history = history or {}
        self.heads = heads
        self._model = model
        self.settings = settings
        self.weights = weights
        self._emit = emit

    def draw(self, rows: int, random: torch.Generator) -> Codes:
        """See `FittedModel.draw`."""
        return concat_codes(
            [self.heads.draw(self._emit(b, random), generator=random) for b in chunks(rows)]
        )

    def save(self, folder: Path) -> None:
        """See `Fitted.save`: weights.safetensors, history.safetensors (if any) and model.json."""
        folder.mkdir(parents=True, exist_ok=True)
        write_tensors(self.weights, folder / "weights.safetensors")
        if self.history:
            write_tensors(self.history, folder / "history.safetensors")
        text = {
            "model": self._model,
            "domain": self.domain.model_dump(mode="json"),
            "settings": self.settings,
        }
        write_json(text, folder / "model.json")


def read_fitted(folder: Path) -> tuple[Heads, dict[str, Any], dict[str, Tensor], dict[str, Tensor]]:
    """What `SlotFitted.save` wrote: heads, settings, weights and history (empty when none)."""
    text = json.loads((folder / "model.json").read_text(encoding="utf-8"))
    heads = Heads(Codec(Domain.model_validate(text["domain"])))
    file = folder / "history.safetensors"
    history = load_file(file) if file.exists() else {}
    return heads, text["settings"], load_file(folder / "weights.safetensors"), history


def chunks(rows: int) -> Iterator[int]:
    """Sizes of parts of `rows` that are drawn at once.

    >>> list(chunks(20_000))
    [8192, 8192, 3616]
    """
    for start in range(0, rows, ROWS_AT_ONCE):
        yield min(ROWS_AT_ONCE, rows - start)


def write_tensors(tensors: Mapping[str, Tensor], file: Path) -> None:
    """Tensors by name, from any device, as safetensors."""
    save_file({k: v.detach().cpu().contiguous() for k, v in tensors.items()}, file)


def write_json(text: dict[str, Any], file: Path) -> None:
    """JSON values as UTF-8."""
    file.write_text(json.dumps(text, ensure_ascii=False), encoding="utf-8")
