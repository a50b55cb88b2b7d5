"""Mixtures of windows: each component is of people without an event, with one, or with several.

Who has no event misses every column of events, and who has one those of the next event. A component
of all of them would miss these columns by themselves, and a mixture would have to learn of any two
that they are missing together; where some events miss a column too, it would confuse the two.
"""

from __future__ import annotations

import torch
from torch import Tensor

from core.encoding.codec import Block
from core.encoding.windows import AGAIN, FIRST, GAP, LEFT, NUMBER, OWNER, PERSON, PLACE, SINCE
from core.models.scan_focus.events_shown import never_missing, of_role
from core.models.steps.counting.releases import Releases
from core.models.steps.counting.window_pairs import next_times

OF_STEPS = (PLACE, LEFT, AGAIN)  # columns that every window has
SEVERAL = 2  # events, of which any number makes windows


def barred_cells(known: Releases, starts: Tensor) -> Tensor | None:
    """What components never have: bool [mixtures, cells, components]; None of other tables.

    Args:
      starts: [mixtures, cells, components], see `anchors`; a component's number of events there
        says of whom it is.
    """
    roles = known.codec.domain.roles
    if not roles:
        return None
    sizes = [scale.size for scale in known.scales]
    barred = torch.zeros(starts.shape, dtype=torch.bool)
    parts, begun = (torch.split(one, sizes, dim=1) for one in (barred, starts))
    complete = _complete(known)
    for number, file in of_role(known, NUMBER):
        least = int(number.states[0] != "0")
        picked = begun[number.index].argmax(dim=1)
        events = (picked + least).clamp_max(SEVERAL)[:, None]  # [mixtures, 1, components]
        labels = torch.arange(least, least + sizes[number.index]).clamp_max(SEVERAL)
        parts[number.index].copy_(labels[:, None] != events)
        for block in known.codec.blocks:
            role, _, of = roles[block.column.name]
            gone = known.scales[block.index].missing_cell
            if of != file or role in (PERSON, OWNER, NUMBER) or gone is None:
                continue
            there = events >= (1 if role == FIRST else SEVERAL)
            missing = (torch.arange(sizes[block.index]) == gone)[:, None]
            kept = there & (block.index in complete)
            parts[block.index].copy_((~there & ~missing) | (kept & missing))
    return barred


def _complete(known: Releases) -> set[int]:
    """Indices of columns that no event, or no window, misses."""
    roles, blocks = known.codec.domain.roles, known.codec.blocks
    shown = {roles[name][1:] for name in never_missing(known)}
    sorting = {roles[blocks[time.first].column.name][1:] for time in next_times(roles, blocks)}
    dated = {file for source, file in shown & sorting}

    def complete(block: Block) -> bool:
        role, source, file = roles[block.column.name]
        of_times = role in (GAP, SINCE) and file in dated
        return role in OF_STEPS or of_times or (source, file) in shown

    return {block.index for block in blocks if complete(block)}
