"""release_domain: learn bounds, lists and mappings from raw rows, as planned and no more."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pandas as pd

from core.encoding.person_rows import PersonRows, cell_hashes, kept_rows, number_people
from core.privacy.discovery import grids
from core.privacy.discovery.bins_in_a_row import Counts
from core.privacy.discovery.calendars import learned_clock, with_calendars
from core.privacy.discovery.file_rows import side_by_side
from core.privacy.discovery.list_release import FoundLists, noisy_counts, release_lists
from core.privacy.discovery.lists import ListCounts, made_up
from core.privacy.discovery.number_steps import learned_heaps, learned_step, without_values
from core.privacy.discovery.open_domain import OpenDomain, needed_as_they_are
from core.privacy.discovery.planning import BESIDE, BOUNDS, FINE, SINGLY, Levels
from core.privacy.discovery.ranges import (
    REACHED,
    FirstLook,
    bounded,
    far_from_zero,
    first_look,
)
from core.privacy.discovery.raw_rows import read_raw
from core.privacy.discovery.second_look import FineLook
from core.privacy.discovery.waits import with_orders, with_waits
from core.privacy.guarded import PrivateTable
from core.privacy.mechanisms.domain_release import CellCounts
from core.privacy.mechanisms.noise import NoiseSource
from core.privacy.meter import Meter
from core.privacy.plan import Plan
from core.proposing.rare import OTHER
from core.schema.column import Kind, SchemaColumn
from core.schema.person import Person
from core.schema.rules.rules import Combinations, Determines
from core.schema.schema import Domain, Schema

FoundRanges: TypeAlias = tuple[tuple[SchemaColumn, ...], dict[str, ListCounts]]
_ANYWHERE = grids.PublicGrid((0.0, 1.0))  # of a number where none needs a second look


@dataclass(frozen=True)
class Released:
    """What was learned; all of it is public.

    Attributes:
      columns: with their domains, numeric ones first.
      rules: with their mappings or combinations.
      counts: of the states of listed columns and of ranges of numbers, by name.
    """

    columns: tuple[SchemaColumn, ...]
    rules: tuple[Determines | Combinations, ...]
    counts: Mapping[str, ListCounts]

    def schema(self, schema: Schema) -> Schema:
        """The schema with all that was learned.

        A list in which no label was found gets made-up values, unless something rests on it.
        """
        needed = needed_as_they_are(schema)
        for column in self.columns:
            if column.learned is not None and column.name in needed:
                learned = column.learned.model_copy(update={"placeholders": 0})
                column = column.model_copy(update={"learned": learned})
            schema = schema.replace(column)
        empty = [c for c in self.columns if c.categories == (OTHER,) and c.name not in needed]
        if {c.name for c in empty} >= {c.name for c in schema.columns if c.modelled}:
            empty = empty[1:]  # something is left to model
        for column in empty:
            states = self.counts[column.name].counts
            share = float(states[-1] / max(states.sum(), 1.0)) if column.missing else 0.0
            schema = schema.replace(made_up(column, min(1.0, max(0.0, share))))
        settled = {rule.text: rule for rule in self.rules}
        rules = tuple(settled.get(rule.text, rule) for rule in schema.rules)
        return with_orders(schema.model_copy(update={"rules": rules}))


def release_domain(
    rows: pd.DataFrame,
    wanted: OpenDomain,
    plan: Plan,
    meter: Meter,
    *,
    noise_source: NoiseSource | None = None,
) -> Released:
    """Carry out the `discovery_phases` of a plan for what is wanted; only that is looked at.

    Raises:
      UnplannedReleaseError: the plan is for something else, or was carried out before.
    """
    own, people = _put_together(rows, wanted, plan.unit)
    raw, keys = read_raw(own, wanted)
    del own  # of many rows, it takes much memory
    table = PrivateTable(
        raw, Domain(columns=()), plan, people=people, meter=meter, noise_source=noise_source
    )
    levels = Levels.of(plan, wanted)
    nothing: FoundRanges = ((), {})
    numeric, ranges = _numeric(table, wanted, levels) if wanted.numeric else nothing
    lists = release_lists(table, wanted, keys, levels) if keys else FoundLists((), (), {})
    return Released(
        columns=(*numeric, *lists.columns),
        rules=lists.rules,
        counts={**ranges, **lists.counts},
    )


def _put_together(
    rows: pd.DataFrame, wanted: OpenDomain, unit: Person | None
) -> tuple[pd.DataFrame, PersonRows | None]:
    if unit is None or not unit.grouped:
        return rows, None
    number, _ = number_people(rows[list(unit.columns)])
    if events := unit.several_files:
        seen = rows[[*wanted.names, *(key for key in events if key not in wanted.names)]]
        return side_by_side(seen, number, unit)
    seen = rows[list(wanted.names)]
    content = np.broadcast_to(cell_hashes(seen[name] for name in seen), len(seen))
    index, people = kept_rows(number, content, unit.rows)
    return seen.iloc[index], people if unit.rows > 1 else None


def first_counts(wanted: OpenDomain) -> CellCounts:
    """What the first look at numbers and dates counts, of columns as `RawRows.numbers` has them.

    The grid of each, then years or steps beside it, single values and waits, and of dates, which
    are not read twice, clocks, the calendar and single days.
    """
    beside = [grids.year_grid()] * len(wanted.dated) + [grids.step_grid()] * len(wanted.stepped)
    single = [grids.value_grid()] * len(wanted.single)
    single += [grids.wait_grid()] * len(wanted.waits)
    fields = (*wanted.clocks, *wanted.calendars)
    dated = [grids.CalendarGrid(field) for _, field in fields]
    scales = [1.0] * len(wanted.numeric) + [BESIDE] * len(beside) + [SINGLY] * len(single)
    scales += [BESIDE] * len(wanted.clocks) + [SINGLY] * len(wanted.calendars)
    days, scales = [grids.day_grid()] * len(wanted.days), scales + [SINGLY] * len(wanted.days)
    own = len(wanted.numeric) + len(beside) + len(single)
    again = (*(column for column, _ in fields), *wanted.days)
    return CellCounts(
        (*map(grids.grid_of, wanted.numeric), *beside, *single, *dated, *days),
        tuple(scales),
        (*range(own), *(wanted.numeric.index(column) for column in again)),
    )


def _numeric(table: PrivateTable, wanted: OpenDomain, levels: Levels) -> FoundRanges:
    counted = first_counts(wanted)
    parts = counted.split(noisy_counts(table, BOUNDS, counted))
    parts, days = _split(parts, len(wanted.days))
    parts, fields = _split(parts, len(wanted.calendars))
    parts, of_clocks = _split(parts, len(wanted.clocks))
    clocks = dict(zip((column.name for column, _ in wanted.clocks), of_clocks, strict=True))
    names = [column.name for column in (*wanted.dated, *wanted.stepped, *wanted.single)]
    more: dict[str, list[Counts]] = {}
    for name, part in zip(names, parts[len(wanted.numeric) :], strict=False):  # then come waits
        more.setdefault(name, []).append(part)
    for column, part in zip(wanted.days, days, strict=True):
        more[column.name].append(part)
    looks = [
        first_look(
            column, part, levels, table.n, beside=more[column.name][0], single=more[column.name][-1]
        )
        for column, part in zip(wanted.numeric, parts, strict=False)
    ]
    columns = [
        _with_step(column, look, more[column.name][0], levels, clocks.get(column.name))
        for column, look in zip(wanted.numeric, looks, strict=True)
    ]
    fine = _second_look(table, columns, looks, levels) if wanted.stepped else {}
    found = tuple(
        bounded(column, look, table.n, fine[i].narrowed(look) if i in fine else None)
        for i, (column, look) in enumerate(zip(columns, looks, strict=True))
    )
    found = tuple(  # of a step that counts showed
        _with_heaps(column, look, more[column.name][0], levels) if before.step else column
        for before, column, look in zip(columns, found, looks, strict=True)
    )
    ranges = {
        column.name: _counts_of_ranges(column, part, more[column.name][-1], levels)
        for column, part in zip(found, parts, strict=False)
        if column.kind is not Kind.DATETIME
    }
    waits, std = parts[len(parts) - len(wanted.waits) :], levels.std[BOUNDS] / SINGLY
    peaks = {column.name: look.peaks for column, look in zip(wanted.numeric, looks, strict=True)}
    found = with_calendars(wanted.calendars, fields, found, table.n, std, peaks)
    return with_waits(wanted.waits, waits, found, std), ranges


def _split(parts: list[Counts], last: int) -> tuple[list[Counts], list[Counts]]:
    """All but so many of the last ones, and these."""
    return parts[: len(parts) - last], parts[len(parts) - last :]


def _counts_of_ranges(
    column: SchemaColumn, counts: Counts, singles: Counts, levels: Levels
) -> ListCounts:
    """What the public grid counted on the line of a number, which its spikes are not on.

    Args:
      counts: of the grid, noisy; `singles`, of single values, or of something else.
    """
    grid, std = grids.grid_of(column), levels.std[BOUNDS]
    edges, bins = np.array(grid.edges), counts[1 : grid.bins + 1]
    last = edges[1:] - (column.kind is Kind.INTEGER)  # number before an edge
    inside = np.flatnonzero((edges[:-1] >= column.low) & (last <= column.high))
    own, variance = bins[inside].copy(), np.full(len(inside), std**2)
    points = [
        (atom, count, std)
        for atom, count in zip(grid.atoms, counts[grid.bins + 2 : -1].tolist(), strict=True)
        if atom not in column.spikes
    ]
    if len(singles) == grids.value_grid().size:
        apart = [x for x in column.spikes if x not in grid.atoms and x in grids.SINGLE]
        cells = np.searchsorted(grids.SINGLE, apart) + 1
        points += [(x, -float(singles[i]), std / SINGLY) for x, i in zip(apart, cells, strict=True)]
    for value, count, noise in points:
        here = (edges[:-1][inside] <= value) & (value < edges[1:][inside])
        own[here] += count
        variance[here] += noise**2
    ends = np.append(edges[inside], edges[inside[-1:] + 1])
    return ListCounts(own, np.sqrt(variance), ends)


def _with_step(
    column: SchemaColumn, look: FirstLook, counts: Counts, levels: Levels, clock: Counts | None
) -> SchemaColumn:
    """A column with the step of its numbers, by counts of these, or of its dates, by a clock's."""
    if column.kind is not Kind.DATETIME:
        rest = without_values(counts, look.peaks)
        step = learned_step(column, rest, levels, look.peaks)
    elif clock is not None:
        step = learned_clock(column, clock, levels.std[BOUNDS] / BESIDE)
    else:
        return column
    return column.model_copy(update={"step": step})


def _with_heaps(
    column: SchemaColumn, look: FirstLook, counts: Counts, levels: Levels
) -> SchemaColumn:
    """A number's column with how often it is rounded, by counts of its steps."""
    if column.learned is None or column.kind is Kind.DATETIME:
        return column
    spikes = {x: count for x, count in look.peaks.items() if x in column.spikes}
    heaps = learned_heaps(column, without_values(counts, spikes), levels)
    return column.model_copy(update={"learned": column.learned.model_copy(update={"heaps": heaps})})


def _second_look(
    table: PrivateTable, columns: Sequence[SchemaColumn], looks: Sequence[FirstLook], levels: Levels
) -> dict[int, FineLook]:
    """Counts within what was found far from zero, by column.

    Where nothing was, any number is looked at, for what is planned is made.
    """
    pairs = enumerate(zip(columns, looks, strict=True))
    far = [i for i, pair in pairs if far_from_zero(*pair, least=REACHED)]
    inside = [grids.fine_grid(*looks[i].bins, columns[i].step) for i in far]
    counted = CellCounts(tuple(inside) or (_ANYWHERE,), (1.0,) * max(1, len(far)), tuple(far))
    parts = counted.split(noisy_counts(table, FINE, counted))
    std = levels.std[FINE] * counted.sensitivity
    return {
        i: FineLook(part[1 : grid.bins + 1], std, columns[i].step)
        for i, grid, part in zip(far, inside, parts, strict=False)
    }
