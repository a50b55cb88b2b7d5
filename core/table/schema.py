"""Schema, Column and Domain: what may be known about a table without touching its rows.

A `Schema` is what the steward confirms; a `Domain` is the public part of it that a model may use.
Both are frozen values with a JSON form, so that a plan, a certificate and a saved model can quote
exactly what was declared.
"""

from __future__ import annotations

import math
from enum import StrEnum
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

__all__ = [
    "Column",
    "Domain",
    "DomainSource",
    "Kind",
    "Schema",
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


class SchemaError(ValueError):
    """A schema that cannot be used; the message names the column and what to change."""


class UndeclaredDomainError(SchemaError):
    """Columns whose bounds or categories are neither declared nor bought."""


class Column(BaseModel):
    """One column: its kind, its public domain and how to write it back.

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
      note: a doubt or explanation in plain words, shown to the steward.
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
    note: str = ""

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


class Schema(BaseModel):
    """A table's columns in file order, its target, entity key, sensitive groups and holdout.

    `holdout` is the share of records kept out of training, in [0, ½]; see `core.table.holdout`.

    Raises (pydantic.ValidationError, a ValueError): duplicate names, or a role naming no column.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    columns: tuple[Column, ...] = Field(min_length=1)
    target: str | None = None
    entity_key: str | None = None
    sensitive: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    holdout: float = Field(default=0.0, ge=0.0, le=0.5)

    @model_validator(mode="after")
    def _roles(self) -> Self:
        names = [column.name for column in self.columns]
        if len(set(names)) != len(names):
            twice = sorted({name for name in names if names.count(name) > 1})
            raise ValueError(f"column names appear twice: {', '.join(twice)}")
        roles = [self.target, self.entity_key, *(c for g in self.sensitive.values() for c in g)]
        for role in roles:
            if role is not None and role not in names:
                raise ValueError(f"no column is called '{role}'")
        tagged = [c for g in self.sensitive.values() for c in g]
        if len(set(tagged)) != len(tagged):
            twice = sorted({name for name in tagged if tagged.count(name) > 1})
            raise ValueError(f"columns are tagged twice as sensitive: {', '.join(twice)}")
        empty = [group for group, columns in self.sensitive.items() if not columns]
        if empty:
            raise ValueError(f"a sensitive group holds no column: {', '.join(empty)}")
        return self

    def __getitem__(self, name: str) -> Column:
        """The column of that name; KeyError when there is none."""
        for column in self.columns:
            if column.name == name:
                return column
        raise KeyError(name)

    @property
    def names(self) -> tuple[str, ...]:
        """Column names in file order."""
        return tuple(column.name for column in self.columns)

    def replace(self, column: Column) -> Schema:
        """This schema with the column of the same name replaced."""
        columns = tuple(column if c.name == column.name else c for c in self.columns)
        return self.model_copy(update={"columns": columns})

    def domain(self) -> Domain:
        """The public domain of the columns that will be in the synthetic table.

        Raises:
          UndeclaredDomainError: bounds or categories are missing; the columns are named.
          SchemaError: nothing is left to model, or the target or a tagged column is not modelled.
        """
        kept = tuple(c for c in self.columns if c.source is not DomainSource.DROP)
        unknown = [c.name for c in kept if not c.declared]
        if unknown:
            raise UndeclaredDomainError(
                f"Bounds or categories are not declared for: {', '.join(unknown)}. "
                "Declare them on the Tables page, or drop these columns."
            )
        if not any(c.modelled for c in kept):
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
        return Domain(columns=kept, target=self.target, sensitive=self.sensitive)


class Domain(BaseModel):
    """What a model may know for free: the kept columns with their declared domains, the target.

    `sensitive` names disjoint groups of columns whose joint distribution must not be revealed.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    columns: tuple[Column, ...]
    target: str | None = None
    sensitive: dict[str, tuple[str, ...]] = Field(default_factory=dict)

    @property
    def modelled(self) -> tuple[Column, ...]:
        """Columns a model learns, in file order."""
        return tuple(c for c in self.columns if c.modelled)

    @property
    def numeric(self) -> tuple[Column, ...]:
        """Modelled columns whose values lie on a line."""
        return tuple(c for c in self.modelled if c.kind.numeric)

    @property
    def listed(self) -> tuple[Column, ...]:
        """Modelled columns whose values come from a list."""
        return tuple(c for c in self.modelled if c.kind.listed)
