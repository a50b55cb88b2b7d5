"""Schema matching: next month's file gets last month's declarations, by the columns' names.

How cells are written belongs to them; delimiter, encoding and doubts are the new file's. A domain
that was accepted as proposed from earlier rows stays marked so, and one that was learned is
learned anew of the people who are in the new file.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeVar

from core.message import Message, joined, plural
from core.schema.column import (
    NOTHING_PROPOSED,
    DomainSource,
    Provenance,
    SchemaColumn,
    changed,
    nullable_dtype,
)
from core.schema.form import Form
from core.schema.person import History, Person
from core.schema.schema import Schema, tagged_among

ENOUGH = 0.5  # of all columns of either must be in both, for two tables to be taken as alike
NAMED = 4  # columns that a sentence names
SEEN = (
    "kind", "low", "high", "step", "scale", "categories", "other", "missing", "codes", "source",
)  # fmt: skip
MARKS = ("absent", "decimal", "thousands", "prefix", "suffix")  # of a form, that cells are read by
Key = TypeVar("Key")


@dataclass(frozen=True)
class Comparison:
    """How a table's columns differ from those of a saved schema.

    `changed` says what is declared otherwise: fields of the column, or "spelling" for its type, its
    date format and the marks of its numbers.
    """

    same: tuple[str, ...]
    changed: dict[str, tuple[str, ...]]
    new: tuple[str, ...]
    gone: tuple[str, ...]

    @property
    def likeness(self) -> float:
        """Share of all columns of either that are in both, in [0, 1]."""
        both = len(self.same) + len(self.changed)
        return both / (both + len(self.new) + len(self.gone))

    @property
    def words(self) -> Message:
        """One sentence: as last time, but for what is new or gone."""
        both = len(self.same) + len(self.changed)
        parts = [plural(both, "{n:d} column as last time", "{n:d} columns as last time")]
        if n := len(self.new):
            names = _listed(self.new)
            parts.append(plural(n, "{n:d} is new: {names}", "{n:d} are new: {names}", names=names))
        if n := len(self.gone):
            names = _listed(self.gone)
            parts.append(
                plural(n, "{n:d} is gone: {names}", "{n:d} are gone: {names}", names=names)
            )
        return Message("{parts}.", parts=joined(parts, "; "))


def compare(schema: Schema, saved: Schema) -> Comparison:
    """How a schema differs from a saved one."""
    earlier = {column.name: column for column in saved.columns}
    differing = {
        column.name: what
        for column in schema.columns
        if column.name in earlier and (what := _changes(column, earlier[column.name]))
    }
    both = [name for name in schema.names if name in earlier]
    return Comparison(
        same=tuple(name for name in both if name not in differing),
        changed=differing,
        new=tuple(name for name in schema.names if name not in earlier),
        gone=tuple(name for name in saved.names if name not in schema.names),
    )


def best_match(schema: Schema, saved: Iterable[tuple[Key, Schema]]) -> Key | None:
    """The first saved schema whose columns are called most alike; None where none are."""
    scored = [(compare(schema, other).likeness, key) for key, other in saved]
    likeness, key = max(scored, key=lambda one: one[0], default=(0.0, None))
    return key if likeness >= ENOUGH else None


def adopted(proposed: Schema, saved: Schema) -> Schema:
    """A new table's schema with a saved one's declarations, as far as its columns are there."""
    earlier = {column.name: column for column in saved.columns}
    names = set(proposed.names)
    columns = tuple(
        _adopted(column, earlier[column.name]) if column.name in earlier else column
        for column in proposed.columns
    )
    return changed(
        proposed,
        columns=columns,
        target=saved.target if saved.target in names else proposed.target,
        person=_person(proposed, saved),
        rules=tuple(rule for rule in saved.rules if names.issuperset(rule.columns)),
        sensitive=tagged_among(saved.sensitive, names),
        holdout=saved.holdout,
    )


def _person(proposed: Schema, saved: Schema) -> Person | None:
    """Whose rows are whose as saved; which files a table was linked from stays as it is."""
    names, person = set(proposed.names), saved.person
    if proposed.linked and not saved.linked:
        return proposed.person
    if person is None or not names.issuperset(saved.key_columns):
        return proposed.person if proposed.linked else None
    if saved.linked and proposed.person is not None and proposed.linked:
        person = person.model_copy(update={"history": proposed.person.history})
    elif saved.linked:
        person = person.model_copy(update={"history": History()})
    return person.among(names)


def _adopted(column: SchemaColumn, earlier: SchemaColumn) -> SchemaColumn:
    origin = earlier.provenance
    note = column.note if column.kind is earlier.kind else ""
    taken = earlier.model_copy(update={"note": note, "learned": None})
    if origin is Provenance.PROPOSED:
        return taken.as_proposed()
    if origin is Provenance.LEARNED:  # by the people of the earlier table
        return taken.model_copy(update={"source": DomainSource.LEARNED}).as_proposed()
    by_steward = origin is Provenance.STEWARD
    return taken.model_copy(update={"proposal": NOTHING_PROPOSED if by_steward else None})


def _changes(column: SchemaColumn, earlier: SchemaColumn) -> tuple[str, ...]:
    fields = [name for name in SEEN if getattr(column, name) != getattr(earlier, name)]
    return (*fields, "spelling") if _spelling(column) != _spelling(earlier) else tuple(fields)


def _spelling(column: SchemaColumn) -> tuple[str | None, ...]:
    form = column.form or Form()
    return (nullable_dtype(column.dtype), column.date_format, *(getattr(form, m) for m in MARKS))


def _listed(names: tuple[str, ...]) -> str:
    first, more = ", ".join(names[:NAMED]), len(names) - NAMED
    return Message("{names} and {n:d} more", names=first, n=more) if more > 0 else first
