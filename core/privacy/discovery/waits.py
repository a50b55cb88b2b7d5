"""Dates that follow soon after one another: by released counts of how long after.

What a row's dates have in common says more than that each lies in its range: a stay ends days after
it begins, in a range of years. Where that is so, models see the wait in place of the later date.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from core.privacy.discovery.bins_in_a_row import Counts
from core.privacy.discovery.grids import WAITS
from core.privacy.discovery.ranges import NARROW
from core.privacy.discovery.thresholds import FEW_RECORDS, MANY
from core.schema.column import Provenance, SchemaColumn, SchemaError
from core.schema.rules.rules import AtMost
from core.schema.schema import Schema

LATE = 0.1  # of the waits may be longer than what counts as soon
CHANCE = 2.0  # standard deviations of noise that none before may look like: one in 44 tables


def with_waits(
    waits: Sequence[tuple[str, str]],
    counts: Sequence[Counts],
    columns: Sequence[SchemaColumn],
    std: float,
) -> tuple[SchemaColumn, ...]:
    """The columns; dates say which other one they are never before, and mostly soon after.

    Args:
      counts: of each two dates, by `wait_grid`, noisy.
      columns: with their ranges, as they were found.
      std: of the noise in each count.
    """
    by_name = {column.name: column for column in columns}
    found = list[tuple[float, str, str]]()
    for (low, high), cells in zip(waits, counts, strict=True):
        dated = by_name[high]
        soon = _soon(cells, std)
        if soon is not None and soon * NARROW <= (dated.high or 0.0) - (dated.low or 0.0):
            found.append((soon, low, high))
    after = dict[str, str]()
    for _, low, high in sorted(found, key=lambda one: one[0]):
        if high not in after and high not in _before(low, after):
            after[high] = low
    for high, low in after.items():
        dated = by_name[high]
        if dated.learned is not None:
            learned = dated.learned.model_copy(update={"after": low})
            by_name[high] = dated.model_copy(update={"learned": learned})
    return tuple(by_name.values())


def _before(name: str, after: Mapping[str, str]) -> list[str]:
    """A date, and those that it follows on."""
    found = [name]
    while found[-1] in after:
        found.append(after[found[-1]])
    return found


def with_orders(schema: Schema) -> Schema:
    """The schema with the orders of dates that its columns were learned with, where there is room.

    Those of an earlier run, too. The steward declared what else holds, so it comes first.
    """
    for column in schema.columns:
        if column.learned is None or not column.learned.after:
            continue
        if column.provenance is Provenance.LEARNED and column.modelled:
            order = AtMost(low=column.learned.after, high=column.name, learned=True)
            tried = schema.model_copy(update={"rules": (*schema.rules, order)})
            schema = tried if _has_room(tried, order) else schema
    return schema


def _has_room(schema: Schema, order: AtMost) -> bool:
    try:
        return order in schema.domain().rules
    except SchemaError:
        return False


def _soon(cells: Counts, std: float) -> float | None:
    """Within how many seconds nearly all waits end; None where some are negative, or too few."""
    before, after = float(cells[0]), cells[1:-1]
    there = before + float(after.sum())
    if (
        there <= MANY * std * math.sqrt(len(cells) - 1)
        or before > FEW_RECORDS * there + CHANCE * std
    ):
        return None
    for i, seconds in enumerate(WAITS):
        if after[: i + 1].sum() >= (1.0 - LATE) * there:
            return seconds
    return None
