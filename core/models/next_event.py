"""What comes next in a history, given what has been: a log-linear model of pairs; post-processing.

A mixture that is fitted to noisy counts of pairs also says how three columns go together, which
nobody counted. Of all laws with its pairs, the one of the most entropy adds nothing to them: the
chance of a cell y is proportional to exp Σₓ a(x, y) over the cells x of all columns that are given.
Columns are drawn one after another, each given those before it too. The effects a are found by
iterative scaling (Deming and Stephan, Annals of Mathematical Statistics 1940), first on windows
that the mixture draws whole, then on windows of walks, where what is given lies elsewhere. A wait
ends by the last date that there is, and so do those after it: of a wait w in a time t, k more
events fit behind it with a chance of (1 - w/t)ᵏ if they may lie anywhere, which is all that is
taken to be known of them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from core.encoding.codec import Codes
from core.encoding.windows import (
    AGAIN_LABELS,
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
)
from core.models.scan_focus.conditionals import MixtureConditionals
from core.models.steps.counting.zeros.structural_zeros import without_cells

# a(x, y), float32 [cells, cells], by given and drawn column; for no given one, "", [1, cells]
Effects = Mapping[tuple[str, str], Tensor]
Cells = Mapping[str, Tensor]  # int64 [windows], by column

SWEEPS = 3  # over all pairs, for one set of walks
MOST_WINDOWS = 50_000  # that effects are found on
SMOOTHED = 5.0  # windows that are added to each cell where two tables are compared
NEVER = -50.0  # effect of a cell that nothing may lie in
BARRED = 1000.0 * NEVER  # … of one that no event has, even where pairs bar all others
FITS = 0.1  # chance of a wait to end by the last date below which those before were too long
TRIES = 10  # places of a time in its cell, until one does not exceed its bound
PLACES = 64  # numbers drawn of each cell, to tell how much of it lies below a bound


class Room(NamedTuple):
    """Until the last date, and how many events come after the next one: float32 [windows] both."""

    until: Tensor
    after: Tensor

    def take(self, index: Tensor) -> Room:
        """That of some windows."""
        return Room(self.until[index], self.after[index])


class Bounded(NamedTuple):
    """Times, and where in their cells they lie: float32 [cells, PLACES], ascending."""

    name: str
    places: Tensor

    @classmethod
    def of(cls, mixture: MixtureConditionals, names: Sequence[str]) -> Bounded | None:
        """The first column; None of none."""
        if not names:
            return None
        places = mixture.places(names[0], PLACES, torch.Generator().manual_seed(0))
        return cls(names[0], places.nan_to_num(nan=-torch.inf).sort(dim=1).values)

    def shares(self, until: Tensor) -> Tensor:
        """How much of each cell does not exceed a bound, float32 [windows, cells]."""
        return self._below(until).float() / PLACES

    def place(
        self,
        mixture: MixtureConditionals,
        codes: Codes,
        cells: Tensor,
        until: NDArray[np.float64],
        random: torch.Generator,
    ) -> None:
        """Place times beyond a bound anew in their cells, some times.

        Args:
          codes: of n windows, in which the times are written.
          cells: of the times, int64 [n].
        """
        block = mixture.codec.block(self.name)
        for _ in range(TRIES):
            beyond = np.flatnonzero(codes.numbers(block) > until)
            if not len(beyond):
                return
            some = codes.take(beyond)
            mixture.write(some, self.name, cells[torch.from_numpy(beyond)], random)
            codes.states[beyond], codes.values[beyond] = some.states, some.values

    def log_shares(self, room: Room) -> Tensor:
        """How likely a wait in each cell leaves room for all, in logs, float32 [windows, cells]."""
        below = self._below(room.until)
        mean = (self.places.clamp_min(0.0).cumsum(dim=1) / torch.arange(1, PLACES + 1)).t()
        along = mean.gather(0, (below - 1).clamp_min(0)) / room.until[:, None].clamp_min(1e-6)
        rest = (1.0 - along).clamp(1e-6, 1.0).log() * room.after[:, None]
        return ((below.float() / PLACES).log() + rest).clamp_min(NEVER)

    def believed(self, log: Tensor, room: Room, whole: Tensor) -> Room:
        """What is left, but the whole time where a wait hardly fits: those before were too long.

        Args:
          log: chances of the cells without a bound, in logs, float32 [windows, cells].
          whole: from the first event to the last date, float32 [windows].
        """
        fits = (torch.softmax(log, dim=1) * self.shares(room.until)).sum(dim=1)
        return Room(torch.where(fits >= FITS, room.until, whole), room.after)

    def _below(self, until: Tensor) -> Tensor:
        """How many places of each cell do not exceed a bound, int64 [windows, cells]."""
        wanted = until.expand(len(self.places), -1).contiguous()
        return torch.searchsorted(self.places.contiguous(), wanted, right=True).t()


@dataclass(frozen=True)
class NextEvent:
    """The columns of a next event, and what their pairs should be.

    Attributes:
      known: columns that are given.
      drawn: the others, in the order in which they are drawn.
      goals: of a given and a drawn column, shares of all windows, float32 [cells, cells].
      twins: of a drawn column, that of the event before.
      again: of a drawn list, the column that says whether its label has been before.
      never: of a given and a drawn column, bool [cells, cells], which go together in no record.
      barred: of drawn columns that may not be missing, the cell that would say so.
      bounded: the waits; None where nothing sorts.
    """

    known: Sequence[str]
    drawn: Sequence[str]
    goals: Mapping[tuple[str, str], Tensor]
    twins: Mapping[str, str]
    again: Mapping[str, str]
    never: Mapping[tuple[str, str], Tensor]
    barred: Mapping[str, int]
    bounded: Bounded | None

    @classmethod
    def of(
        cls, mixture: MixtureConditionals, windows: Windows, missing: Collection[str]
    ) -> NextEvent:
        """Read from a mixture.

        Args:
          missing: drawn columns whose values may be missing.
        """
        known, drawn = given_columns(windows), order_of_drawing(windows)
        goals, never = dict[tuple[str, str], Tensor](), dict[tuple[str, str], Tensor]()
        cells = {y: mixture.missing_cell(y) for y in drawn if y not in missing}
        barred = {y: cell for y, cell in cells.items() if cell is not None}
        for at, y in enumerate(drawn):
            for x in (*known, *drawn[:at]):
                goals[x, y] = mixture.table(x, y)
                gone = mixture.missing_cell(y)
                if gone is not None:
                    own = goals[x, y][:, gone] - _without_windows(mixture, windows, x)
                    goals[x, y][:, gone] = own.clamp_min(0.0) if y in missing else 0.0
                if (empty := mixture.barred(x, y)) is not None:
                    goals[x, y], never[x, y] = without_cells(goals[x, y][None], empty)[0], empty
        goals |= {
            (x, y): mixture.table(x, y)[: len(AGAIN_LABELS)] for y, x in windows.again.items()
        }
        waits = Bounded.of(mixture, windows.names(GAP))
        return cls(known, drawn, goals, windows.twins, windows.again, never, barred, waits)

    def independent(self) -> Effects:
        """Those of columns that depend on nothing."""
        return {("", y): self._alone(y).log().clamp_min(NEVER) for y in self.drawn}

    def scaled(
        self,
        effects: Effects,
        given: Cells,
        been: Cells,
        weight: Tensor,
        room: Room,
        people: int,
    ) -> Effects:
        """Effects with which the windows of so many people have the pairs that they should have.

        Args:
          given: of all columns, drawn ones too.
          been: see `EarlierLabels`.
          weight: of a window among its person's, float32 [windows].
        """
        if (n := len(weight)) > MOST_WINDOWS:
            some = torch.linspace(0, n - 1, MOST_WINDOWS).long()
            given, weight = {x: c[some] for x, c in given.items()}, weight[some] * n / MOST_WINDOWS
            been, room = {y: one[some] for y, one in been.items()}, room.take(some)
        weight, found = weight / people, dict(effects)
        for at, y in enumerate(self.drawn):
            before = [self.twins[y]] if y in self.twins else []
            others = [x for x in (*self.known, *self.drawn[:at]) if self._tells(x, y)]
            others = [x for x in others if x not in before]
            total = log_chances(found, y, given, been)
            if self.bounded is not None and y == self.bounded.name:
                total += self.bounded.log_shares(room)
            for _ in range(SWEEPS):
                if y in been:
                    step = self._step_again(y, total, been[y], weight)
                    found[self.again[y], y] = found.get((self.again[y], y), torch.zeros(())) + step
                    total += been[y] * step
                for x in (*others, "", *before):  # what comes last holds best
                    step = self._step(x, y, total, given, weight)
                    found[x, y] = found.get((x, y), torch.zeros(())) + step
                    total += step[given[x]] if x else step
        for y, cell in self.barred.items():  # of few windows, smoothing lets it be
            found["", y] = found["", y].index_fill(1, torch.tensor([cell]), BARRED)
        for pair, empty in self.never.items():
            effect = found.get(pair, torch.zeros(empty.shape))
            found[pair] = effect.masked_fill(empty, 3.0 * NEVER)
        return found

    def distance(self, made: Cells, weight: Tensor) -> float:
        """How far windows' events, each with the one before, lie from what they should be.

        The mean of drawn columns' total variations.

        Args:
          made, weight: see `scaled`.
        """
        apart = []
        for y in self.drawn:
            x = self.twins.get(y, "")
            goal = self.goals[x, y] if x else self._alone(y)
            given = made[x] if x else torch.zeros_like(made[y])
            place = given * goal.shape[1] + made[y]
            table = torch.bincount(place, weight, minlength=goal.numel())
            apart.append((table / table.sum() - goal.flatten() / goal.sum()).abs().sum() / 2.0)
        return float(torch.stack(apart).mean())

    def _step(self, x: str, y: str, total: Tensor, given: Cells, weight: Tensor) -> Tensor:
        """What a pair's effect lacks, [cells, cells]; of no given column, [1, cells]."""
        chances = torch.softmax(total, dim=1) * weight[:, None]
        least = SMOOTHED / len(weight)
        if not x:
            return _given(self._alone(y), least) - _given(chances.sum(dim=0, keepdim=True), least)
        goal = self.goals[x, y]
        made = torch.zeros_like(goal).index_add_(0, given[x], chances)
        compared = _given if self.twins.get(y) == x else _apart
        return compared(goal, least) - compared(made, least)

    def _step_again(self, y: str, total: Tensor, been: Tensor, weight: Tensor) -> Tensor:
        """What the effect of having been before lacks, float32 [cells]."""
        chances, least = torch.softmax(total, dim=1) * weight[:, None], SMOOTHED / len(weight)
        made = (chances * been).sum(dim=0), (chances * ~been).sum(dim=0)
        no, yes = self.goals[self.again[y], y]
        of_others = (no + least) / (made[1] + least)
        return torch.log((yes + least) / (made[0] + least) / of_others)

    def _alone(self, y: str) -> Tensor:
        return self.goals[self.known[0], y].sum(dim=0, keepdim=True)

    def _tells(self, x: str, y: str) -> bool:
        """Whether a pair goes together by more than so many windows would show by chance."""
        table = self.goals[x, y].double()
        table = table / table.sum()
        alone = table.sum(dim=1, keepdim=True) * table.sum(dim=0, keepdim=True)
        information = torch.special.xlogy(table, table / alone.clamp_min(1e-300)).sum()
        freedom = (table.shape[0] - 1) * (table.shape[1] - 1)
        return float(2.0 * MOST_WINDOWS * information) > freedom


def order_of_drawing(windows: Windows) -> list[str]:
    """Columns of a next event: labels first, then times, then other numbers."""
    return sorted(
        windows.names(NEXT, GAP),
        key=lambda y: (windows.codec.block(y).number is not None, windows.roles[y][0] != GAP),
    )


def given_columns(windows: Windows) -> list[str]:
    """Columns that are known before a next event."""
    return windows.names(PERSON, OWNER, NUMBER, PLACE, LEFT, SINCE, NOW)


def log_chances(effects: Effects, y: str, given: Cells, been: Cells) -> Tensor:
    """Of a drawn column's cells, up to a constant in each window, float32 [windows, cells].

    Args:
      been: see `EarlierLabels`.
    """
    windows = len(next(iter(given.values())))
    total = effects["", y].repeat(windows, 1)
    for (x, name), effect in effects.items():
        if name == y and x:
            total += effect[given[x]] if x in given else been[y] * effect
    return total


def _without_windows(mixture: MixtureConditionals, windows: Windows, x: str) -> Tensor:
    """Shares of a given column's cells among people with fewer than two events, [cells]."""
    [number] = windows.names(NUMBER)
    few = windows.few
    if x == number:
        every = mixture.table(x, x).sum(dim=1)
        return torch.zeros_like(every).index_copy_(0, torch.tensor(few), every[few])
    own = mixture.table(x, number)[:, few].sum(dim=1)
    gone = mixture.missing_cell(x)
    if windows.roles[x][0] in (PERSON, OWNER) or gone is None:
        return own
    return torch.zeros_like(own).index_fill_(0, torch.tensor([gone]), float(own.sum()))


def _given(table: Tensor, least: float) -> Tensor:
    """Chances of the second column's cells given the first one's, in logs."""
    smooth = table + least
    return (smooth / smooth.sum(dim=1, keepdim=True)).log()


def _apart(table: Tensor, least: float) -> Tensor:
    """How much more often than by chance two columns' cells come together, in logs."""
    smooth = table + least
    rows, columns = smooth.sum(dim=1, keepdim=True), smooth.sum(dim=0, keepdim=True)
    return (smooth * smooth.sum() / (rows * columns)).log()
