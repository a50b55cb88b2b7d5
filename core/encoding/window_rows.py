"""Windows of all files side by side: the rows that a model of histories sees of each person."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from core.encoding.codec import Codes
from core.encoding.layout.layout import Layout
from core.encoding.windows import NONE, Floats, History, Indices, Windows, in_order, moved
from core.schema.labels import to_labels
from core.schema.person import Person

_TURN = (5.0**0.5 - 1.0) / 2.0  # public, apart from one owner of a person to the next


def windows_of(
    frame: pd.DataFrame, layout: Layout, number: Indices, person: Person
) -> tuple[Codes, Indices]:
    """The windows of people's histories, and where each person's begin, int64 [n + 1].

    Args:
      number: int64 [rows], whose each row is, every number from 0 to n - 1 at least once.
    """
    assert layout.windows is not None, "the layout is one of histories"
    codes = layout.windows.source.encode(layout.to_model(frame))
    parts, known = [], list[_Known]()
    for windows, there, file in zip(layout.files, layout.of_file(frame), person.files, strict=True):
        times = windows.sorts(codes)
        if windows.owner is None:
            history = in_order(number, times, there, codes, person.rows)
            seen, offsets = windows.encode(codes, history)
            known.append(_Known(history, np.arange(len(history.counts))))
        else:
            first = known[0].history.of_person
            keys = [frame[name] for name in (file.owner, file.event) if name is not None]
            owners, people = _owners(known[windows.owner], first)
            rows, whose = _rows_of_owners(owners, people, keys, number, there, first)
            there = np.arange(len(rows)) >= len(owners)
            times = None if times is None else times[rows]
            history = in_order(whose, times, there, codes.take(rows), person.rows)
            history = History(rows[history.of_person], rows[history.events], history.counts, owners)
            seen, offsets = windows.encode(codes, history)
            index, offsets = _evened(np.diff(offsets), people, _phases(codes.take(first)))
            seen = seen.take(index)
            known.append(_Known(history, people))
        parts.append((windows, seen, offsets))
    if len(parts) == 1:
        return parts[0][1:]
    return side_by_side(parts, codes.take(known[0].history.of_person))


class _Known(NamedTuple):
    """Histories of a file, and whose each is, int64 [histories]."""

    history: History
    people: Indices


def side_by_side(
    parts: Sequence[tuple[Windows, Codes, Indices]], first: Codes
) -> tuple[Codes, Indices]:
    """Windows of several files as one row each: as many of a person as the longest history has.

    Those of shorter ones come again, each as often as any other within one; which of them once more
    is decided by what is in a row of the person.

    Args:
      parts: windows of a file, and where each person's begin, int64 [n + 1].
      first: a row of each person.
    """
    counts = [np.diff(offsets) for _, _, offsets in parts]
    most = np.maximum.reduce(counts)
    offsets = np.concatenate([[0], np.cumsum(most)]).astype(np.int64)
    who, phase = np.repeat(np.arange(len(most)), most), _phases(first)
    seen = parts[0][0].blank(len(who))
    for (windows, codes, begin), own in zip(parts, counts, strict=True):
        turn = _again(own, most, phase)
        for block in windows.by_role.values():
            moved(codes, block, seen, block, begin[who] + turn)
    return seen, offsets


def _phases(first: Codes) -> Floats:
    """A number from 0 to 1 of each person, by what is in a row of theirs, float64 [n]."""
    cells = pd.DataFrame(np.hstack([first.states, first.values]))
    hashes = pd.util.hash_pandas_object(cells, index=False).to_numpy()
    return np.asarray(hashes % 2**20 / 2**20, dtype=np.float64)


def _again(counts: Indices, most: Indices, phase: Floats) -> Indices:
    """Which of its rows each takes in turn, so many in all, about equally often."""
    of = np.repeat(np.arange(len(most)), most)
    place = np.arange(len(of)) - np.repeat(np.cumsum(most) - most, most)
    return np.floor((place + phase[of]) * counts[of] / most[of]).astype(np.int64) % counts[of]


def _owners(known: _Known, first: Indices) -> tuple[Indices, Indices]:
    """Rows that events belong to, a person after the other, and whose they are.

    Args:
      known: histories of the owners, which are events themselves.
      first: a row of each person.

    Returns:
      Rows, NONE for people without any, and the person of each; int64 [owners] both.
    """
    people = np.repeat(known.people, known.history.counts)
    none = np.setdiff1d(np.arange(len(first)), people)
    rows = np.concatenate([known.history.events, np.full(len(none), NONE)])
    people = np.concatenate([people, none])
    order = np.argsort(people, kind="stable")
    return rows[order], people[order]


def _rows_of_owners(
    owners: Indices,
    people: Indices,
    keys: Sequence[pd.Series[Any]],
    number: Indices,
    there: NDArray[np.bool_],
    first: Indices,
) -> tuple[Indices, Indices]:
    """A row of each owner, then all of their events, and whose each is, int64 [rows] both.

    Events of nobody's, or of owners beyond m, are left out. Keys are compared within a person.

    Args:
      keys: of owners and of events, as both have it.
      there: which rows are events.
    """
    real, events = np.flatnonzero(owners != NONE), np.flatnonzero(there)
    known = pd.DataFrame(
        {
            "person": people[real],
            "key": to_labels(keys[0].iloc[owners[real]]).to_numpy(),
            "owner": real,
        }
    ).drop_duplicates(["person", "key"])
    asked = pd.DataFrame(
        {"person": number[events], "key": to_labels(keys[1].iloc[events]).to_numpy()}
    )
    owner = asked.merge(known, how="left", on=["person", "key"])["owner"].to_numpy()
    found = ~np.isnan(owner)
    own = np.where(owners == NONE, first[people], owners)
    return (
        np.concatenate([own, events[found]]),
        np.concatenate([np.arange(len(owners)), owner[found].astype(np.int64)]),
    )


def _evened(counts: Indices, people: Indices, phase: Floats) -> tuple[Indices, Indices]:
    """Which windows to take so that a person's owners weigh the same.

    Args:
      counts: windows of each owner.
      people: whose each owner is, ascending, everybody at least once.

    Returns:
      Windows, int64, and where each person's begin, int64 [n + 1].
    """
    starts = np.flatnonzero(np.diff(people, prepend=-1))
    most = np.maximum.reduceat(counts, starts)[people]
    place = np.arange(len(people)) - starts[people]
    begins = np.repeat(np.cumsum(counts) - counts, most)
    index = begins + _again(counts, most, (phase[people] + place * _TURN) % 1.0)
    rows = np.bincount(people, weights=most).astype(np.int64)
    return index, np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(rows)])
