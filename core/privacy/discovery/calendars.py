"""Which days and hours dates keep to, and how round their clock is: by released counts of fields.

Statements come on the last of a month, bookings on working days, visits at a quarter past. Models
draw moments on a line and know none of it, so `core.encoding.calendar_moves` moves drawn dates.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.privacy.discovery.bins_in_a_row import Counts
from core.privacy.discovery.number_steps import coarsest
from core.privacy.discovery.thresholds import FEW_RECORDS, HEAPED, MANY, SURE
from core.schema.calendar import CELLS, CLOCK, DAY, Calendar, cells_of, days_since
from core.schema.column import SchemaColumn

SURPRISE = 4.0  # standard deviations by which a field's χ² exceeds that of an even one
LEAST = 1e-6  # share of a cell of which it is not sure that it is empty
Shares = tuple[float, ...]


def learned_clock(column: SchemaColumn, counts: Counts, std: float) -> float:
    """The coarsest of `CLOCK` that nearly all moments are multiples of; the format's without one.

    Args:
      counts: of the field "clock", noisy, then of missing cells; `std` of the noise in each.
    """
    return max(column.step, coarsest(counts[:-1], CLOCK, std))


def with_calendars(
    fields: Sequence[tuple[SchemaColumn, str]],
    counts: Sequence[Counts],
    columns: Sequence[SchemaColumn],
    n: int,
    std: float,
    peaks: Mapping[str, Mapping[float, float]],
) -> tuple[SchemaColumn, ...]:
    """The columns; dates know how often they lie in the cells of each field.

    Args:
      counts: of each field, noisy, then of missing cells; `std` of the noise in each.
      columns: with their ranges, as they were found.
      peaks: by name, single days that many hold, with their counts: they say nothing of others.
    """
    found: dict[str, dict[str, Any]] = {}
    by_name = {column.name: column for column in columns}
    for (column, field), cells in zip(fields, counts, strict=True):
        if field == "hour" and by_name[column.name].step >= DAY:
            continue
        there = n - float(cells[-1]) if by_name[column.name].missing else float(n)
        own = [day for day in peaks[column.name] if day in by_name[column.name].spikes]
        others = cells[:-1].copy()
        for day in own:
            others[int(cells_of(field, np.array([day]))[0])] -= peaks[column.name][day]
            there -= peaks[column.name][day]
        shares = shares_of(field, others, there, std)
        if shares:
            found.setdefault(column.name, {})[field] = shares
            found[column.name]["noise"] = std / max(float(others.sum()), 1.0)
    for name, known in found.items():
        column = by_name[name]
        if column.learned is not None:
            learned = column.learned.model_copy(update={"calendar": Calendar(**known)})
            by_name[name] = column.model_copy(update={"learned": learned})
    return tuple(by_name.values())


def shares_of(field: str, cells: Counts, there: float, std: float) -> Shares:
    """How often dates lie in each cell, 0 where they surely do not; () where noise hides it.

    Where they are not even, cells that noise alone explains are empty if all of them together hold
    next to nothing: by their own counts, and by what all others leave. Months count only if some
    are empty: what else is true of them, models see.

    Args:
      cells: noisy counts; `std` of the noise in each.
      there: records with a date, about.
    """
    size = len(cells)
    if float(cells.sum()) <= MANY * std * math.sqrt(size):
        return ()
    hidden = cells <= HEAPED * std
    inside, outside = max(1, int(hidden.sum())), max(1, size - int(hidden.sum()))
    own, left = float(cells[hidden].sum()), there - float(cells[~hidden].sum())
    rest = (outside * own + inside * left) / (inside + outside)  # weighed by their precision
    error = std * math.sqrt(inside * outside / (inside + outside))
    few = FEW_RECORDS * there + SURE * error
    surprise = float(((cells - there * _even(field)) ** 2).sum()) / std**2 - size
    if surprise > SURPRISE * math.sqrt(2.0 * size) and rest <= few:
        shares = np.where(hidden, 0.0, cells)
    elif field == "month":
        return ()
    else:
        shares = np.maximum(cells, LEAST * there)
    return () if field == "month" and shares.all() else tuple((shares / shares.sum()).tolist())


def _even(field: str) -> NDArray[np.float64]:
    """Shares of the cells of a field among all moments of four hundred years, float64 [cells]."""
    if field == "hour":
        return np.full(CELLS[field], 1.0 / CELLS[field])
    days = np.arange(days_since(2000, 1, 1), days_since(2400, 1, 1), dtype=np.float64)
    cells = cells_of(field, days * DAY).astype(np.int64)
    return np.bincount(cells, minlength=CELLS[field]) / len(days)
