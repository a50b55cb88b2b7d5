"""The synthetic tables of a run: written some rows at a time, read again when asked for."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import cast

import pandas as pd

from core.models.events import Emitter, OnEvent, Signal
from core.models.in_parts import part_rows, sample_parts
from core.models.layout_rows import LayoutRows
from core.models.saved_model import LAYOUT, Fitted, SavedModel
from core.runs.storage.artefacts import (
    BASELINE_TABLE,
    MODELLED_TABLE,
    SYNTHETIC_TABLE,
    ArtefactStore,
)
from core.schema.schema import Domain
from core.writing.tables import write_row_groups


@dataclass(frozen=True, kw_only=True)
class WrittenTables:
    """Synthetic tables among a run's artefacts.

    Attributes:
      few: the synthetic table where it is of one part; None where it is larger.
      modelled_few: the same rows as models see them.
    """

    artefacts: ArtefactStore
    few: pd.DataFrame | None
    modelled_few: pd.DataFrame | None

    @cached_property
    def synthetic(self) -> pd.DataFrame:
        """The synthetic table, all of it in memory."""
        return _read(self.artefacts, SYNTHETIC_TABLE) if self.few is None else self.few

    @cached_property
    def modelled(self) -> pd.DataFrame:
        """As many synthetic rows as models see them, in memory: what bought counts are held to."""
        if self.modelled_few is not None:
            return self.modelled_few
        apart = self.artefacts.exists(MODELLED_TABLE)
        return _read(self.artefacts, MODELLED_TABLE) if apart else self.synthetic

    def load(self) -> None:
        """Read the synthetic table into memory, where it stays when its file goes."""
        _ = self.synthetic


@dataclass(frozen=True)
class _Drawn:
    """A `Sampler` whose rows of one number and seed were drawn before: they are not made again."""

    model: SavedModel
    rows: pd.DataFrame
    seed: int

    @property
    def domain(self) -> Domain:
        """See `Sampler`."""
        return self.model.domain

    def sample(self, rows: int, seed: int | None = None) -> pd.DataFrame:
        """See `Sampler`."""
        again = rows == len(self.rows) and seed == self.seed
        return self.rows.copy() if again else self.model.sample(rows, seed)


def write_tables(
    fitted: SavedModel, rows: int, seed: int | None, artefacts: ArtefactStore, *, on_event: OnEvent
) -> WrittenTables:
    """Draw and keep the synthetic table and those beside it.

    Args:
      rows: of each table, ≥ 1.
      seed: of what is drawn, see `sample_parts`.
      artefacts: of the run; the synthetic table is the last that is written.
      on_event: told how far it is where there are many rows; may cancel.
    """
    seed = secrets.randbits(62) if seed is None else seed
    tick = Emitter(on_event, obeys=(Signal.CANCEL,)).rows("sample")

    def write(
        source: Fitted, name: str, tick: Callable[[int, int], None] | None = None
    ) -> pd.DataFrame | None:
        few: list[pd.DataFrame] = []

        def parts() -> Iterator[pd.DataFrame]:
            size = part_rows(source.domain)
            for number, part in enumerate(sample_parts(source, rows, seed), start=1):
                if rows <= size:
                    few.append(part)
                yield part
                if tick is not None and rows > size:
                    tick(min(number * size, rows), rows)

        with artefacts.replacing(name) as file:
            write_row_groups(parts(), file)
        return few[0] if few else None

    if fitted.baseline is not None:
        write(fitted.baseline, BASELINE_TABLE)
    layout, modelled, source = fitted.transform(LAYOUT), None, fitted
    if isinstance(layout, LayoutRows):
        before = fitted.without(LAYOUT)
        modelled = write(before, MODELLED_TABLE)
        if modelled is not None and layout.layout.windows is None:
            drawn = cast("Fitted", _Drawn(before, modelled, seed))
            source = SavedModel(drawn, fitted.transforms[len(before.transforms) :])
    synthetic = write(source, SYNTHETIC_TABLE, tick)
    modelled = synthetic if layout is None else modelled
    return WrittenTables(artefacts=artefacts, few=synthetic, modelled_few=modelled)


def _read(artefacts: ArtefactStore, name: str) -> pd.DataFrame:
    with artefacts.open(name) as file:
        return pd.read_parquet(file)
