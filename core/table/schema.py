"""Schema, Column and Domain: what may be known about a table without touching its rows.

A `Schema` is what the steward confirms; a `Domain` is the public part of it that a model may use.
Both are frozen values with a JSON form, so that a plan, a certificate and a saved model can quote
exactly what was declared.

A domain leaves the house with every model, a schema never does. So they hold columns of two types:
`DomainColumn` has the declared fields and no other, `SchemaColumn` also what is for eyes inside.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from core.table.magnitudes import magnitude_fault

__all__ = [
    "Column",
    "Domain",
    "DomainColumn",
    "DomainSource",
    "Kind",
    "Provenance",
    "Schema",
    "SchemaColumn",
    "SchemaError",
    "UndeclaredDomainError",
]

MAX_CATEGORIES = 10_000  # above this a column is an identifier or text in all but name


class Kind(StrEnum):
    """What a column means to a person, which decides how it is encoded."""

    NUMBER = "number"
    INTEGER = "integer"
    CATEGORY = "category"
    ORDERED = "ordered"
    BOOLEAN = "boolean"
    DATETIME = "datetime"
    IDENTIFIER = "identifier"
    TEXT = "text"

    @property
    def numeric(self) -> bool:
        """Whether values lie on a line (numbers, integers, dates)."""
        return self in (Kind.NUMBER, Kind.INTEGER, Kind.DATETIME)

    @property
    def listed(self) -> bool:
        """Whether values come from a finite list (categories, ordered, booleans)."""
        return self in (Kind.CATEGORY, Kind.ORDERED, Kind.BOOLEAN)

    @property
    def surrogate(self) -> bool:
        """Whether values are replaced by made-up ones and never modelled."""
        return self in (Kind.IDENTIFIER, Kind.TEXT)


class DomainSource(StrEnum):
    """How a column's bounds or category list become known."""

    DECLARED = "declared"  # the steward attests that they are public: costs nothing
    BOUGHT = "bought"  # released by a mechanism in the plan
    DROP = "drop"  # the column is left out of the synthetic table


class Provenance(StrEnum):
    """Where a declared domain comes from; accepting a proposal does not make it the steward's."""

    PROPOSED = "proposed"
    STEWARD = "steward"
    UNSTATED = "unstated"  # declared before this was recorded, or in a file that does not say

    @property
    def words(self) -> str:
        """For the certificate and the pages."""
        return _ORIGINS[self]


_ORIGINS = {
    Provenance.PROPOSED: "as proposed from the rows",
    Provenance.STEWARD: "set by the steward",
    Provenance.UNSTATED: "origin not recorded",
}


class SchemaError(ValueError):
    """A schema that cannot be used; the message names the column and what to change."""


class UndeclaredDomainError(SchemaError):
    """Columns whose bounds or categories are neither declared nor bought."""


class Column(BaseModel):
    """One column: its kind, its public domain and how to write it back; all of it may leave.

    Attributes:
      name: header in the file, unique in the schema.
      kind: see `Kind`.
      missing: whether a value may be absent; absent values are modelled as a state of their own.
      source: how the domain below is known.
      low, high: inclusive bounds for numeric kinds, low < high or equal for a constant. Dates are
        seconds since 1970-01-01 (naive or UTC).
      step: resolution of numeric kinds (1 for integers, 0.01 for cents, 86400 for days); 0 means
        continuous.
      scale: "linear", or "log" for heavy tails (asinh about `centre`, so both signs work).
      spikes: values that carry an atom of their own, such as 0 in a zero-inflated column.
      categories: labels of listed kinds, in order for `ordered`. Labels are text; `dtype` says how
        to write them back.
      other: label that stands for values outside `categories`; it must be one of them.
      dtype: pandas dtype of the input ("int64", "float64", "str", "bool", "datetime64[us]", ...).
      date_format: strptime format when a date column arrived as text, else None.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = Field(min_length=1)
    kind: Kind
    missing: bool = False
    source: DomainSource = DomainSource.DECLARED
    low: float | None = None
    high: float | None = None
    step: float = Field(default=0.0, ge=0.0)
    scale: Literal["linear", "log"] = "linear"
    spikes: tuple[float, ...] = ()
    categories: tuple[str, ...] | None = None
    other: str | None = None
    dtype: str = "str"
    date_format: str | None = None

    @field_validator("low", "high")
    @classmethod
    def _finite(cls, value: float | None) -> float | None:
        if value is not None and not math.isfinite(value):
            raise ValueError("bounds must be finite numbers")
        return value

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.low is not None and self.high is not None and self.low > self.high:
            raise ValueError(f"column '{self.name}': low {self.low} is above high {self.high}")
        if self.categories is not None:
            if len(set(self.categories)) != len(self.categories):
                raise ValueError(f"column '{self.name}': a category is listed twice")
            if len(self.categories) > MAX_CATEGORIES:
                raise ValueError(
                    f"column '{self.name}': more than {MAX_CATEGORIES} categories; "
                    "make it text or an identifier"
                )
        if self.other is not None and self.other not in (self.categories or ()):
            raise ValueError(f"column '{self.name}': 'other' must be one of the categories")
        return self

    @property
    def declared(self) -> bool:
        """Whether everything a model needs to know is stated here."""
        if self.kind.numeric:
            return self.low is not None and self.high is not None
        if self.kind.listed:
            return bool(self.categories)
        return True

    @property
    def modelled(self) -> bool:
        """Whether a model learns this column (not a surrogate, not dropped)."""
        return self.source is not DomainSource.DROP and not self.kind.surrogate

    def check_magnitude(self) -> None:
        """Refuse bounds that no model could compute with.

        Raises:
          SchemaError: a number beyond ±1e150, or a date outside the years 1 to 9999.
        """
        bounds = (self.low, self.high, *self.spikes)
        words = magnitude_fault(bounds, dates=self.kind is Kind.DATETIME)
        if words and self.kind.numeric and self.modelled:
            raise SchemaError(
                f"Column '{self.name}': its bounds must {words}. Nothing was spent. Declare "
                "narrower bounds on the Tables page, or leave the column out."
            )

    def fields(self) -> dict[str, Any]:
        """The declared fields by name, and no others, whatever a subclass adds."""
        return {name: getattr(self, name) for name in Column.model_fields}


class DomainColumn(Column):
    """A column of a domain: the declared fields and where they come from. It leaves the house.

    Attributes:
      provenance: see `Provenance`.
    """

    provenance: Provenance = Provenance.UNSTATED

    @classmethod
    def of(cls, column: Column) -> DomainColumn:
        """The part of any column that may leave, copied field by field."""
        if isinstance(column, DomainColumn | SchemaColumn):
            return cls(**column.fields(), provenance=column.provenance)
        return cls(**column.fields())


INSIDE = ("note", "proposal")  # fields of `SchemaColumn` that earlier versions saved with models
NOTHING_PROPOSED = "none"


class SchemaColumn(Column):
    """A column of a schema: the declared fields and what is for the steward alone.

    Attributes:
      note: a doubt or explanation in plain words; it may quote counts of rows.
      proposal: digest of the domain as it was proposed from the rows; "none" where nothing was
        proposed, as in a schema that somebody wrote; None where nobody recorded it. It depends on
        rows even where the steward set another domain.
    """

    note: str = ""
    proposal: str | None = None

    @property
    def provenance(self) -> Provenance:
        """Found by comparing the domain with its proposal, so that no way of editing forgets it."""
        if self.proposal is None or self.kind.surrogate:  # made-up values have no domain
            return Provenance.UNSTATED
        unchanged = self.proposal == self._digest()
        return Provenance.PROPOSED if unchanged else Provenance.STEWARD

    def as_proposed(self) -> Self:
        """This column, with its domain recorded as a proposal from the rows."""
        return self.model_copy(update={"proposal": self._digest()})

    def _digest(self) -> str:
        # Fields at their defaults are left out: one that a later version adds changes no digest.
        domain = Column(**self.fields()).model_dump_json(
            exclude={"name", "source"}, exclude_defaults=True
        )
        return hashlib.sha256(domain.encode()).hexdigest()[:16]


def _schema_column(column: Any) -> Any:
    plain = isinstance(column, Column) and not isinstance(column, SchemaColumn)
    return SchemaColumn(**column.fields()) if plain else column


def _twice(names: Iterable[str]) -> list[str]:
    return sorted(name for name, count in Counter(names).items() if count > 1)


class Schema(BaseModel):
    """A table's columns in file order, its target, entity key, sensitive groups and holdout.

    `holdout` is the share of records kept out of training, in [0, ½]; see `core.table.holdout`.

    Raises (pydantic.ValidationError, a ValueError): duplicate names, or a role naming no column.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    columns: tuple[SchemaColumn, ...] = Field(min_length=1)
    target: str | None = None
    entity_key: str | None = None
    sensitive: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    holdout: float = Field(default=0.0, ge=0.0, le=0.5)

    @field_validator("columns", mode="before")
    @classmethod
    def _own_type(cls, columns: Iterable[Any]) -> tuple[Any, ...]:
        return tuple(_schema_column(column) for column in columns)

    @model_validator(mode="after")
    def _roles(self) -> Self:
        if twice := _twice(self.names):
            raise ValueError(f"column names appear twice: {', '.join(twice)}")
        tagged = [name for names in self.sensitive.values() for name in names]
        for role in (self.target, self.entity_key, *tagged):
            if role is not None and role not in self.names:
                raise ValueError(f"no column is called '{role}'")
        if twice := _twice(tagged):
            raise ValueError(f"columns are tagged twice as sensitive: {', '.join(twice)}")
        empty = [group for group, columns in self.sensitive.items() if not columns]
        if empty:
            raise ValueError(f"a sensitive group holds no column: {', '.join(empty)}")
        return self

    def __getitem__(self, name: str) -> SchemaColumn:
        """The column of that name; KeyError when there is none."""
        return {column.name: column for column in self.columns}[name]

    @property
    def names(self) -> tuple[str, ...]:
        """Column names in file order."""
        return tuple(column.name for column in self.columns)

    def replace(self, column: Column) -> Schema:
        """This schema with the column of the same name replaced."""
        new = _schema_column(column)
        columns = tuple(new if c.name == column.name else c for c in self.columns)
        return self.model_copy(update={"columns": columns})

    def domain(self) -> Domain:
        """The public domain of the columns that will be in the synthetic table.

        Raises:
          UndeclaredDomainError: bounds or categories are missing; the columns are named.
          SchemaError: nothing is left to model, a bound is too large to compute with, or the
            target or a tagged column is not modelled.
        """
        remaining = tuple(c for c in self.columns if c.source is not DomainSource.DROP)
        unknown = [c.name for c in remaining if not c.declared]
        if unknown:
            raise UndeclaredDomainError(
                f"Bounds or categories are not declared for: {', '.join(unknown)}. "
                "Declare them on the Tables page, or drop these columns."
            )
        for column in remaining:
            column.check_magnitude()
        if not any(c.modelled for c in remaining):
            raise SchemaError(
                "No column is left to model: every one is dropped, text or an identifier."
            )
        if self.target is not None and not self[self.target].modelled:
            raise SchemaError(
                f"The target '{self.target}' is dropped, text or an identifier. "
                "Choose another target or none."
            )
        for group, columns in self.sensitive.items():
            lost = [name for name in columns if not self[name].modelled]
            if lost:
                raise SchemaError(
                    f"The sensitive group '{group}' names columns that are dropped, text or "
                    f"identifiers: {', '.join(lost)}. Untag them; they reveal no distribution."
                )
        public = tuple(DomainColumn.of(column) for column in remaining)
        return Domain(columns=public, target=self.target, sensitive=self.sensitive)


class Domain(BaseModel):
    """What a model may know for free: the kept columns with their declared domains, the target.

    `sensitive` names disjoint groups of columns whose joint distribution must not be revealed.

    It is built field by field from what is declared, whatever it is given, and so is each saved
    one that is read: notes and proposals, which depend on rows, stay behind.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    columns: tuple[DomainColumn, ...]
    target: str | None = None
    sensitive: dict[str, tuple[str, ...]] = Field(default_factory=dict)

    @field_validator("columns", mode="before")
    @classmethod
    def _declared_only(cls, columns: Iterable[Any]) -> tuple[Any, ...]:
        return tuple(
            DomainColumn.of(column)
            if isinstance(column, Column)
            else {name: value for name, value in dict(column).items() if name not in INSIDE}
            for column in columns
        )

    @property
    def modelled(self) -> tuple[DomainColumn, ...]:
        """Columns a model learns, in file order."""
        return tuple(c for c in self.columns if c.modelled)

    @property
    def numeric(self) -> tuple[DomainColumn, ...]:
        """Modelled columns whose values lie on a line."""
        return tuple(c for c in self.modelled if c.kind.numeric)

    @property
    def listed(self) -> tuple[DomainColumn, ...]:
        """Modelled columns whose values come from a list."""
        return tuple(c for c in self.modelled if c.kind.listed)

    def project(self, names: Sequence[str]) -> Domain:
        """The domain of some columns, in this order; target and tags as far as they are among them.

        Raises:
          KeyError: no column has one of the names.
        """
        by_name = {column.name: column for column in self.columns}
        tagged = {g: tuple(c for c in cs if c in names) for g, cs in self.sensitive.items()}
        return Domain(
            columns=tuple(by_name[name] for name in names),
            target=self.target if self.target in names else None,
            sensitive={group: columns for group, columns in tagged.items() if columns},
        )
