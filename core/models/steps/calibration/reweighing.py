"""Rows that a model generates are carried to other cells, weighed, and chosen by their weights."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor

from core.encoding.codec import Codec, Codes, concat_codes
from core.models.base_sampler import ROWS_AT_ONCE, BaseSampler, chunks, sampled_by
from core.models.saved_model import REWEIGH
from core.models.steps.calibration.coupling import carried
from core.models.steps.calibration.row_weights import log_weights, systematic
from core.models.steps.counting.placing import Placing
from core.models.steps.counting.scales import ColumnScale
from core.models.steps.training.column_bins import ColumnBins
from core.schema.schema import Domain

Floats = NDArray[np.float64]
Cells = NDArray[np.int64]
FEWEST = 512  # candidates at a time, so that few rows too are drawn by their weights
CELLS_AT_ONCE = 2**24  # of candidates, so that memory does not grow with a table's width


@dataclass(frozen=True)
class Reweigh:
    """A `RowTransform`: of more rows than are wanted, some are drawn by weights.

    Attributes:
      tables: columns and sizes of each counted table.
      factors: λ, float64 [cells] of each.
      moves: by column, where the rows of each cell are carried before they are weighed, see
        `coupling`; None where they stay. Empty where a number's place stays as the model drew it
        and no relation is kept; else places are drawn from the histogram counts.
      settled: likewise, where cells of chosen rows are carried: weights that tie many columns take
        single ones a little away.
      candidates: generated for each row that is drawn: none weighs more than so many average ones.
    """

    scales: tuple[ColumnScale, ...]
    tables: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...]
    factors: tuple[Floats, ...]
    placing: Placing
    moves: tuple[Floats | None, ...] = ()
    settled: tuple[Floats | None, ...] = ()
    candidates: int = 16
    kind: ClassVar[str] = REWEIGH

    def cells(self, codes: Codes, random: torch.Generator) -> list[Cells]:
        """The cell that each row comes to lie in, of every column, int64 [n] each."""
        rows = codes.to("cpu")
        own = [scale.index(rows).numpy() for scale in self.scales]
        return _carried(own, self.moves, random)

    def weights(self, cells: Sequence[Cells]) -> Floats:
        """Of rows, float64 [n], positive, the largest 1."""
        log = log_weights(self.factors, self.tables, cells)
        return np.asarray(np.exp(np.maximum(log - log.max(), -60.0)))

    def as_records(
        self, codec: Codec, codes: Codes, cells: list[Cells], random: torch.Generator
    ) -> Codes:
        """Rows with numbers at places of the histogram counts, that keep every relation.

        Args:
          codes: NumPy codes of the rows; not changed.
        """
        if not self.moves:
            return codes
        return self.placing.codes(codec, _carried(cells, self.settled, random), random)

    def output(self, domain: Domain) -> Domain:
        """See `RowTransform`."""
        return domain

    def sample(self, before: BaseSampler, rows: int, seed: int | None) -> pd.DataFrame:
        """See `RowTransform`."""
        placing = self.placing if self.moves else before.placing
        return sampled_by(
            lambda random: self.draw(before, rows, random), before.codec, rows, seed, placing
        )

    def draw(self, before: BaseSampler, rows: int, random: torch.Generator) -> Codes:
        """See `BaseSampler.draw`."""
        most = CELLS_AT_ONCE // (self.candidates * len(before.codec.blocks))
        size = max(FEWEST // self.candidates, min(ROWS_AT_ONCE, most))
        return concat_codes([self._draw(before, count, random) for count in chunks(rows, size)])

    def _draw(self, before: BaseSampler, rows: int, random: torch.Generator) -> Codes:
        candidates = before.draw(max(self.candidates * rows, FEWEST), random)
        cells = self.cells(candidates, random)
        start = float(torch.rand(1, generator=random, dtype=torch.float64))
        chosen = systematic(self.weights(cells), rows, start)
        chosen = chosen[torch.randperm(rows, generator=random).numpy()]
        own = [cell[chosen] for cell in cells]
        return self.as_records(before.codec, candidates.take(chosen), own, random)

    def saved(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        """See `RowTransform`."""
        factors = torch.from_numpy(np.concatenate(self.factors))
        tensors = {"factors": factors, **self.placing.tensors}
        for i, scale in enumerate(self.scales):
            tensors[f"cell_of.{i}"] = torch.from_numpy(scale.cell_of)
        for name, moves in (("moves", self.moves), ("settled", self.settled)):
            for i, move in enumerate(moves):
                if move is not None:
                    tensors[f"{name}.{i}"] = torch.from_numpy(move)
        values = {
            "tables": [[list(columns), list(sizes)] for columns, sizes in self.tables],
            **self.placing.values,
            "carried": bool(self.moves),
            "candidates": self.candidates,
        }
        return values, tensors

    @classmethod
    def restored(
        cls, domain: Domain, values: Mapping[str, Any], tensors: Mapping[str, Tensor]
    ) -> Self:
        """See `RowTransform`."""
        codec = Codec(domain)
        tables = tuple((tuple(columns), tuple(sizes)) for columns, sizes in values["tables"])
        ends = np.cumsum([int(np.prod(sizes)) for _, sizes in tables])[:-1]
        count = len(codec.blocks)
        moves, settled = (
            tuple(_stored_moves(tensors, name, count)) if values["carried"] else ()
            for name in ("moves", "settled")
        )
        return cls(
            tuple(_stored_scale(codec, i, values, tensors) for i in range(count)),
            tables,
            tuple(np.split(tensors["factors"].numpy(), ends)),
            Placing.stored(tensors, values),
            moves,
            settled,
            values["candidates"],
        )


def _carried(
    cells: list[Cells], moves: Sequence[Floats | None], random: torch.Generator
) -> list[Cells]:
    """Cells of every column, each carried as its column's moves say; none where there are none."""
    return [
        cell if move is None else carried(cell, move, random)
        for cell, move in zip(cells, moves or (None,) * len(cells), strict=True)
    ]


def _stored_moves(
    tensors: Mapping[str, Tensor], name: str, columns: int
) -> Iterator[Floats | None]:
    for i in range(columns):
        move = tensors.get(f"{name}.{i}")
        yield None if move is None else move.numpy()


def _stored_scale(
    codec: Codec, i: int, values: Mapping[str, Any], tensors: Mapping[str, Tensor]
) -> ColumnScale:
    none = torch.zeros(0, dtype=torch.float64)
    positions, keys = (tensors.get(f"{name}.{i}", none).numpy() for name in ("places", "keys"))
    cell_of = tensors[f"cell_of.{i}"].numpy()
    grid = ColumnBins(codec.blocks[i], positions, values["widths"][i])
    size = np.bincount(cell_of).astype(np.float64)
    return ColumnScale(grid, cell_of, values["lines"][i], size, np.zeros(len(size)), keys)
