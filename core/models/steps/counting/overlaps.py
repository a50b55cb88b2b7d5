"""How many of some places a record lies in, by counts of pairs: it adds less to each of several."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from core.models.steps.counting.counts import PairTarget
from core.models.steps.counting.row_noise import SUSPECT
from core.models.steps.counting.scales import ColumnScale
from core.models.steps.counting.structural_zeros import StructuralZero

Floats = NDArray[np.float64]
LEAST = 1e-9  # share that is divided by


def added(
    places: Sequence[Sequence[StructuralZero]],
    pairs: Sequence[PairTarget],
    scales: Sequence[ColumnScale],
    shares: Sequence[Floats],
) -> Floats:
    """What a record is expected to add to each place, float64 [all places], if it holds some.

    A record in k of them adds 1/√k to each. One in a place goes with either column's cells of
    another as pairs say, and then lies there as often as `SUSPECT`.

    Args:
      places: group by group; those of one group share no record.
      pairs, shares: released.
    """
    asked = [place for group in places for place in group]
    if not asked:
        return np.zeros(0)
    parts, ends = dict[tuple[int, bytes], int](), np.zeros((2, len(asked)), dtype=np.int64)
    masks = list[Floats]()
    for i, place in enumerate(asked):
        for side, column in enumerate(place.columns):
            cells = _cells(place, column, scales).numpy()
            ends[side, i] = parts.setdefault((column, cells.tobytes()), len(parts))
            if len(masks) < len(parts):
                masks.append(cells.astype(np.float64))
    goes_with = _goes_with([column for column, _ in parts], masks, pairs, shares)
    one, other = ends
    alike = np.maximum(
        goes_with[np.ix_(one, one)] * goes_with[np.ix_(other, other)],
        goes_with[np.ix_(one, other)] * goes_with[np.ix_(other, one)],
    )
    group = np.repeat(np.arange(len(places)), [len(one) for one in places])
    alike[group[:, None] == group] = 0.0
    return np.asarray(1.0 / np.sqrt(1.0 + SUSPECT * alike.sum(axis=1)))


def _cells(place: StructuralZero, column: int, scales: Sequence[ColumnScale]) -> Tensor:
    """Bool [cells], those of one of a place's columns."""
    first = column == place.columns[0]
    return place.whole_cells(scales[column]) if first else place.right


def _goes_with(
    columns: Sequence[int],
    masks: Sequence[Floats],
    pairs: Sequence[PairTarget],
    shares: Sequence[Floats],
) -> Floats:
    """Float64 [parts, parts], which share of the records in one part of a column lies in another.

    Args:
      columns: of each part; `masks`, its cells.
    """
    each = [mask @ shares[column] for column, mask in zip(columns, masks, strict=True)]
    found = np.tile(each, (len(masks), 1))  # of columns that are not counted together
    of = {column: np.flatnonzero(np.array(columns) == column).tolist() for column in set(columns)}
    cells = {column: np.array([masks[i] for i in parts]) for column, parts in of.items()}
    tables = [((column, column), np.diag(shares[column])) for column in of]
    tables += [(one.columns, one.shares.double().sum(dim=0).numpy()) for one in pairs]
    for (a, b), table in tables:
        if a in of and b in of:
            joint = np.maximum(table, 0.0)
            both = cells[a] @ joint @ cells[b].T
            found[np.ix_(of[a], of[b])] = both / np.maximum(cells[a] @ joint.sum(1), LEAST)[:, None]
            found[np.ix_(of[b], of[a])] = (both / np.maximum(cells[b] @ joint.sum(0), LEAST)).T
    return np.clip(found, 0.0, 1.0)
