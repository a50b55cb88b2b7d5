"""Windows: what a model sees of a person's history, and the way back to events.

A window is two events of one person that follow on one another, beside what holds for the person: a
row of a wider table. Somebody with r events has r - 1 windows, and whoever has fewer than two has
one without events. Each counts one over its person's windows, so every statistic is the mean over a
person's windows and moves by what one record moves it, however many events there may be. Columns of
the person (constants, number of events, first event) weigh one, since all windows agree on them.

Both events of a window have the bins and labels of one column, which was learned once. Of a column
that sorts by numbers or dates, windows hold the distance to the next event. What has been so far is
in a window as well: the event's place, how many are left, the time since the first, and of lists
whether the next event's label has been before this event.

Where events belong to rows that belong to people (visits of the members of a household), histories
are of those rows, their *owners*: a window has the columns of its owner beside what holds for the
person, and owners of one person weigh the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from core.encoding.codec import Block, Codec, Codes
from core.encoding.count_bins import CountBins
from core.schema.schema import Domain

Indices = NDArray[np.int64]
Floats = NDArray[np.float64]
NONE = -1  # no such event
PERSON, NUMBER, FIRST, NOW, NEXT = "person", "number", "first", "now", "next"
OWNER = "owner"  # what holds for the row that events belong to
GAP, SINCE, PLACE, LEFT = "gap", "since", "place", "left"
AGAIN = "again"  # whether the next event has a label that was there before this one has another
AGAIN_LABELS = ("no", "yes")
RARELY_MISSING = 0.05  # share of events with a missing cell, which noise alone may explain
PEOPLE_AT_ONCE = 2**16  # whose events are looked at together
MIX = np.uint64(0x9E3779B97F4A7C15)  # public and odd, for hashes of equal cells and events


@dataclass(frozen=True)
class History:
    """Events of people in order, by their rows.

    Attributes:
      of_person: int64 [n], a row of each person, from which what holds for them is read.
      events: int64 [e], rows, a person after the other.
      counts: int64 [n], events of each person.
      owners: int64 [n], where histories are of rows of people, those rows, or NONE; None elsewhere.
    """

    of_person: Indices
    events: Indices
    counts: Indices
    owners: Indices | None = None

    @property
    def windows(self) -> Indices:
        """How many each person has, int64 [n]."""
        return np.maximum(self.counts - 1, 1)

    @property
    def starts(self) -> Indices:
        """Where each person's events begin, int64 [n]."""
        return np.asarray(np.cumsum(self.counts) - self.counts)


def in_order(
    person: Indices, order: Floats | None, there: NDArray[np.bool_], content: Codes, most: int
) -> History:
    """At most so many events of each person, the first ones.

    Events at the same time, and all where nothing sorts, come in an order by what is in them, which
    puts equal ones nowhere in particular. Nobody else's rows decide.

    Args:
      person: int64 [rows], whose each is, every number from 0 to n - 1 at least once.
      order: float64 [rows], by which events are sorted, missing ones last.
      there: bool [rows], False where a row only says that somebody has no event.
    """
    cells = {f"state {i}": states for i, states in enumerate(content.states.T)}
    cells |= {f"value {i}": values for i, values in enumerate(content.values.T)}
    hashes = pd.util.hash_pandas_object(pd.DataFrame(cells), index=False).to_numpy()
    twins = _before(person, np.asarray(hashes, dtype=np.uint64)).astype(np.uint64)
    ties = pd.util.hash_array(hashes + twins * MIX)
    sorts = np.zeros(len(person)) if order is None else np.nan_to_num(order, nan=np.inf)
    rows = np.lexsort((ties, sorts, ~there, person))
    counts = np.bincount(person[there], minlength=int(person.max()) + 1)
    first = np.searchsorted(person[rows], np.arange(len(counts)))
    rank = np.arange(len(rows)) - first[person[rows]]
    kept = np.minimum(counts, most)
    return History(rows[first], rows[rank < kept[person[rows]]], kept.astype(np.int64))


def _before(person: Indices, hashes: NDArray[np.uint64]) -> Indices:
    """How many rows with the same content a person has before each, int64 [rows]."""
    order, every = np.lexsort((hashes, person)), np.arange(len(person))
    whose, content = person[order], hashes[order]
    new = np.ones(len(order), dtype=bool)
    new[1:] = (whose[1:] != whose[:-1]) | (content[1:] != content[:-1])
    before = np.empty_like(every)
    before[order] = every - np.maximum.accumulate(np.where(new, every, 0))
    return before


@dataclass(frozen=True)
class Windows:
    """Windows of one table.

    Attributes:
      source: codec of the columns that windows are made of.
      domain: of the windows, of all files where there are several.
      roles: what the columns of these windows are, and of which column they are made.
      order: the column whose distance is learned; None without one.
      waits_from: a column of how long after that an event ends, from where the wait for the next
        one counts, and what one of it is worth in the column that sorts; None where events take no
        time.
      numbers, places: labels of numbers of events, and of places and what is left.
      limits: what a person's events end by, each a sum of the person's columns, in the unit of the
        column that sorts: what one of each is worth.
      owner: the file whose rows these events belong to; None where they belong to people.
    """

    source: Codec
    domain: Domain
    roles: Mapping[str, tuple[str, str]]
    order: str | None
    waits_from: tuple[str, float] | None
    numbers: CountBins
    places: CountBins
    left: CountBins
    limits: tuple[Mapping[str, float], ...] = ()
    owner: int | None = None

    @cached_property
    def codec(self) -> Codec:
        """Of the windows."""
        return Codec(self.domain)

    @cached_property
    def by_role(self) -> dict[tuple[str, str], Block]:
        """The block of each role and source."""
        return {role: self.codec.block(name) for name, role in self.roles.items()}

    def names(self, *roles: str) -> list[str]:
        """Columns of windows with one of these roles."""
        return [name for name, (role, _) in self.roles.items() if role in roles]

    @property
    def events(self) -> list[str]:
        """Columns of the table that both events of a window have."""
        return [source for role, source in self.by_role if role == NEXT]

    @cached_property
    def twins(self) -> dict[str, str]:
        """Of each column of the next event, the same one of the event before, by name."""
        blocks = self.by_role
        return {blocks[NEXT, e].column.name: blocks[NOW, e].column.name for e in self.events}

    @property
    def few(self) -> list[int]:
        """Which labels of numbers of events are of nobody who has a window with events."""
        return [i for i, (_, last) in enumerate(self.numbers.bins) if last < 2]

    @cached_property
    def again(self) -> dict[str, str]:
        """Of each list of the next event, the column that says whether its label has been before.

        By name; of the lists that have one.
        """
        blocks, own = self.by_role, [source for role, source in self.by_role if role == AGAIN]
        return {blocks[NEXT, e].column.name: blocks[AGAIN, e].column.name for e in own}

    @property
    def unit(self) -> float:
        """What one of a distance is worth in the column that sorts."""
        return self.source.block(self.order).column.step or 1.0 if self.order else 1.0

    @property
    def last(self) -> float:
        """The most that the column which sorts may hold; infinite without one."""
        if self.order is None:
            return np.inf
        block = self.source.block(self.order)
        return block.present - 1.0 if block.number is None else block.line.high

    def until(self, codes: Codes, blocks: Mapping[str, Block]) -> Floats:
        """The most that the column which sorts may hold of each person's events, float64 [n].

        Args:
          blocks: of columns of the person, by source.
        """
        until = np.full(len(codes), self.last)
        for limit in self.limits:
            ends = np.zeros(len(codes))
            for name, worth in limit.items():
                ends += worth * codes.numbers(blocks[name])
            until = np.fmin(until, ends)
        return until

    @cached_property
    def of_person(self) -> dict[str, Block]:
        """The blocks of the person's columns, by source."""
        return {source: block for (role, source), block in self.by_role.items() if role == PERSON}

    def end(self, rows: Codes) -> None:
        """Move rows of the table's own columns to where their person's end, in place."""
        if self.order is None or not self.limits:
            return
        block = self.source.block(self.order)
        times, own = (
            sort_keys(rows, block),
            {name: self.source.block(name) for name in self.of_person},
        )
        until = self.until(rows, own)
        late = np.flatnonzero(times > until)
        some = rows.take(late)
        write_sort_keys(some, block, until[late])
        rows.states[late], rows.values[late] = some.states, some.values

    def ending_by(self, limits: Iterable[tuple[str, str]]) -> Windows:
        """The same with more limits: columns of a person, of those with these windows' waits."""
        more = ({self.roles[name][1]: 1.0} for name, wait in limits if wait in self.roles)
        return replace(self, limits=(*self.limits, *more))

    def sorts(self, codes: Codes) -> Floats | None:
        """The column that sorts, float64 [rows]."""
        return None if self.order is None else sort_keys(codes, self.source.block(self.order))

    def taken(self, codes: Codes, blocks: Mapping[str, Block]) -> Floats:
        """How long each event takes, in the unit of distances: 0 where that is not known."""
        if self.waits_from is None:
            return np.zeros(len(codes))
        name, worth = self.waits_from
        return np.nan_to_num(codes.numbers(blocks[name])) * (worth / self.unit)

    def encode(self, codes: Codes, history: History) -> tuple[Codes, Indices]:
        """Rows → windows, a person's side by side, and where each person's begin, int64 [n + 1]."""
        who = np.repeat(np.arange(len(history.counts), dtype=np.int32), history.windows)
        offsets = np.concatenate([[0], np.cumsum(history.windows)]).astype(np.int64)
        step = np.arange(len(who), dtype=np.int32) - offsets.astype(np.int32)[who]
        count = history.counts.astype(np.int32)[who]  # of many windows, each takes much memory
        seen, two = self.blank(len(who)), count > 1
        self.write(seen, NUMBER, count)
        self.write(seen, PLACE, step + 1, two)
        self.write(seen, LEFT, count - step - 2, two)
        event = (history.events if len(history.events) else np.zeros(1)).astype(np.int32)
        start = np.minimum(history.starts.astype(np.int32)[who], np.int32(len(event) - 1))
        first = np.where(count > 0, event[start], NONE)
        del count
        place = np.where(two, start + step, 0)
        now, after = (np.where(two, event[at], NONE) for at in (place, place + two))
        self._write_again(seen, codes, history, place + two, two)
        del start, step, place
        persons = history.of_person.astype(np.int32)
        rows = {FIRST: first, NOW: now, NEXT: after, PERSON: persons[who]}
        if history.owners is not None:
            rows[OWNER] = history.owners.astype(np.int32)[who]
        for (role, source), block in self.by_role.items():
            if role in rows:
                moved(codes, self.source.block(source), seen, block, rows[role])
        del rows, who
        times = self.sorts(codes)
        if times is not None:
            own = {block.column.name: block for block in self.source.blocks}
            waits = (times[after] - times[now]) / self.unit - self.taken(codes, own)[now]
            self.write(seen, GAP, waits, two)
            self.write(seen, SINCE, (times[now] - times[first]) / self.unit, two)
        return seen, offsets

    def _write_again(
        self, seen: Codes, codes: Codes, history: History, after: Indices, two: NDArray[np.bool_]
    ) -> None:
        """Whether the label of each next event has been before, see `AGAIN`.

        Args:
          after: int64 [windows], where next events stand among all events; any number where `two`
            says that there is none.
        """
        if not self.again:
            return
        begins = np.append(history.starts, len(history.events))
        for name in self.again.values():
            own, block = self.source.block(self.roles[name][1]), self.codec.block(name)
            label = codes.states[history.events, own.index]
            again = np.zeros(len(label) + 1, dtype=bool)
            for first in range(0, len(history.counts), PEOPLE_AT_ONCE):
                counts = history.counts[first : first + PEOPLE_AT_ONCE]
                part = slice(begins[first], begins[first + len(counts)])
                again[part] = _again(label[part], counts) & (label[part] < own.present)
            there = again[after]
            seen.states[:, block.index] = np.where(two, there, block.missing_state or 0)

    def blank(self, rows: int) -> Codes:
        """Codes to be written."""
        states = np.zeros((rows, len(self.codec.blocks)), dtype=np.int32)
        return Codes(states, np.zeros((rows, self.codec.numbers)))

    def block(self, role: str) -> Block:
        """That of a role of one column."""
        return self.by_role[role, ""]

    def write(
        self, codes: Codes, role: str, values: NDArray[Any], there: NDArray[np.bool_] | None = None
    ) -> None:
        """Write a column that is made of places or times; missing where `there` says no, or NaN."""
        block = self.block(role)
        there = np.ones(len(codes), dtype=bool) if there is None else there
        if block.number is None:
            bins = {NUMBER: self.numbers, PLACE: self.places, LEFT: self.left}[role]
            state = bins.index(values).astype(np.int32)
        else:
            there = there & ~np.isnan(values)
            inside = np.where(there, values, block.line.low)
            state, position = block.snapped(inside)
            codes.values[:, block.number] = np.where(there, position, 0.0)
        absent = block.missing_state or 0
        codes.states[:, block.index] = np.where(there, state, absent)

    def to_rows(self, codes: Codes, role: str, rows: Codes) -> None:
        """Write the events, or the persons, of windows into codes of the table's own columns."""
        every = np.arange(len(codes))
        for (own, source), block in self.by_role.items():
            if own == role and source != self.order:
                moved(codes, block, rows, self.source.block(source), every)


def _again(label: NDArray[np.int32], counts: Indices) -> NDArray[np.bool_]:
    """Which events have a label that their person had before the last event, which has another.

    Args:
      label: int32 [events], a person after the other.
      counts: events of each.
    """
    keys = np.repeat(np.arange(len(counts)), counts) * (int(label.max(initial=0)) + 1) + label
    order, before = np.argsort(keys, kind="stable"), np.zeros(len(keys), dtype=bool)
    before[order] = np.diff(keys[order], prepend=-1) == 0
    return np.asarray(before & (np.diff(label, prepend=-1) != 0))


def sort_keys(codes: Codes, block: Block) -> Floats:
    """What a column sorts by, float64 [n], NaN if missing: numbers, or places in a list."""
    if block.number is not None:
        return codes.numbers(block)
    state = codes.states[:, block.index]
    return np.where(state < block.present, state, np.nan)


def write_sort_keys(codes: Codes, block: Block, when: Floats) -> None:
    """Write what a column sorts by; missing where it is NaN."""
    gone = np.isnan(when)
    if block.number is None:
        state = np.clip(np.rint(np.nan_to_num(when)), 0, block.present - 1)
    else:
        state, value = block.snapped(np.where(gone, block.line.low, when))
        codes.values[:, block.number] = np.where(gone, 0.0, value)
    codes.states[:, block.index] = np.where(gone, block.missing_state or 0, state)


def moved(codes: Codes, block: Block, out: Codes, to: Block, rows: Indices) -> None:
    """Copy a column of some rows to another with the same values, missing where a row is NONE."""
    there = rows != NONE
    at = np.where(there, rows, 0)
    state = np.asarray(codes.states[at, block.index])
    if block.absent != to.absent:  # one of them may be missing, which stands before codes
        state = np.where(
            state >= block.present, np.maximum(state + to.absent - block.absent, 0), state
        )
    out.states[:, to.index] = np.where(there, state, to.missing_state or 0)
    if block.number is not None and to.number is not None:
        value = np.asarray(codes.values[at, block.number])
        out.values[:, to.number] = np.where(there, value, 0.0)
