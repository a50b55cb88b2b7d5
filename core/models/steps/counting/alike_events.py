"""What goes together in a person's first event and in later ones, told by the counts of both.

A ward has its diagnoses in every stay, and children lie in the children's ward at every age. Where
released counts of two lists of the first event, or of one and what holds for the person, do not
speak against it, the labels are taken to go together there as in the next event. Their own shares
may differ. Post-processing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from core.encoding.codec import Codec
from core.encoding.windows import FIRST, NEXT, OWNER, PERSON
from core.models.steps.counting.counts import PairTarget
from core.models.steps.counting.scales import ColumnScale
from core.models.steps.counting.window_pairs import Role

Floats = NDArray[np.float64]
Side: TypeAlias = tuple[int, Tensor | None]  # labels, and their counts where these are known
CLEARLY = 2.0  # standard deviations beyond chance, by which counts speak against being alike


def told_by_both(
    pairs: Sequence[PairTarget],
    codec: Codec,
    scales: Sequence[ColumnScale],
    shares: Sequence[Floats],
    n: int,
) -> tuple[PairTarget, ...]:
    """The pairs, of which those of first and of next events tell of each other; in their order.

    Args:
      codec: of windows; pairs of other tables stay as they are.
      shares: of each column's cells, of all n records.
    """
    if not codec.domain.roles:
        return tuple(pairs)
    role = [codec.domain.roles[block.column.name] for block in codec.blocks]
    later = {one: i for i, one in enumerate(role) if one[0] == NEXT}
    index, found = {pair.columns: i for i, pair in enumerate(pairs)}, list(pairs)

    def sides(pair: PairTarget) -> list[Side]:
        return [_side(scales[c], role[c], shares[c] * n) for c in pair.columns]

    for i, pair in enumerate(pairs):
        first, second = (_later(column, role, later) for column in pair.columns)
        j = index.get((first, second))
        if j not in (None, i) and not any(scales[column].line for column in pair.columns):
            both = (pair, pairs[j])
            found[i], found[j] = _pooled(both, [sides(one) for one in both], n)
    return tuple(found)


def _later(column: int, role: Sequence[Role], later: Mapping[Role, int]) -> int:
    """The column of the next event that one of the first event, or of whose it is, is there.

    -1 for any other column.
    """
    kind, source, file = role[column]
    if kind in (PERSON, OWNER):
        return column
    return later.get((NEXT, source, file), -1) if kind == FIRST else -1


def _side(scale: ColumnScale, role: Role, counts: Floats) -> Side:
    """A list's labels, without the cell that says that there is no event, and their counts."""
    gone = scale.grid.block.missing_state
    if gone is None or role[0] in (PERSON, OWNER):
        return scale.size, None  # of those who have the event, the pair alone says how many
    return gone, torch.from_numpy(counts[:gone]).clamp_min(0.0)


def _pooled(
    pairs: tuple[PairTarget, PairTarget], sides: Sequence[Sequence[Side]], n: int
) -> tuple[PairTarget, PairTarget]:
    """Both pairs with what they say together, where they have the same labels and may be alike.

    With counts C of noise s and what E is expected if nothing goes together, the ratio C/E that
    fits both best is Σ EC/s² over Σ E²/s².
    """
    labels = [tuple(size for size, _ in one) for one in sides]
    if labels[0] != labels[1] or any(len(pair.shares) > 1 for pair in pairs):
        return pairs
    rows, columns = labels[0]
    counts = [pair.shares[0, :rows, :columns].double() * n for pair in pairs]
    expected = [_expected(count, own) for count, own in zip(counts, sides, strict=True)]
    noise = [max(pair.noise * n, 1e-6) for pair in pairs]
    parts = list(zip(counts, expected, noise, strict=True))
    total = torch.stack([(e / s) ** 2 for _, e, s in parts]).sum(dim=0).clamp_min(1e-12)
    ratio = torch.stack([e * c / s**2 for c, e, s in parts]).sum(dim=0) / total
    apart = sum(float(((c - e * ratio) ** 2 / (s**2 + e)).sum()) for c, e, s in parts)
    if apart > ratio.numel() + CLEARLY * math.sqrt(2.0 * ratio.numel()):
        return pairs
    first, later = (
        _with(pair, e * ratio / n, float((e**2 / total).mean().sqrt()) / n)
        for pair, e in zip(pairs, expected, strict=True)
    )
    return first, later


def _expected(counts: Tensor, sides: Sequence[Side]) -> Tensor:
    """Counts of two lists that have nothing to do with one another."""
    own = [counts.sum(dim=1 - i).clamp_min(0.0) for i in range(2)]
    known = [one if known is None else known for one, (_, known) in zip(own, sides, strict=True)]
    total = next((known.sum() for _, known in sides if known is not None), counts.sum())
    rows, columns = (one / one.sum().clamp_min(1e-9) for one in known)
    return torch.outer(rows, columns) * total.clamp_min(0.0)


def _with(pair: PairTarget, shares: Tensor, noise: float) -> PairTarget:
    """A pair with other shares of its labels."""
    every = pair.shares.clone()
    every[0, : shares.shape[0], : shares.shape[1]] = shares.to(every.dtype)
    return replace(pair, shares=every, noise=min(pair.noise, noise))
