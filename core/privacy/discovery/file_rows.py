"""Rows of people with several linked files, side by side: each file counts as if it were alone.

In the table of all files each row is an event of one, and the columns of the others are missing
there. So whoever has ten visits and one loan would have a tenth of a vote on loans. Here a person
has as many rows as hold the events of each file alike often, one beside the other.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from core.encoding.person_rows import PersonRows, cell_hashes
from core.schema.person import Person

Indices = NDArray[np.int64]
NOBODY = -1  # of a row where somebody has no event in a file


class _Events(NamedTuple):
    """The events of a file that are used, a person after the other."""

    rows: Indices
    counts: Indices  # int64 [n]


def side_by_side(
    rows: pd.DataFrame, number: Indices, unit: Person
) -> tuple[pd.DataFrame, PersonRows]:
    """Rows in which every person has each event of a file at least once, and alike often.

    Of a file with r events of a person, each is in ⌊R / r⌋ of R rows at least; R is the least
    number that all r divide, or `unit.rows` if that is less. Nobody else's rows decide.

    Args:
      rows: of the table of all files, with the keys of their events.
      number: int64 [rows], whose each row is; every number from 0 to n - 1 at least once.
    """
    people = int(number.max()) + 1
    content = np.broadcast_to(cell_hashes(rows[name] for name in rows), len(rows))
    used = [
        _events(np.flatnonzero(rows[key].notna()), number, content, people, unit.rows)
        for key in unit.several_files
    ]
    counts = np.ones(people, dtype=np.int64)
    for events in used:
        counts = np.minimum(np.lcm(counts, np.maximum(events.counts, 1)), unit.rows)
    person = np.repeat(np.arange(people), counts)
    offsets = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(counts)])
    turn = np.arange(len(person)) - offsets[person]
    first = np.full(people, len(rows), dtype=np.int64)
    np.minimum.at(first, number, np.arange(len(rows)))
    taken = {name: first[person] for name in rows}
    for file, events in zip(unit.files, used, strict=True):
        own = events.counts[person]
        starts = np.cumsum(events.counts) - events.counts
        at = starts[person] + turn * own // counts[person]
        event = np.append(events.rows, NOBODY)[np.where(own > 0, at, len(events.rows))]
        taken |= {name: event for name in file.own_names if name in taken}
    table = {name: _taken(rows[name], where) for name, where in taken.items()}
    return pd.DataFrame(table), PersonRows(offsets)


def _events(
    there: Indices, number: Indices, content: NDArray[np.uint64], people: int, most: int
) -> _Events:
    """At most so many events of each person, chosen by what is in them."""
    ordered = there[np.lexsort((content[there], number[there]))]
    whole = np.bincount(number[ordered], minlength=people)
    rank = np.arange(len(ordered)) - (np.cumsum(whole) - whole)[number[ordered]]
    return _Events(ordered[rank < most], np.minimum(whole, most).astype(np.int64))


def _taken(cells: pd.Series[Any], where: Indices) -> pd.Series[Any]:
    """Cells of rows, missing where nobody's is taken."""
    known = cells.reset_index(drop=True)
    return (known.iloc[where] if where.min() >= 0 else known.reindex(where)).reset_index(drop=True)
