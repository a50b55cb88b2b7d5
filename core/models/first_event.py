"""The first event of a history, where what a model draws for it cannot be; post-processing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from core.encoding.codec import Codes
from core.encoding.windows import (
    FIRST,
    NUMBER,
    OWNER,
    PERSON,
    RARELY_MISSING,
    Windows,
    moved,
    sort_keys,
    write_sort_keys,
)
from core.models.next_event import Bounded
from core.models.scan_focus.conditionals import MixtureConditionals


@dataclass(frozen=True)
class FirstEvent:
    """First events, drawn anew where they are missing, go together in no record or come too late.

    Attributes:
      known: columns that are given.
      there: of each column of a first event, 0 for the cell that would say that it is missing,
        float32 [1, cells]; None where it may be.
      time: when first events are; None where a person's own columns do not bound it.
    """

    mixture: MixtureConditionals
    windows: Windows
    known: Sequence[str]
    there: Mapping[str, Tensor | None]
    time: Bounded | None

    @classmethod
    def of(cls, mixture: MixtureConditionals, windows: Windows) -> Self:
        """Read from a mixture."""
        blocks = windows.by_role.items()
        there = {
            block.column.name: _all_but_missing(mixture, windows, source)
            for (role, source), block in blocks
            if role == FIRST
        }
        time = windows.by_role.get((FIRST, windows.order or ""))
        dated = [time.column.name] if time is not None and windows.limits else []
        known = windows.names(PERSON, OWNER)
        return cls(mixture, windows, known, there, Bounded.of(mixture, dated))

    def make_possible(
        self,
        seen: Codes,
        some: NDArray[np.bool_],
        until: NDArray[np.float64],
        random: torch.Generator,
    ) -> None:
        """Draw first events anew, in place, given their person and the number of events.

        Args:
          seen: of n people.
          some: who has any event, bool [n].
          until: when each one's events end.
        """
        wrong = self.mixture.broken(seen, self.known, [*self.there])
        for name, kept in self.there.items():
            block = self.windows.codec.block(name)
            if kept is not None:
                wrong |= seen.states[:, block.index] == block.missing_state
        if self.time is not None:
            wrong |= self._times(seen) > until
        again = np.flatnonzero(wrong & some)
        if not len(again):
            return
        drawn, known = seen.take(again), [*self.known, *self.windows.names(NUMBER)]
        log = self.mixture.log_weights + self.mixture.log_likelihood(drawn, known)
        there = dict(self.there)
        if self.time is not None:
            shares = self.time.shares(torch.from_numpy(until[again]).float())
            kept = there[self.time.name]
            there[self.time.name] = shares if kept is None else shares * kept
        self.mixture.draw(log, drawn, there, known, random)
        if self.time is not None:
            self._end(drawn, self.time, until[again], random)
        seen.states[again], seen.values[again] = drawn.states, drawn.values

    def _end(
        self, drawn: Codes, time: Bounded, until: NDArray[np.float64], random: torch.Generator
    ) -> None:
        """Keep first events from coming too late, in place."""
        time.place(self.mixture, drawn, self.mixture.cells(drawn, time.name), until, random)
        times = self._times(drawn)
        block = self.windows.codec.block(time.name)
        write_sort_keys(drawn, block, np.where(times > until, until, times))

    def _times(self, seen: Codes) -> NDArray[np.float64]:
        assert self.time is not None
        return sort_keys(seen, self.windows.codec.block(self.time.name))


def with_possible_ends(persons: Codes, files: Sequence[Windows], random: torch.Generator) -> Codes:
    """People with events, none of whom ends before any may be: who would, ends as somebody else."""
    persons = Codes(persons.states.copy(), persons.values.copy())
    for windows in (one for one in files if one.limits and one.owner is None):
        first = windows.source.block(windows.order or "").line.low
        number = persons.states[:, windows.block(NUMBER).index]
        there = (number > 0) | (windows.numbers.bins[0] != (0, 0))
        for name, worth in (next(iter(e.items())) for e in windows.limits if len(e) == 1):
            block = windows.of_person[name]
            ends = worth * persons.numbers(block)
            others = np.flatnonzero(there & (ends >= first))
            wrong = np.flatnonzero(there & (ends < first))
            if len(others):
                as_whom = torch.randint(len(others), (len(wrong),), generator=random).numpy()
                every = np.arange(len(persons))
                every[wrong] = others[as_whom]
                moved(persons, block, persons, block, every)
    return persons


def _all_but_missing(mixture: MixtureConditionals, windows: Windows, source: str) -> Tensor | None:
    name = windows.by_role[FIRST, source].column.name
    gone = mixture.missing_cell(name)
    if gone is None or may_miss(mixture, windows, source):
        return None
    kept = torch.ones((1, mixture.table(name, name).shape[0]))
    kept[0, gone] = 0.0
    return kept


def may_miss(mixture: MixtureConditionals, windows: Windows, source: str) -> bool:
    """Whether events miss a column more often than noise alone may explain."""
    if not source or not windows.source.block(source).column.missing:
        return False
    first = windows.by_role[FIRST, source].column.name
    if first in mixture.never_missing:
        return False
    gone, table = mixture.missing_cell(first), mixture.table(windows.names(NUMBER)[0], first)
    if gone is None:
        return False
    # Each column's own shares are known far better than how often both are so at once.
    nobody = float(table[0].sum()) if windows.numbers.bins[0] == (0, 0) else 0.0
    return float(table[:, gone].sum()) - nobody > RARELY_MISSING * (1.0 - nobody)
