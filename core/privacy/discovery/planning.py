"""What buying a schema costs and what it can find: from public numbers alone."""

from __future__ import annotations

import math
from dataclasses import dataclass

from core.message import Message
from core.privacy.discovery.grids import FINE_BINS, grid_of
from core.privacy.discovery.thresholds import cell_threshold, label_threshold
from core.privacy.discovery.unbought import Unbought, known_labels
from core.privacy.ledger.entries import PURCHASE
from core.privacy.mechanisms.noise import grid_and_scale
from core.privacy.plan import Budget, Phase, Plan
from core.privacy.planning import planned
from core.schema.column import Kind, SchemaColumn, SchemaError
from core.schema.person import Person

BOUNDS, LISTS, FINE = "bounds", "lists", "second look"  # names of phases
FAILURES = 0.25  # of δ, where labels have to be found; replace-one counts them twice
TOLERATED = 0.0025  # of the records, that a second look may cut off at either end
_WEIGHTS = {BOUNDS: 1.0, LISTS: 2.0, FINE: 0.5}  # of one column: labels are thinner than ranges
NEIGHBOUR_DOUBT = 0.05  # chance that bounds reach one cell too far at either end
_SURE = 2.0  # standard deviations that a second look leaves room for


@dataclass(frozen=True)
class Levels:
    """From which noisy counts on something is taken to be there, in records.

    Attributes:
      cell: a cell of a public grid; `neighbour`, one beside a cell that was found.
      missing: missing cells, by phase.
      label: a label, or a combination of some.
      std: of the noise in each count, by phase; 0 where a phase is not planned.
      tolerated: how many records a second look may cut off at either end.
    """

    cell: float
    neighbour: float
    missing: dict[str, float]
    label: float
    std: dict[str, float]
    tolerated: float

    @classmethod
    def of(cls, plan: Plan, wanted: Unbought) -> Levels:
        """The levels of a plan that `plan_schema` made."""
        counts = _histograms(wanted)
        multiplier = {phase.name: phase.noise_multiplier for phase in plan.phases}
        keys = most_keys(wanted, plan.n, plan.most_rows) + 1
        cells = [grid_of(column).size for column in wanted.numeric]
        cells_each = {BOUNDS: max(cells, default=1), LISTS: keys, FINE: FINE_BINS + 3}
        std = {
            name: _std(multiplier.get(name, 0.0), counts[name], cells_each[name], plan.n)
            for name in _WEIGHTS
        }
        columns = len(wanted.numeric) + len(wanted.listed)
        missing = {name: cell_threshold(std[name], columns) for name in (BOUNDS, LISTS)}
        label = math.inf
        if plan.failure:
            # rows that nobody can put together count one each, so of one person's all weights and
            # the noise are so many times those of rows that were
            failure, times = plan.phase(LISTS).failure, plan.rows_of_one
            rows = 1 if plan.unit is None else plan.unit.rows
            label = times * label_threshold(std[LISTS] / times, failure, _open_lists(wanted), rows)
        return cls(
            cell=cell_threshold(std[BOUNDS], sum(cells)),
            neighbour=cell_threshold(std[BOUNDS], 1, doubt=NEIGHBOUR_DOUBT),
            missing=missing,
            label=label,
            std=std,
            tolerated=TOLERATED * plan.n,
        )

    def cut(self, counts: list[float]) -> int:
        """How many bins at the end of a second look's counts surely hold few records."""
        total, bins = 0.0, 0
        for count in counts:
            total += count
            room = _SURE * self.std[FINE] * math.sqrt(bins + 1)
            if total + room > self.tolerated:
                break
            bins += 1
        return bins


def most_keys(wanted: Unbought, n: int, rows: int) -> int:
    """A public bound on the keys of one list, of n units with at most so many rows: all differ."""
    return n * rows + max((len(column.categories or ()) for column in wanted.listed), default=0)


def _std(multiplier: float, histograms: int, entries: int, n: int) -> float:
    if not multiplier:
        return 0.0
    return grid_and_scale(
        "gaussian",
        noise_multiplier=multiplier,
        sensitivity=math.sqrt(histograms),
        records=n,
        entries=histograms * entries,
    )[1]


def complete(column: SchemaColumn) -> bool:
    """Whether a listed column's labels are all known: those of a yes-or-no column."""
    return column.kind is Kind.BOOLEAN and bool(known_labels(column))


def _open_lists(wanted: Unbought) -> int:
    return sum(not complete(column) for column in wanted.listed) + len(wanted.rules)


def _histograms(wanted: Unbought) -> dict[str, int]:
    numeric, lists = len(wanted.numeric), len(wanted.listed) + len(wanted.rules)
    return {BOUNDS: numeric, LISTS: lists, FINE: numeric}


def plan_schema(wanted: Unbought, n: int, budget: Budget, *, unit: Person | None = None) -> Plan:
    """The private accesses that buy a schema; touches no data.

    Bounds and lists share the budget by the number of columns. The second look at numbers is
    planned where its noise is small enough to cut anything off.

    Raises:
      SchemaError: nothing is to be bought, or so much noise is needed that nothing could be found.
      ValueError: the budget is out of range.
    """
    if not budget.private:
        raise ValueError("Without differential privacy nothing is bought; declare the domains.")
    if not wanted.names:
        raise SchemaError("Nothing is to be bought: every domain is declared or bought already.")
    plan = _planned(wanted, n, budget, unit, fine=bool(wanted.numeric))
    levels = Levels.of(plan, wanted)
    if wanted.numeric and 2.0 * _SURE * levels.std[FINE] > levels.tolerated:
        plan = _planned(wanted, n, budget, unit, fine=False)
        levels = Levels.of(plan, wanted)
    needed = {
        Message("a label"): levels.label if _open_lists(wanted) else 0.0,
        Message("a range of numbers"): levels.cell if wanted.numeric else 0.0,
    }
    for what, count in needed.items():
        if count >= n:
            raise SchemaError(
                Message(
                    "With ε {epsilon:.3g}, {what} is found only if about {count:,.0f} records have "
                    "it, and there are {n:,}. Nothing was spent. Use a larger share of the budget, "
                    "buy fewer columns, or declare domains that are known without the rows.",
                    epsilon=budget.epsilon,
                    what=what,
                    count=count,
                    n=n,
                )
            )
    return plan


def _planned(wanted: Unbought, n: int, budget: Budget, unit: Person | None, *, fine: bool) -> Plan:
    counts = _histograms(wanted)
    if not fine:
        counts[FINE] = 0
    weights = {name: _WEIGHTS[name] * count for name, count in counts.items() if count}
    total = sum(weights.values())
    failure = FAILURES * budget.delta if _open_lists(wanted) else 0.0

    def phases(scale: float) -> tuple[Phase, ...]:
        return tuple(
            Phase(
                name=name,
                title=_TITLES[name],
                what=_WHAT[name],
                share=weight / total,
                noise_multiplier=scale * math.sqrt(total / weight),
                failure=failure if name == LISTS else 0.0,
            )
            for name, weight in weights.items()
        )

    plan = planned(PURCHASE, n, budget, phases, unit=unit)
    settings = {
        "columns": [column.name for column in (*wanted.numeric, *wanted.listed)],
        "rules": [rule.text for rule in wanted.rules],
    }
    return plan.model_copy(update={"settings": settings})


_TITLES = {BOUNDS: "Bounds of numbers", LISTS: "Lists of labels", FINE: "Bounds, a second look"}
_WHAT = {
    BOUNDS: "How many records lie between round numbers, at zero and at codes for “unknown”, and "
    "how many are missing, with Gaussian noise.",
    LISTS: "Which labels and combinations enough records hold, and how many are missing, with "
    "Gaussian noise and a threshold.",
    FINE: Message(
        "How many records lie in each of {bins} parts of the range that was found, with Gaussian "
        "noise.",
        bins=FINE_BINS,
    ),
}


@dataclass(frozen=True)
class Forecast:
    """What a purchase will say of a column or rule, as far as public numbers tell."""

    name: str
    share: float
    words: str


def forecasts(plan: Plan, wanted: Unbought) -> tuple[Forecast, ...]:
    """One line for each column and rule of a plan that `plan_schema` made."""
    levels, counts = Levels.of(plan, wanted), _histograms(wanted)
    shares = {phase.name: phase.share / counts[phase.name] for phase in plan.phases}
    numeric = shares.get(BOUNDS, 0.0) + shares.get(FINE, 0.0)
    ranges = Message(
        "bounds on round numbers: a range between two is found if about {cell} lie in it, or "
        "{neighbour} next to one that was found; values outside move to the nearest bound",
        cell=_part(levels.cell, plan.n),
        neighbour=_part(levels.neighbour, plan.n),
    )
    needed = _part(levels.label, plan.n)
    lines = [Forecast(column.name, numeric, ranges) for column in wanted.numeric]
    for column in wanted.listed:
        words = "both values are known; only whether any is missing is found"
        if not complete(column):
            words = Message(
                "a label is listed if about {records} have it; the rest becomes OTHER",
                records=needed,
            )
        lines.append(Forecast(column.name, shares[LISTS], words))
    for rule in wanted.rules:
        words = Message(
            "a combination is listed if about {records} have it; the rest becomes OTHER",
            records=needed,
        )
        lines.append(Forecast(rule.text, shares[LISTS], words))
    return tuple(lines)


def _part(count: float, n: int) -> str:
    return Message("{count:,.0f} records ({share:.1%})", count=count, share=count / n)
