"""Schema and Domain: what may be known about a table without touching its rows.

The steward confirms a `Schema`; a `Domain` is the public part of it that leaves the house. Both are
frozen and have a JSON form, which a plan, a certificate and a saved model can quote.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from functools import lru_cache
from typing import Any, Self, TypeAlias

import numpy as np
import pandas as pd
from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from core.message import ReportedError
from core.schema.column import (
    Column,
    DomainColumn,
    DomainSource,
    Kind,
    Provenance,
    SchemaColumn,
    SchemaError,
    UndeclaredDomainError,
    is_open,
)
from core.schema.form import Delimiter, FileForm
from core.schema.labels import from_labels, from_numbers, to_numbers
from core.schema.person import Person
from core.schema.rules.kept_rules import Kept, keep
from core.schema.rules.rules import Rule
from core.schema.surrogates import surrogate

A_YEAR = 366 * 86_400.0  # seconds; a format may name no more than years


def check_writable(column: Column) -> None:
    """Refuse a column that its type or format cannot write, or with a spike out of bounds.

    A schema file may name a type or a date format that is none, or bounds that a type cannot hold,
    and rows are written last. So the ends of each domain are written once beforehand.
    """
    if column.kind.numeric and column.low is not None and column.high is not None:
        for spike in column.spikes:
            if not column.low <= spike <= column.high and f"{spike:g}" not in column.codes:
                raise SchemaError(
                    "Column '{name}': the spike {spike:g} lies outside the bounds {low:g} and "
                    "{high:g}. Nothing more was spent. Widen the bounds, or leave the spike out.",
                    name=column.name,
                    spike=spike,
                    low=column.low,
                    high=column.high,
                )
    if not _can_write(column):
        raise SchemaError(
            "Column '{name}': its declared values cannot be written as '{dtype}'. Nothing more "
            "was spent. Correct its type, date format or bounds, or leave the column out.",
            name=column.name,
            dtype=column.dtype,
        )


@lru_cache(maxsize=1024)
def _can_write(column: Column) -> bool:
    try:
        if column.kind.surrogate:
            return len(surrogate(column, 1)) == 1
        if column.kind.listed:
            absent = [None] if column.may_be_absent else []
            names = column.categories or ()
            written = from_labels(pd.Series([*names, *absent], dtype="str"), column)
            # whole numbers that stay text are beyond the type that others of them have
            return written.dtype != "str" or column.dtype == "str" or not all(map(_is_whole, names))
        ends = np.array([column.low, column.high, *column.spikes], dtype=np.float64)
        gap = [np.nan] if column.may_be_absent else []
        cells = from_numbers(np.append(ends, gap), column)
        form = None if column.form is None else column.form.model_copy(update={"codes": ()})
        plain = column.model_copy(update={"form": form})  # a bound may be a code too
        read = to_numbers(cells, plain)[: len(ends)]
        if column.date_format is not None and (np.abs(read - ends) > A_YEAR).any():
            return False  # a format without the year, say: what is written means another year
        return bool(np.isfinite(read).all())
    except Exception:  # each library raises its own of what it was not made for
        return False


def _is_whole(label: str) -> bool:
    return label.removeprefix("-").isdecimal()


Groups: TypeAlias = dict[str, tuple[str, ...]]


def _schema_column(column: Any) -> Any:
    plain = isinstance(column, Column) and not isinstance(column, SchemaColumn)
    return SchemaColumn(**column.fields()) if plain else column


def _shares_open(column: SchemaColumn) -> bool:
    """Whether a run is to learn which share of a column's made-up values is missing."""
    learned = column.source is DomainSource.LEARNED and column.learned is None
    return column.kind.surrogate and learned


def _twice(names: Iterable[str]) -> list[str]:
    return sorted(name for name, count in Counter(names).items() if count > 1)


def tagged_among(groups: Groups, names: Collection[str]) -> Groups:
    """Groups of tagged columns without those that are not among the names; none is empty."""
    kept = {group: tuple(n for n in tagged if n in names) for group, tagged in groups.items()}
    return {group: tagged for group, tagged in kept.items() if tagged}


class Schema(BaseModel):
    """A table's columns in file order, and what the steward says of them.

    Attributes:
      sensitive: disjoint groups of columns whose joint distribution must not be revealed.
      holdout: share of records kept out of training, in [0, ½]; see `core.encoding.holdout`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    columns: tuple[SchemaColumn, ...] = Field(min_length=1)
    target: str | None = None
    person: Person | None = None
    rules: tuple[Rule, ...] = ()
    sensitive: Groups = Field(default_factory=dict)
    holdout: float = Field(default=0.0, ge=0.0, le=0.5)
    delimiter: Delimiter = ","
    encoding: str = Field(default="utf-8", pattern="^[a-z0-9_-]{1,32}$")
    spaced: bool = False

    @field_validator("columns", mode="before")
    @classmethod
    def _own_type(cls, columns: Iterable[Any]) -> tuple[Any, ...]:
        return tuple(_schema_column(column) for column in columns)

    @model_validator(mode="after")
    def _roles(self) -> Self:
        if twice := _twice(self.names):
            raise ReportedError("Columns have the same name: {names}.", names=", ".join(twice))
        tagged = [name for names in self.sensitive.values() for name in names]
        of_person = () if self.person is None else self.person.named
        ruled = [name for rule in self.rules for name in rule.columns]
        for role in (self.target, *of_person, *ruled, *tagged):
            if role is not None and role not in self.names:
                raise ReportedError("No column is called '{name}'.", name=role)
        if twice := _twice(rule.text for rule in self.rules):
            raise ReportedError("These rules are declared twice: {rules}.", rules="; ".join(twice))
        if twice := _twice(tagged):
            raise ReportedError(
                "Columns are tagged twice as sensitive: {names}.", names=", ".join(twice)
            )
        if empty := [group for group, columns in self.sensitive.items() if not columns]:
            raise ReportedError(
                "These sensitive groups have no column: {names}.", names=", ".join(empty)
            )
        return self

    def __getitem__(self, name: str) -> SchemaColumn:
        """The column of that name; KeyError when there is none."""
        return {column.name: column for column in self.columns}[name]

    @property
    def names(self) -> tuple[str, ...]:
        """Column names in file order."""
        return tuple(column.name for column in self.columns)

    @property
    def key_columns(self) -> tuple[str, ...]:
        """Columns that say together whose a row is; none where a row is a person."""
        return () if self.person is None else self.person.columns

    @property
    def walked(self) -> bool:
        """Whether rows of a person are drawn one after the other; `rows` then count people."""
        return self.person is not None and self.person.walked

    @property
    def linked(self) -> bool:
        """Whether rows are of two linked files."""
        return self.person is not None and self.person.event is not None

    @property
    def form(self) -> FileForm:
        """How the table's file is written."""
        forms = {column.name: column.form for column in self.columns if column.form is not None}
        return FileForm(
            delimiter=self.delimiter, encoding=self.encoding, spaced=self.spaced, columns=forms
        )

    def replace(self, column: Column) -> Schema:
        """This schema with the column of the same name replaced."""
        new = _schema_column(column)
        columns = tuple(new if c.name == column.name else c for c in self.columns)
        return self.model_copy(update={"columns": columns})

    def made_up(self, name: str) -> Schema:
        """This schema with a column that is not learned."""
        new = self[name].model_copy(update={"kind": Kind.IDENTIFIER, "pattern": None})
        return self.replace(new)

    def as_proposed(self) -> Schema:
        """This schema with open domains as the rows proposed them, for eyes inside."""
        declared = {"source": DomainSource.DECLARED}
        columns = tuple(
            c.model_copy(update=declared) if is_open(c) or _shares_open(c) else c
            for c in self.columns
        )
        return self.model_copy(update={"columns": columns})

    def domain(self) -> Domain:
        """The public domain of the columns that will be in the synthetic table.

        Raises:
          UndeclaredDomainError: bounds or categories are missing; the columns are named.
          SchemaError: nothing is left to model, or something cannot be modelled, written or kept.
        """
        remaining = self._remaining
        self._check_declared()
        for column in remaining:
            column.check_magnitude()
            check_writable(column)
        if not any(c.modelled for c in remaining):
            raise SchemaError(
                "No column is left to model: every one is dropped, text or an identifier."
            )
        if self.target is not None and not self[self.target].modelled:
            raise SchemaError(
                "The target '{name}' is dropped, text or an identifier. Choose another target "
                "or none.",
                name=self.target,
            )
        for group, columns in self.sensitive.items():
            lost = [name for name in columns if not self[name].modelled]
            if lost:
                raise SchemaError(
                    "The sensitive group '{group}' names columns that are dropped, text or "
                    "identifiers: {names}. Untag them; they reveal no distribution.",
                    group=group,
                    names=", ".join(lost),
                )
        self._check_keys()
        self._check_orders()
        settled = self._settled
        return Domain(
            columns=tuple(self.public(column) for column in remaining),
            target=self.target,
            person=self.person,
            rules=settled.rules,
            sensitive=self.sensitive,
        )

    @property
    def fallen(self) -> dict[str, str]:
        """By rule or role, why it is not kept; empty where `domain` would refuse the schema."""
        try:
            self._check_declared()
            return self._settled.fallen
        except SchemaError:
            return {}

    @property
    def _remaining(self) -> tuple[SchemaColumn, ...]:
        return tuple(c for c in self.columns if c.source is not DomainSource.DROP)

    @property
    def _settled(self) -> Kept:
        return keep(
            [self.public(column) for column in self._remaining],
            self.rules,
            target=self.target,
            person=self.person,
            tagged=[name for names in self.sensitive.values() for name in names],
            learned=[c.name for c in self.columns if c.provenance is Provenance.LEARNED],
        )

    def _check_declared(self) -> None:
        unknown = [
            c.name for c in self._remaining if not c.declared and c.name not in self.key_columns
        ]
        if unknown:
            raise UndeclaredDomainError(
                "Bounds or categories are not declared for: {names}. Declare them on the "
                "Tables page, let the run learn them, or drop these columns.",
                names=", ".join(unknown),
            )

    def _check_keys(self) -> None:
        tagged = [name for names in self.sensitive.values() for name in names]
        for name in (self.target, *tagged):
            if name in self.key_columns:
                raise SchemaError(
                    "Column '{name}' says whose a row is and gets made-up values, so it can be "
                    "neither the target nor hidden. Choose another column.",
                    name=name,
                )

    def _check_orders(self) -> None:
        for file in () if self.person is None else self.person.files:
            kind = Kind.ORDERED if file.order is None else self[file.order].kind
            if not kind.numeric and kind is not Kind.ORDERED:
                raise SchemaError(
                    "'{name}' cannot sort a person's rows, because its values have no order. "
                    "Choose a number, a date or an ordered list.",
                    name=file.order,
                )

    def public(self, column: SchemaColumn) -> DomainColumn:
        """The part of a column that may leave; who a row is of is said by made-up values."""
        dropped = column.source is DomainSource.DROP
        if column.name not in self.key_columns or column.kind.surrogate or dropped:
            return DomainColumn.of(column)
        return DomainColumn(
            name=column.name, kind=Kind.IDENTIFIER, dtype=column.dtype, pattern=column.pattern
        )


class Domain(BaseModel):
    """What may be known for free: the kept columns with their declared domains, target and rules.

    It is built field by field from what is declared, and so is each saved one that is read: notes
    and proposals, which depend on rows, stay behind.

    Attributes:
      roles: of columns of windows, by name: what each is, of which column of the table it is made,
        and of which file's events; see `core.encoding.windows`. Empty where records are no windows.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    columns: tuple[DomainColumn, ...]
    target: str | None = None
    person: Person | None = None
    rules: tuple[Rule, ...] = ()
    sensitive: Groups = Field(default_factory=dict)
    roles: dict[str, tuple[str, str, int]] = Field(default_factory=dict)

    @field_validator("columns", mode="before")
    @classmethod
    def _declared_only(cls, columns: Iterable[Any]) -> tuple[Any, ...]:
        return tuple(
            DomainColumn.of(column) if isinstance(column, Column) else column for column in columns
        )

    @property
    def modelled(self) -> tuple[DomainColumn, ...]:
        """Columns a model learns, in file order."""
        return tuple(c for c in self.columns if c.modelled)

    @property
    def numeric(self) -> tuple[DomainColumn, ...]:
        """Modelled columns whose values lie on a line."""
        return tuple(c for c in self.modelled if c.kind.numeric)

    def project(self, names: Sequence[str]) -> Domain:
        """The domain of some columns, in this order, without rules and persons."""
        by_name = {column.name: column for column in self.columns}
        return Domain(
            columns=tuple(by_name[name] for name in names),
            target=self.target if self.target in names else None,
            sensitive=tagged_among(self.sensitive, names),
        )
