"""Histories drawn event by event from a model of windows; post-processing.

A person is drawn with what holds for them, the number of events and the first one. Then each next
event is drawn given the person, the event before and what has been so far, for as many events as
the person has. So numbers of events come out as they were counted.

What is given lies elsewhere in a walk than in the model's own windows, so drawn columns go together
with given ones a little otherwise than was counted. `calibrated` tilts the draws until the windows
of walks agree with the model's own: iterative scaling of a logistic model of the next event whose
offset is the mixture (Darroch and Ratcliff, Annals of Mathematical Statistics 1972).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from core.encoding.codec import Block, Codes, concat_codes
from core.encoding.windows import (
    FIRST,
    GAP,
    LEFT,
    NEXT,
    NOW,
    NUMBER,
    PERSON,
    PLACE,
    SINCE,
    CountBins,
    Windows,
    moved,
)
from core.models.base_sampler import BaseSampler, chunks
from core.models.scan_focus.conditionals import MixtureConditionals

Indices = NDArray[np.int64]
Floats = NDArray[np.float64]
PEOPLE_AT_ONCE = 1024  # whose chances of components a processor keeps near
RARELY_MISSING = 0.05  # share of events with a missing cell, which noise alone may explain
ROUNDS, CALIBRATED_ON = 6, 10_000  # of calibration; people drawn in each
REACHED = 0.999  # share of times since a first event that walks may reach
PACE = 2.0  # of a round's way, shared by all given columns; with 4 walks move away from the model
SMOOTHED = 5.0  # windows that are added to each cell where two counts are compared


class Histories(NamedTuple):
    """Events of people, in codes of the columns that windows are made of."""

    codes: Codes  # people after each other, events in order; one row for somebody without events
    who: Indices  # of each row, 0, 1, …
    file: Indices  # of which it is an event; -1 for that one row


# what shares of drawn cells are multiplied by, in logs, by given and drawn column, [cells, cells];
# for no given one, "", [1, cells]
Tilt = Mapping[tuple[str, str], Tensor]


class Step(NamedTuple):
    """What some people's next events are drawn by: cells given, chances of cells, and weights."""

    given: dict[str, Tensor]  # int64 [n], by column
    chances: dict[str, Tensor]  # float32 [n, cells], by column that is drawn
    weight: Tensor  # float32 [n], of a window among its person's


def drawn_histories(
    model: BaseSampler,
    files: Sequence[Windows],
    tilt: Tilt,
    people: int,
    random: torch.Generator,
    *,
    trace: list[Step] | None = None,
) -> Histories:
    """Histories of so many people in each file; `trace` takes what their steps were drawn by."""
    persons = model.draw(people, random)
    parts = []
    for file, windows in enumerate(files):
        states = persons.states[:, windows.block(NUMBER).index]
        counts = numbers_of(states, windows.numbers, random)
        walk, start = _Walk(model.conditionals, windows, tilt, random, trace), 0
        for size in chunks(people, PEOPLE_AT_ONCE):
            stop = start + size
            one = walk.of(persons.slice(start, stop), counts[start:stop], start)
            parts.append(one._replace(file=np.where(one.file < 0, -1, file)))
            start = stop
    who = np.concatenate([part.who for part in parts])
    of = np.concatenate([part.file for part in parts])
    rows = np.lexsort((of, who))  # somebody without any event keeps one row
    lasts = np.append(who[rows][1:] != who[rows][:-1], True)
    rows = rows[(of[rows] >= 0) | lasts]
    return Histories(concat_codes([part.codes for part in parts]).take(rows), who[rows], of[rows])


def calibrated(model: BaseSampler, files: Sequence[Windows]) -> Tilt:
    """The tilt with which walks have the windows that the model has."""
    return {pair: one for file in files for pair, one in _calibrated(model, file).items()}


@torch.no_grad()
def _calibrated(model: BaseSampler, windows: Windows) -> Tilt:
    mixture, random = model.conditionals, torch.Generator().manual_seed(0)
    drawn, tilt = windows.names(NEXT, GAP), dict[tuple[str, str], Tensor]()
    given = windows.names(PERSON, NUMBER, NOW, PLACE, LEFT, SINCE)
    gone = {name: mixture.missing_cell(name) for name in drawn}
    goals = {(x, y): _without(mixture.table(x, y), gone[y]) for x in given for y in drawn}
    blocks = windows.by_role
    twins = {
        (blocks[NOW, one].column.name, blocks[NEXT, one].column.name) for one in windows.events
    }
    for _ in range(ROUNDS):
        trace: list[Step] = []
        drawn_histories(model, [windows], tilt, CALIBRATED_ON, random, trace=trace)
        least = SMOOTHED / sum(len(step.weight) for step in trace)
        steps = {}
        for (x, y), goal in goals.items():
            made = _without(_expected(trace, x, y, goal), gone[y])
            pace = 1.0 if (x, y) in twins else min(1.0, PACE / len(given))
            steps[x, y] = pace * (_together(goal, least) - _together(made, least))
            alone = ((table.sum(dim=0) + least).log()[None] for table in (goal, made))
            steps["", y] = next(alone) - next(alone)
        tilt = {pair: tilt.get(pair, torch.zeros(())) + step for pair, step in steps.items()}
    return tilt


def _expected(trace: Sequence[Step], x: str, y: str, like: Tensor) -> Tensor:
    """Expected shares of the cells of a given and a drawn column, over all steps of walks."""
    total = torch.zeros_like(like)
    for step in trace:
        total.index_add_(0, step.given[x], step.chances[y] * step.weight[:, None])
    return total / CALIBRATED_ON


def _without(table: Tensor, cell: int | None) -> Tensor:
    """A table of shares whose cells of missing values in the second column hold nothing."""
    if cell is None:
        return table
    return table.index_fill(1, torch.tensor([cell]), 0.0)


def _together(table: Tensor, least: float) -> Tensor:
    """How much more often than by chance two columns' cells come together, in logs."""
    smooth = table + least
    rows, columns = smooth.sum(dim=1, keepdim=True), smooth.sum(dim=0, keepdim=True)
    return (smooth * smooth.sum() / (rows * columns)).log()


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
        tilt: Tilt,
        random: torch.Generator,
        trace: list[Step] | None,
    ):
        self._trace = trace
        self._mixture, self._windows, self._random = mixture, windows, random
        self._tilt = {pair: log.exp() for pair, log in tilt.items()}
        self._first, self._next = windows.names(FIRST), windows.names(NEXT, GAP)
        self._sofar = windows.names(NOW, PLACE, LEFT, SINCE)
        self._person = windows.names(PERSON, NUMBER)
        self._begins = windows.by_role.get((FIRST, windows.order or ""))
        self._last = (
            np.inf if windows.order is None else windows.source.block(windows.order).line.high
        )
        self._longest = np.inf  # from the first event to the last but one
        if windows.order is not None:
            self._longest = mixture.reach(windows.names(SINCE)[0], REACHED) * windows.unit
        blocks = windows.by_role.items()
        self._now = {source: block for (role, source), block in blocks if role == NOW}
        self._there: dict[str, Tensor | None] = {}  # by drawn column, 0 where it may not be missing
        for (role, source), block in blocks:
            if role in (FIRST, NEXT, GAP):
                name = block.column.name
                gone = None if self._may_miss(source) else mixture.missing_cell(name)
                self._there[name] = None if gone is None else self._all_but(name, gone)

    def _may_miss(self, source: str) -> bool:
        """Whether events miss a column more often than noise alone may explain."""
        windows, mixture = self._windows, self._mixture
        if not source or not windows.source.block(source).column.missing:
            return False
        first = windows.by_role[FIRST, source].column.name
        gone, table = mixture.missing_cell(first), mixture.table(windows.names(NUMBER)[0], first)
        some = table[1:] if windows.numbers.bins[0] == (0, 0) else table
        return gone is not None and float(some[:, gone].sum() / some.sum()) > RARELY_MISSING

    def _all_but(self, name: str, cell: int) -> Tensor:
        cells = self._mixture.table(name, name).shape[0]
        kept = torch.ones((1, cells))
        kept[0, cell] = 0.0
        return kept

    def of(self, persons: Codes, counts: Indices, start: int) -> Histories:
        """Histories of these people, of whom the first has that number.

        Args:
          counts: int64 [n], events of each.
        """
        seen = self._with_first(Codes(persons.states.copy(), persons.values.copy()), counts)
        known = [*self._person, *([] if self._begins is None else [self._begins.column.name])]
        base = self._mixture.log_weights + self._mixture.log_likelihood(seen, known)
        begins = np.zeros(len(counts)) if self._begins is None else seen.numbers(self._begins)
        since, every = np.zeros(len(counts)), np.arange(len(counts))
        held, before = since.copy(), since.copy()  # by events themselves; of the last but one
        drawn = [(seen, FIRST, every, since.copy(), held.copy())]
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
            since[active] = took + self._stepped(window, base[active], since[active], weight)
            drawn.append((window, NEXT, active, since[active] - held[active], held[active]))
            for source in self._windows.events:
                blocks = self._block(NEXT, source), self._block(NOW, source)
                moved(window, blocks[0], window, blocks[1], np.arange(len(active)))
            if step == 0:
                seen = Codes(seen.states.copy(), seen.values.copy())  # the first events stay
            seen.states[active], seen.values[active] = window.states, window.values
        room = self._last - begins  # whoever would go beyond has shorter waits, all by one factor
        left = (room - held).clip(0.0) / np.maximum(since - held, 1e-9)
        factor = np.where(since > room, left, 1.0)
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
        )

    def _block(self, role: str, source: str) -> Block:
        return self._windows.by_role[role, source]

    def _with_first(self, seen: Codes, counts: Indices) -> Codes:
        """People whose first event is one where they have any; drawn anew where it is not."""
        wrong = np.zeros(len(counts), dtype=bool)
        for name in self._first:
            block = self._windows.codec.block(name)
            if self._there[name] is not None:
                gone = seen.states[:, block.index] == block.missing_state
                wrong |= gone & (counts > 0)
        again = np.flatnonzero(wrong)
        if len(again):
            some = seen.take(again)
            log = self._mixture.log_weights + self._mixture.log_likelihood(some, self._person)
            self._mixture.draw(log, some, {n: self._there[n] for n in self._first}, self._random)
            seen.states[again], seen.values[again] = some.states, some.values
        return seen

    def _factors(self, given: dict[str, Tensor]) -> dict[str, Tensor | None]:
        """What shares of drawn cells are multiplied by, [n or 1, cells]."""
        factors = {}
        for name in self._next:
            factor = self._there[name]
            for (x, y), tilt in self._tilt.items():
                if y == name:
                    own = tilt[given[x]] if x else tilt
                    factor = own if factor is None else factor * own
            factors[name] = factor
        return factors

    def _stepped(self, window: Codes, base: Tensor, since: Floats, weight: Tensor) -> Floats:
        """Draw the next event of each: the times since the first one, float64 [n]."""
        order = self._windows.order
        if order is not None:
            self._windows.write(window, SINCE, since / self._windows.unit)
        log = base + self._mixture.log_likelihood(window, self._sofar)
        given = {x: self._mixture.cells(window, x) for x in (*self._person, *self._sofar)}
        factors = self._factors(given)
        if self._trace is not None:
            self._trace.append(Step(given, self._mixture.chances(log, factors), weight))
        self._mixture.draw(log, window, factors, self._random)
        if order is None:
            return since
        gap = window.numbers(self._windows.block(GAP))
        return np.asarray(since + np.nan_to_num(gap) * self._windows.unit)

    def _rows(self, window: Codes, role: str, times: Floats) -> Codes:
        """Events of windows, as rows with what holds for their persons."""
        windows, source = self._windows, self._windows.source
        states = np.zeros((len(window), len(source.blocks)), dtype=np.int32)
        rows = Codes(states, np.zeros((len(window), source.numbers)))
        windows.to_rows(window, PERSON, rows)
        windows.to_rows(window, role, rows)
        if windows.order is not None:
            block = source.block(windows.order)
            gone = np.isnan(times)
            state, value = block.snapped(np.where(gone, block.line.low, times))
            rows.states[:, block.index] = np.where(gone, block.missing_state or 0, state)
            rows.values[:, block.number] = np.where(gone, 0.0, value)
        return rows
