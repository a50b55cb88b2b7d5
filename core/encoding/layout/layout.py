"""Layout: which columns models see, made from the public domain alone, and the way back.

Columns that follow from others by rules are left out or replaced, those that say whose a row is
too, and one is added that says how many rows a person has. Of identifiers and texts, whose values
are made up, models see which cells are missing. On the way back every rule holds.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from core.encoding.layout.later_dates import keep_calendars, orders_to_keep
from core.encoding.layout.person_assembler import PersonAssembler
from core.encoding.window_columns import FileOfEvents, windows_of_files
from core.encoding.windows import RARELY_MISSING, Windows
from core.schema.column import DomainColumn, Kind, SchemaError
from core.schema.labels import category_indices, from_labels, to_numbers
from core.schema.person import Person
from core.schema.rules.gaps import free_name
from core.schema.rules.rules import Follows
from core.schema.rules.steps import Steps, rewritten
from core.schema.schema import Domain
from core.schema.surrogates import surrogate

THERE, MISSING = "yes", "no"  # of a made-up cell


class Layout:
    """The map between a table's columns and those that models see.

    Attributes:
      domain: what models see; `output` itself where there is neither rule nor person.
      windows: of histories that are learned, of the first file's events; None where there are none.
      files: the same of each file.
    """

    def __init__(self, output: Domain):
        self.output = self.domain = output
        self._person = output.person
        self.windows: Windows | None = None
        self.files: tuple[Windows, ...] = ()
        person = output.person
        keys = () if person is None else person.columns
        constant = () if person is None else person.constant
        self._of_person = (*keys, *constant)  # made-up values belong to a person, not to a row
        self._there = {} if person is not None and person.walked else self._presences()
        if self.same:
            return
        tagged = [name for names in output.sensitive.values() for name in names]
        self._steps = Steps.of(
            [column for column in output.columns if column.name not in keys],
            output.rules,
            target=output.target,
            tagged=tagged,
            person=person,
        )
        self._assembler: PersonAssembler | None = None
        columns = list(self._steps.columns)
        names = {column.name for column in (*columns, *output.columns)}
        if person is not None and person.walked:
            self._check_rules(person)
            self.files = windows_of_files(
                columns,
                self._steps.constant,
                self._files_of_events(person, [column.name for column in columns]),
                most=person.rows,
                empty=person.event is not None,
                taken=names,
            )
            self.windows = self.files[0]
            self.domain = self.windows.domain
            return
        if person is not None and person.grouped and person.rows > 1:
            steady = [column for column in columns if column.name in self._steps.constant]
            self._assembler = PersonAssembler.of(person.rows, steady, names)
            columns.append(self._assembler.column)
        self.domain = Domain(
            columns=(*columns, *self._there.values()),
            target=output.target,
            sensitive=output.sensitive,
        )

    def _presences(self) -> dict[str, DomainColumn]:
        """Of made-up columns that are missing in some rows, what says in which."""
        taken, found = {column.name for column in self.output.columns}, {}
        pair = THERE, MISSING
        for column in self.output.columns:
            some = column.missing and column.absent < 1.0 and column.name not in self._of_person
            if column.kind.surrogate and some:
                name = free_name(f"{column.name} is there", taken)
                found[column.name] = DomainColumn(name=name, kind=Kind.BOOLEAN, categories=pair)
                taken.add(name)
        return found

    def _check_rules(self, person: Person) -> None:
        later = {name for file in person.files[1:] for name in file.own_names}
        for rule in self.output.rules:
            if isinstance(rule, Follows) and later.intersection(rule.columns):
                raise SchemaError(
                    "Rule '{rule}' speaks of a person's next row, which is kept only in the first "
                    "table that was linked. Remove the rule.",
                    rule=rule.text,
                )

    def _files_of_events(self, person: Person, names: Sequence[str]) -> list[FileOfEvents]:
        """Which columns that models see are of which file's events, and what sorts them."""
        steps, found = self._steps, []
        events = [name for name in names if name not in steps.constant]
        for file in person.files[1:]:
            own = [name for name in events if steps.made_of(name) <= file.own_names.keys()]
            events = [name for name in events if name not in own]
            dated = FileOfEvents(own, steps.sorts_as(file.order), limits=steps.limits(file.order))
            found.append(dated._replace(owner=person.owner_of(file)))
        order = person.order
        first = FileOfEvents(
            events, steps.sorts_as(order), steps.waits_from(order), steps.limits(order)
        )
        return [first, *found]

    @property
    def same(self) -> bool:
        """Whether models see the table as it is."""
        return not (self.output.rules or self.output.person or self._there)

    @property
    def constant(self) -> frozenset[str]:
        """Columns that models see and that say something of a person, not of a row."""
        return self._steps.constant

    @property
    def reads(self) -> tuple[str, ...]:
        """Columns of real rows that `to_model` looks at."""
        if self.same:
            return tuple(column.name for column in self.output.modelled)
        owners = () if self._person is None else [file.owner for file in self._person.files]
        return (*self._steps.reads, *self._there, *filter(None, (*self._events, *owners)))

    @property
    def _events(self) -> list[str | None]:
        """Of each file, the column that is missing where a row is not of it."""
        person = self._person
        return [] if self.windows is None or person is None else [f.event for f in person.files]

    def of_file(self, frame: pd.DataFrame) -> list[NDArray[np.bool_]]:
        """Which rows are events of each file; others say that somebody has none."""
        every = np.ones(len(frame), dtype=bool)
        return [every if n is None else frame[n].notna().to_numpy() for n in self._events]

    def to_model(
        self, frame: pd.DataFrame, rows_of_person: NDArray[np.integer[Any]] | None = None
    ) -> pd.DataFrame:
        """Real rows as models see them, or as windows are made of them.

        Args:
          rows_of_person: int [rows], how many rows each one's person has; needed where several.
        """
        if self.same:
            return frame
        seen = self._steps.encode(frame)
        for name, there in self._there.items():
            cells = np.where(frame[name].isna(), MISSING, THERE)
            seen[there.name] = pd.Series(cells, dtype="str")
        if self._assembler is not None:
            if rows_of_person is None:
                raise ValueError("How many rows each row's person has must be given.")
            seen[self._assembler.column.name] = self._assembler.encode(rows_of_person)
        return seen

    def shortfall(self, frame: pd.DataFrame, rows: int) -> int:
        """How many more of a model's rows `from_model` needs to make so many; 0 when enough."""
        if self.same or self._assembler is None:
            return max(0, rows - len(frame))
        return self._assembler.shortfall(frame, rows)

    def from_model(
        self, frame: pd.DataFrame, seed: int | None = None, rows: int | None = None
    ) -> pd.DataFrame:
        """A model's rows as rows of the table, every rule kept; the seed is of data-free draws."""
        if self.same:
            return frame
        rows = len(frame) if rows is None else rows
        random = np.random.default_rng(seed)
        frame = frame.reset_index(drop=True)
        people: NDArray[np.intp] | None = None
        if self._assembler is None:
            frame = frame.iloc[:rows]
        else:
            frame, people = self._assemble(self._assembler, frame, rows, random)
        who = np.arange(rows) if people is None else people
        table, kept = self._followed(self._sorted(self._table(frame, random, people), who), who)
        return self._counted(table, who[kept])

    def from_events(
        self,
        frame: pd.DataFrame,
        who: NDArray[np.intp],
        file: NDArray[np.intp],
        owner: NDArray[np.intp],
        seed: int | None,
    ) -> pd.DataFrame:
        """Events as rows of the table, every rule kept.

        Args:
          frame: columns that windows are made of, people and their events, a file after the other.
          who: whose each row is: 0, 1, …
          file: of which each is; -1 where a row only says that its person has no event.
          owner: the row that each belongs to; -1 where it belongs to the person.
        """
        table = self._table(frame, np.random.default_rng(seed), who)
        person = self._person
        if person is not None and person.event is not None:
            key = table[person.columns[0]]
            for at, one in enumerate(person.files):
                table = table.assign(**self._made_up(one.own_names, who, file == at))
                others = {
                    n for f in (*person.files[:at], *person.files[at + 1 :]) for n in f.own_names
                }
                for name in table.columns.difference([*self._of_person, *others]):
                    table[name] = table[name].where(file == at)
                if one.event is not None:
                    keys = key if one.owner is None else table[one.owner].to_numpy()[owner]
                    table[one.event] = pd.Series(keys).where(file == at)
        table = self._sorted(table, who, file, owner)
        together = np.unique(np.stack([who, file]), axis=1, return_inverse=True)[1].ravel()
        table, kept = self._followed(table, together)
        table, file = self._counted(table, together[kept]), file[kept]
        table, file = self._owned(table, file) if not kept.all() else (table, file)
        for at, one in enumerate(() if person is None else person.files):
            if person is not None and person.counter in one.own_names:
                table[person.counter] = table[person.counter].where(file == at)
        return table

    def _owned(
        self, table: pd.DataFrame, file: NDArray[np.intp]
    ) -> tuple[pd.DataFrame, NDArray[np.intp]]:
        """The table without what belongs to rows that are gone."""
        for at, one in enumerate(() if self._person is None else self._person.files):
            if one.event is not None and one.owner is not None:
                kept = (file != at) | table[one.event].isin(table[one.owner].dropna()).to_numpy()
                table, file = table[kept].reset_index(drop=True), file[kept]
        return table, file

    def _made_up(
        self, names: Collection[str], who: NDArray[np.intp], there: NDArray[np.bool_]
    ) -> dict[str, pd.Series[Any]]:
        """Made-up columns of a file's events; that other rows miss them does not count."""
        rows = np.bincount(who)
        own = np.bincount(who, there)[rows > 0] / rows[rows > 0]
        elsewhere = 1.0 - float(own.mean())  # of a person's rows, as a person counts
        keys = () if self._person is None else [file.owner for file in self._person.files]
        cells = {}
        for column in self.output.columns:
            if column.kind.surrogate and column.name in names:
                share = max(0.0, column.absent - elsewhere) / max(1.0 - elsewhere, 1e-9)
                rarely = share <= RARELY_MISSING or column.name in keys
                share = 0.0 if rarely else min(1.0, share)
                missing = column.model_copy(update={"absent": share})
                cells[column.name] = surrogate(missing, len(who))
        return cells

    def _table(
        self, frame: pd.DataFrame, random: np.random.Generator, people: NDArray[np.intp] | None
    ) -> pd.DataFrame:
        """What rules and keys say of rows in the columns of `Steps`."""
        cells, rows = self._steps.decode(frame, random, people), len(frame)
        orders = orders_to_keep(self.output.rules, frame)
        columns = {column.name: column for column in self.output.columns}
        keep_calendars(cells, orders, columns, random, person=self._person, who=people)
        table = {}
        for column in self.output.columns:
            if column.name in cells:
                table[column.name] = rewritten(cells[column.name], column)
            elif people is not None and column.name in self._of_person:
                values = surrogate(column, int(people[-1]) + 1)
                table[column.name] = values.iloc[people].reset_index(drop=True)
            else:
                own = self._there.get(column.name)
                there = None if own is None else frame[own.name].eq(THERE)
                table[column.name] = surrogate(column, rows, there=there)
        return pd.DataFrame(table)

    def _assemble(
        self,
        assembler: PersonAssembler,
        frame: pd.DataFrame,
        rows: int,
        random: np.random.Generator,
    ) -> tuple[pd.DataFrame, NDArray[np.intp]]:
        """Candidates put together as people, constant columns as the first of each has them."""
        chosen, people = assembler.assemble(frame, rows, random)
        first = chosen[np.searchsorted(people, people)]
        cells = {
            name: frame[name].iloc[first if name in self._steps.constant else chosen]
            for name in frame.columns
        }
        taken = {name: column.reset_index(drop=True) for name, column in cells.items()}
        return pd.DataFrame(taken), people

    def _counted(self, table: pd.DataFrame, who: NDArray[np.intp]) -> pd.DataFrame:
        """The table with each row's place among its person's, where a column counts them."""
        name = None if self._person is None else self._person.counter
        if name is None or name not in table:
            return table
        places = table.groupby(who, sort=False).cumcount() + 1
        column = next(one for one in self.output.columns if one.name == name)
        return table.assign(**{name: from_labels(places.astype("str"), column)})

    def _followed(
        self, table: pd.DataFrame, who: NDArray[np.intp]
    ) -> tuple[pd.DataFrame, NDArray[np.bool_]]:
        """The table with every rule from an event to the next kept, and which rows stay for it."""
        if self._steps.following is None:
            return table, np.ones(len(table), dtype=bool)
        cells, kept = self._steps.following.settle(table, who)
        return table.assign(**cells)[kept].reset_index(drop=True), kept

    def _sorted(
        self,
        table: pd.DataFrame,
        who: NDArray[np.intp],
        file: NDArray[np.intp] | None = None,
        owner: NDArray[np.intp] | None = None,
    ) -> pd.DataFrame:
        person, none = self._person, self._assembler is None and self.windows is None
        names = [] if person is None or none else [one.order for one in person.files]
        values = np.zeros(len(table))
        for at, name in enumerate(names):
            column = next((one for one in self.output.modelled if one.name == name), None)
            if column is not None:
                own = np.ones(len(table), dtype=bool) if file is None else file == at
                if column.kind.numeric:
                    x = to_numbers(table[column.name], column)
                else:
                    ranks = category_indices(table[column.name], column)
                    x = np.where(ranks < 0, np.nan, ranks)
                values = np.where(own, x, values)
        order = np.lexsort(
            (values, who) if file is None or owner is None else (values, owner, file, who)
        )
        own = [one.name for one in self.output.columns if not one.modelled]
        moved = table.iloc[order].reset_index(drop=True)
        return moved.assign(**{name: table[name] for name in own})
