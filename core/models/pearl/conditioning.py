"""What plan and fit must agree on: phase names and the conditioning column; needs no torch."""

from __future__ import annotations

from core.table.codec import Block, Codec

__all__ = ["DISTANCE", "EMBEDDING", "MOST_CLASSES", "condition_block"]

EMBEDDING, DISTANCE = "embedding", "distance"  # PEARL's phases
MOST_CLASSES = 20  # a target with more states is learned as an ordinary column


def condition_block(codec: Codec) -> Block | None:
    """The target's block when it is a list of at most `MOST_CLASSES` states, else None."""
    if codec.domain.target is None or len(codec.blocks) < 2:
        return None
    block = codec.block(codec.domain.target)
    few = block.number is None and len(block.states) <= MOST_CLASSES
    return block if few else None
