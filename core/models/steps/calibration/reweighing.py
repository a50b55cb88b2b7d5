"""A trained model behind weights: generated rows are carried, weighed, and chosen."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import load_file
from torch import Tensor

from core.encoding.codec import Codec, Codes, concat_codes
from core.models.saved_model import ROWS_AT_ONCE, FittedModel, chunks, write_json, write_tensors
from core.models.steps.calibration.coupling import carried
from core.models.steps.calibration.row_weights import log_weights, systematic
from core.models.steps.counting.placing import Placing
from core.models.steps.counting.scales import ColumnScale
from core.models.steps.training.column_bins import ColumnBins
from core.models.synthesizer import Fitted

__all__ = ["Calibration", "CalibratedModel", "with_calibration"]

Floats = NDArray[np.float64]
Cells = NDArray[np.int64]
FEWEST = 512  # candidates at a time, so that few rows too are drawn by their weights
CELLS_AT_ONCE = 2**24  # of candidates, so that memory does not grow with a table's width
FILE, TENSORS = "calibration.json", "calibration.safetensors"


@dataclass(frozen=True)
class Calibration:
    """What drawing needs beside the model.

    Attributes:
      scales: of all columns.
      tables: columns and sizes of each counted table.
      factors: λ, float64 [cells] of each.
      placing: makes records of cells.
      moves: by column, where the rows of each cell are carried before they are weighed, see
        `coupling`; None where they stay. Empty where a number's place stays as the model drew it
        and no relation is kept; else places are drawn from the fine counts.
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

    def cells(self, codes: Codes, random: torch.Generator) -> list[Cells]:
        """The cell that each row comes to lie in, of every column, int64 [n] each."""
        rows = codes.to("cpu")
        own = [scale.index(rows).numpy() for scale in self.scales]
        return _carried(own, self.moves, random)

    def weights(self, cells: Sequence[Cells]) -> Floats:
        """Of rows, float64 [n], positive, the largest 1."""
        log = log_weights(self.factors, self.tables, cells)
        return np.asarray(np.exp(np.maximum(log - log.max(), -60.0)))

    def placed(
        self, codec: Codec, codes: Codes, cells: list[Cells], random: torch.Generator
    ) -> Codes:
        """Rows with numbers at places of the fine counts, that keep every relation.

        Args:
          codes: NumPy codes of the rows; not changed.
          cells: of the rows in every column.
        """
        if not self.moves:
            return codes
        return self.placing.codes(codec, _carried(cells, self.settled, random), random)


def _carried(
    cells: list[Cells], moves: Sequence[Floats | None], random: torch.Generator
) -> list[Cells]:
    """Cells of every column, each carried as its column's moves say; none where there are none."""
    return [
        cell if move is None else carried(cell, move, random)
        for cell, move in zip(cells, moves or (None,) * len(cells), strict=True)
    ]


class CalibratedModel(FittedModel):
    """A trained model whose rows are drawn by weights; itself a trained model.

    Attributes:
      inner, calibration: as given.
    """

    def __init__(self, inner: FittedModel, calibration: Calibration):
        super().__init__(inner.codec)
        self.inner, self.calibration = inner, calibration

    @property
    def baseline(self) -> Fitted:
        """See `Fitted`: the model without weights, or what that was made from."""
        return self.inner if self.inner.baseline is None else self.inner.baseline

    def draw(self, rows: int, random: torch.Generator) -> Codes:
        """See `FittedModel.draw`: of more rows that the model generates, some by their weights."""
        each = self.calibration.candidates
        most = CELLS_AT_ONCE // (each * len(self.codec.blocks))
        size = max(FEWEST // each, min(ROWS_AT_ONCE, most))
        return concat_codes([self._draw(count, random) for count in chunks(rows, size)])

    def _draw(self, rows: int, random: torch.Generator) -> Codes:
        candidates = self.inner.draw(max(self.calibration.candidates * rows, FEWEST), random)
        cells = self.calibration.cells(candidates, random)
        start = float(torch.rand(1, generator=random, dtype=torch.float64))
        chosen = systematic(self.calibration.weights(cells), rows, start)
        chosen = chosen[torch.randperm(rows, generator=random).numpy()]
        own = [cell[chosen] for cell in cells]
        return self.calibration.placed(self.codec, candidates.take(chosen), own, random)

    def save(self, folder: Path) -> None:
        """See `Fitted.save`: the model, and beside it calibration.json and .safetensors."""
        self.inner.save(folder)
        one = self.calibration
        tensors = {"factors": torch.from_numpy(np.concatenate(one.factors)), **one.placing.tensors}
        for i, scale in enumerate(one.scales):
            tensors[f"cell_of.{i}"] = torch.from_numpy(scale.cell_of)
        for name, moves in (("moves", one.moves), ("settled", one.settled)):
            for i, move in enumerate(moves):
                if move is not None:
                    tensors[f"{name}.{i}"] = torch.from_numpy(move)
        write_tensors(tensors, folder / TENSORS)
        values = {
            "tables": [[list(columns), list(sizes)] for columns, sizes in one.tables],
            **one.placing.values,
            "carried": bool(one.moves),
            "candidates": one.candidates,
        }
        write_json(values, folder / FILE)


def with_calibration(inner: Fitted, folder: Path) -> Fitted:
    """A loaded model behind the weights that `CalibratedModel.save` left beside it, if any."""
    if not (folder / FILE).exists():
        return inner
    assert isinstance(inner, FittedModel)
    values = json.loads((folder / FILE).read_text(encoding="utf-8"))
    tensors = load_file(folder / TENSORS)
    tables = tuple((tuple(columns), tuple(sizes)) for columns, sizes in values["tables"])
    ends = np.cumsum([int(np.prod(sizes)) for _, sizes in tables])[:-1]
    scales = tuple(
        _stored_scale(inner.codec, i, values, tensors) for i in range(len(inner.codec.blocks))
    )
    moves, settled = (
        tuple(_stored_moves(tensors, name, len(scales))) for name in ("moves", "settled")
    )
    calibration = Calibration(
        scales,
        tables,
        tuple(np.split(tensors["factors"].numpy(), ends)),
        Placing.stored(tensors, values),
        moves if values["carried"] else (),
        settled if values["carried"] else (),
        values["candidates"],
    )
    return CalibratedModel(inner, calibration)


def _stored_moves(tensors: dict[str, Tensor], name: str, columns: int) -> Iterator[Floats | None]:
    for i in range(columns):
        move = tensors.get(f"{name}.{i}")
        yield None if move is None else move.numpy()


def _stored_scale(
    codec: Codec, i: int, values: dict[str, Any], tensors: dict[str, Tensor]
) -> ColumnScale:
    none = torch.zeros(0, dtype=torch.float64)
    places, keys = (tensors.get(f"{name}.{i}", none).numpy() for name in ("places", "keys"))
    cell_of = tensors[f"cell_of.{i}"].numpy()
    grid = ColumnBins(codec.blocks[i], places, values["widths"][i])
    size = np.bincount(cell_of).astype(np.float64)
    return ColumnScale(grid, cell_of, values["lines"][i], size, np.zeros(len(size)), keys)
