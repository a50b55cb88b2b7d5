"""Calibration: counts are released, a model is trained, and its rows are fitted to the counts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray

from core.message import Message
from core.models.base_sampler import BaseSampler
from core.models.events import Emitter, Metrics, PhaseStarted, Preview, Progress
from core.models.saved_model import SavedModel, preview_of
from core.models.step import FitContext
from core.models.steps.calibration.coupling import coupling, goal_of
from core.models.steps.calibration.reweighing import Reweigh
from core.models.steps.calibration.row_weights import (
    ITERATIONS,
    CellTable,
    fit_row_weights,
    inclusion,
)
from core.models.steps.counting.comparisons import Comparison
from core.models.steps.counting.counts import LEAST_NOISE
from core.models.steps.counting.denoising import denoised
from core.models.steps.counting.differences import Difference
from core.models.steps.counting.placing import Placing
from core.models.steps.counting.relation_candidates import TotalCandidate
from core.models.steps.counting.relations import Determined, determined
from core.models.steps.counting.releases import Releases
from core.models.steps.counting.scales import ColumnScale

Floats = NDArray[np.float64]
Cells = NDArray[np.int64]
TRUST = 4.0  # κ: the model's shares are taken to be off by half
POOL, FEWEST_POOL = 40_000, 2_000  # generated rows that weights are fitted on
MANY = 16  # candidates a row where the pool is as large as that
SETTLING = 2  # times as many rows tell how chosen rows lie in single columns
POOL_A_RECORD = 4  # so many at most, or `FEWEST_POOL`
POOL_CELLS = 8_000_000  # rows times tables of the pool
MOST_CARRIED = 1000  # cells of a column whose rows are carried to other cells
NAME = "calibration"  # of the last phase, which reads no rows


@dataclass(frozen=True)
class Counts:
    """What was released before the model was trained, ready to be matched; post-processing.

    Attributes:
      columns, pairs: shares of cells and their noise.
      follows, totals, compared: relations that nearly all records keep.
      differences: how far columns lie apart.
    """

    n: int
    scales: tuple[ColumnScale, ...]
    columns: tuple[CellTable, ...]
    pairs: tuple[CellTable, ...]
    follows: tuple[Determined, ...]
    totals: tuple[TotalCandidate, ...]
    compared: tuple[Comparison, ...]
    differences: tuple[Difference, ...]
    seed: int


def counts_of(known: Releases) -> Counts:
    """Released counts as shares, with noise shrunk away."""
    n, least = known.table.n, LEAST_NOISE / known.table.n
    sizes = [scale.size for scale in known.scales]
    condition = known.design.condition
    front = () if condition is None else (condition,)
    columns = tuple(
        CellTable((c,), (sizes[c],), share, np.maximum(known.column_noise[c] / n, least))
        for c, share in enumerate(known.shares)
    )
    pairs = []
    for pair in denoised(known.counted, known.scales, known.shares, known.within):
        together = pair.columns if len(pair.shares) == 1 else (*front, *pair.columns)
        shares = pair.shares.double().numpy().ravel()
        noise = np.full(len(shares), max(pair.noise, least))
        pairs.append(CellTable(together, tuple(sizes[c] for c in together), shares, noise))
    follows = determined(known.counted, known.scales, known.shares, condition)
    related, seed = (known.totals, known.compared, known.differences), known.checkpoint.seed
    return Counts(n, known.scales, columns, tuple(pairs), follows, *related, seed)


def calibrate(
    inner: BaseSampler,
    counts: Counts,
    *,
    pairs: bool = True,
    fine: bool = True,
    candidates: int = MANY,
    on_iteration: Callable[[int, dict[str, float]], None] | None = None,
) -> Reweigh:
    """Weights under which a trained model's rows agree with released counts.

    Args:
      inner: generates the pool that weights are fitted on.
      pairs: whether pairs of columns are matched besides single ones.
      fine: whether cells are carried to the released shares of single columns before that, places
        drawn from the histogram counts and relations kept.
      candidates: see `Calibrated`; the pool is smaller where they are fewer.
      on_iteration: called after each iteration with its number and distances in units of the noise.
    """
    tables = (*counts.columns, *(counts.pairs if pairs else ()))
    most = min(POOL * candidates // MANY, max(FEWEST_POOL, POOL_A_RECORD * counts.n))
    rows = max(FEWEST_POOL, min(most, POOL_CELLS // len(tables)))
    kinds = tuple((table.columns, table.sizes) for table in tables)
    placing = Placing.of(
        counts.scales,
        counts.follows,
        counts.totals,
        compared=counts.compared,
        apart=counts.differences,
    )
    begun = Reweigh(counts.scales, kinds, (), placing, candidates=candidates)
    random = torch.Generator().manual_seed(counts.seed + 11)
    with torch.no_grad():
        pool = inner.draw(rows, random)
    if fine:
        even = np.full(rows, 1.0 / rows)
        begun = replace(begun, moves=_moves(counts, begun.cells(pool, random), even))

    def tell(done: int, shares: list[Floats]) -> None:
        if on_iteration is not None:
            on_iteration(done, _distances(tables, shares))

    factors = fit_row_weights(tables, begun.cells(pool, random), trust=TRUST, on_iteration=tell)
    weighed = replace(begun, factors=tuple(factors))
    if fine:
        with torch.no_grad():  # rows that the weights were not fitted on
            cells = weighed.cells(inner.draw(SETTLING * rows, random), random)
        drawn = inclusion(weighed.weights(cells), max(1, SETTLING * rows // candidates))
        weighed = replace(weighed, settled=_moves(counts, cells, drawn))
    random.manual_seed(counts.seed)  # a mixture draws until rows are enough: nothing goes on there
    return weighed


def _moves(counts: Counts, cells: Sequence[Cells], weights: Floats) -> tuple[Floats | None, ...]:
    """Where the cells of each column are carried, by the shares that a pool has of them.

    Args:
      weights: of the rows, summing to one.
    """
    moves: list[Floats | None] = []
    for scale, table, cell in zip(counts.scales, counts.columns, cells, strict=True):
        if scale.size > MOST_CARRIED:
            moves.append(None)
            continue
        share = np.bincount(cell, weights, minlength=scale.size).astype(np.float64)
        goal = goal_of(share, table.shares, table.noise, TRUST)
        moves.append(coupling(share, goal, scale.line))
    return tuple(moves)


def _distances(tables: Sequence[CellTable], shares: Sequence[Floats]) -> dict[str, float]:
    """Root mean square distances to the counts, in units of the noise, as charts name them."""
    squares: dict[str, list[Floats]] = {}
    for table, share in zip(tables, shares, strict=True):
        name = Message("single columns") if len(table.columns) == 1 else Message("pairs of columns")
        squares.setdefault(name, []).append(((share - table.shares) / table.noise) ** 2)
    return {name: float(np.sqrt(np.concatenate(each).mean())) for name, each in squares.items()}


def calibrated(
    model: SavedModel, known: Releases, context: FitContext, *, candidates: int
) -> SavedModel:
    """The trained model with weights under which its rows agree with the counts."""
    emitter, base = Emitter(context.on_event), model.base
    assert isinstance(base, BaseSampler)
    title = Message("Fitting rows to the counts (reads no private data)")
    emitter.send(PhaseStarted(name=NAME, title=title))

    def on_iteration(done: int, distances: dict[str, float]) -> None:
        emitter.send(Progress(step=done, steps=ITERATIONS, phase=NAME))
        emitter.send(Metrics(step=done, values=distances))

    weights = calibrate(base, counts_of(known), candidates=candidates, on_iteration=on_iteration)
    fitted = model.then(weights)
    emitter.send(Preview(rows=preview_of(fitted)))
    return fitted
