"""A broken domain: the schema's own columns, with notes that quote counts of rows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pydantic import field_validator

from core.schema.column import DomainSource, SchemaColumn
from core.schema.schema import Domain, Schema


class NotedDomain(Domain):
    """The mutant: what it is given is passed on."""

    columns: tuple[SchemaColumn, ...]  # type: ignore[assignment]

    @field_validator("columns", mode="before")
    @classmethod
    def _declared_only(cls, columns: Iterable[Any]) -> tuple[Any, ...]:
        return tuple(columns)


def noted_domain(schema: Schema) -> Domain:
    """`Schema.domain` without its projection."""
    kept = tuple(c for c in schema.columns if c.source is not DomainSource.DROP)
    return NotedDomain(columns=kept, target=schema.target, sensitive=schema.sensitive)
