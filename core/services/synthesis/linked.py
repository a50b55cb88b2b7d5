"""Two linked files: people and their events, as one table whose rows are events, and back.

Every event stands beside what holds for its person; somebody without events has one row in which
the second file's key is missing.
"""

from __future__ import annotations

import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from core.message import Message, to_say
from core.reading.raw_cells import is_written
from core.runs.execution.synthetic_label import ENDING, synthetic_label
from core.schema.column import DomainColumn, Kind, Provenance, SchemaColumn
from core.schema.labels import to_labels
from core.schema.person import DEFAULT_ROWS, MOST_ROWS, History, Person
from core.schema.rules.gaps import free_name
from core.schema.rules.steps import rewritten
from core.schema.schema import Schema
from core.services.export import certificate_text, domain_dictionary
from core.services.synthesis.options import RefusedError
from core.writing.tables import csv_text, write_csv_parts
from core.writing.whole_files import replacing

_BEYOND = to_say("{n:,} events beyond the first {most} of their person, which are not used")
_CHILDREN = to_say("{n:,} rows of {child} without a row in {parent}, which are left out")
_KEYLESS = to_say("{n:,} rows of {parent} without a key, which are left out")
_CHILDLESS = to_say("{n:,} people without a row in {child}, which is learned too")
Rows: TypeAlias = pa.Table | pd.DataFrame


@dataclass(frozen=True)
class LinkedFile:
    """One of the two files.

    Attributes:
      rows: raw, or typed by the schema.
      schema: declared or proposed.
      name: of the file, without its ending.
      key: the column that says who.
    """

    rows: Rows
    schema: Schema
    name: str
    key: str


@dataclass(frozen=True)
class LinkedTables:
    """Both files as one table.

    Attributes:
      notes: what was left out, in sentences for the steward.
    """

    rows: Rows
    schema: Schema
    notes: tuple[Message, ...]


def keys_of(option: str) -> tuple[str, str]:
    """The key in both files.

    >>> keys_of("patient"), keys_of("id=users_id")
    (('patient', 'patient'), ('id', 'users_id'))
    """
    first, _, second = (part.strip() for part in option.partition("="))
    return first, second or first


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
    person, event, notes = _matched(_keys(parent), _keys(child), parent.name, child.name)
    counts = np.bincount(person[event >= 0])
    if beyond := int(np.maximum(counts - most, 0).sum()):
        notes.append(Message(_BEYOND, n=beyond, most=most))
    taken = set(parent.schema.names)
    names = {}
    for column in child.schema.names:
        wanted = f"{child.name}.{column}" if column == child.key or column in taken else column
        names[column] = free_name(wanted, taken)
        taken.add(names[column])
    history = History(
        event=names[child.key],
        parent=parent.name,
        child=child.name,
        own_names={new: old for old, new in names.items() if new != old},
        delimiter=child.schema.delimiter,
    )
    rows = _side_by_side(parent.rows, child.rows, person, event, names)
    unit = Person(
        columns=(parent.key,),
        rows=most,
        constant=tuple(name for name in parent.schema.names if name != parent.key),
        order=None if order is None else names[order],
        history=history,
    )
    return LinkedTables(rows, _joined(parent, child, names, unit), tuple(notes))


def _joined(parent: LinkedFile, child: LinkedFile, names: dict[str, str], person: Person) -> Schema:
    columns: list[SchemaColumn] = []
    for file in (parent, child):
        for column in file.schema.columns:
            proposed = column.provenance is Provenance.PROPOSED
            changes: dict[str, Any] = {} if file is parent else {"name": names[column.name]}
            if column.name == file.key:
                changes["kind"] = Kind.IDENTIFIER
            elif file is child and column.modelled:
                changes["missing"] = True  # in the row of somebody without events
            changed = column.model_copy(update=changes)
            columns.append(changed.as_proposed() if proposed else changed)
    return Schema.model_validate(
        parent.schema.model_dump()
        | {"columns": columns, "person": person.model_dump(), "target": None}
    )


def _keys(file: LinkedFile) -> pd.Series[Any]:
    if isinstance(file.rows, pd.DataFrame):
        return to_labels(file.rows[file.key]).reset_index(drop=True)
    keys: pd.Series[Any] = file.rows.column(file.key).cast(pa.string()).to_pandas()
    return keys.astype("str")


def _matched(
    people: pd.Series[Any], events: pd.Series[Any], parent: str, child: str
) -> tuple[NDArray[np.int64], NDArray[np.int64], list[Message]]:
    """Rows of both files that stand side by side, -1 for none, and what was left out."""
    known = people.notna() & (people != "")
    if people[known].duplicated().any():
        raise RefusedError(f"a key stands twice in {parent}: one row a person is needed there")
    if not known.any():
        raise RefusedError(f"no row of {parent} has a key")
    index = pd.Series(np.arange(len(people))[known], index=people[known])
    found = events.map(index).to_numpy(dtype=np.float64, na_value=np.nan)
    there = ~np.isnan(found)
    if not there.any():
        raise RefusedError(f"no key of {child} is in {parent}; name both columns: --key id=user_id")
    without = np.setdiff1d(np.arange(len(people))[known], found[there].astype(np.int64))
    facts = (
        (int((~there).sum()), _CHILDREN),
        (int((~known).sum()), _KEYLESS),
        (len(without), _CHILDLESS),
    )
    notes = [Message(words, n=n, parent=parent, child=child) for n, words in facts if n]
    person = np.concatenate([found[there].astype(np.int64), without])
    event = np.concatenate([np.flatnonzero(there), np.full(len(without), -1)])
    return person.astype(np.int64), event.astype(np.int64), notes


def _side_by_side(
    parent: Rows,
    child: Rows,
    person: NDArray[np.int64],
    event: NDArray[np.int64],
    names: dict[str, str],
) -> Rows:
    if isinstance(parent, pa.Table) and isinstance(child, pa.Table):
        if is_written(parent.schema) != is_written(child.schema):
            raise RefusedError("both files must be text files, or both Parquet files")
        rows = parent.take(pa.array(person))
        events = child.take(pa.array(np.where(event < 0, 0, event), mask=event < 0))
        for name, new in names.items():
            rows = rows.append_column(new, events.column(name))
        return rows
    if not (isinstance(parent, pd.DataFrame) and isinstance(child, pd.DataFrame)):
        raise RefusedError("both tables must be read alike")
    there = pd.Series(event >= 0)
    rows = parent.iloc[person].reset_index(drop=True)
    events = child.iloc[np.maximum(event, 0)].reset_index(drop=True)
    return rows.assign(**{new: events[name].where(there) for name, new in names.items()})


def is_linked(schema: Schema) -> bool:
    """Whether a table was made of two linked files."""
    return schema.person is not None and schema.person.event is not None


def unlink(table: pd.DataFrame, schema: Schema) -> dict[str, tuple[pd.DataFrame, Schema]]:
    """A table of events of people as the two files it was made of, by name.

    Keys hold: each event's person is there, once.

    Args:
      schema: with a person whose history names two files.
    """
    person = schema.person
    if person is None or person.history is None or person.history.event is None:
        raise ValueError("The table was not made of two linked files.")
    history, key = person.history, person.columns[0]
    of_person = [c for c in schema.columns if c.name in (key, *person.constant)]
    of_event = [c for c in schema.columns if c not in of_person]
    there = [[c for c in part if c.name in table.columns] for part in (of_person, of_event)]
    people = table[[c.name for c in there[0]]].drop_duplicates(key, ignore_index=True)
    rows = table.loc[table[history.event].notna(), [c.name for c in there[1]]]
    events = rows.reset_index(drop=True)
    for column in there[1]:
        if column.modelled:
            events[column.name] = rewritten(events[column.name], DomainColumn.of(column))
    events[history.event] = table.loc[table[history.event].notna(), key].to_numpy()
    own = history.own_names
    events.columns = pd.Index([own.get(name, name) for name in events.columns])
    named = [c.model_copy(update={"name": own.get(c.name, c.name)}) for c in there[1]]
    written = [(people, there[0], schema.delimiter), (events, named, history.delimiter)]
    tables = [
        (frame, Schema(columns=tuple(columns), delimiter=delimiter, encoding=schema.encoding))
        for frame, columns, delimiter in written
    ]
    return dict(zip((history.parent, history.child), tables, strict=True))


def write_linked(
    table: pd.DataFrame,
    out: Path,
    *,
    schema: Schema,
    certificate: dict[str, Any],
    escaped: bool = False,
) -> None:
    """Write a ZIP of both files, named as those that came in, with dictionary and certificate."""
    files = unlink(table, schema)
    with replacing(out) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, (rows, own) in files.items():
            part = out.parent / f".{out.name}.{name}"
            try:
                write_csv_parts([rows], part, schema=own, escape_formulas=escaped)
                archive.write(part, f"{name}.csv")
            finally:
                part.unlink(missing_ok=True)
        words = domain_dictionary(schema.domain(), escaped=escaped)
        archive.writestr("dictionary.csv", csv_text(words))
        archive.writestr("certificate.json", certificate_text(certificate))
        archive.writestr(ENDING, certificate_text(synthetic_label(certificate)))
