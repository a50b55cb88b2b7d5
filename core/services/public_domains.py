"""Domains that anybody could name without the rows, offered for columns that a run would learn."""

from __future__ import annotations

from core.privacy.discovery.open_domain import bare, open_domain
from core.proposing.public_reference import PublicReference, public_reference
from core.runs.records import TableRecord
from core.runs.storage.store import RunStore
from core.schema.column import DomainSource, Kind, Reference, SchemaColumn
from core.schema.schema import Schema
from core.services.recounting import recounted


def references(schema: Schema) -> dict[str, PublicReference]:
    """By column that a run would learn, the domain that its name, kind and form make public.

    Columns of yes and no are left out: their two values are known anyway.
    """
    wanted = open_domain(schema)
    found = {one.name: public_reference(one) for one in (*wanted.numeric, *wanted.listed)}
    return {
        name: one
        for name, one in found.items()
        if one is not None and schema[name].kind is not Kind.BOOLEAN
    }


def with_references(schema: Schema) -> Schema:
    """The schema with all public references in place of what a run would learn."""
    for name, one in references(schema).items():
        schema = schema.replace(_declared(schema[name], one))
    return schema


def use_references(store: RunStore, table: TableRecord) -> TableRecord:
    """Declare all public references of a table; counts what does not fit."""
    return recounted(store, table, with_references(table.schema))


def _declared(column: SchemaColumn, one: PublicReference) -> SchemaColumn:
    """The column with a public domain; only the rows know of missing cells, so some may be."""
    known = bare(column).model_copy(
        update={
            "source": DomainSource.DECLARED,
            "missing": True,
            "low": one.low,
            "high": one.high,
            "categories": one.categories,
        }
    )
    reference = Reference(source=one.source, domain=known.domain_digest)
    return known.model_copy(update={"reference": reference})
