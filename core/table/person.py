"""Person: whose rows are protected together, and what is public of how they belong together."""

from __future__ import annotations

from typing import Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

__all__ = ["MOST_ROWS", "Person"]

MOST_ROWS = 1000  # of one person


class Person(BaseModel):
    """The unit of privacy, where a person may appear in several rows.

    Attributes:
      columns: say together who a row is of; empty where no column does, and then nobody can tell
        whose rows are whose, so each row counts as a record of its own, protected `rows` deep.
      rows: at most so many rows of one person, ≥ 1. With `columns` more are left out of training;
        without, it is the steward's word.
      constant: columns that hold one value for a person, in every row of theirs.
      order: a column by which the rows of a person are sorted in the synthetic table, or None.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    columns: tuple[str, ...] = ()
    rows: int = Field(ge=1, le=MOST_ROWS)
    constant: tuple[str, ...] = ()
    order: str | None = None

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if not self.columns and (self.constant or self.order is not None):
            raise ValueError(
                "constant columns and an order need a column that says who a row is of"
            )
        roles = (*self.columns, *self.constant)
        twice = sorted({name for name in roles if roles.count(name) > 1})
        if twice:
            raise ValueError(f"columns have two roles for a person: {', '.join(twice)}")
        if self.order is not None and self.order in roles:
            raise ValueError(f"'{self.order}' cannot sort rows in which it never changes")
        return self

    @property
    def grouped(self) -> bool:
        """Whether rows are put together by person."""
        return bool(self.columns)

    @property
    def named(self) -> tuple[str, ...]:
        """Every column with a role."""
        return (*self.columns, *self.constant, *(() if self.order is None else (self.order,)))

    @property
    def key(self) -> tuple[tuple[str, ...], int]:
        """What tells one unit of privacy from another: who says whose rows they are, and m."""
        return (self.columns, self.rows)

    @property
    def words(self) -> str:
        """The unit that ε protects, in a few words."""
        if self.rows == 1 and not self.grouped:
            return "per row"
        return f"per person, at most {self.rows} row{'s' if self.rows > 1 else ''}"
