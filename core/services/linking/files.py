"""Linked files: people and their rows, as one table whose rows are events, and back.

Every event stands beside what holds for its person; somebody without events has one row in which
the second file's key is missing. What is linked already may be linked with one more file of events:
each row is an event of one file, and the columns of others are missing in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict

from core.message import Message, to_say
from core.proposing.counting_columns import counting_columns
from core.reading.raw_cells import is_written
from core.schema.column import Kind, Provenance, SchemaColumn, SchemaError
from core.schema.labels import to_labels
from core.schema.person import DEFAULT_ROWS, MOST_ROWS, History, MoreEvents, Person
from core.schema.rules.gaps import free_name
from core.schema.rules.rules import Follows
from core.schema.schema import Schema
from core.services.linking.unlinking import earlier_columns, file_columns
from core.services.synthesis.options import RefusedError

_COUNTS = to_say("{column} counts the rows of each person: --counter {column} keeps that exactly")
Rows: TypeAlias = pa.Table | pd.DataFrame
Indices: TypeAlias = NDArray[np.int64]


class LinkedFile(NamedTuple):
    """One of the two files by its name without an ending; `key` is the column that says who."""

    rows: Rows  # raw, or typed by the schema
    schema: Schema
    name: str
    key: str


class LinkedTables(NamedTuple):
    """Both files as one table; `notes` tell the steward what was left out."""

    rows: Rows
    schema: Schema
    notes: tuple[Message, ...]


class LinkFacts(BaseModel):
    """What linking finds in two files; for the steward alone.

    Attributes:
      strangers: rows of the second file without a person.
      keyless: rows of the first file without a key.
      childless: people without a row in the second file.
      people: how many have so many rows in the second file, by number of rows ≥ 1.
    """

    model_config = ConfigDict(frozen=True)

    parent: str
    child: str
    strangers: int
    keyless: int
    childless: int
    people: dict[int, int]

    @property
    def rows(self) -> int:
        """Rows of the second file that have a person."""
        return sum(rows * people for rows, people in self.people.items())

    def beyond(self, most: int) -> int:
        """Rows that are left out where at most so many of a person are used."""
        return sum(max(0, rows - most) * people for rows, people in self.people.items())

    def notes(self, most: int) -> tuple[Message, ...]:
        """What is used, left out and missing, a sentence each."""
        cut, rows = self.beyond(most), self.rows
        first = to_say("Nobody has more than {most} rows of {child}.")
        if cut:
            first = to_say(
                "{cut:,} of {rows:,} rows of {child} ({share:.1%}) are beyond the first {most} of "
                "their person and are not used."
            )
        share, names = cut / max(1, rows), {"parent": self.parent, "child": self.child}
        counted = (
            (to_say("Rows of {child} without a person, left out: {n:,}."), self.strangers),
            (to_say("Rows of {parent} without a key, left out: {n:,}."), self.keyless),
            (
                to_say("Rows of {parent} without rows of {child}, learned as such: {n:,}."),
                self.childless,
            ),
        )
        return (
            Message(first, cut=cut, rows=rows, share=share, most=most, **names),
            *(Message(words, n=n, **names) for words, n in counted if n),
        )


class Match(NamedTuple):
    """Rows of both files that stand side by side, events in the order of their file."""

    person: Indices  # int64 [rows], of the first file
    event: Indices  # int64 [rows], of the second file; at the end -1 for people without any
    facts: LinkFacts


def keys_of(option: str, files: int = 1) -> tuple[str, ...]:
    """The key in the table and in each linked file.

    Of a file whose rows belong to rows of a linked one: "FILE.KEY", or "FILE.KEY=OWN".

    >>> keys_of("patient"), keys_of("id=users_id"), keys_of("id=who,patient", 2)
    (('patient', 'patient'), ('id', 'users_id'), ('id', 'who', 'patient'))
    >>> keys_of("home=home,people.id=who", 2)
    ('home', 'home', 'people.id=who')
    """
    first, _, second = (part.strip() for part in option.partition("="))
    others = [second or first]
    if files > 1:
        others = [name.strip() for name in others[0].split(",")]
    return first, *(others * files if len(others) == 1 else others)[:files]


def link_all(
    files: Sequence[LinkedFile], *, order: str | None = None, most: int | None = None
) -> LinkedTables:
    """One table of the events in all files but the first, of the people in that.

    Args:
      order: the column of each file of events that sorts them, separated by commas.
      most: see `link`.
    """
    parent, *children = files
    titles = {file.name for file in children}
    orders = [order] if len(children) == 1 else [o.strip() for o in (order or "").split(",")]
    made, notes = LinkedTables(parent.rows, parent.schema, ()), list[Message]()
    for child, own in zip_longest(children, orders[: len(children)]):
        title, dot, keys = child.key.partition(".")
        key = parent.key
        if dot and title in titles and child.key not in child.schema.names:
            of, _, own_key = keys.partition("=")
            key, child = _name_here(made.schema, title, of), child._replace(key=own_key or of)
        person = LinkedFile(made.rows, made.schema, parent.name, key)
        made = link(person, child, order=own or None, most=most)
        notes += made.notes
    return made._replace(notes=tuple(notes))


def _name_here(schema: Schema, file: str, column: str) -> str:
    """What a column of a linked file is called in the table of all of them.

    Raises:
      RefusedError: there is no such column, or its file comes later.
    """
    origins = file_columns(schema.person, schema.names)
    found = [name for name, place in origins.items() if place == (file, column)]
    if not found:
        raise RefusedError(
            f"--key {file}.{column} needs a column '{column}' in {file}, linked before the file "
            "whose rows belong to its rows"
        )
    return found[0]


def link(
    parent: LinkedFile, child: LinkedFile, *, order: str | None = None, most: int | None = None
) -> LinkedTables:
    """One table of events of people.

    Args:
      order: the column of the second file that sorts events; None without one.
      most: events of a person that are used, ≥ 2; public.

    Raises:
      RefusedError: a column is not there, a key is there twice, or all events have none.
    """
    most = DEFAULT_ROWS if most is None else most
    if not 2 <= most <= MOST_ROWS:
        raise RefusedError(f"--rows-per-person must lie in 2 to {MOST_ROWS}, not {most}")
    for file in (parent, child):
        if file.key not in file.schema.names:
            raise RefusedError(f"no column of {file.name} is called '{file.key}' (--key)")
    if order is not None and order not in child.schema.names:
        raise RefusedError(f"no column of {child.name} is called '{order}' (--order)")
    schema = linked_schema(parent, child, order=order, most=most)
    try:
        match = matched(parent, child)
        parts = list(linked_batches(parent.rows, [child.rows], match, schema))
    except SchemaError as error:
        raise RefusedError(str(error)) from None
    written = isinstance(parts[0], pa.Table)
    rows = pa.concat_tables(parts) if written else pd.concat(parts, ignore_index=True)
    counting = _counting(rows, match, schema) if order is not None else []
    words = [Message(_COUNTS, column=name) for name in counting]
    return LinkedTables(rows, schema, (*match.facts.notes(most), *words))


def _counting(rows: Rows, match: Match, schema: Schema) -> list[str]:
    """Columns of events that count the rows of each person."""
    person, there = schema.person, match.event >= 0
    assert person is not None and person.history is not None, "two files are linked"
    file = person.files[-1]
    others = set(file.own_names) - {file.event, file.order}
    last = slice(len(rows) - len(there), None)
    cells = {name: pd.Series(rows[name].to_numpy()[last][there]) for name in others}
    return counting_columns(match.person[there], cells)


def linked_schema(parent: LinkedFile, child: LinkedFile, *, order: str | None, most: int) -> Schema:
    """That of both tables as one; the rules of the second stay where no name of theirs changes."""
    taken = set(parent.schema.names)
    names = dict[str, str]()
    for own in child.schema.names:
        wanted = f"{child.name}.{own}" if own == child.key or own in taken else own
        names[own] = free_name(wanted, taken)
        taken.add(names[own])
    columns: list[SchemaColumn] = []
    for file in (parent, child):
        for column in file.schema.columns:
            proposed = column.provenance is Provenance.PROPOSED
            changes: dict[str, Any] = {} if file is parent else {"name": names[column.name]}
            if column.name == file.key:
                changes |= {"kind": Kind.IDENTIFIER, "note": ""}  # what it is for is settled
                if file is child:
                    changes["pattern"] = None  # its values are those of the first file's key
            elif file is child and column.modelled:
                changes["missing"] = True  # in the row of somebody without events
            changed = column.model_copy(update=changes)
            columns.append(changed.as_proposed() if proposed else changed)
    person, linked = parent.schema.person, parent.schema.linked
    title = free_name(child.name, {parent.name, *(() if person is None else person.child_names)})
    own_names = {new: old for old, new in names.items()}
    events: dict[str, Any] = {"event": names[child.key], "child": title, "own_names": own_names}
    events |= {"delimiter": child.schema.delimiter}
    sorts = None if order is None else names[order]
    if linked and person is not None and person.history is not None:
        owner = None if parent.key in person.columns else parent.key
        new = MoreEvents.model_validate(events | {"order": sorts, "owner": owner})
        more = (*person.history.more, new)
        history = person.history.model_copy(update={"more": more})
        person = person.model_copy(update={"history": history, "rows": most})
    else:
        person = Person(
            columns=(parent.key,),
            rows=most,
            constant=tuple(name for name in parent.schema.names if name != parent.key),
            order=sorts,
            history=History.model_validate(events | {"parent": parent.name}),
        )
    rules = [r for r in child.schema.rules if all(names[name] == name for name in r.columns)]
    rules = [r for r in rules if not (linked and isinstance(r, Follows))]
    return Schema.model_validate(
        parent.schema.model_dump()
        | {"columns": columns, "person": person.model_dump(), "target": None}
        | {"rules": [rule.model_dump() for rule in (*parent.schema.rules, *rules)]}
    )


def matched(parent: LinkedFile, child: LinkedFile) -> Match:
    """Which rows stand side by side, by the keys alone.

    Raises:
      SchemaError: a key stands twice in the first file, or no event has a person.
    """
    people, events = _keys(parent), _keys(child)
    known = people.notna() & (people != "")
    keyless = int((~known).sum())
    person, owner = parent.schema.person, parent.name
    if person is not None and parent.schema.linked:
        if parent.key in person.columns:
            known &= ~people.duplicated()
        else:
            owner, keyless = file_columns(person, [parent.key])[parent.key][0], 0
    if people[known].duplicated().any():
        raise SchemaError(
            "'{key}' has the same value in several rows of {parent}. Choose a table with one row "
            "for each person.",
            key=parent.key,
            parent=owner,
        )
    index = pd.Series(np.arange(len(people))[known], index=people[known])
    found = events.map(index).to_numpy(dtype=np.float64, na_value=np.nan)
    there = ~np.isnan(found)
    if not there.any():
        raise SchemaError(
            "No value of '{key}' in {child} is in '{own}' of {parent}. Choose other columns.",
            key=child.key,
            child=child.name,
            own=parent.key,
            parent=owner,
        )
    person = found[there].astype(np.int64)
    without = np.setdiff1d(np.arange(len(people))[known], person)
    rows, counted = np.unique(np.bincount(person), return_counts=True)
    facts = LinkFacts(
        parent=owner,
        child=child.name,
        strangers=int((~there).sum()),
        keyless=keyless,
        childless=len(without),
        people={int(n): int(k) for n, k in zip(rows, counted, strict=True) if n},
    )
    if parent.schema.linked:
        without = without[:0]  # they have a row already
    event = np.concatenate([np.flatnonzero(there), np.full(len(without), -1)])
    return Match(np.concatenate([person, without]), event.astype(np.int64), facts)


def _keys(file: LinkedFile) -> pd.Series[Any]:
    if isinstance(file.rows, pd.DataFrame):
        return to_labels(file.rows[file.key]).reset_index(drop=True)
    keys: pd.Series[Any] = file.rows.column(file.key).cast(pa.string()).to_pandas()
    return keys.astype("str")


def _side_by_side(
    parent: Rows, child: Rows, person: Indices, event: Indices, schema: Schema, gone: Sequence[str]
) -> Rows:
    """The rows of a match; `schema` is that of both tables as one, `gone` are empty in them."""
    if isinstance(parent, pa.Table) and isinstance(child, pa.Table):
        if is_written(parent.schema) != is_written(child.schema):
            raise SchemaError(
                "One of the files is a text file or workbook and the other is not. Bring in both "
                "as text, or both as Parquet."
            )
        rows = parent.take(pa.array(person))
        for name in gone:
            at = rows.column_names.index(name)
            field = rows.schema.field(at)
            rows = rows.set_column(at, field, pa.nulls(len(person), field.type))
        events = child.take(pa.array(np.where(event < 0, 0, event), mask=event < 0))
        for name, column in zip(schema.names[parent.num_columns :], events.columns, strict=True):
            rows = rows.append_column(name, column)
        return rows
    if not (isinstance(parent, pd.DataFrame) and isinstance(child, pd.DataFrame)):
        raise RefusedError("both tables must be read alike")
    there = pd.Series(event >= 0)
    rows = parent.iloc[person].reset_index(drop=True)
    rows = rows.assign(**{name: rows[name].where(~there) for name in gone})
    events = child.iloc[np.maximum(event, 0)].reset_index(drop=True)
    names = zip(child.columns, schema.names[len(parent.columns) :], strict=True)
    return rows.assign(**{new: events[name].where(there) for name, new in names})


def linked_batches(
    parent: Rows, batches: Iterable[Rows], match: Match, schema: Schema
) -> Iterator[Rows]:
    """The rows of a match, those of the last file some at a time.

    Raises:
      SchemaError: only one of the files is text.
    """
    start, known, gone = 0, match.event[match.event >= 0], earlier_columns(schema)
    for batch in batches:
        if gone and not start:  # what was linked already stays
            every = np.arange(len(parent))
            yield _side_by_side(parent, batch, every, np.full(len(every), -1), schema, ())
        first, last = np.searchsorted(known, (start, start + len(batch)))
        person, event = match.person[first:last], match.event[first:last] - start
        start += len(batch)
        yield _side_by_side(parent, batch, person, event, schema, gone)
    without = match.person[len(known) :]
    if len(without):
        yield _side_by_side(parent, batch, without, np.full(len(without), -1), schema, ())
