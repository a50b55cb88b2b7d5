"""Calibration: generated rows weighted to released counts, and drawn by their weights."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import load_file
from torch import Tensor

from core.models.events import Emitter, Metrics, PhaseStarted, Preview, Progress, StoodOut
from core.models.shared.counting.counts import PairTarget
from core.models.shared.counting.coupling import carried, coupling, goal_of
from core.models.shared.counting.denoising import denoised
from core.models.shared.counting.design import PAIRS, TOGETHER, Design, SumCandidate
from core.models.shared.counting.placing import add_up, placed
from core.models.shared.counting.relations import Determined, determined
from core.models.shared.counting.releases import Releases
from core.models.shared.counting.scales import ColumnScale, FineGrid
from core.models.shared.counting.tilt import (
    ITERATIONS,
    CellTable,
    fit_tilt,
    log_weights,
    systematic,
)
from core.models.shared.fitted import FittedModel, chunks, write_json, write_tensors
from core.models.shared.training_loop import Checkpoint
from core.models.synthesizer import FitContext, Fitted, Trainer
from core.privacy.guarded import PrivateTable
from core.privacy.plan import Plan
from core.table.codec import Codec, Codes, concat_codes

__all__ = [
    "Calibration",
    "CalibratedModel",
    "calibrate",
    "counts_of",
    "fit_calibrated",
    "with_calibration",
]

Floats = NDArray[np.float64]
Cells = NDArray[np.int64]
TRUST = 4.0  # κ: the model's shares are taken to be off by half
FACTOR = 16  # candidates a row: no row weighs more than so many average ones
FEWEST = 512  # candidates at a time, so that few rows too are drawn by their weights
POOL, FEWEST_POOL = 40_000, 2_000  # generated rows that weights are fitted on
POOL_A_RECORD = 4  # so many at most, or `FEWEST_POOL`
POOL_CELLS = 16_000_000  # rows times tables of the pool
MOST_CARRIED = 1000  # cells of a column whose rows are carried to other cells
LEAST_NOISE = 3.0  # records: where there is less noise, or none, no count is chased further
FILE, TENSORS = "calibration.json", "calibration.safetensors"
NAME = "calibration"  # of the last phase, which reads no rows


@dataclass(frozen=True)
class Calibration:
    """What drawing needs beside the model.

    Attributes:
      scales: of all columns.
      tables: columns and sizes of each counted table.
      factors: λ, float64 [cells] of each.
      follows, sums: what every row is made to keep.
      moves: by column, where the rows of each cell are carried before they are weighed, see
        `coupling`; None where they stay. Empty where a number's place stays as the model drew it
        and no relation is kept; else places are drawn from the fine counts.
    """

    scales: tuple[ColumnScale, ...]
    tables: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...]
    factors: tuple[Floats, ...]
    follows: tuple[Determined, ...] = ()
    sums: tuple[SumCandidate, ...] = ()
    moves: tuple[Floats | None, ...] = ()

    def cells(self, codes: Codes, random: torch.Generator) -> list[Cells]:
        """The cell that each row comes to lie in, of every column, int64 [n] each.

        Args:
          codes: of generated rows.
          random: data-free.
        """
        rows = codes.to("cpu")
        own = [scale.index(rows).numpy() for scale in self.scales]
        moves = self.moves or (None,) * len(own)
        return [
            cell if move is None else carried(cell, move, random)
            for cell, move in zip(own, moves, strict=True)
        ]

    def weights(self, cells: Sequence[Cells]) -> Floats:
        """Of rows, float64 [n], positive, the largest 1."""
        log = log_weights(self.factors, self.tables, cells)
        return np.asarray(np.exp(np.maximum(log - log.max(), -60.0)))

    def placed(
        self, codec: Codec, codes: Codes, cells: list[Cells], random: torch.Generator
    ) -> Codes:
        """Rows with numbers at places of the fine counts, that keep every relation.

        Args:
          codec: of the table.
          codes: NumPy codes of the rows; not changed.
          cells: of the rows in every column.
          random: data-free.
        """
        if not self.moves:
            return codes
        states, values = codes.states.copy(), codes.values.copy()
        for relation in self.follows:
            cells[relation.result] = relation.cells.numpy()[cells[relation.source]]
        for i, (block, scale) in enumerate(zip(codec.blocks, self.scales, strict=True)):
            if block.number is None:
                states[:, i] = cells[i]
                continue
            states[:, i], values[:, block.number] = placed(
                cells[i],
                line=scale.line,
                keys=scale.keys,
                places=scale.grid.places,
                width=scale.grid.width,
                random=random,
            )
        codes = Codes(states, values)
        for one in self.sums:
            add_up(codec, codes, one)
        return codes


class CalibratedModel(FittedModel):
    """A trained model whose rows are drawn by weights; itself a trained model.

    Args:
      inner: generates rows.
      calibration: weighs them.

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
        return concat_codes([self._draw(count, random) for count in chunks(rows)])

    def _draw(self, rows: int, random: torch.Generator) -> Codes:
        candidates = self.inner.draw(max(FACTOR * rows, FEWEST), random)
        cells = self.calibration.cells(candidates, random)
        start = float(torch.rand(1, generator=random, dtype=torch.float64))
        chosen = systematic(self.calibration.weights(cells), rows, start)
        chosen = chosen[torch.randperm(rows, generator=random).numpy()]
        own = [cell[chosen] for cell in cells]
        return self.calibration.placed(self.codec, candidates.take(chosen), own, random)

    def save(self, folder: Path) -> None:
        """See `Fitted.save`: the model, and beside it calibration.json and .safetensors."""
        self.inner.save(folder)
        one, tensors = self.calibration, {}
        tensors["factors"] = torch.from_numpy(np.concatenate(one.factors))
        for i, scale in enumerate(one.scales):
            tensors[f"cell_of.{i}"] = torch.from_numpy(scale.cell_of)
            if scale.grid.cells:
                tensors[f"places.{i}"] = torch.from_numpy(scale.grid.places)
                tensors[f"keys.{i}"] = torch.from_numpy(scale.keys)
        for i, move in enumerate(one.moves):
            if move is not None:
                tensors[f"moves.{i}"] = torch.from_numpy(move)
        for relation in one.follows:
            tensors[f"cells.{relation.result}"] = relation.cells
        write_tensors(tensors, folder / TENSORS)
        values = {
            "tables": [[list(columns), list(sizes)] for columns, sizes in one.tables],
            "lines": [scale.line for scale in one.scales],
            "widths": [scale.grid.width for scale in one.scales],
            "follows": [[relation.source, relation.result] for relation in one.follows],
            "sums": [[sum_.total, sum_.left, sum_.right, sum_.unit] for sum_ in one.sums],
            "carried": bool(one.moves),
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
    stored = (tensors.get(f"moves.{i}") for i in range(len(scales)))
    moves = tuple(None if move is None else move.numpy() for move in stored)
    calibration = Calibration(
        scales,
        tables,
        tuple(np.split(tensors["factors"].numpy(), ends)),
        tuple(Determined(a, b, tensors[f"cells.{b}"]) for a, b in values["follows"]),
        tuple(SumCandidate(*one) for one in values["sums"]),
        moves if values["carried"] else (),
    )
    return CalibratedModel(inner, calibration)


def _stored_scale(
    codec: Codec, i: int, values: dict[str, Any], tensors: dict[str, Tensor]
) -> ColumnScale:
    none = torch.zeros(0, dtype=torch.float64)
    places, keys = (tensors.get(f"{name}.{i}", none).numpy() for name in ("places", "keys"))
    cell_of = tensors[f"cell_of.{i}"].numpy()
    grid = FineGrid(codec.blocks[i], places, values["widths"][i])
    size = np.bincount(cell_of).astype(np.float64)
    return ColumnScale(grid, cell_of, values["lines"][i], size, np.zeros(len(size)), keys)


@dataclass(frozen=True)
class Counts:
    """What was released before the model was trained, ready to be matched; post-processing.

    Attributes:
      n: number of records (public).
      scales: of all columns.
      columns, pairs: shares of cells and their noise.
      follows, sums: relations that nearly all records keep.
      seed: of the pool.
    """

    n: int
    scales: tuple[ColumnScale, ...]
    columns: tuple[CellTable, ...]
    pairs: tuple[CellTable, ...]
    follows: tuple[Determined, ...]
    sums: tuple[SumCandidate, ...]
    seed: int


def counts_of(known: Releases, counted: Sequence[PairTarget]) -> Counts:
    """Released counts as shares, with noise shrunk away.

    Args:
      known: of columns, after the pairs were read.
      counted: pairs as they were released.
    """
    n, least = known.table.n, LEAST_NOISE / known.table.n
    sizes = [scale.size for scale in known.scales]
    condition = known.design.condition
    front = () if condition is None else (condition,)
    columns = tuple(
        CellTable((c,), (sizes[c],), share, np.maximum(known.column_noise[c] / n, least))
        for c, share in enumerate(known.shares)
    )
    pairs = []
    for pair in denoised(counted, known.scales, known.shares, known.within):
        together = (*front, *pair.columns)
        shares = pair.shares.double().numpy().ravel()
        noise = np.full(len(shares), max(pair.noise, least))
        pairs.append(CellTable(together, tuple(sizes[c] for c in together), shares, noise))
    follows = determined(counted, known.scales, condition)
    seed = known.checkpoint.seed
    return Counts(n, known.scales, columns, tuple(pairs), follows, tuple(known.sums), seed)


def calibrate(
    inner: FittedModel,
    counts: Counts,
    *,
    pairs: bool = True,
    fine: bool = True,
    trust: float = TRUST,
    told: Callable[[int, dict[str, float]], None] | None = None,
) -> CalibratedModel:
    """A trained model behind weights that agree with released counts.

    Args:
      inner: generates the pool that weights are fitted on.
      counts: what was released.
      pairs: whether pairs of columns are matched besides single ones.
      fine: whether cells are carried to the released shares of single columns before that, places
        drawn from the fine counts and relations kept.
      trust: see `fit_tilt`.
      told: called after each iteration with its number and distances in units of the noise.
    """
    tables = (*counts.columns, *(counts.pairs if pairs else ()))
    most = min(POOL, max(FEWEST_POOL, POOL_A_RECORD * counts.n))
    rows = max(FEWEST_POOL, min(most, POOL_CELLS // len(tables)))
    kinds = tuple((table.columns, table.sizes) for table in tables)
    begun = Calibration(counts.scales, kinds, (), counts.follows, counts.sums)
    random = torch.Generator().manual_seed(counts.seed + 11)
    with torch.no_grad():
        pool = inner.draw(rows, random)
    if fine:
        begun = replace(begun, moves=_moves(counts, begun.cells(pool, random), trust))

    def tell(done: int, shares: list[Floats]) -> None:
        if told is not None:
            told(done, _distances(tables, shares))

    factors = fit_tilt(tables, begun.cells(pool, random), trust=trust, told=tell)
    return CalibratedModel(inner, replace(begun, factors=tuple(factors)))


def _moves(counts: Counts, cells: Sequence[Cells], trust: float) -> tuple[Floats | None, ...]:
    """Where the cells of each column are carried, by the shares that a pool has of them.

    Args:
      counts: what was released.
      cells: of the pool's rows, by column.
      trust: see `goal_of`.
    """
    moves: list[Floats | None] = []
    for scale, table, cell in zip(counts.scales, counts.columns, cells, strict=True):
        if scale.size > MOST_CARRIED:
            moves.append(None)
            continue
        share = np.bincount(cell, minlength=scale.size) / len(cell)
        goal = goal_of(share, table.shares, table.noise, trust)
        moves.append(coupling(share, goal, scale.line))
    return tuple(moves)


def _distances(tables: Sequence[CellTable], shares: Sequence[Floats]) -> dict[str, float]:
    """Root mean square distances to the counts, in units of the noise, as charts name them."""
    squares: dict[str, list[Floats]] = {}
    for table, share in zip(tables, shares, strict=True):
        name = "single columns" if len(table.columns) == 1 else "pairs of columns"
        squares.setdefault(name, []).append(((share - table.shares) / table.noise) ** 2)
    return {name: float(np.sqrt(np.concatenate(each).mean())) for name, each in squares.items()}


def count(table: PrivateTable, plan: Plan, context: FitContext) -> Counts:
    """Make the releases of counts that the checkpoint does not hold yet.

    Args:
      table: the door to rows.
      plan: holds the phases of counting.
      context: of the fit.
    """
    codec = Codec(table.domain)
    checkpoint = Checkpoint.open(context, "counts.pt", table.meter)
    emitter = Emitter(context.observe, keep=checkpoint.keep)
    design = Design.of(codec, TOGETHER)
    known = Releases(table, plan, codec, design, checkpoint, emitter, context.device)
    counted = known.pairs(PAIRS) if design.pairs else ()
    if design.pairs:
        emitter.send(StoodOut(sets=known.stood_out))
    return counts_of(known, counted)


def fit_calibrated(
    model: Trainer, table: PrivateTable, plan: Plan, context: FitContext
) -> CalibratedModel:
    """Count, train the model, and fit its rows to the counts; see `Synthesizer.fit`.

    Args:
      model: trains what generates rows.
      table: the door to rows.
      plan: holds the phases of counting and the model's own.
      context: of the fit.
    """
    counts = count(table, plan, context)
    inner = model.fit(table, plan, context)
    assert isinstance(inner, FittedModel)
    emitter = Emitter(context.observe)
    title = "Fitting rows to the counts (touches no private data)"
    emitter.send(PhaseStarted(name=NAME, title=title))

    def told(done: int, distances: dict[str, float]) -> None:
        emitter.send(Progress(step=done, steps=ITERATIONS, phase=NAME))
        emitter.send(Metrics(step=done, values=distances))

    fitted = calibrate(inner, counts, told=told)
    emitter.send(Preview(rows=fitted.preview()))
    return fitted
