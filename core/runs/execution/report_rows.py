"""Rows of two tables to be compared: all of them, or a sample by public index where they are many.

Which rows are looked at depends on how many there are and on nothing in them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from core.encoding.holdout import held_out
from core.quality.comparison import TABLE_ROWS
from core.reading.typed_cells import typed_rows
from core.runs.records import RunRecord
from core.runs.storage.artefacts import ArtefactStore
from core.runs.storage.row_batches import row_batches, row_count
from core.runs.storage.store import RunStore

MOST_CELLS = 2**25  # of a table that is compared: half a million rows of 64 columns
FEWEST_ROWS = 20_000  # that are compared of the widest table
Rows = TypeVar("Rows", pd.DataFrame, pa.Table)
_KEY = 0xC0DE  # public: the same rows every time


@dataclass(frozen=True)
class Side:
    """What is looked at of a table.

    Attributes:
      of: how many rows the table has.
    """

    rows: pd.DataFrame
    of: int


def most_rows(columns: int) -> int:
    """How many rows of a table of so many columns, ≥ 1, are compared at most."""
    return max(FEWEST_ROWS, min(TABLE_ROWS, MOST_CELLS // columns))


def synthetic_side(artefacts: ArtefactStore, name: str, *, together: bool = False) -> Side:
    """Rows of a table among a run's artefacts; the first ones where a person's lie together."""
    with artefacts.readable(name) as file:
        n, columns = row_count(file)
        if n <= most_rows(columns):
            return Side(pd.read_parquet(file), n)
        most = most_rows(columns)
        parts = _taken(row_batches(file), np.arange(most) if together else _sample(n, most))
        return Side(pd.concat(parts, ignore_index=True), n)


def real_sides(store: RunStore, run: RunRecord, columns: Sequence[str]) -> tuple[Side, Side]:
    """Rows that a run was trained on, and rows that were kept out of it."""
    schema, n = run.schema, store.table(run.table_id).n
    most = most_rows(len(columns))
    together = schema.person is not None and schema.person.grouped
    if n <= most or together:  # whose rows are whose is known only when all have been read
        split = store.load_split(run.table_id, schema, columns)
        trained, kept_out = (Side(part, len(part)) for part in split)
        return trained, kept_out
    out = held_out(n, schema.holdout)
    sides = [np.flatnonzero(~out), np.flatnonzero(out)]
    chosen = [side[_sample(len(side), most)] for side in sides]
    both = np.union1d(*chosen)
    raw = pa.concat_tables(_taken(store.raw_batches(run.table_id, columns=columns), both))
    rows, kept = typed_rows(raw, [schema[name] for name in columns]), out[both]
    return (
        Side(rows[~kept].reset_index(drop=True), len(sides[0])),
        Side(rows[kept].reset_index(drop=True), len(sides[1])),
    )


def _sample(n: int, most: int) -> NDArray[np.int64]:
    """At most so many of n rows, ascending."""
    if n <= most:
        return np.arange(n)
    return np.sort(np.random.default_rng(_KEY).choice(n, most, replace=False))


def _taken(batches: Iterable[Rows], positions: NDArray[np.int64]) -> list[Rows]:
    """The rows at these positions, ascending, of a table that comes some rows at a time."""
    parts, start = [], 0
    for batch in batches:
        first, last = np.searchsorted(positions, [start, start + len(batch)])
        here = positions[first:last] - start
        parts.append(batch.take(here))
        start += len(batch)
    return parts
