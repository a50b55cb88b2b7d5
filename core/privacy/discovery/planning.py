"""What learning a domain costs and what it can find: from public numbers alone."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from core.message import Message
from core.privacy.accounting.scale_search import noise_for_share
from core.privacy.discovery.grids import (
    FINE_BINS,
    CalendarGrid,
    day_grid,
    grid_of,
    step_grid,
    value_grid,
    wait_grid,
    year_grid,
)
from core.privacy.discovery.open_domain import SMALL_NUMBERS, OpenDomain, known_labels
from core.privacy.discovery.thresholds import cell_threshold, label_threshold
from core.privacy.mechanisms.noise import grid_and_scale
from core.privacy.plan import Phase, Plan
from core.schema.column import Kind, SchemaColumn

# names of phases
BOUNDS, LISTS, FINE, LISTS_AGAIN = PHASES = "bounds", "lists", "second look", "lists again"
FAILURES = 0.25  # of δ, where labels have to be found; replace-one counts them twice
# shares of one column: a label needs more than a range does, which is found between round numbers,
# and what it needs beyond a column's share goes to the lists of which not all labels were found.
# The few numbers that need a second look share one column's
_WEIGHTS = {BOUNDS: 0.75, LISTS: 1.0, FINE: 0.25, LISTS_AGAIN: 1.25}
MOST_AGAIN = 4  # open lists that a second look is planned for: seldom do more lack labels
BESIDE = 0.7  # what counts by year and by step, which need not be as exact, are multiplied by
SINGLY = 0.35  # … and counts of waits, of the calendar and of single, frequent values
MISSING_DOUBT = 0.01  # chance that missing cells are seen anywhere where there are none
MOST_TOGETHER = 12  # bins in a row that are looked for as one: four powers of ten
NEIGHBOUR_DOUBT = 0.03  # chance that bounds reach one cell too far at either end


@dataclass(frozen=True)
class Levels:
    """From which noisy counts on something is taken to be there, in records.

    Attributes:
      cell: a cell of a public grid; `neighbour`, one beside a cell that was found.
      missing: missing cells, by phase.
      label: a label, or a combination of some.
      std: of the noise in each count, by phase; 0 where a phase is not planned. Of a second look
        at one number; at k it is √k times as much.
    """

    cell: float
    neighbour: float
    missing: dict[str, float]
    label: float
    std: dict[str, float]

    @classmethod
    def of(cls, plan: Plan, wanted: OpenDomain) -> Levels:
        """The levels of a plan that holds `discovery_phases` of what is wanted."""
        norms = _squared_sensitivities(wanted)
        multiplier = {phase.name: phase.noise_multiplier for phase in plan.phases}
        keys = most_keys(wanted, plan.n, plan.most_rows) + 1
        cells = [grid_of(column).size for column in wanted.numeric]
        cells += [year_grid().size] * len(wanted.dated) + [step_grid().size] * len(wanted.stepped)
        cells += [wait_grid().size] * len(wanted.waits)
        cells += [CalendarGrid(field).size for _, field in (*wanted.clocks, *wanted.calendars)]
        single = [value_grid().size] + [day_grid().size] * bool(wanted.days)
        cells_each = {BOUNDS: max([*cells, *single]), LISTS: keys, FINE: FINE_BINS + 3}
        std = {
            name: _std(multiplier.get(name, 0.0), norm, math.ceil(norm) * cells_each[name], plan.n)
            for name, norm in norms.items()
        }
        columns = len(wanted.numeric) + len(wanted.listed) + len(wanted.made_up)
        missing = {
            name: cell_threshold(std[name], columns, MISSING_DOUBT) for name in (BOUNDS, LISTS)
        }
        label = math.inf
        if LISTS in multiplier and _open_lists(wanted):
            label = _label_threshold(plan, LISTS, std[LISTS], _open_lists(wanted))
        return cls(
            cell=cell_threshold(std[BOUNDS], MOST_TOGETHER * sum(cells)),
            neighbour=cell_threshold(std[BOUNDS], 1, doubt=NEIGHBOUR_DOUBT),
            missing=missing,
            label=label,
            std=std,
        )

    def averaged(
        self, plan: Plan, wanted: OpenDomain, scale: float, *, sensitivity: float, lists: int
    ) -> tuple[float, Levels]:
        """The weight of a list's first counts beside those of a second look, and their levels.

        Args:
          scale: of this list in the second look.
          sensitivity: of all that look; `lists`, how many it is at.
        """
        entries = lists * (most_keys(wanted, plan.n, plan.most_rows) + 1)
        again = (
            _std(plan.phase(LISTS_AGAIN).noise_multiplier, sensitivity**2, entries, plan.n) / scale
        )
        weight = again**2 / (self.std[LISTS] ** 2 + again**2)
        std = self.std[LISTS] * math.sqrt(weight)
        part = std / self.std[LISTS]
        return weight, replace(
            self,
            missing=self.missing | {LISTS: part * self.missing[LISTS]},
            label=_label_threshold(plan, LISTS_AGAIN, std, lists),
            std=self.std | {LISTS: std},
        )


def most_keys(wanted: OpenDomain, n: int, rows: int) -> int:
    """A public bound on the keys of one list, of n units with at most so many rows: all differ."""
    known = (len(column.categories or ()) for column in wanted.listed)
    return n * rows + max(known, default=0) + len(SMALL_NUMBERS)


def _label_threshold(plan: Plan, phase: str, std: float, lists: int) -> float:
    """Above which noisy count a label is shown; `std` of the noise in it.

    Rows that nobody can put together count one each, so of one person's all weights and the noise
    are so many times those of rows that were.
    """
    failure, times = plan.phase(phase).failure, plan.rows_of_one
    rows = 1 if plan.unit is None else plan.unit.rows
    return times * label_threshold(std / times, failure, lists, rows)


def _std(multiplier: float, norm: float, entries: int, n: int) -> float:
    """Of the noise in each of so many counts of a squared sensitivity; 0 where none is planned."""
    if not multiplier:
        return 0.0
    return grid_and_scale(
        "gaussian",
        noise_multiplier=multiplier,
        sensitivity=math.sqrt(norm),
        records=n,
        entries=entries,
    )[1]


def complete(column: SchemaColumn) -> bool:
    """Whether a listed column's labels are all known: those of a yes-or-no column."""
    return column.kind is Kind.BOOLEAN and bool(known_labels(column))


def _open_lists(wanted: OpenDomain) -> int:
    unknown = sum(not complete(column) for column in wanted.listed)
    return unknown + len(wanted.beginnings) + len(wanted.rules)


def _columns(wanted: OpenDomain) -> dict[str, int]:
    """How many columns or rules a phase is for, which says what it may spend.

    A second look at numbers is for one, however many share it; at lists, for those that are open.
    """
    numeric = len(wanted.numeric)
    lists = len(wanted.listed) + len(wanted.rules) + len(wanted.made_up)
    open_kinds = sum(column.kind is not Kind.BOOLEAN for column in wanted.listed)
    again = min(open_kinds + len(wanted.rules), MOST_AGAIN)  # whatever labels the rows propose
    return {BOUNDS: numeric, LISTS: lists, FINE: min(1, len(wanted.stepped)), LISTS_AGAIN: again}


def _squared_sensitivities(wanted: OpenDomain) -> dict[str, float]:
    """Of each phase's release: every column counts as one, and levels of codes do.

    Counts by year and by step are scaled down, so they count as `BESIDE` squared; those of single
    values and days, of waits and of the calendar, as `SINGLY` squared.
    """
    columns = _columns(wanted)
    beside = len(wanted.dated) + len(wanted.stepped) + len(wanted.clocks)
    singly = len(wanted.single) + len(wanted.waits) + len(wanted.calendars) + len(wanted.days)
    return {
        BOUNDS: columns[BOUNDS] + BESIDE**2 * beside + SINGLY**2 * singly,
        LISTS: columns[LISTS] + len(wanted.beginnings),
        FINE: columns[FINE],
    }


def discovery_phases(
    wanted: OpenDomain, scale: float, *, each: float, failure: float
) -> tuple[Phase, ...]:
    """The private accesses that learn what is wanted; touches no data.

    Args:
      scale: of all noise; the budget's precision is 1/scale².
      each: the share of it that a list gets, in (0, 1].
      failure: the probability that a label is shown which one unit alone holds.
    """
    counts, unknown = _columns(wanted), _open_lists(wanted) > 0
    return tuple(
        Phase(
            name=name,
            title=_TITLES[name],
            what=_WHAT[name],
            share=min(1.0, each * _WEIGHTS[name] * count),
            noise_multiplier=noise_for_share(scale, each * _WEIGHTS[name] * count),
            failure=failure / 2 if name in (LISTS, LISTS_AGAIN) and unknown else 0.0,
        )
        for name, count in counts.items()
        if count
    )


_TITLES = {
    BOUNDS: "Bounds of numbers",
    LISTS: "Lists of labels",
    FINE: "Bounds, a second look",
    LISTS_AGAIN: "Lists, a second look",
}
_WHAT = {
    BOUNDS: "How many records lie between round numbers, at zero, at codes for “unknown”, at each "
    "number of up to three digits or whole number of four, and on each day; how many are missing; "
    "how long one date comes after another; and its month, day of the month, weekday and hour. All "
    "with Gaussian noise.",
    LISTS: "Which labels and combinations enough records hold, and how many are missing, with "
    "Gaussian noise and a threshold.",
    FINE: Message(
        "How many records lie in each of up to {bins} parts of the ranges that lie far from zero, "
        "with Gaussian noise.",
        bins=FINE_BINS,
    ),
    LISTS_AGAIN: "The same once more of the lists that lack some labels, with Gaussian noise and a "
    "threshold.",
}


@dataclass(frozen=True)
class Forecast:
    """What a run will learn of a column or rule, as far as public numbers tell."""

    name: str
    share: float
    words: str


def forecasts(plan: Plan, wanted: OpenDomain) -> tuple[Forecast, ...]:
    """One line for each open column and rule, by a plan that holds their `discovery_phases`."""
    levels, counts = Levels.of(plan, wanted), _columns(wanted)
    shares = {
        phase.name: phase.share / counts[phase.name]
        for phase in plan.phases
        if counts.get(phase.name)
    }
    numeric = shares.get(BOUNDS, 0.0) + shares.get(FINE, 0.0)
    again = sum(phase.share for phase in plan.phases if phase.name == LISTS_AGAIN)
    of_list = shares.get(LISTS, 0.0)  # of an open one, as if all lacked labels
    of_open = of_list + again / max(1, _open_lists(wanted))
    ranges = Message(
        "bounds on round numbers: a range between two is found if about {cell} lie in it, or "
        "{neighbour} next to one that was found; values outside move to the nearest bound",
        cell=_part(levels.cell, plan.n),
        neighbour=_part(levels.neighbour, plan.n),
    )
    needed = _part(label_needed(plan, wanted), plan.n)
    lines = [Forecast(column.name, numeric, ranges) for column in wanted.numeric]
    for column in wanted.listed:
        words: str = Message("both values are known; only whether any is missing is found")
        if not complete(column):
            words = Message(
                "a code is kept if about {records} have it, else its beginning, if as many share it"
                if any(column is one for one, _ in wanted.beginnings)
                else "a label is listed if about {records} have it; the rest becomes OTHER",
                records=needed,
            )
        share = of_list if complete(column) else of_open
        lines.append(Forecast(column.name, share, words))
    for column in wanted.made_up:
        words = Message("values are made up; only the share of missing cells is learned")
        lines.append(Forecast(column.name, of_list, words))
    for rule in wanted.rules:
        words = Message(
            "a combination is listed if about {records} have it; the rest becomes OTHER",
            records=needed,
        )
        lines.append(Forecast(rule.text, of_open, words))
    return tuple(lines)


def label_needed(plan: Plan, wanted: OpenDomain) -> float:
    """Records from which on a label is listed where as many lists as planned lack some."""
    levels = Levels.of(plan, wanted)
    if all(phase.name != LISTS_AGAIN for phase in plan.phases):
        return levels.label
    lists = _columns(wanted)[LISTS_AGAIN] + len(wanted.beginnings)
    return levels.averaged(plan, wanted, 1.0, sensitivity=math.sqrt(lists), lists=lists)[1].label


def _part(count: float, n: int) -> str:
    return Message("{count:,.0f} records ({share:.1%})", count=count, share=count / n)
