"""Coverage: what of a table the domain of its run cannot show; from released numbers alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from core.message import Message, plural, to_say
from core.schema.column import DomainSource, SchemaColumn
from core.schema.labels import beginnings
from core.schema.schema import Schema

ONE_KEPT = to_say("The only column is in the synthetic table.")
ALL_KEPT = to_say("All {n} columns are in the synthetic table.")
NOTED_SHARE = 0.005  # of the records outside a learned domain, from which on a column is named


@dataclass(frozen=True)
class ColumnCoverage:
    """How much of a column a learned domain leaves out.

    Attributes:
      merged: whether these cells become OTHER; else they move to the nearest bound or number, or
        get another label where the column is `listed`.
      placeholders: how many made-up labels stand for them instead; 0 for OTHER alone.
      shortened: whether some codes keep only their beginning, and their ending is made up.
      outside: estimated share of the records, in [0, 1]; `error`, half of a 95 % interval.
    """

    name: str
    merged: bool
    outside: float
    error: float
    listed: bool = False
    placeholders: int = 0
    shortened: bool = False

    @property
    def words(self) -> Message:
        """For the steward and for people outside."""
        known = {"column": self.name, "share": self.outside, "error": self.error}
        if self.merged and self.shortened:
            return Message(
                "'{column}': about {share:.1%} (± {error:.1%}) of the records have a code whose "
                "beginning too few people share to be learned. A made-up code replaces it.",
                **known,
            )
        if self.merged and self.placeholders:
            return Message(
                "'{column}': about {share:.1%} (± {error:.1%}) of the records have a value that "
                "too few people share to be learned. A placeholder replaces it: OTHER 1 to OTHER "
                "{n}.",
                n=self.placeholders,
                **known,
            )
        if self.merged:
            return Message(
                "'{column}': about {share:.1%} (± {error:.1%}) of the records have a value that "
                "too few people share to be learned. It becomes OTHER.",
                **known,
            )
        if self.listed:
            return Message(
                "'{column}': about {share:.1%} (± {error:.1%}) of the records have a value that "
                "too few people share to be learned. They get another one.",
                **known,
            )
        return Message(
            "'{column}': about {share:.1%} (± {error:.1%}) of the records lie outside of what was "
            "learned. They move to the nearest value.",
            **known,
        )


@dataclass(frozen=True)
class Coverage:
    """What a synthetic table shows of the columns of its original.

    Attributes:
      made_up: lists of which no value was frequent enough to be learned.
      columns: those whose domain was learned, the least covered first.
    """

    kept: int
    made_up: tuple[str, ...]
    dropped: tuple[str, ...]
    columns: tuple[ColumnCoverage, ...]

    @property
    def noted(self) -> tuple[ColumnCoverage, ...]:
        """Columns of which more than noise and a little lies outside."""
        return tuple(c for c in self.columns if c.outside - c.error > NOTED_SHARE)

    @property
    def complete(self) -> bool:
        """Whether no column is left out, and little lies outside of what was learned."""
        return not (self.dropped or self.made_up or self.noted)

    @property
    def sentences(self) -> tuple[Message, ...]:
        """On columns, on all lists together, then on each column that is noted."""
        found = [plural(self.kept, ONE_KEPT, ALL_KEPT)]
        if self.dropped:
            found = [
                Message(
                    "{kept} of {all} columns are in the synthetic table. Left out: {names}.",
                    kept=self.kept,
                    all=self.kept + len(self.dropped),
                    names=", ".join(self.dropped),
                )
            ]
        if self.made_up:
            found.append(
                Message(
                    "No value of {names} is shared by enough people to be learned; values are "
                    "made up.",
                    names=", ".join(self.made_up),
                )
            )
        merged = [c.outside for c in self.columns if c.merged]
        if len(merged) > 1:  # of one list its own sentence says it
            found.append(
                Message(
                    "In the {n} lists that were learned with noise, about {share:.1%} of the cells "
                    "become OTHER, because too few people share their value.",
                    n=len(merged),
                    share=sum(merged) / len(merged),
                )
            )
        shortened = [column.name for column in self.columns if column.shortened]
        if shortened:
            found.append(
                Message(
                    "Rare codes in {names} keep only their beginning; their ending is made up.",
                    names=", ".join(sorted(shortened)),
                )
            )
        return (*found, *(column.words for column in self.noted))


def coverage(schema: Schema) -> Coverage:
    """The coverage of a schema with which a run was trained."""
    columns = [_covered(c) for c in schema.columns if c.learned is not None and c.modelled]
    return Coverage(
        kept=sum(c.source is not DomainSource.DROP for c in schema.columns),
        made_up=tuple(
            c.name for c in schema.columns if c.kind.surrogate and c.learned and c.learned.outside
        ),
        dropped=tuple(c.name for c in schema.columns if c.source is DomainSource.DROP),
        columns=tuple(sorted(columns, key=lambda one: -one.outside)),
    )


def _covered(column: SchemaColumn) -> ColumnCoverage:
    learned = column.learned
    assert learned is not None
    return ColumnCoverage(
        name=column.name,
        merged=column.other is not None,
        outside=learned.outside,
        error=1.96 * learned.error,
        listed=column.kind.listed and not learned.nearest,
        placeholders=learned.placeholders,
        shortened=bool(beginnings(column)),
    )


Fate = tuple[str, Message, float | None, float | None]


def fates(schema: Schema) -> list[Fate]:
    """Columns that do not come through whole: name, what became of it, share of records and ±."""
    found = coverage(schema)
    constant = [
        c.name
        for c in schema.columns
        if c.modelled and (c.low is not None and c.low == c.high or len(c.categories or ()) == 1)
    ]
    few = (
        (found.dropped, Message("left out")),
        (found.made_up, Message("made up")),
        (constant, Message("always the same value")),
    )
    rows: list[Fate] = [(name, fate, None, None) for names, fate in few for name in names]
    for one in found.noted:
        cut = Message("ends cut off")
        fate = Message("rare values replaced") if one.merged or one.listed else cut
        rows.append((one.name, fate, one.outside, one.error))
    return rows


def coverage_facts(schema: Schema) -> dict[str, Any]:
    """`coverage` as JSON-safe values, for programs and the certificate."""
    found = coverage(schema)
    return {
        "dropped": list(found.dropped),
        "made_up": list(found.made_up),
        "learned": {
            c.name: {"outside": c.outside, "error": c.error, "merged": c.merged}
            for c in found.columns
        },
    }
