"""How many of some places a record lies in, by counts of pairs: it adds less to each of several."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from core.models.steps.counting.counts import PairTarget
from core.models.steps.counting.scales import ColumnScale
from core.models.steps.counting.zeros.row_noise import SUSPECT, evidence_of_none
from core.models.steps.counting.zeros.structural_zeros import StructuralZero

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]
LEAST = 1e-9  # share that is divided by
ROUNDS = 3  # what one place holds tells of others, whose records then add less


def in_common(
    places: Sequence[Sequence[StructuralZero]],
    pairs: Sequence[PairTarget],
    scales: Sequence[ColumnScale],
    shares: Sequence[Floats],
) -> Floats:
    """Float64 [places, places], which share of the records in one would lie in another too.

    One in a place goes with either column's bins of another as pairs say.

    Args:
      places: group by group; those of one group share no record.
      pairs, shares: released.
    """
    asked = [place for group in places for place in group]
    parts, ends = dict[tuple[int, bytes], int](), np.zeros((2, len(asked)), dtype=np.int64)
    masks = list[Floats]()
    for i, place in enumerate(asked):
        left, right = place.left.numpy(), place.right.numpy()[scales[place.columns[1]].cell_of]
        for side, bins in enumerate((left, right)):
            key = place.columns[side], bins.tobytes()
            ends[side, i] = parts.setdefault(key, len(parts))
            if len(masks) < len(parts):
                masks.append(bins.astype(np.float64))
    goes_with = _goes_with([column for column, _ in parts], masks, pairs, scales, shares)
    columns = np.array([column for column, _ in parts])
    both = _lies_in(goes_with, ends, columns, ends[0]) * _lies_in(goes_with, ends, columns, ends[1])
    group = np.repeat(np.arange(len(places)), [len(one) for one in places])
    both[group[:, None] == group] = 0.0
    return np.asarray(both)


def _lies_in(goes_with: Floats, ends: Indices, columns: Indices, parts: Indices) -> Floats:
    """Float64 [places, parts], which share of the records in each place lies in a part as well.

    By the place's bins of the part's column, if there are any; else by those that say more.

    Args:
      ends: int64 [2, places], the parts on either side; `columns`, of each part.
    """
    one, other = (goes_with[np.ix_(side, parts)] for side in ends)
    of_one, of_other = (columns[side][:, None] == columns[parts] for side in ends)
    lies = np.where(of_one, one, np.where(of_other, other, np.maximum(one, other)))
    return np.asarray(lies)


def added(
    together: Floats, expected: Floats, beforehand: Floats, counts: Floats, noise: float
) -> Floats:
    """What a record is expected to add to each place, float64 [places], if it holds some.

    A record in k of them adds 1/√k to each: in those that hold some, as pairs and their own counts
    tell, each time as often as `SUSPECT`.

    Args:
      together: see `in_common`.
      expected: float64 [places], records if columns were independent.
      beforehand: float64 [places], how much likelier each is empty by pairs, logarithm.
      counts: float64 [places], released; `noise`, standard deviation of one.
    """
    holds = adds = np.ones(len(counts))
    for _ in range(ROUNDS):
        adds = 1.0 / np.sqrt(1.0 + SUSPECT * (together @ holds))
        holds = expit(-evidence_of_none(expected, counts, noise, adds) - beforehand)
    return np.asarray(adds)


def _goes_with(
    columns: Sequence[int],
    masks: Sequence[Floats],
    pairs: Sequence[PairTarget],
    scales: Sequence[ColumnScale],
    shares: Sequence[Floats],
) -> Floats:
    """Float64 [parts, parts], which share of the records in one part of a column lies in another.

    Args:
      columns: of each part; `masks`, its bins.
    """
    found, cells = np.zeros((len(masks), len(masks))), dict[int, Floats]()
    of = {column: np.flatnonzero(np.array(columns) == column) for column in set(columns)}
    for column, parts in of.items():
        scale, own = scales[column], np.array([masks[i] for i in parts.tolist()])
        held = own * scale.in_bins(shares[column])
        each = held.sum(axis=1)
        found[:, parts] = each  # of columns that are not counted together
        found[np.ix_(parts, parts)] = held @ own.T / np.maximum(each, LEAST)[:, None]
        whole = np.eye(scale.size)[scale.cell_of]
        cells[column] = (own * scale.inside) @ whole
    for one in pairs:
        (a, b), joint = one.columns, one.shares.double().sum(dim=0).numpy().clip(min=0.0)
        if a in of and b in of:
            both = cells[a] @ joint @ cells[b].T
            found[np.ix_(of[a], of[b])] = both / np.maximum(cells[a] @ joint.sum(1), LEAST)[:, None]
            found[np.ix_(of[b], of[a])] = (both / np.maximum(cells[b] @ joint.sum(0), LEAST)).T
    return np.clip(found, 0.0, 1.0)
