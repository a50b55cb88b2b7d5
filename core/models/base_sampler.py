"""Base samplers: what training leaves behind, how records are drawn from it and how it is saved."""

from __future__ import annotations

import copy
import json
import secrets
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from core.encoding.codec import Codec, Codes, concat_codes
from core.encoding.heaping import heaped
from core.models.saved_model import Fitted, preview_of
from core.schema.schema import Domain

ROWS_AT_ONCE, MOST_ROWS_AT_ONCE = 8192, 2**20


class BaseSampler(ABC):
    """A trained model by itself, a `Fitted`; what it draws touches no private data.

    Attributes:
      placing: what keeps relations between numbers, `Placing`; None without.
    """

    placing: Any = None

    def __init__(self, codec: Codec):
        self.codec = codec
        self.domain = codec.domain

    @property
    def conditionals(self) -> Any:
        """Draws of some columns given others, `MixtureConditionals`; None without."""
        return None

    @property
    def baseline(self) -> Fitted | None:
        """See `Fitted`."""
        return None

    def sample(self, rows: int, seed: int | None = None) -> pd.DataFrame:
        """See `Fitted.sample`."""
        return sampled_by(
            lambda random: self.draw(rows, random), self.codec, rows, seed, self.placing
        )

    def population(self) -> BaseSampler:
        """See `Fitted.population`."""
        return self

    @abstractmethod
    def draw(self, rows: int, random: torch.Generator) -> Codes:
        """NumPy codes of `rows` ≥ 1 records, from data-free randomness on the CPU."""

    @abstractmethod
    def save(self, folder: Path) -> None:
        """See `Fitted.save`."""

    def preview(self) -> list[dict[str, Any]]:
        """See `preview_of`."""
        return preview_of(self)


class FittedGenerator(BaseSampler):
    """A trained generator network.

    Args:
      settings: JSON values needed to build the network again.
      weights: all that `draw_chunk` reads, by name; stored as safetensors.
      draw_chunk: (rows, generator on the CPU) → NumPy codes of that many records.
      draw_population: the same, see `population`; None where `draw_chunk` does so.
      conditionals: makes what `BaseSampler.conditionals` is, where that is asked for.
      rows_at_once: that are drawn together, at most.
      history: further tensors that go to a file of their own, or nothing.
    """

    def __init__(
        self,
        codec: Codec,
        *,
        model: str,
        settings: dict[str, Any],
        weights: dict[str, Tensor],
        draw_chunk: Callable[[int, torch.Generator], Codes],
        draw_population: Callable[[int, torch.Generator], Codes] | None = None,
        history: dict[str, Tensor] | None = None,
        file: str = "model.json",
        rows_at_once: int = ROWS_AT_ONCE,
        constants: Mapping[str, Any] | None = None,
        conditionals: Callable[[], Any] | None = None,
        placing: Any = None,
    ):
        super().__init__(codec)
        self._conditionals, self.placing = conditionals, placing
        self.settings = settings
        self.weights = weights
        self.history = history or {}
        self._draw_chunk, self._draw_population = draw_chunk, draw_population or draw_chunk
        self._file, self._rows_at_once = file, rows_at_once
        self._description = {
            "model": model,
            "domain": codec.domain.model_dump(mode="json"),
            "settings": settings,
            **(constants or {}),
        }

    @cached_property
    def conditionals(self) -> Any:
        """See `BaseSampler`."""
        return None if self._conditionals is None else self._conditionals()

    def draw(self, rows: int, random: torch.Generator) -> Codes:
        """See `BaseSampler.draw`."""
        return concat_codes([self._draw_chunk(b, random) for b in chunks(rows, self._rows_at_once)])

    def population(self) -> FittedGenerator:
        """See `Fitted.population`; all rows are drawn at once, since each draw has its own."""
        plain = copy.copy(self)
        plain._draw_chunk, plain._rows_at_once = self._draw_population, MOST_ROWS_AT_ONCE
        return plain

    def save(self, folder: Path) -> None:
        """See `Fitted.save`: weights.safetensors, history.safetensors (if any) and a JSON file."""
        folder.mkdir(parents=True, exist_ok=True)
        write_tensors(self.weights, folder / "weights.safetensors")
        if self.history:
            write_tensors(self.history, folder / "history.safetensors")
        write_json(self._description, folder / self._file)


def read_generator(
    folder: Path, file: str = "model.json"
) -> tuple[Codec, dict[str, Any], dict[str, Tensor], dict[str, Tensor]]:
    """What `FittedGenerator.save` wrote: codec, JSON values, weights and history, {} when none."""
    values = json.loads((folder / file).read_text(encoding="utf-8"))
    codec = Codec(Domain.model_validate(values["domain"]))
    history = folder / "history.safetensors"
    snapshots = load_file(history) if history.exists() else {}
    return codec, values, load_file(folder / "weights.safetensors"), snapshots


def sampled_by(
    draw: Callable[[torch.Generator], Codes],
    codec: Codec,
    rows: int,
    seed: int | None,
    placing: Any,
) -> pd.DataFrame:
    """The records that `draw` makes of a generator seeded with `seed`; see `Fitted.sample`.

    Args:
      placing: see `BaseSampler`.
    """
    if rows < 1:
        raise ValueError(f"At least one row must be asked for, got {rows}.")
    seed = secrets.randbits(63) if seed is None else seed
    random = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        codes = heaped(codec, draw(random), random)
        return codec.decode_codes(codes if placing is None else placing.settled(codec, codes))


def chunks(rows: int, size: int = ROWS_AT_ONCE) -> Iterator[int]:
    """Sizes of parts of `rows` that are drawn at once.

    >>> list(chunks(20_000))
    [8192, 8192, 3616]
    """
    for start in range(0, rows, size):
        yield min(size, rows - start)


def write_tensors(tensors: Mapping[str, Tensor], file: Path) -> None:
    """Tensors by name, from any device, as safetensors."""
    save_file({k: v.detach().cpu().contiguous() for k, v in tensors.items()}, file)


def write_json(values: dict[str, Any], file: Path) -> None:
    """JSON values as UTF-8."""
    file.write_text(json.dumps(values, ensure_ascii=False), encoding="utf-8")
