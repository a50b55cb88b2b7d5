"""Person: whose rows are protected together, and what is public of how they belong together."""

from __future__ import annotations

from collections.abc import Collection
from typing import Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from core.message import Message, ReportedError, plural, to_say
from core.schema.form import Delimiter

MOST_ROWS, DEFAULT_ROWS = 1000, 10  # of one person, at most and where nobody says


class MoreEvents(BaseModel):
    """One more linked file of the same people; see `History`.

    Attributes:
      owner: where its rows belong to rows of an earlier file, the key of those; None where they
        belong to the person.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    event: str | None
    child: str
    own_names: dict[str, str]
    delimiter: Delimiter = ","
    order: str | None = None
    owner: str | None = None


class History(BaseModel):
    """That the rows of a person are events.

    Attributes:
      learned: whether it is learned how they follow on one another.
      event: of two linked tables in one, the key as the second has it; missing where a person has
        no event. None where everybody has one.
      parent, child: names of the two linked files, without their endings; "" for one table.
      own_names: names in the second file of its columns here, by name.
      delimiter: of the second file, where it is text.
      more: further files with rows of the same people, each in an order of its own.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    learned: bool = True
    event: str | None = None
    parent: str = ""
    child: str = ""
    own_names: dict[str, str] = Field(default_factory=dict)
    delimiter: Delimiter = ","
    more: tuple[MoreEvents, ...] = ()


class Person(BaseModel):
    """The unit of privacy, where a person may appear in several rows.

    Attributes:
      columns: say together who a row is of; without any each row counts as a record of its own,
        protected `rows` deep.
      rows: at most so many rows of one person, ≥ 1. With `columns` more are left out of training;
        without, it is the steward's word.
      constant: columns that hold one value for a person, in every row of theirs.
      order: a column by which the rows of a person are sorted in the synthetic table.
      counter: a made-up column that counts a person's rows in that order: 1, 2, 3, …
      history: of what rows are events; None where they are no events.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    columns: tuple[str, ...] = ()
    rows: int = Field(ge=1, le=MOST_ROWS)
    constant: tuple[str, ...] = ()
    order: str | None = None
    counter: str | None = None
    history: History | None = None

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if not self.columns and (self.constant or self.order is not None):
            raise ReportedError(
                "Constant columns and an order need a column that says which person a row is about."
            )
        roles = (*self.columns, *self.constant)
        twice = sorted({name for name in roles if roles.count(name) > 1})
        if twice:
            raise ReportedError(
                to_say("Columns have two roles for a person: {names}."), names=", ".join(twice)
            )
        if self.counter is not None and (
            self.order is None or self.counter in (*roles, self.order)
        ):
            raise ReportedError(
                to_say("'{name}' cannot count a person's rows: that needs another column's order."),
                name=self.counter,
            )
        if self.order is not None and self.order in roles:
            raise ReportedError(
                to_say("'{name}' cannot sort rows in which it never changes."), name=self.order
            )
        return self

    @property
    def grouped(self) -> bool:
        """Whether rows are put together by person."""
        return bool(self.columns)

    @property
    def named(self) -> tuple[str, ...]:
        """Every column with a role."""
        more = [self.counter]
        more += [name for one in self.files for name in (one.order, one.event, one.owner)]
        return (*self.columns, *self.constant, *(name for name in more if name is not None))

    @property
    def event(self) -> str | None:
        """See `History`."""
        return None if self.history is None else self.history.event

    @property
    def files(self) -> tuple[MoreEvents, ...]:
        """Each file of events; one without a name where rows are of one table."""
        history = History() if self.history is None else self.history
        known = history.model_dump(include={"event", "child", "own_names", "delimiter"})
        return (MoreEvents(**known, order=self.order), *history.more)

    def owner_of(self, file: MoreEvents) -> int | None:
        """Which file has the rows that those of a file belong to; None where people have them."""
        if file.owner is None:
            return None
        return next(at for at, one in enumerate(self.files) if file.owner in one.own_names)

    @property
    def most_windows(self) -> int:
        """At most so many rows stand for one person: of rows that rows have, the product."""
        return max(self.most_of(file) for file in self.files)

    def most_of(self, file: MoreEvents) -> int:
        """At most so many rows of a file are one person's."""
        owner = self.owner_of(file)
        return self.rows if owner is None else self.rows * self.most_of(self.files[owner])

    @property
    def child_names(self) -> tuple[str, ...]:
        """The names of the files of events."""
        return tuple(file.child for file in self.files)

    @property
    def several_files(self) -> tuple[str, ...]:
        """The keys of events in each file of them, where several are drawn event by event."""
        keys = tuple(file.event for file in self.files if file.event is not None)
        return keys if len(keys) > 1 and self.walked else ()

    @property
    def walked(self) -> bool:
        """Whether rows are drawn event by event."""
        learned = self.history is not None and self.history.learned
        return learned and self.grouped and self.rows > 1

    @property
    def walked_by(self) -> tuple[str, ...]:
        """What sorts the events of each file that are drawn one after another."""
        orders = [file.order for file in self.files if self.walked]
        return tuple(order for order in orders if order is not None)

    def among(self, names: Collection[str]) -> Self:
        """This person without constant columns and an order that are not among the names."""
        constant = tuple(name for name in self.constant if name in names)
        order = self.order if self.order in names else None
        counter = self.counter if order is not None and self.counter in names else None
        return self.model_copy(update={"constant": constant, "order": order, "counter": counter})

    @property
    def key(self) -> tuple[tuple[str, ...], int]:
        """What tells one unit of privacy from another: who says whose rows they are, and m."""
        return (self.columns, self.rows)

    @property
    def words(self) -> str:
        """The unit that ε protects, in a few words."""
        if self.rows == 1 and not self.grouped:
            return Message("per row")
        if self.history is not None and self.event is not None:
            names = self._file_names
            words = to_say("per person, with one row of {parent} and at most {n} rows of {child}")
            if names["owned"]:
                words = to_say(
                    "per person, with one row of {parent}, at most {n} rows of {child}, and at "
                    "most {n} rows of {owned} for each row that they belong to"
                )
            return Message(words, n=self.rows, **names)
        return plural(self.rows, "per person, at most {n} row", "per person, at most {n} rows")

    @property
    def whose(self) -> Message:
        """Which rows belong to one person, where a column says."""
        columns = ", ".join(self.columns)
        if self.history is None or self.event is None:
            return Message("rows that agree in {columns}", columns=columns)
        names = self._file_names
        words = to_say("a row of {parent} and all rows of {child} with its {columns}")
        if names["owned"]:
            words = to_say(
                "a row of {parent}, all rows of {child} with its {columns}, and all rows of "
                "{owned} that belong to these"
            )
        return Message(words, columns=columns, **names)

    @property
    def _file_names(self) -> dict[str, str]:
        """Linked files: of people, of their rows, and of rows that belong to such rows."""
        return {
            "parent": "" if self.history is None else self.history.parent,
            "child": ", ".join(file.child for file in self.files if file.owner is None),
            "owned": ", ".join(file.child for file in self.files if file.owner is not None),
        }


class Unit(BaseModel):
    """Whom a release protects; `columns`, sorted, are none where rows are protected."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    columns: tuple[str, ...] = ()
    rows: int = 1

    @classmethod
    def of(cls, person: Person | None) -> Self:
        """The unit of a schema or a plan; None says that a row is a person."""
        if person is None:
            return cls()
        return cls(columns=tuple(sorted(person.columns)), rows=person.rows)

    def same(self, other: Unit) -> bool:
        """Whether what protects one also protects the other, so that their ε add up."""
        return self.columns == other.columns and (bool(self.columns) or self.rows == other.rows)

    @property
    def words(self) -> str:
        """In a few words.

        >>> Unit().words, Unit(rows=3).words, Unit(columns=("ward", "who"), rows=3).words
        ('per row', 'per person, at most 3 rows', 'per person (ward, who)')
        """
        if self.columns:
            return Message("per person ({columns})", columns=", ".join(self.columns))
        return Person(rows=self.rows).words
