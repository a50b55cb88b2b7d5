"""The private embedding of a table: PEARL's releases, as its checkpoint keeps them."""

from __future__ import annotations

from typing import Any

import torch

from core.encoding.codec import Codec
from core.models.events import Emitter, Signal
from core.models.pearl.characteristic_function import (
    Embedding,
    Frequencies,
    PairDistance,
    Target,
    split_release,
)
from core.models.pearl.design import DISTANCE, EMBEDDING, Design, condition_block
from core.models.step import FitContext
from core.models.steps.training.column_bins import ColumnBins, column_bins
from core.models.steps.training.training_loop import Checkpoint
from core.privacy.guarded import PrivateTable

OCTAVES = (0.5, 16.0)  # spread of the frequencies, in units of 1/distance
PUBLIC_DISTANCE = 0.15  # assumed mean distance on [0, 1] when none is bought


def unconditional_bins(codec: Codec) -> tuple[ColumnBins, ...]:
    """Bins of the columns the generator emits: all but the class."""
    block = condition_block(codec)
    return column_bins(codec, without=None if block is None else block.column.name)


def release_distances(table: PrivateTable, checkpoint: Checkpoint, context: FitContext) -> None:
    """Make the plan's release of `DISTANCE` unless the checkpoint holds it."""
    if "matcher" in checkpoint.state or "distances" in checkpoint.state:
        return
    emitter = Emitter(context.on_event, obeys=(Signal.CANCEL,))
    emitter.phase(DISTANCE, table.plan.phase(DISTANCE).title, private=True)
    bins = unconditional_bins(Codec(table.domain))
    checkpoint.keep(distances=_released_distances(table, bins, context.device))


def release_embedding(
    table: PrivateTable, checkpoint: Checkpoint, context: FitContext, *, frequencies: int
) -> None:
    """Make the plan's release of `EMBEDDING` unless the checkpoint holds it.

    Args:
      checkpoint: gets what `stored_frequencies` and `stored_target` read.
    """
    if "matcher" in checkpoint.state:
        return
    codec = Codec(table.domain)
    bins = unconditional_bins(codec)
    design = Design.of(codec, frequencies)
    drawn = Frequencies.draw(
        bins,
        design.groups,
        distances=tuple(checkpoint.state.get("distances", [PUBLIC_DISTANCE] * len(bins))),
        octaves=OCTAVES,
        generator=torch.Generator().manual_seed(checkpoint.seed),
    )
    phase = table.plan.phase(EMBEDDING)
    mechanism = Embedding(drawn, design)
    tick = Emitter(context.on_event, obeys=(Signal.CANCEL,)).release(phase)
    release = table.release(EMBEDDING, mechanism, device=context.device, tick=tick)
    target = split_release(release, design, table.n)
    checkpoint.keep(
        lines=list(drawn.lines),
        widths=list(drawn.widths),
        phases=list(drawn.phases),
        pairs=target.pairs,
        ones=target.ones,
        shares=target.shares,
        noise_level=phase.noise_multiplier * mechanism.sensitivity / table.n,
        one_way_weight=design.one_way_weight,
        matcher=None,
    )


def stored_frequencies(codec: Codec, state: dict[str, Any]) -> Frequencies:
    """The frequencies of a stored embedding."""
    return Frequencies(
        unconditional_bins(codec),
        tuple(state["lines"]),
        tuple(state["widths"]),
        tuple(state["phases"]),
    )


def stored_target(state: dict[str, Any]) -> Target:
    """The released embedding, as it was stored."""
    return Target(state["pairs"], state["ones"], state["shares"])


def _released_distances(
    table: PrivateTable, bins: tuple[ColumnBins, ...], device: str
) -> list[float]:
    """Mean distances per column, released, then pulled to the public constant by their noise."""
    blocks = [s.block for s in bins if s.block.number is not None]
    mechanism = PairDistance(tuple((b.index, int(b.number or 0)) for b in blocks))
    total, count = table.release(DISTANCE, mechanism, device=device)
    noise = table.plan.phase(DISTANCE).noise_multiplier * mechanism.sensitivity
    mean = (total + PUBLIC_DISTANCE * noise) / (count.clamp_min(0.0) + noise + 1e-9)
    released = dict(zip((b.index for b in blocks), mean.clamp(0.02, 0.5).tolist(), strict=True))
    return [released.get(s.block.index, PUBLIC_DISTANCE) for s in bins]
