"""Structural zeros of a table: what is asked of the records, and what is kept of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from core.models.steps.counting.counts import LEAST_NOISE, PairTarget
from core.models.steps.counting.scales import ColumnScale
from core.models.steps.counting.zeros.candidates import AnyCandidate, candidates
from core.models.steps.counting.zeros.overlaps import added, in_common
from core.models.steps.counting.zeros.structural_zeros import (
    BrokenZeros,
    StructuralZero,
    everywhere,
)

Floats = NDArray[np.float64]


def asked_zeros(found: Sequence[AnyCandidate]) -> tuple[StructuralZero, ...]:
    """All parts of all candidates, which one release tells of."""
    return tuple(zero for one in found for zero in one.asked)


def kept_zeros(
    found: Sequence[AnyCandidate],
    counts: Floats,
    noise: float,
    together: Floats,
) -> tuple[StructuralZero, ...]:
    """What candidates hold next to no records.

    Args:
      counts: float64, released, of the `asked_zeros`.
      noise: standard deviation of one.
      together: of the same places, see `overlaps.in_common`.
    """
    if not found:
        return ()
    starts = np.cumsum([0, *(len(one.asked) for one in found)])
    kept, noise = list[StructuralZero](), max(noise, LEAST_NOISE)
    expected, before = (
        np.concatenate(each)
        for each in ([c.in_parts for c in found], [c.beforehand for c in found])
    )
    adds = added(together, expected, before, counts[: starts[-1]], noise)
    for one, start in zip(found, starts, strict=False):
        own = slice(start, start + len(one.asked))
        kept += one.kept(counts[own], noise, adds[own])
    return tuple(kept)


def found_zeros(
    pairs: Sequence[PairTarget],
    scales: Sequence[ColumnScale],
    shares: Sequence[Floats],
    noise: Sequence[Floats],
    n: int,
    left_out: Set[int],
    asking: float,
    ask: Callable[[BrokenZeros], Tensor],
) -> tuple[StructuralZero, ...]:
    """What holds next to no records by counts of pairs and by a release; see `candidates`.

    All records are asked about where pairs suggest no zero: the release is planned.
    """
    found = candidates(pairs, scales, shares, noise, n, left_out, asking)
    asked = asked_zeros(found) or (everywhere(pairs[0].columns, scales),)
    counts = ask(BrokenZeros(tuple(scales), asked)).numpy()
    together = in_common([one.asked for one in found], pairs, scales, shares)
    return kept_zeros(found, counts, asking, together)
