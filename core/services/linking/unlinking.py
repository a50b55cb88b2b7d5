"""Linked files as they came: which column is of which file, and the table as files again."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import pandas as pd

from core.schema.column import DomainColumn, is_whole
from core.schema.number_text import values_as
from core.schema.person import Person
from core.schema.rules.steps import rewritten
from core.schema.schema import Schema


def earlier_columns(schema: Schema) -> tuple[str, ...]:
    """Columns of all files of events but the last."""
    files = () if schema.person is None else schema.person.files
    return tuple(name for file in files[:-1] for name in file.own_names)


def file_names(schema: Schema) -> tuple[str, ...]:
    """All files' names, without their endings; none of other tables."""
    person = schema.person
    if person is None or person.history is None or person.event is None:
        return ()
    return (person.history.parent, *person.child_names)


def file_columns(person: Person | None, columns: Iterable[str]) -> dict[str, tuple[str, str]]:
    """The file and the name there of each column of linked files; empty for other tables."""
    if person is None or person.history is None or person.event is None:
        return {}
    events = {
        new: (file.child, old) for file in person.files for new, old in file.own_names.items()
    }
    return {name: events.get(name, (person.history.parent, name)) for name in columns}


class ForeignKey(NamedTuple):
    """A column of a file, and the file and its column whose values it has."""

    column: str
    file: str
    key: str


def foreign_keys(person: Person | None, columns: Iterable[str]) -> dict[str, ForeignKey]:
    """By file of events, what its rows belong to; none of other tables."""
    origins = file_columns(person, columns)
    if person is None or not origins:
        return {}
    return {
        file.child: ForeignKey(origins[file.event][1], *origins[file.owner or person.columns[0]])
        for file in person.files
        if file.event is not None
    }


def unlink(table: pd.DataFrame, schema: Schema) -> dict[str, tuple[pd.DataFrame, Schema]]:
    """A table of events of people as the files it was made of, by name.

    Keys hold: each event's person is there, once.

    Args:
      schema: with a person whose history names files.
    """
    person, known = schema.person, [c for c in schema.columns if c.name in table.columns]
    if person is None or person.history is None or person.event is None:
        raise ValueError("The table was not made of two linked files.")
    key, origins = person.columns[0], file_columns(person, table.columns)
    parent, *_ = file_names(schema)
    of_person = [c for c in known if origins[c.name][0] == parent]
    people = table[[c.name for c in of_person]].drop_duplicates(key, ignore_index=True)
    files = {parent: (people, of_person, schema.delimiter)}
    for file in person.files:
        assert file.event is not None, "files are linked by keys"
        of_event = [c for c in known if origins[c.name][0] == file.child]
        there = table[file.event].notna()
        events = table.loc[there, [c.name for c in of_event]].reset_index(drop=True)
        for column in of_event:
            if column.modelled:
                events[column.name] = rewritten(events[column.name], DomainColumn.of(column))
            elif is_whole(column.dtype):  # rows of other files have none
                events[column.name] = values_as(events[column.name], column.dtype)
        if file.owner is None:
            events[file.event] = table.loc[there, key].to_numpy()
        events.columns = pd.Index([origins[name][1] for name in events.columns])
        named = [c.model_copy(update={"name": origins[c.name][1]}) for c in of_event]
        files[file.child] = (events, named, file.delimiter)
    return {
        name: (
            frame,
            Schema(columns=tuple(columns), delimiter=delimiter, encoding=schema.encoding),
        )
        for name, (frame, columns, delimiter) in files.items()
    }
