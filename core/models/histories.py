"""Histories drawn event by event from a model of windows; post-processing.

A person is drawn with what holds for them, the number of events and the first one. Then each next
event is drawn given the person, the event before and what has been so far, for as many events as
the person has. So numbers of events come out as they were counted.

Where events belong to rows of people, every such row has a history of its own, drawn given the row.

The next event is drawn by a log-linear model (`core.models.next_event`), whose effects `calibrated`
finds on windows that the model draws whole and then on those of walks; the nearest walks count.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from core.encoding.codec import Block, Codes, concat_codes
from core.encoding.count_bins import CountBins
from core.encoding.windows import (
    FIRST,
    GAP,
    LEFT,
    NEXT,
    NOW,
    NUMBER,
    OWNER,
    PERSON,
    PLACE,
    SINCE,
    Windows,
    moved,
    sort_keys,
    write_sort_keys,
)
from core.models.base_sampler import BaseSampler, chunks
from core.models.earlier_labels import EarlierLabels
from core.models.first_event import FirstEvent, may_miss, with_possible_ends
from core.models.next_event import (
    Bounded,
    Effects,
    NextEvent,
    Room,
    given_columns,
    log_chances,
    order_of_drawing,
)
from core.models.scan_focus.conditionals import MixtureConditionals
from core.models.steps.training.column_bins import one_of_each

Indices = NDArray[np.int64]
Floats = NDArray[np.float64]
PEOPLE_AT_ONCE = 1024  # whose next events' chances a processor keeps near
ROUNDS, CALIBRATED_ON = 3, 10_000  # of calibration; people drawn in each
EVER = 1e30  # longer than any time
REACHED = 0.999  # share of times since a first event that walks may reach


class Histories(NamedTuple):
    """Events of people, in codes of the columns that windows are made of."""

    codes: Codes  # people after each other, events in order; one row for somebody without events
    who: Indices  # of each row, 0, 1, …
    file: Indices  # of which it is an event; -1 for that one row
    owner: Indices  # the row that it belongs to; -1 where events belong to people


class Step(NamedTuple):
    """Some people's next events."""

    cells: dict[str, Tensor]  # int64 [n], by column that is given or drawn
    been: dict[str, Tensor]  # bool [n, labels], see `EarlierLabels`
    weight: Tensor  # float32 [n], of a window among its person's
    room: Room


def drawn_histories(
    model: BaseSampler,
    files: Sequence[Windows],
    effects: Effects,
    people: int,
    random: torch.Generator,
    *,
    trace: list[Step] | None = None,
) -> Histories:
    """Histories of so many people in each file; `trace` takes what their steps were drawn by."""
    files = [windows.ending_by(model.conditionals.limits) for windows in files]
    persons, drawn = (
        with_possible_ends(model.draw(people, random), files, random),
        list[Histories](),
    )
    for file, windows in enumerate(files):
        walk = _Walk(model.conditionals, windows, effects, random, trace)
        if windows.owner is None:
            one = walk.of_all(persons, None)
        else:
            owners = drawn[windows.owner]
            rows = np.flatnonzero(owners.file >= 0)
            one = walk.of_all(persons.take(owners.who[rows]), owners.codes.take(rows))
            start = sum(len(part.who) for part in drawn[: windows.owner])
            one = one._replace(who=owners.who[rows][one.who], owner=start + rows[one.who])
        drawn.append(one._replace(file=np.where(one.file < 0, -1, file)))
    return _together(drawn)


def _together(parts: Sequence[Histories]) -> Histories:
    """Events of all files, a person after the other; somebody without any event keeps one row."""
    codes, who, file, owner = zip(*parts, strict=True)
    every = Histories(concat_codes(codes), *map(np.concatenate, (who, file, owner)))
    rows = np.lexsort((every.file, every.who))
    of, events = every.who[rows], every.file[rows] >= 0
    rows = rows[events | np.append(of[1:] != of[:-1], True)]
    place = np.full(len(every.who) + 1, -1)  # the last is that of no row
    place[rows] = np.arange(len(rows))
    return Histories(
        every.codes.take(rows), every.who[rows], every.file[rows], place[every.owner[rows]]
    )


def calibrated(model: BaseSampler, files: Sequence[Windows]) -> Effects:
    """Effects with which walks have the windows that the model has."""
    return {pair: one for file in files for pair, one in _calibrated(model, file).items()}


@torch.no_grad()
def _calibrated(model: BaseSampler, windows: Windows) -> Effects:
    """Of some rounds, the effects whose walks are nearest."""
    windows = replace(windows, owner=None)  # who is drawn has the columns of an owner
    random, following = torch.Generator().manual_seed(0), _following(model.conditionals, windows)
    effects = _of_drawn_windows(model, windows, following, random)
    nearest, least = effects, math.inf
    for left in reversed(range(ROUNDS + 1)):
        trace: list[Step] = []
        drawn_histories(model, [windows], effects, CALIBRATED_ON, random, trace=trace)
        if not trace:  # nobody has two events
            break
        cells = {x: torch.cat([step.cells[x] for step in trace]) for x in trace[0].cells}
        weight = torch.cat([step.weight for step in trace])
        distance = following.distance(cells, weight)
        nearest, least = (effects, distance) if distance < least else (nearest, least)
        if left:
            been = {y: torch.cat([step.been[y] for step in trace]) for y in trace[0].been}
            room = Room(*(torch.cat(one) for one in zip(*(s.room for s in trace), strict=True)))
            effects = following.scaled(effects, cells, been, weight, room, CALIBRATED_ON)
    return nearest


def _of_drawn_windows(
    model: BaseSampler, windows: Windows, following: NextEvent, random: torch.Generator
) -> Effects:
    """Effects for windows that the model draws whole, where columns that are given go together."""
    drawn = model.draw(CALIBRATED_ON, random)
    number = drawn.states[:, windows.block(NUMBER).index]
    some = np.flatnonzero(~np.isin(number, windows.few))
    if not len(some):
        return following.independent()
    seen = drawn.take(some)
    names = (*following.known, *following.drawn)
    cells = {x: model.conditionals.cells(seen, x) for x in names}
    room = Room(torch.full((len(some),), EVER), torch.zeros(len(some)))
    weight = torch.ones(len(some))
    return following.scaled(following.independent(), cells, {}, weight, room, CALIBRATED_ON)


def _following(mixture: MixtureConditionals, windows: Windows) -> NextEvent:
    """What is known of the next event."""
    blocks = windows.by_role.items()
    missing = [
        block.column.name
        for (role, source), block in blocks
        if role in (NEXT, GAP) and may_miss(mixture, windows, source)
    ]
    return NextEvent.of(mixture, windows, missing)


def numbers_of(states: NDArray[np.int32], bins: CountBins, random: torch.Generator) -> Indices:
    """Numbers from their labels; within one of several, fewer the rarer they get from there on."""
    first, last = np.array(bins.bins, dtype=np.float64).T[:, states]
    uniform = torch.rand(len(states), generator=random, dtype=torch.float64).numpy()
    spread = (first + 1.0) * ((last + 2.0) / (first + 1.0)) ** uniform  # by the inverse of numbers
    return np.asarray(np.floor(spread) - 1.0).astype(np.int64)


class _Walk:
    """Draws histories of some people at a time."""

    def __init__(
        self,
        mixture: MixtureConditionals,
        windows: Windows,
        effects: Effects,
        random: torch.Generator,
        trace: list[Step] | None,
    ):
        self._trace = trace
        self._mixture, self._windows, self._random = mixture, windows, random
        self._effects = effects
        self._bounded = Bounded.of(mixture, windows.names(GAP))
        self._known, self._next = given_columns(windows), order_of_drawing(windows)
        self._begins = windows.by_role.get((FIRST, windows.order or ""))
        self._first = FirstEvent.of(mixture, windows)
        self._longest = np.inf  # from the first event to the last but one
        if windows.order is not None:
            # One wait is known better than how long ago the first event was.
            longest = max(mixture.reach(name, REACHED) for name in windows.names(SINCE, GAP))
            self._longest = longest * windows.unit
        blocks = windows.by_role.items()
        self._now = {source: block for (role, source), block in blocks if role == NOW}

    def of_all(self, persons: Codes, owners: Codes | None) -> Histories:
        """Histories of these people, or of rows of theirs; each has its place among them.

        Args:
          persons: as a model of windows draws them; one for each owner.
          owners: codes of the columns that windows are made of; how many events such a row has,
            and the first one, are drawn given it.
        """
        parts, start, windows = [], 0, self._windows
        if not len(persons):  # nobody has a row that these belong to
            none = np.zeros(0, dtype=np.int64)
            return Histories(self._rows(persons, NEXT, none.astype(float)), none, none, none)
        for size in chunks(len(persons), PEOPLE_AT_ONCE):
            some = persons.slice(start, start + size)
            if owners is not None:
                some = self._owned(some, owners.slice(start, start + size))
            states = some.states[:, windows.block(NUMBER).index]
            counts = numbers_of(states, windows.numbers, self._random)
            parts.append(self.of(some, counts, start))
            start += size
        codes, *others = zip(*parts, strict=True)
        return Histories(concat_codes(codes), *map(np.concatenate, others))

    def _owned(self, persons: Codes, owners: Codes) -> Codes:
        """People with an owner's columns, and a number and a first event given them."""
        seen = Codes(persons.states.copy(), persons.values.copy())
        for (role, source), block in self._windows.by_role.items():
            if role == OWNER:
                own = self._windows.source.block(source)
                moved(owners, own, seen, block, np.arange(len(seen)))
        known = self._windows.names(PERSON, OWNER)
        log = self._mixture.log_weights + self._mixture.log_likelihood(seen, known)
        log = log + self._mixture.log_there_once(self._windows.names(OWNER))
        names = self._windows.names(NUMBER, FIRST)
        self._mixture.draw(log, seen, dict.fromkeys(names), known, self._random)
        return seen

    def of(self, persons: Codes, counts: Indices, start: int) -> Histories:
        """Histories of these people, of whom the first has that number.

        Args:
          counts: int64 [n], events of each.
        """
        until = self._windows.until(persons, self._windows.of_person)
        seen = Codes(persons.states.copy(), persons.values.copy())
        self._first.make_possible(seen, counts > 0, until, self._random)
        begins = np.zeros(len(counts)) if self._begins is None else sort_keys(seen, self._begins)
        since, every = np.zeros(len(counts)), np.arange(len(counts))
        held, before = since.copy(), since.copy()  # by events themselves; of the last but one
        drawn = [(seen, FIRST, every, since.copy(), held.copy())]
        labels = EarlierLabels(self._mixture, self._windows, len(counts))
        for source in self._windows.events:
            moved(seen, self._block(FIRST, source), seen, self._block(NOW, source), every)
        for step in range(int(counts.max(initial=1)) - 1):
            active = np.flatnonzero(counts > step + 1)
            window = seen.take(active)
            self._windows.write(window, PLACE, np.full(len(active), step + 1))
            self._windows.write(window, LEFT, counts[active] - step - 2)
            weight = torch.from_numpy(1.0 / (counts[active] - 1)).float()
            before[active] = since[active]
            took = self._windows.taken(window, self._now) * self._windows.unit
            held[active] += took
            times = self._room(until[active] - begins[active], since[active] + took)
            after = torch.from_numpy(counts[active] - step - 2).float()
            known = times[0], Room(times[1], after), weight, labels.others(window, active)
            since[active] = took + self._stepped(window, since[active], *known)
            drawn.append((window, NEXT, active, since[active] - held[active], held[active]))
            for source in self._windows.events:
                blocks = self._block(NEXT, source), self._block(NOW, source)
                moved(window, blocks[0], window, blocks[1], np.arange(len(active)))
            if step == 0:
                seen = Codes(seen.states.copy(), seen.values.copy())  # the first events stay
            seen.states[active], seen.values[active] = window.states, window.values
        # Whoever would go beyond has shorter waits, all by one factor, and ends where the last of
        # as many times would lie that are scattered over what is left.
        room = until - begins
        scattered = torch.rand(len(counts), generator=self._random, dtype=torch.float64).numpy()
        ends = scattered ** (1.0 / np.maximum(counts - 1, 1))
        left = (room - held).clip(0.0) / np.maximum(since - held, 1e-9)
        factor = np.where(since > room, left * ends, 1.0)
        factor = np.minimum(factor, self._longest / np.maximum(before, 1e-9))
        parts = [
            self._rows(window, role, begins[own] + filled + waits * factor[own])
            for window, role, own, waits, filled in drawn
        ]
        who = np.concatenate([own for _, _, own, *_ in drawn])
        sort = np.argsort(who, kind="stable")
        return Histories(
            concat_codes(parts).take(sort),
            who[sort] + start,
            np.where(counts > 0, 0, -1)[who[sort]],
            np.full(len(sort), -1),
        )

    def _block(self, role: str, source: str) -> Block:
        return self._windows.by_role[role, source]

    def _stepped(
        self,
        window: Codes,
        since: Floats,
        whole: Tensor,
        room: Room,
        weight: Tensor,
        been: dict[str, Tensor],
    ) -> Floats:
        """Draw the next event of each: the times since the first one, float64 [n].

        Args:
          whole: from the first event to the last date, float32 [n].
        """
        order = self._windows.order
        if order is not None:
            self._windows.write(window, SINCE, since / self._windows.unit)
        cells = {x: self._mixture.cells(window, x) for x in self._known}
        for y in self._next:
            log = log_chances(self._effects, y, cells, been)
            waits = self._bounded if self._bounded and y == self._bounded.name else None
            if waits is not None:
                room = waits.believed(log, room, whole)
                log = log + waits.log_shares(room)
            cells[y] = one_of_each(torch.softmax(log, dim=1), self._random)
            self._mixture.write(window, y, cells[y], self._random)
            if waits is not None:
                waits.place(self._mixture, window, cells[y], room.until.numpy(), self._random)
        if self._trace is not None:
            self._trace.append(Step(cells, been, weight, room))
        self._mixture.follow_on(window, self._windows.twins, self._random)
        if order is None:
            return since
        gap = window.numbers(self._windows.block(GAP))
        return np.asarray(since + np.nan_to_num(gap) * self._windows.unit)

    def _room(self, whole: Floats, since: Floats) -> tuple[Tensor, Tensor]:
        """From the first event, and from so long after it, to the last date: float32 [n] both."""
        times = (np.nan_to_num(t / self._windows.unit, nan=EVER) for t in (whole, whole - since))
        first, second = (torch.from_numpy(t.clip(-EVER, EVER)).float() for t in times)
        return first, second

    def _rows(self, window: Codes, role: str, when: Floats) -> Codes:
        """Events of windows, as rows with what holds for their persons."""
        windows, source = self._windows, self._windows.source
        states = np.zeros((len(window), len(source.blocks)), dtype=np.int32)
        rows = Codes(states, np.zeros((len(window), source.numbers)))
        windows.to_rows(window, PERSON, rows)
        windows.to_rows(window, role, rows)
        if windows.order is not None:
            write_sort_keys(rows, source.block(windows.order), when)
        return rows
