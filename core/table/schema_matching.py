"""Schema matching: next month's file gets last month's declarations, by the columns' names.

What was declared is public and stands, codes that say "missing" with it; how a column is written
(its dtype, and with it the spelling of labels that are numbers, its date format and form), the
delimiter and the doubts are the new file's. A domain that was accepted as it was proposed from
earlier rows stays marked so, and one that was bought has to be bought by the people who are in the
new file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import ValidationError

from core.table.as_declared import respelled
from core.table.column import NOTHING_PROPOSED, DomainSource, Provenance, SchemaColumn, refusal
from core.table.form import Form
from core.table.person import Person
from core.table.rules import Combinations, Determines, Rule
from core.table.schema import Schema

__all__ = ["Comparison", "adopted", "best_match", "compare"]

ENOUGH = 0.5  # of all columns of either must be in both, for two tables to be taken as alike
NAMED = 4  # columns that a sentence names
SEEN = (
    "kind", "low", "high", "step", "scale", "categories", "other", "missing", "codes", "source",
)  # fmt: skip
Key = TypeVar("Key")


def _counted(n: int, one: str, many: str, /, **values: str) -> str:
    return (one if n == 1 else many).format(n=n, **values)


@dataclass(frozen=True)
class Comparison:
    """How a table's columns differ from those of a saved schema.

    Attributes:
      same: names in both, declared alike.
      changed: names in both that are declared otherwise, and what of each.
      new: names that only the table has.
      gone: names that only the saved schema has.
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

    def words(
        self, say: Callable[..., str] = str.format, say_n: Callable[..., str] = _counted
    ) -> str:
        """One sentence: as last time, but for what is new or gone.

        Args:
          say: fills a template, in the language of whoever reads.
          say_n: fills the template for one, or the one for many.
        """
        both = len(self.same) + len(self.changed)
        parts = [say_n(both, "{n:d} column as last time", "{n:d} columns as last time")]
        if n := len(self.new):
            names = _listed(self.new, say)
            parts.append(say_n(n, "{n:d} is new: {names}", "{n:d} are new: {names}", names=names))
        if n := len(self.gone):
            names = _listed(self.gone, say)
            parts.append(say_n(n, "{n:d} is gone: {names}", "{n:d} are gone: {names}", names=names))
        return "; ".join(parts) + "."


def compare(schema: Schema, saved: Schema) -> Comparison:
    """How a schema differs from a saved one.

    Args:
      schema: of the table at hand.
      saved: of an earlier one.
    """
    earlier = {column.name: column for column in saved.columns}
    changed = {
        column.name: what
        for column in schema.columns
        if column.name in earlier and (what := _changes(column, earlier[column.name]))
    }
    both = [name for name in schema.names if name in earlier]
    return Comparison(
        same=tuple(name for name in both if name not in changed),
        changed=changed,
        new=tuple(name for name in schema.names if name not in earlier),
        gone=tuple(name for name in saved.names if name not in schema.names),
    )


def best_match(schema: Schema, saved: Iterable[tuple[Key, Schema]]) -> Key | None:
    """The saved schema whose columns are called most alike, the first of several; None where none.

    Args:
      schema: of a new table.
      saved: schemas with what names them.
    """
    scored = [(compare(schema, other).likeness, key) for key, other in saved]
    likeness, key = max(scored, key=lambda one: one[0], default=(0.0, None))
    return key if likeness >= ENOUGH else None


def adopted(proposed: Schema, saved: Schema) -> Schema:
    """A new table's schema with the declarations of a saved one, for the steward to confirm.

    Columns that only the new table has stay as proposed. Target, persons, rules and tags come from
    the saved schema as far as their columns are there.

    Args:
      proposed: from the new table's rows.
      saved: as an earlier table's steward declared it.

    Raises:
      SchemaError: what is left of the saved declarations does not fit together.
    """
    earlier = {column.name: column for column in saved.columns}
    names = set(proposed.names)
    columns = tuple(
        _adopted(column, earlier[column.name]) if column.name in earlier else column
        for column in proposed.columns
    )
    spelled = {
        column.name: _spelled(column, earlier[column.name])
        for column in proposed.columns
        if column.name in earlier
    }
    groups = {
        group: tuple(name for name in tagged if name in names)
        for group, tagged in saved.sensitive.items()
    }
    try:
        return Schema(
            columns=columns,
            target=saved.target if saved.target in names else proposed.target,
            person=_person(saved.person, names),
            rules=tuple(
                _same_rule(rule, spelled) for rule in saved.rules if names.issuperset(rule.columns)
            ),
            sensitive={group: tagged for group, tagged in groups.items() if tagged},
            holdout=saved.holdout,
            delimiter=proposed.delimiter,
        )
    except ValidationError as error:
        raise refusal(error) from None


def _adopted(column: SchemaColumn, earlier: SchemaColumn) -> SchemaColumn:
    """A new column as it was declared earlier, with where that came from."""
    codes = () if earlier.form is None else earlier.form.codes
    absent = "" if column.form is None else column.form.absent
    others = tuple(code for code in codes if code != absent)
    form = (column.form or Form()).model_copy(update={"codes": others})
    written: dict[str, Any] = {
        "dtype": column.dtype,
        "date_format": column.date_format,
        "form": None if form == Form() else form,
        # one of several codes may be how the new file says it
        "missing": earlier.missing or absent in codes,
        "note": column.note,
    }
    if earlier.categories is not None:
        spelled = _spelled(column, earlier)
        written["categories"] = tuple(spelled[label] for label in earlier.categories)
        written["other"] = None if earlier.other is None else spelled[earlier.other]
    origin = earlier.provenance
    taken = earlier.model_copy(update={**written, "purchase": None})
    if origin is Provenance.PROPOSED:
        return taken.as_proposed()
    if origin is Provenance.BOUGHT:  # by the people of the earlier table
        return taken.model_copy(update={"source": DomainSource.BOUGHT}).as_proposed()
    stated = origin is Provenance.STEWARD
    return taken.model_copy(update={"proposal": NOTHING_PROPOSED if stated else None})


def _spelled(column: SchemaColumn, earlier: SchemaColumn) -> dict[str, str]:
    """A column's labels as the new file's type spells them, by the earlier ones."""
    labels = earlier.categories or ()
    return dict(zip(labels, respelled(labels, earlier.dtype, column.dtype), strict=True))


def _same_rule(rule: Rule, spelled: Mapping[str, Mapping[str, str]]) -> Rule:
    """A rule with its labels as the new file spells them.

    Args:
      rule: of the earlier schema.
      spelled: of each column `_spelled`.
    """

    def label(name: str, earlier: str) -> str:
        return spelled.get(name, {}).get(earlier, earlier)

    if isinstance(rule, Determines) and rule.mapping is not None:
        pairs = rule.mapping.items()
        mapping = {label(rule.source, a): label(rule.result, b) for a, b in pairs}
        return rule.model_copy(update={"mapping": mapping})
    if isinstance(rule, Combinations) and rule.allowed is not None:
        allowed = tuple(tuple(map(label, rule.names, labels)) for labels in rule.allowed)
        return rule.model_copy(update={"allowed": allowed})
    return rule


def _person(person: Person | None, names: set[str]) -> Person | None:
    """Whose rows are protected together, if the columns that say so are there."""
    if person is None or not names.issuperset(person.columns):
        return None
    constant = tuple(name for name in person.constant if name in names)
    order = person.order if person.order in names else None
    return person.model_copy(update={"constant": constant, "order": order})


def _changes(column: SchemaColumn, earlier: SchemaColumn) -> tuple[str, ...]:
    """What is declared otherwise, by the names of the declared fields."""
    return tuple(name for name in SEEN if getattr(column, name) != getattr(earlier, name))


def _listed(names: tuple[str, ...], say: Callable[..., str]) -> str:
    first = ", ".join(names[:NAMED])
    more = len(names) - NAMED
    return say("{names} and {n:d} more", names=first, n=more) if more > 0 else first
