"""Records from slot logits: what models that emit them share once they are trained."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from torch import Tensor

from core.models.shared.heads import Heads
from core.table.codec import Codec, concat_codes
from core.table.schema import Domain

__all__ = ["SlotFitted", "read_fitted"]

ROWS_AT_ONCE = 8192
Emit = Callable[[int, torch.Generator], Tensor]


class SlotFitted:
    """A trained model that turns data-free randomness into slot logits.

    Args:
      heads: of the domain.
      model: registry id.
      settings: JSON values needed to build the model again.
      weights: everything `emit` reads, by name; stored as safetensors.
      emit: (rows, generator on the CPU) → float32 [rows, S].
      history: further tensors that go to a file of their own, or nothing.

    Attributes:
      domain: the declared domain it writes.
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
        self.domain = heads.codec.domain
        self.history = history or {}
        self.heads = heads
        self._model = model
        self.settings = settings
        self.weights = weights
        self._emit = emit

    def sample(self, rows: int, seed: int | None = None) -> pd.DataFrame:
        """See `Fitted.sample`."""
        if rows < 1:
            raise ValueError(f"At least one row must be asked for, got {rows}.")
        random = torch.Generator().manual_seed(secrets.randbits(63) if seed is None else seed)
        parts = []
        with torch.no_grad():
            for start in range(0, rows, ROWS_AT_ONCE):
                logits = self._emit(min(ROWS_AT_ONCE, rows - start), random)
                parts.append(self.heads.draw(logits, generator=random))
        return self.heads.codec.decode_codes(concat_codes(parts))

    def preview(self, rows: int = 8) -> list[dict[str, Any]]:
        """A few synthetic records with JSON values, for people to watch."""
        text = self.sample(rows).to_json(orient="records", date_format="iso")
        records: list[dict[str, Any]] = json.loads(text)
        return records

    def save(self, folder: Path) -> None:
        """See `Fitted.save`: weights.safetensors, history.safetensors (if any) and model.json."""
        from safetensors.torch import save_file

        folder.mkdir(parents=True, exist_ok=True)
        for name, tensors in (("weights", self.weights), ("history", self.history)):
            if tensors:
                plain = {k: v.detach().cpu().contiguous() for k, v in tensors.items()}
                save_file(plain, folder / f"{name}.safetensors")
        text = {
            "model": self._model,
            "domain": self.domain.model_dump(mode="json"),
            "settings": self.settings,
        }
        (folder / "model.json").write_text(json.dumps(text, ensure_ascii=False), encoding="utf-8")


def read_fitted(folder: Path) -> tuple[Heads, dict[str, Any], dict[str, Tensor], dict[str, Tensor]]:
    """What `SlotFitted.save` wrote: heads, settings, weights and history (empty when none)."""
    from safetensors.torch import load_file

    text = json.loads((folder / "model.json").read_text(encoding="utf-8"))
    heads = Heads(Codec(Domain.model_validate(text["domain"])))
    history = folder / "history.safetensors"
    kept = load_file(history) if history.exists() else {}
    return heads, text["settings"], load_file(folder / "weights.safetensors"), kept
