"""EventTable: events of people in order, and what is measured of how they follow on one another.

A person's history ends with the last event that is known, so times to an event are censored there;
the share of people who have not had one yet is estimated by Kaplan and Meier (JASA 1958).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from core.quality.aligned_tables import AlignedTable
from core.schema.calendar import DAY
from core.schema.column import Kind
from core.schema.labels import category_indices
from core.schema.person import MoreEvents, Person

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class EventTable:
    """Events of people, or of those members of theirs to whom they belong, person by person.

    Attributes:
      people: how many there are, those without events among them.
      who: int64 [e], whose each event is, ascending.
      time: float64 [e], ascending within a person; dates in days, missing ones last.
      events: their rows, with what holds for their person.
      persons: a row of each person.
      constant, own, order: columns that hold for a person, those of events, and which one sorts.
      days: whether that one holds dates.
    """

    people: int
    who: Ints
    time: Floats
    events: AlignedTable
    persons: AlignedTable
    constant: tuple[str, ...]
    own: tuple[str, ...]
    order: str
    days: bool

    @classmethod
    def of(cls, frame: pd.DataFrame, table: AlignedTable, person: Person, at: int = 0) -> Self:
        """The events of one file in a table's rows, which are read as `table`; it has an order."""
        file, owner = person.files[at], person.owner_of(person.files[at])
        who, firsts = _whose(frame, person, file)
        column = table.features[file.order or ""].column
        time, days = table.values[column.name].astype(np.float64), column.kind is Kind.DATETIME
        if days:
            time = time / DAY
        elif not column.kind.numeric:
            time = category_indices(frame[column.name], column).astype(np.float64)
        there = who >= 0
        if file.event is not None:
            there &= frame[file.event].notna().to_numpy()
        rows = np.lexsort((time, who))
        rows = rows[there[rows]]
        persons, events = table.take(firsts), table.take(rows)
        of_owner = () if owner is None else person.files[owner].own_names
        constant = tuple(n for n in (*person.constant, *of_owner) if n in table.values)
        own = (name for name in file.own_names or table.values if name in table.values)
        if owner is not None:
            events = _with(events, persons, who[rows], constant)
        return cls(
            people=persons.n,
            who=who[rows],
            time=time[rows],
            events=events,
            persons=persons,
            constant=constant,
            own=tuple(name for name in own if name not in constant),
            order=column.name,
            days=days,
        )

    def of_people(self, chosen: NDArray[np.bool_]) -> Self:
        """The events of some people, bool [people]."""
        number, kept = np.cumsum(chosen, dtype=np.int64) - 1, chosen[self.who]
        return replace(
            self,
            people=int(chosen.sum()),
            who=np.asarray(number[self.who[kept]], dtype=np.int64),
            time=self.time[kept],
            events=self.events.take(np.flatnonzero(kept)),
            persons=self.persons.take(np.flatnonzero(chosen)),
        )

    def dealt(self, rng: np.random.Generator) -> Self:
        """The same events, each dealt to a person at random."""
        who = rng.integers(self.people, size=len(self.who))
        order = np.lexsort((self.time, who))
        dealt = _with(self.events.take(order), self.persons, who[order], self.constant)
        return replace(self, who=who[order], time=self.time[order], events=dealt)

    @cached_property
    def followed(self) -> Ints:
        """Events that another one of their person follows, int64 [·]."""
        return np.flatnonzero(self.who[1:] == self.who[:-1])

    @cached_property
    def firsts(self) -> Ints:
        """The first event of each person who has one, int64 [·]."""
        return np.flatnonzero(np.diff(self.who, prepend=-1))

    @property
    def counts(self) -> Ints:
        """Events of each person, int64 [people]."""
        return np.bincount(self.who, minlength=self.people)

    @property
    def gaps(self) -> Floats:
        """From each event to the next one of its person, float64 [·]."""
        return self.time[self.followed + 1] - self.time[self.followed]

    def run_lengths(self, states: Ints) -> Ints:
        """How many events in a row are alike, int64 [runs]."""
        changed = (np.diff(self.who, prepend=-1) != 0) | (np.diff(states, prepend=-1) != 0)
        return np.diff(np.append(np.flatnonzero(changed), len(states)))

    def not_yet(self, states: Ints, label: int, times: Floats) -> Floats:
        """Shares of people who have not had a label so long after their first event, [times]."""
        person = np.cumsum(np.diff(self.who, prepend=-1) != 0) - 1
        since = self.time - self.time[self.firsts][person]
        had = np.flatnonzero(states == label)
        first = had[np.unique(person[had], return_index=True)[1]]
        until = np.append(since[self.firsts[1:] - 1], since[-1:])
        until[person[first]] = since[first]
        seen = np.zeros(len(until), dtype=bool)
        seen[person[first]] = True
        return kaplan_meier(until, seen, times)


def _whose(frame: pd.DataFrame, person: Person, file: MoreEvents) -> tuple[Ints, Ints]:
    """Whose each row of a file is, int64 [rows], -1 for others'; and the row that each has."""
    if file.owner is None:
        number = frame.groupby(list(person.columns), sort=False, dropna=False).ngroup()
        who = np.asarray(number, dtype=np.int64)
        return who, np.unique(who, return_index=True)[1]
    known = frame[file.owner].notna() & ~frame[file.owner].duplicated()
    firsts = np.flatnonzero(known.to_numpy())
    keys = pd.Index(frame[file.owner].iloc[firsts])
    return np.asarray(keys.get_indexer(frame[file.event]), dtype=np.int64), firsts


def _with(
    events: AlignedTable, persons: AlignedTable, who: Ints, constant: tuple[str, ...]
) -> AlignedTable:
    """The events with what holds for their people."""
    of_person = {name: persons.values[name][who] for name in constant}
    return AlignedTable(events.features, events.n, events.values | of_person)


def transition_counts(who: Ints, states: Ints, labels: int) -> Floats:
    """How often each label follows each, [labels, labels + 1]; the end of a history comes last."""
    ends = np.append(who[1:] != who[:-1], True)[: len(who)]
    after = np.where(ends, labels, np.append(states[1:], labels)[: len(states)])
    flat = np.bincount(states * (labels + 1) + after, minlength=labels * (labels + 1))
    return flat.reshape(labels, labels + 1).astype(np.float64)


def transition_distance(real: Floats, other: Floats) -> float:
    """Total variation of what follows a label, the mean over real events.

    >>> transition_distance(np.array([[1.0, 1.0], [4.0, 0.0]]), np.array([[1.0, 0.0], [1.0, 0.0]]))
    0.16666666666666666
    """
    one, two = (
        table / np.maximum(table.sum(axis=1, keepdims=True), 1.0) for table in (real, other)
    )
    apart = np.abs(one - two).sum(axis=1) / 2.0
    apart[other.sum(axis=1) == 0.0] = 1.0
    return float(apart @ real.sum(axis=1) / max(real.sum(), 1.0))


def kaplan_meier(until: Floats, seen: NDArray[np.bool_], times: Floats) -> Floats:
    """Shares without the event so long, float64 [times].

    Args:
      until: when it came, or when one stopped looking, float64 [n].
      seen: bool [n], whether it came.

    >>> kaplan_meier(np.array([1.0, 2.0, 3.0]), np.array([True, False, True]), np.array([0, 1, 3]))
    array([1.        , 0.66666667, 0.        ])
    """
    there = ~np.isnan(until)
    at, index = np.unique(until[there], return_inverse=True)
    came = np.bincount(index, weights=seen[there], minlength=len(at))
    looked = np.bincount(index, minlength=len(at))[::-1].cumsum()[::-1]
    left = np.append(1.0, np.cumprod(1.0 - came / np.maximum(looked, 1)))
    return np.asarray(left[np.searchsorted(at, times, side="right")])
