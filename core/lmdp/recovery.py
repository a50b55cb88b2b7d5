"""How far a shift can be undone by whoever has true shares of the other columns.

A shift changes how hidden columns x′ are spread and leaves p(x* | x′), how others depend on them,
as it is. So shares of other columns are mixtures Σ p(x* | x′) π(x′) with known parts, and the
weights π that explain given shares best are found by expectation maximisation. Given the shares
that a shifted table has, that is the shifted π; given true ones from another source, the true π.

`measure` runs this attack on a model alone: its records before the shift stand for the truth, so
nothing real is looked at. It is one attack, with shares of single columns; a better one may get
further.

Source: Dempster, Laird and Rubin, "Maximum likelihood from incomplete data via the EM algorithm",
1977, section 4.3.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.encoding.bins import groups_of_bins
from core.encoding.codec import Codec, Codes
from core.lmdp.shift import Sampler, Shift
from core.privacy.mechanisms.histograms import bins_of

Floats = NDArray[np.float64]
Cells = NDArray[np.int64]

RECORDS = 20_000  # of the model before and after the shift
MOST_COLUMNS = 4  # tagged ones that are looked at together
MOST_CELLS = 256
GROUPS = {1: 12, 2: 8, 3: 5, 4: 4}  # of neighbouring bins of each column, by how many there are
STEPS = 3000
STILL = 1e-7  # change of all shares together at which a fit ends


@dataclass(frozen=True)
class HiddenCells:
    """Cells of hidden columns, cut by their declaration; the rarer combinations are one cell.

    Attributes:
      combinations: int64 [cells - 1, columns], groups of bins of each column.
    """

    codec: Codec
    names: tuple[str, ...]
    combinations: Cells

    @classmethod
    def of(cls, codec: Codec, names: Sequence[str], released: Codes) -> HiddenCells:
        """The cells that released records lie in, the commonest 255 apart."""
        taken = tuple(names[:MOST_COLUMNS])
        found, counts = np.unique(_grouped(codec, taken, released), axis=0, return_counts=True)
        common = np.argsort(-counts, kind="stable")[: MOST_CELLS - 1]
        return cls(codec, taken, found[common])

    def __len__(self) -> int:
        return len(self.combinations) + 1

    def index(self, codes: Codes) -> Cells:
        """The cell of each record, int64 [n]; the last one is for all other combinations."""
        known = {tuple(row): i for i, row in enumerate(self.combinations.tolist())}
        own = _grouped(self.codec, self.names, codes)
        kinds, which = np.unique(own, axis=0, return_inverse=True)
        cells = [known.get(tuple(row), len(self.combinations)) for row in kinds.tolist()]
        return np.array(cells, dtype=np.int64)[which.reshape(-1)]

    def shares(self, codes: Codes) -> Floats:
        """Share of the records in each cell, [cells]."""
        return np.bincount(self.index(codes), minlength=len(self)) / len(codes)


def _grouped(codec: Codec, names: Sequence[str], codes: Codes) -> Cells:
    """Each column's group of bins, int64 [n, columns]."""
    columns = []
    for name in names:
        bins = bins_of(codec.block(name))
        most = GROUPS[len(names)]
        group = np.array(groups_of_bins(bins.size, missing=bins.missing, groups=most))
        columns.append(group[bins.index(codes.to("cpu")).numpy()])
    return np.stack(columns, axis=1)


def column_shares(codec: Codec, names: Sequence[str], codes: Codes) -> dict[str, Floats]:
    """By column of those named, the share of the records in each public bin, [bins]."""
    found = {}
    for name in names:
        bins = bins_of(codec.block(name))
        index = bins.index(codes.to("cpu")).numpy()
        found[name] = np.bincount(index, minlength=bins.size) / len(codes)
    return found


def recovered_shares(
    cells: HiddenCells, released: Codes, shares: Mapping[str, Sequence[float] | Floats]
) -> Floats:
    """Shares of hidden cells that explain shares of other columns best.

    Args:
      released: NumPy codes of shifted records, ≥ 1, from which p(x* | x′) is read.
      shares: by column, of its public bins; from wherever. What is below zero counts as nothing.

    Returns:
      [cells], which sum to one: the released ones where no column says anything.
    """
    hidden, n = cells.index(released), len(cells)
    start = np.bincount(hidden, minlength=n) / len(released)
    parts, seen = [], []
    for name, given in shares.items():
        bins = bins_of(cells.codec.block(name))
        own = bins.index(released.to("cpu")).numpy()
        joint = np.bincount(own * n + hidden, minlength=bins.size * n).reshape(bins.size, n)
        given = np.clip(np.asarray(given, float), 0.0, None)
        if given.sum() > 0.0:
            parts.append(joint / np.maximum(joint.sum(axis=0), 1))
            seen.append(given / given.sum())
    if not parts:
        return start
    mixing, wanted = np.concatenate(parts), np.concatenate(seen)
    now = start
    for _ in range(STEPS):
        expected = np.maximum(mixing @ now, 1e-12)
        then = now * (mixing.T @ (wanted / expected))
        then /= then.sum()
        moved, now = float(np.abs(then - now).sum()), then
        if moved < STILL:
            break
    return now


def distance(one: Floats, other: Floats) -> float:
    """Total variation distance of two vectors of shares."""
    return 0.5 * float(np.abs(one - other).sum())


@dataclass(frozen=True)
class Recovery:
    """How far the attack got on one group, measured on the model alone.

    Attributes:
      shifted: distance between the shares before and after the shift.
      recovered: distance between those before it and what the attack found.
    """

    columns: tuple[str, ...]
    shifted: float
    recovered: float

    @property
    def undone(self) -> float:
        """Share of the shift that is undone, in [0, 1]."""
        return max(0.0, 1.0 - self.recovered / self.shifted) if self.shifted else 0.0


def measure(
    model: Sampler, shift: Shift, groups: Mapping[str, Sequence[str]], *, records: int = RECORDS
) -> dict[str, Recovery]:
    """Attack a shift of a model with the exact shares that records have before it.

    Args:
      model: without the shift.

    Returns:
      By group, where there are columns without a tag; nothing else.
    """
    codec = Codec(model.domain)
    before = codec.encode(model.sample(records))
    after = codec.encode(shift.sample(model, records))
    tagged = [name for names in groups.values() for name in names]
    others = [c.name for c in model.domain.modelled if c.name not in tagged]
    if not others:
        return {}
    known = column_shares(codec, others, before)
    found = {}
    for group, names in groups.items():
        # others' shares depend on all hidden columns at once, so all are looked for where few are
        together = tagged if len(tagged) <= MOST_COLUMNS else names
        cells = HiddenCells.of(codec, together, after)
        own = [cells.names.index(name) for name in names if name in cells.names]
        true, shifted, back = (
            _of_columns(cells, own, shares)
            for shares in (
                cells.shares(before),
                cells.shares(after),
                recovered_shares(cells, after, known),
            )
        )
        looked = tuple(cells.names[i] for i in own)
        found[group] = Recovery(looked, distance(true, shifted), distance(true, back))
    return found


def _of_columns(cells: HiddenCells, own: Sequence[int], shares: Floats) -> Floats:
    """Shares of the cells of some of the columns; the last is for the rarer combinations."""
    _, which = np.unique(cells.combinations[:, own], axis=0, return_inverse=True)
    which = which.reshape(-1)
    return np.append(np.bincount(which, weights=shares[:-1]), shares[-1])
