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

import torch
from torch import Tensor

from core.encoding.codec import Codec
from core.encoding.windows import FIRST, NEXT, PERSON
from core.models.steps.counting.counts import PairTarget
from core.models.steps.counting.scales import ColumnScale
from core.models.steps.counting.window_pairs import Role

CLEARLY = 2.0  # standard deviations beyond chance, by which counts speak against being alike


def told_by_both(
    pairs: Sequence[PairTarget], codec: Codec, scales: Sequence[ColumnScale], n: int
) -> tuple[PairTarget, ...]:
    """The pairs, of which those of first and of next events tell of each other; by their order.

    Args:
      codec: of windows; pairs of other tables stay as they are.
      n: records.
    """
    if not codec.domain.roles:
        return tuple(pairs)
    role = [codec.domain.roles[block.column.name] for block in codec.blocks]
    later = {one: i for i, one in enumerate(role) if one[0] == NEXT}
    index, found = {pair.columns: i for i, pair in enumerate(pairs)}, list(pairs)
    for i, pair in enumerate(pairs):
        after = tuple(_later(column, role, later) for column in pair.columns)
        own = [role[column] for column in pair.columns]
        lists = all(not scales[column].line for column in pair.columns)
        if lists and None not in after and any(one[0] == FIRST for one in own):
            j = index.get((after[0] or 0, after[1] or 0))
            if j is not None:
                labels = [_labels(scales[c], role[c]) for c in pair.columns]
                found[i], found[j] = _pooled(pair, pairs[j], labels, n)
    return tuple(found)


def _labels(scale: ColumnScale, role: Role) -> int:
    """How many labels a list has, without the cell that says that there is no event."""
    gone = scale.grid.block.missing_state
    return scale.size if gone is None or role[0] == PERSON else gone


def _later(column: int, role: Sequence[Role], later: Mapping[Role, int]) -> int | None:
    """The column of the next event that a column of the first one, or of the person, is there."""
    kind, source, file = role[column]
    if kind == PERSON:
        return column
    return later.get((NEXT, source, file)) if kind == FIRST else None


def _pooled(
    first: PairTarget, later: PairTarget, labels: Sequence[int], n: int
) -> tuple[PairTarget, PairTarget]:
    """Both pairs with what they say together, where they have the same labels and may be alike.

    With counts C of noise s and what E is expected if nothing goes together, the ratio C/E that
    fits both best is Σ EC/s² over Σ E²/s².
    """
    both = (first, later)
    if first.shares.shape != later.shares.shape or len(first.shares) > 1:
        return both
    counts = [pair.shares[0, : labels[0], : labels[1]].double() * n for pair in both]
    expected = [_expected(count) for count in counts]
    noise = [max(pair.noise * n, 1e-6) for pair in both]
    known = [(one / std) ** 2 for one, std in zip(expected, noise, strict=True)]
    total = (known[0] + known[1]).clamp_min(1e-12)
    parts = zip(counts, expected, noise, strict=True)
    ratio = sum(e * c / s**2 for c, e, s in parts) / total
    parts = zip(counts, expected, noise, strict=True)
    apart = sum(float(((c - e * ratio) ** 2 / (s**2 + e)).sum()) for c, e, s in parts)
    cells = counts[0].numel()
    if apart > cells + CLEARLY * math.sqrt(2.0 * cells):
        return both
    made = [
        _with(pair, e * ratio / n, float((e**2 / total).mean().sqrt()) / n)
        for pair, e in zip(both, expected, strict=True)
    ]
    return made[0], made[1]


def _expected(counts: Tensor) -> Tensor:
    """Counts of two lists that have nothing to do with one another, by their own."""
    rows, columns = (counts.sum(dim=i).clamp_min(0.0) for i in (1, 0))
    return torch.outer(rows, columns) / counts.sum().clamp_min(1.0)


def _with(pair: PairTarget, shares: Tensor, noise: float) -> PairTarget:
    """A pair with other shares of its labels."""
    every = pair.shares.clone()
    every[0, : shares.shape[0], : shares.shape[1]] = shares.to(every.dtype)
    return replace(pair, shares=every, noise=min(pair.noise, noise))
